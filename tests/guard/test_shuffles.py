"""The spread of a score under shuffles within tasks is exact, and shuffles stay within tasks."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from datasets import Dataset
from scipy import sparse

from whileai_hf.guard.shuffles import Graded, Shuffles


def graded(rewards, tasks):
    return Graded(Dataset.from_dict({"task_id": list(tasks), "reward": list(rewards)}))


def test_the_spread_is_that_of_all_shuffles():
    """Two tasks of three attempts: 36 shuffles."""
    rng = np.random.default_rng(1)
    data, x = graded(rng.random(6), "aaabbb"), rng.random(6)
    test = Shuffles(data, sparse.csc_matrix(x[:, None]), 20, 0)
    reward = data.centred(data.reward)
    dots = [
        np.r_[reward[:3][list(p)], reward[3:][list(q)]] @ x
        for p, q in product(permutations(range(3)), permutations(range(3)))
    ]
    assert test.spread(reward)[0] == pytest.approx(np.std(dots))


def test_a_shuffle_keeps_every_task_its_rewards():
    data = graded(np.arange(12.0), "abcabcabcabc")
    test = Shuffles(data, sparse.csc_matrix(np.ones((12, 1))), 20, 0)
    shuffled = test._shuffled(data.reward, np.random.default_rng(0))
    assert not np.array_equal(shuffled, data.reward)
    for task in range(3):
        inside = data.codes == task
        assert sorted(shuffled[inside]) == sorted(data.reward[inside])


def test_tasks_without_a_spread_are_left_out():
    data = graded([1, 1, 0, 1, np.nan, 0], "aabbcc")
    assert (data.n_tasks, data.n_unanimous, data.n_rows) == (1, 2, 2)
