"""Hashes agree with the words they stand for."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from whileai_hf import text
from whileai_hf.shingles import HashedWords

TEXTS = st.lists(st.text(alphabet="abC 1\n.é取消ก่\u00ad", max_size=12), max_size=6)


def codes(values):
    """Number values in the order in which they first appear."""
    seen = {}
    return [seen.setdefault(v, len(seen)) for v in values]


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_words_runs_and_texts_are_hashed_as_they_are_split(texts):
    hashed = HashedWords.of(texts)
    split = [text.words(t) for t in texts]
    assert hashed.lengths.tolist() == [len(w) for w in split]
    assert codes(hashed.words.tolist()) == codes([w for words in split for w in words])
    assert codes(hashed.whole().tolist()) == codes([tuple(w) for w in split])
    runs, at = hashed.grams(2)
    expected = [pair for words in split for pair in itertools.pairwise(words)]
    assert codes(runs.tolist()) == codes(expected)
    assert len(at) == len(expected)


def test_a_run_and_a_whole_text_of_the_same_words_have_one_hash():
    long, short = HashedWords.of(["a b c d", "x"]), HashedWords.of(["B, c!"])
    assert short.whole()[0] in long.grams(2)[0]


def test_masked_numbers_are_all_alike():
    hashed = HashedWords.of(["take 15 of 20", "take 7 of 1000", "take a of b"])
    masked = hashed.whole(mask_numbers=True)
    assert masked[0] == masked[1] != masked[2]
    assert len(np.unique(hashed.whole())) == 3


def test_nothing_is_hashed_to_nothing():
    assert len(HashedWords.of([])) == 0
    assert HashedWords.of([]).grams(3)[0].shape == (0,)
    assert HashedWords.of(["", "?"]).lengths.tolist() == [0, 0]
