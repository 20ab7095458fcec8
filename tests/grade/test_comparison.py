"""The better of two judges is named only where the labels show it."""

from __future__ import annotations

import numpy as np
import pytest
from grade.labelled_rows import rows

import whileai_hf as wai

GOLD = [1.0, 0.0] * 60


def noisy(share, seed):
    flip = np.random.default_rng(seed).random(len(GOLD)) < share
    return np.where(flip, 1 - np.array(GOLD), GOLD).tolist()


def test_judges_are_listed_by_kappa_and_the_gain_has_an_interval():
    data = rows(GOLD, GOLD, good=noisy(0.05, 0), poor=noisy(0.4, 1))
    found = wai.compare_judges(data, {"poor": "poor", "good": "good", "always": lambda row: 1.0})
    assert [j.judge for j in found.judges] == ["good", "poor", "always"]
    assert all(check.verdict == "pass" for check in found.better)
    assert "good over poor" in str(found)


def test_two_judges_that_differ_by_chance_are_not_ranked():
    data = rows(GOLD, GOLD, a=noisy(0.1, 0), b=noisy(0.1, 1))
    found = wai.compare_judges(data, {"a": "a", "b": "b"})
    assert found.better[0].verdict == "unmeasured"


def test_a_judge_that_judges_nothing_comes_last():
    found = wai.compare_judges(rows(GOLD, GOLD), {"dead": lambda row: None, "gold": "gold_reward"})
    assert [j.judge for j in found.judges] == ["gold", "dead"]
    assert found.better[0].verdict == "unmeasured"


def test_one_judge_is_no_comparison():
    with pytest.raises(wai.InputError, match="two or more"):
        wai.compare_judges(rows(GOLD, GOLD), {"a": "reward"})
