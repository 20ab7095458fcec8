"""Near duplicates: nearly the same words are one reply, other numbers are two, and no pair of everything is made."""

from __future__ import annotations

import numpy as np
import pytest

import whileai_hf as wai

LONG = "the order has been cancelled and the money will be back on your card within a few working days as always"


def marked(*texts, **options):
    rows = wai.rows(["q"] * len(texts), list(texts))
    ids = rows["rollout_id"][:]
    found = wai.with_near_duplicates(rows, **options)["near_duplicate_of"][:]
    return [None if f is None else ids.index(f) for f in found]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ((LONG, LONG.upper() + "!"), [None, 0]),
        ((LONG, LONG.replace("always", "usual")), [None, 0]),
        ((LONG, "something else entirely is said here and nothing of it is alike"), [None, None]),
        ((LONG + " total 40", LONG + " total 41"), [None, None]),
        (("A", "B", "A."), [None, None, 0]),
        (("取消订单，钱会在几天内退回。", "取消订单 钱会在几天内退回"), [None, 0]),
        (("", ""), [None, 0]),
    ],
)
def test_nearly_the_same_words_and_the_same_numbers_are_near(texts, expected):
    assert marked(*texts) == expected


def test_the_decision_is_that_of_jaccard_by_hand():
    rng = np.random.default_rng(0)
    base = rng.choice(list("abcdefghij"), 40)
    texts = [" ".join(base)]
    for _ in range(60):
        other = base.copy()
        other[rng.choice(40, rng.integers(0, 4), replace=False)] = "z"
        texts.append(" ".join(other))
    found = marked(*texts, similarity=0.75)
    runs = [{tuple(t.split()[i : i + 3]) for i in range(38)} for t in texts]
    for i, at in enumerate(found):
        near = [j for j in range(i) if len(runs[i] & runs[j]) / len(runs[i] | runs[j]) >= 0.75]
        if at is not None:
            assert at in near
    to_first = [len(r & runs[0]) / len(r | runs[0]) >= 0.75 for r in runs]
    assert all(found[i] is not None for i in range(1, len(found)) if to_first[i])


def test_prompts_of_all_rows_can_be_compared():
    rows = wai.rows([LONG, LONG + "?"], ["a", "b"])
    assert wai.with_near_duplicates(rows)["near_duplicate_of"][:] == [None, None]
    found = wai.with_near_duplicates(rows, within="all", of="prompt")
    assert found["near_duplicate_of"][:] == [None, rows["rollout_id"][0]]
    assert len(found.filter(wai.Distinct())) == 1


def test_the_gate_works_in_select():
    rows = wai.rows(["q"] * 2, [LONG, LONG + "!"], reward=[1, 1])
    assert len(rows.select(mode="sft", gates=[wai.Distinct()], top=None)) == 1


@pytest.mark.parametrize("options", [{"similarity": 0}, {"within": "tasks"}, {"of": "answer"}])
def test_options_that_name_nothing_are_errors(options):
    with pytest.raises(wai.InputError, match=next(iter(options))):
        wai.with_near_duplicates(wai.rows(["q"], ["a"]), **options)


def test_no_rows_are_marked():
    assert len(wai.with_near_duplicates(wai.Rollouts.from_records([]))) == 0
