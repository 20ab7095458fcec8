"""compare: a verdict only where interval and test agree, and every reason not to believe it named."""

from __future__ import annotations

import numpy as np
import pytest

import whileai_hf as wai
from whileai_hf.measure.delta import Cause, Verdict


def side(rates, k=4, markers=None, prompt="p", judge=None, seed=0, start=0):
    rng = np.random.default_rng(seed)
    records = []
    for i, rate in enumerate(rates):
        for j in range(k):
            won = float(rng.random() < rate)
            records.append(
                {"task_id": f"t{i + start}", "repeat": j, "reward": won, "judge": judge,
                 "markers": {m: float(f(won, rng)) for m, f in (markers or {}).items()},
                 "messages": [{"role": "system", "content": prompt}, {"role": "assistant", "content": "x"}]}
            )  # fmt: skip
    return wai.Rollouts.from_records(records)


def test_a_large_gain_is_better_and_the_line_says_it():
    report = wai.compare(side([0.0] * 20), side([1.0] * 20))
    assert report.verdict is Verdict.BETTER
    assert report.ok
    assert str(report).startswith("reward 0.00 -> 1.00, +1.000 [+")
    assert "20 paired tasks): better" in str(report)


def test_no_difference_is_not_shown_and_a_loss_is_worse():
    assert wai.compare(side([0.5] * 20), side([0.5] * 20)).verdict is Verdict.NOT_SHOWN
    report = wai.compare(side([1.0] * 20), side([0.0] * 20))
    assert report.verdict is Verdict.WORSE
    assert not report.ok


def test_five_tasks_that_all_flip_are_the_smallest_proof():
    assert wai.compare(side([0.0] * 5), side([1.0] * 5)).verdict is Verdict.BETTER
    assert wai.compare(side([0.0] * 4), side([1.0] * 4)).verdict is Verdict.NOT_SHOWN


@pytest.mark.parametrize("option", ["target", "proxy", "must_not_regress"])
def test_a_metric_that_does_not_exist_is_an_error(option):
    value = ["polte"] if option == "must_not_regress" else "polte"
    with pytest.raises(wai.InputError, match="'polte'"):
        wai.compare(side([0.5] * 5), side([0.5] * 5), **{option: value})


def test_a_guarded_marker_that_fell_fails_the_report():
    good, bad = {"polite": lambda won, rng: 1}, {"polite": lambda won, rng: rng.random() < 0.2}
    report = wai.compare(
        side([0.0] * 20, markers=good), side([1.0] * 20, markers=bad), must_not_regress=["polite"]
    )
    assert report.regressed == ("polite",)
    assert not report.ok
    assert "REGRESSED" in str(report)


def test_a_proxy_that_rose_alone_is_over_optimization():
    low, high = {"paid": lambda won, rng: 0}, {"paid": lambda won, rng: 1}
    report = wai.compare(
        side([0.5] * 20, markers=low), side([0.5] * 20, markers=high, seed=1), proxy="paid"
    )
    assert report.verdict is Verdict.OVER_OPTIMIZED
    assert not report.ok


def test_the_noise_of_re_runs_hides_a_small_change():
    a, b = side([0.3] * 60, k=8), side([0.5] * 60, k=8, seed=1)
    assert wai.compare(a, b).verdict is Verdict.BETTER
    assert wai.compare(a, b, run_std=0.2, run_std_runs=3).verdict is Verdict.WITHIN_NOISE
    with pytest.raises(wai.InputError, match="2 or more runs"):
        wai.compare(a, b, run_std=0.1, run_std_runs=1)


def test_one_training_seed_an_arm_is_unresolved_and_several_widen():
    a, b = side([0.2] * 30), side([0.8] * 30, seed=1)
    assert wai.compare(a, b, train_runs={"after": [b]}).verdict is Verdict.UNRESOLVED
    wide = wai.compare(a, b, train_runs={"after": [b, side([0.1] * 30, seed=2)]})
    assert wide.verdict is Verdict.NOT_SHOWN
    steady = wai.compare(
        a, b, train_runs={"after": [b, side([0.8] * 30, seed=3), side([0.79] * 30, seed=4)]}
    )
    assert steady.verdict is Verdict.BETTER
    assert (
        steady.seeds.high - steady.seeds.low
        > steady.target.interval.high - steady.target.interval.low
    )


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"prompt": "q"}, Cause.PROMPTS),
        ({"judge": "other"}, Cause.JUDGES),
        ({"start": 15}, Cause.TASKS),
    ],
)
def test_what_cannot_be_compared_is_named(options, cause):
    report = wai.compare(
        side([0.0] * 20, judge="mine"), side([1.0] * 20, **{"judge": "mine", **options})
    )
    assert report.verdict is Verdict.NOT_COMPARABLE
    assert cause in report.causes
    assert "NOT COMPARABLE" in str(report)


def test_unjudged_rows_on_one_side_are_a_cause():
    before = side([0.5] * 20)
    after = before.map(lambda row: {"reward": None if row["reward"] == 0 else 1.0})
    assert Cause.GRADED in wai.compare(before, after).causes


def test_no_shared_task_is_an_error():
    with pytest.raises(wai.InputError, match="shared tasks"):
        wai.compare(side([0.5] * 3), side([0.5] * 3, start=9))


def test_further_metrics_are_corrected_by_holm():
    markers = {f"m{i}": (lambda won, rng: rng.random() < 0.5) for i in range(4)}
    report = wai.compare(
        side([0.5] * 20, markers=markers), side([0.5] * 20, markers=markers, seed=5)
    )
    assert len(report.others) == 4
    assert all(d.p_holm >= d.mid_p for d in report.others)


def test_the_two_names_are_one_function():
    assert wai.compare is wai.delta_report
