"""self_check: the simulation of this installation, and that it can fail."""

from __future__ import annotations

import pytest

import whileai_hf as wai
from whileai_hf.measure.interval import Interval
from whileai_hf.measure.pass_at import Estimate
from whileai_hf.measure.self_check import Check


def test_a_short_run_holds_and_is_the_same_twice():
    found = wai.self_check(trials=20, progress=False)
    assert found.ok
    assert found == wai.self_check(trials=20, progress=False)
    assert str(found).count("\n") == len(found.checks) - 1


def test_a_share_that_is_shown_to_be_outside_fails():
    share = Estimate(0.8, Interval(0.75, 0.85, 0.95, "wilson"), 300)
    assert not Check("coverage", share, 0.93, 0.98).ok
    assert str(Check("coverage", share, 0.93, 0.98)).startswith("FAIL")


def test_too_few_trials_are_an_error():
    with pytest.raises(wai.InputError, match="at least 20"):
        wai.self_check(trials=3)
