"""The matrix of features is `completion_features` of every row, and keeps what occurs often enough."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whileai_hf.guard.completion_features import completion_features
from whileai_hf.guard.feature_matrix import feature_matrix

CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}}
CHAT = [
    {"role": "assistant", "content": "Let me look.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c", "content": "1"},
    {"role": "assistant", "content": "It is 1."},
]


def same(completions):
    found = feature_matrix(completions)
    dense = found.matrix.toarray()
    for i, completion in enumerate(completions):
        expected = completion_features(completion)
        got = {n: v for n, v in zip(found.names, dense[i], strict=True) if v}
        assert got == pytest.approx({n: v for n, v in expected.items() if v})


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(st.sampled_from("ab 1.!\n中文é"), max_size=30), min_size=1, max_size=6))
def test_the_matrix_holds_the_features_of_each_text(texts):
    same(texts)


def test_the_matrix_holds_the_features_of_conversations():
    same([CHAT, CHAT[2:], "plain text", ""])


def test_what_is_rare_or_everywhere_is_left_out():
    texts = ["all common rare"] + ["all common"] * 5 + ["all"] * 4
    found = feature_matrix(texts, least=3)
    assert "the word 'common'" in found.names
    assert "the word 'rare'" not in found.names
    assert "the word 'all'" not in found.names
    kept = feature_matrix([f"{w} x" for w in "aabbbc"] * 3, most_words=2).names
    assert {n for n in kept if n.startswith("the word")} == {"the word 'b'", "the word 'x'"}


def test_no_rows_and_no_words_have_no_features_of_words():
    assert feature_matrix([""]).matrix.shape[0] == 1
    assert np.all(feature_matrix(["", ""]).matrix.toarray()[:, :1] == 0)
