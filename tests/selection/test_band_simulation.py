"""The band keeps what it should at the stated k, on policies whose pass rates are known."""

from __future__ import annotations

import numpy as np
import pytest
from datasets import Dataset
from scipy.stats import binom

import whileai_hf as wai


def kept_share(rate, k, tasks, rng, **options):
    rewards = (rng.random((tasks, k)) < rate).astype(float)
    rows = Dataset.from_dict(
        {"task_id": np.repeat(np.arange(tasks), k).astype(str), "reward": rewards.ravel()}
    )
    kept = wai.select(rows, mode="rl", gates=[wai.Band(**options)])
    return len(kept) / k / tasks


@pytest.mark.slow
@pytest.mark.parametrize("k", [4, 8, 16])
@pytest.mark.parametrize("rate", [0.02, 0.2, 0.5, 0.9])
def test_the_share_that_stays_is_the_binomial_one(rate, k):
    rng = np.random.default_rng(7)
    passes = np.arange(k + 1)
    inside = (passes / k >= 0.2 - 1e-9) & (passes / k <= 0.8 + 1e-9)
    expected = binom.pmf(passes[inside], k, rate).sum()
    tasks = 4000
    error = 4 * np.sqrt(max(expected * (1 - expected), 0.001) / tasks)
    assert kept_share(rate, k, tasks, rng) == pytest.approx(expected, abs=error)


@pytest.mark.slow
@pytest.mark.parametrize("k", [4, 8, 16])
def test_with_the_intervals_say_a_task_in_the_band_is_rarely_lost(k):
    rng = np.random.default_rng(8)
    for rate in (0.2, 0.5, 0.8):
        assert kept_share(rate, k, 4000, rng, sure=True) > 0.95
    assert kept_share(0.001, 16, 2000, rng, sure=True) < 0.1
