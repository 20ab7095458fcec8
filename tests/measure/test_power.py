"""Sizes and power: read off the interval that gives the verdict, and confirmed by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from datasets import Dataset

import whileai_hf as wai
from whileai_hf.measure.paired import adjusted_wald, sign_flip
from whileai_hf.measure.power import Law, Usable


def graded(rates, k, seed):
    rng = np.random.default_rng(seed)
    won = (rng.random((len(rates), k)) < np.asarray(rates)[:, None]).astype(float)
    return Dataset.from_dict(
        {"task_id": np.repeat([f"t{i}" for i in range(len(rates))], k), "reward": won.ravel()}
    )


def shown(n, p, q, k, trials, seed):
    """Share of simulated comparisons that both the interval and the exact test call a gain."""
    rng = np.random.default_rng(seed)
    d = (rng.binomial(k, q, (trials, n)) - rng.binomial(k, p, (trials, n))) / k
    low, _ = adjusted_wald(d, 0.95)
    return np.mean([a > 0 and sign_flip(x)[1] < 0.05 for a, x in zip(low, d, strict=True)])


@pytest.mark.parametrize(("effect", "k", "base"), [(0.2, 4, 0.6), (0.1, 8, 0.4), (0.3, 1, 0.5)])
def test_the_size_has_the_power_under_the_verdict_itself(effect, k, base):
    size = wai.holdout_size(effect, k=k, base=base)
    power = shown(size.n_tasks, base, base + effect, k, 600, seed=1)
    assert 0.74 < power < 0.87
    assert shown(size.n_tasks // 2, base, base + effect, k, 600, seed=2) < 0.74


def test_large_sizes_agree_with_the_normal_approximation():
    assert wai.holdout_size(0.05).n_tasks == pytest.approx(367, rel=0.04)
    assert wai.holdout_size(0.05, k=1).n_tasks == pytest.approx(1468, rel=0.04)
    assert wai.detectable_effect(100) == pytest.approx(0.0942, abs=0.004)


def test_a_huge_effect_still_needs_the_tasks_that_a_verdict_needs():
    assert wai.holdout_size(0.39).n_tasks >= 5
    assert wai.detectable_effect(3) is None


def test_a_measured_spread_replaces_the_model():
    rates = np.random.default_rng(0).beta(1, 1, 60)
    before, after = graded(rates, 4, 1), graded(np.clip(rates + 0.1, 0, 1), 4, 2)
    size = wai.holdout_size(0.1, before=before, after=after)
    assert size.low <= size.n_tasks <= size.high
    assert "60 paired tasks" in str(size)
    assert size.n_tasks < wai.holdout_size(0.1, base=0.5).n_tasks * 2


def test_tilting_keeps_the_support_and_hits_the_mean():
    law = Law(np.array([-0.5, 0.0, 0.5]), np.array([0.2, 0.6, 0.2]))
    moved = law.tilted(0.12)
    assert moved.mean == pytest.approx(0.12)
    assert moved.chances.sum() == pytest.approx(1)
    with pytest.raises(wai.InputError, match="largest difference"):
        law.tilted(0.6)


def test_saturated_and_floored_sets_are_named():
    assert wai.eval_power(graded([1.0] * 40, 4, 0)).verdict is Usable.SATURATED
    assert wai.eval_power(graded([0.0] * 40, 4, 0)).verdict is Usable.FLOORED
    assert wai.eval_power(graded([0.5] * 10, 4, 0)).verdict is Usable.UNDERPOWERED
    large = wai.eval_power(graded([0.5] * 2000, 4, 0))
    assert large.verdict is Usable.USABLE
    assert large.detectable < 0.05
    assert "is shown with" in str(large)


def test_more_tasks_have_more_power():
    powers = [wai.eval_power(graded([0.5] * n, 4, 0), effect=0.1).power for n in (20, 80, 320)]
    assert powers == sorted(powers)


@pytest.mark.parametrize(
    "call",
    [
        lambda: wai.holdout_size(0.0),
        lambda: wai.holdout_size(1.5),
        lambda: wai.holdout_size(0.1, power=1.0),
        lambda: wai.holdout_size(0.1, after=graded([0.5], 2, 0)),
        lambda: wai.detectable_effect(0),
        lambda: wai.eval_power(Dataset.from_dict({"task_id": ["a"], "reward": [None]})),
    ],
)
def test_bad_input_is_an_error(call):
    with pytest.raises((wai.InputError, wai.SchemaError)):
        call()
