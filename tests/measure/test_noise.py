"""eval_variance and noise_band: what re-runs differ by, and never a band of zero."""

from __future__ import annotations

import numpy as np
import pytest
from datasets import Dataset

import whileai_hf as wai


def run(values, name=None):
    columns = {"task_id": [f"t{i}" for i in range(len(values))], "reward": list(values)}
    if name is not None:
        columns["run"] = [name] * len(values)
    return Dataset.from_dict(columns)


def test_the_band_is_the_peer_formula_of_three_runs():
    found = wai.noise_band(0.02, runs=3)
    assert found.high == pytest.approx(4.3027 * np.sqrt(2) * 0.02, abs=1e-4)
    assert wai.noise_band(0.02, runs=3, n_before=3, n_after=3).high < found.high


def test_runs_may_be_datasets_or_one_dataset_with_a_run_column():
    values = np.random.default_rng(0).random((3, 20))
    several = wai.eval_variance(*[run(v) for v in values])
    table = {"task_id": [], "reward": [], "run": []}
    for i, v in enumerate(values):
        part = run(v, f"r{i}").to_dict()
        for name in table:
            table[name] += part[name]
    one = wai.eval_variance(Dataset.from_dict(table))
    assert several == one
    assert several.run_std == pytest.approx(values.mean(axis=1).std(ddof=1))
    assert several.n_tasks == 20
    assert str(several).startswith("reward: run std 0.0")


def test_a_deterministic_agent_has_a_band_that_is_not_zero():
    found = wai.eval_variance(run([1.0, 0.0] * 8), run([1.0, 0.0] * 8))
    assert found.identical
    assert found.run_std == 0
    assert found.band.high == pytest.approx(1 - 0.025 ** (1 / 16))
    assert "identical" in str(found)
    one_flip = wai.compare(
        run([1.0, 0.0] * 8), run([1.0, 1.0] + [1.0, 0.0] * 7), run_std=0.0, run_std_runs=2
    )
    assert str(one_flip.verdict) != "better"


def test_tasks_that_some_run_lacks_are_counted_and_left_out():
    found = wai.eval_variance(run([1.0, 0.0, 1.0]), run([1.0, 0.0, 1.0, 0.0]))
    assert (found.n_tasks, found.n_left_out) == (3, 1)


def test_bad_input_says_what_to_do():
    with pytest.raises(wai.InputError, match=r"at least 2 runs.*runs=3"):
        wai.eval_variance(run([1.0], "a"))
    with pytest.raises(wai.SchemaError, match="'run'"):
        wai.eval_variance(run([1.0]))
    other = Dataset.from_dict({"task_id": ["x"], "reward": [1.0]})
    with pytest.raises(wai.InputError, match="share none"):
        wai.eval_variance(run([1.0]), other)
    with pytest.raises(wai.InputError, match="run_std"):
        wai.noise_band(-1.0, runs=3)


@pytest.mark.slow
def test_two_runs_of_one_agent_leave_the_band_as_often_as_said():
    """True run noise, 3 re-runs: the band holds a new pair in 95 % of the cases."""
    rng = np.random.default_rng(3)
    outside, trials = 0, 4000
    for _ in range(trials):
        means = 0.6 + 0.02 * rng.standard_normal(5)
        band = wai.noise_band(float(means[:3].std(ddof=1)), runs=3)
        outside += abs(means[3] - means[4]) > band.high
    assert 0.04 < outside / trials < 0.06
