"""The default intervals and the verdict hold their level where the formulas of others do not."""

from __future__ import annotations

import numpy as np
import pytest
from parity.intervals import (
    MEANS,
    NULLS,
    RATES,
    mean_coverage,
    paired_coverage,
    summary,
    verdicts,
)

OURS = "whileai_hf (default)"


def test_a_small_simulation_covers_where_z_does_not():
    found = mean_coverage(
        300, sizes=(16,), tries=(4,), methods={k: MEANS[k] for k in list(MEANS)[:2]}
    )
    smallest = {method: values[0] for method, values in summary(found, 16).items()}
    assert smallest[OURS] > 91
    assert smallest["lm-eval, inspect (z of task means)"] < 88


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 8, 16, 30, 100])
def test_pass_rate_intervals_cover_and_deviate_least(n):
    found = summary(mean_coverage(1500, seed=7, sizes=(n,)), n)
    least, deviation, inside = found[OURS]
    error = 3 * np.sqrt(93 * 7 / 1500)  # of one cell
    assert least > 93 - error
    assert (
        all(deviation < other[1] for method, other in found.items() if method != OURS) or n == 100
    )
    assert inside > {5: 0.1, 8: 0.25, 16: 0.75, 30: 0.9, 100: 0.9}[n]
    assert len(RATES) == 9


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 8, 16, 30, 100])
def test_paired_intervals_have_a_floor(n):
    least, deviation, _ = summary(paired_coverage(1500, seed=7, sizes=(n,)), n)[OURS]
    assert least > 92.5 - 3 * np.sqrt(92.5 * 7.5 / 1500)
    assert deviation < 5


@pytest.mark.slow
@pytest.mark.parametrize("null", NULLS)
def test_equal_agents_are_rarely_called_different(null):
    for n in (5, 8, 16, 30, 100):
        for k in (1, 4, 8):
            called = verdicts(null, n, k, 1000, seed=3)["whileai_hf"]
            assert called <= 6 + 3 * np.sqrt(6 * 94 / 1000), (n, k)
