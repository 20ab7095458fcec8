"""Paired intervals and the sign-flip test against enumeration, SciPy and the published special case."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import whileai_hf as wai
from whileai_hf.measure.paired import adjusted_wald, paired_interval, sign_flip

LATTICE = st.integers(1, 4).flatmap(
    lambda k: st.lists(st.integers(-k, k).map(lambda v: v / k), min_size=1, max_size=9)
)


def enumerated(d):
    if not np.any(np.abs(d) > 1e-9):
        return 1.0, 1.0  # nothing changed: nothing speaks against "no difference"
    sums = np.array([abs(np.dot(s, d)) for s in product([1, -1], repeat=len(d))])
    goal = abs(np.sum(d))
    near = np.abs(sums - goal) < 1e-9
    return np.mean((sums > goal) | near), np.mean((sums > goal) & ~near) + np.mean(near) / 2


@settings(max_examples=120, deadline=None)
@given(LATTICE)
def test_the_test_is_the_enumeration_of_all_sign_patterns(d):
    assert sign_flip(d) == pytest.approx(enumerated(d), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-997, 997).map(lambda v: v / 997), min_size=1, max_size=8))
def test_so_it_is_for_real_values(d):
    assert sign_flip(d) == pytest.approx(enumerated([v for v in d if abs(v) > 1e-9]), abs=1e-7)


def test_it_is_scipys_permutation_test_where_nothing_ties():
    d = np.array([0.11, 0.23, -0.31, 0.43, 0.57, 0.05, 0.72, -0.02])
    found = stats.permutation_test((d,), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert sign_flip(d)[0] == pytest.approx(found.pvalue)


def test_many_real_values_are_drawn_close_to_the_normal_law():
    d = np.random.default_rng(0).normal(0.1, 0.3, 400)
    d = np.clip(d, -1, 1)
    p, mid = sign_flip(d)
    z = abs(d.sum()) / np.sqrt((d**2).sum())
    assert p == pytest.approx(2 * stats.norm.sf(z), abs=0.01)
    assert mid <= p


def test_one_attempt_a_task_is_bonett_and_price():
    up, down, same = 7, 2, 11
    d = np.array([1.0] * up + [-1.0] * down + [0.0] * same)
    n = len(d)
    p12, p21 = (up + 1) / (n + 2), (down + 1) / (n + 2)
    half = 1.959963985 * np.sqrt((p12 + p21 - (p12 - p21) ** 2) / (n + 2))
    assert adjusted_wald(d, 0.95) == pytest.approx((p12 - p21 - half, p12 - p21 + half))


@pytest.mark.parametrize(
    ("d", "low", "high"),
    [
        ([0.0], -0.975, 0.975),
        ([1.0], -0.734, 1.0),
        ([1.0] * 5, 0.196, 1.0),
        ([0.0] * 16, -0.206, 0.206),
        ([0.5] * 16, 0.334, 0.555),
    ],
)
def test_the_edge_cases_are_the_published_ones(d, low, high):
    found = paired_interval(d)
    assert (found.low, found.high) == pytest.approx((low, high), abs=6e-4)


@pytest.mark.parametrize("method", ["adjusted-wald", "t", "bca", "percentile"])
def test_every_method_holds_the_mean_of_ordinary_data(method):
    d = np.random.default_rng(1).choice([-0.25, 0, 0.25, 0.5], 60)
    found = paired_interval(d, method=method)
    assert found.low < d.mean() < found.high
    assert found.method == method


@pytest.mark.parametrize(
    ("d", "options", "what"),
    [
        ([], {}, "one difference"),
        ([2.0], {}, "one difference"),
        ([0.1], {"method": "x"}, "'x'"),
        ([0.1], {"confidence": 95}, "confidence"),
    ],
)
def test_bad_input_is_refused(d, options, what):
    with pytest.raises(wai.InputError, match=what):
        paired_interval(d, **options)


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 8, 16, 30])
def test_false_alarms_of_the_verdict_stay_below_six_percent(n):
    rng = np.random.default_rng(n)
    for draw in (
        lambda: rng.random(n),
        lambda: rng.beta(9, 1, n),
        lambda: rng.choice([0.0, 1.0], n),
    ):
        hits = 0
        for _ in range(1500):
            p = draw()
            d = rng.binomial(4, p) / 4 - rng.binomial(4, p) / 4
            hits += paired_interval(d).excludes_zero and sign_flip(d)[1] < 0.05
        assert hits / 1500 <= 0.06 + 0.012
