"""The public reports about pass rates and comparisons, each as the call that a user makes."""

from __future__ import annotations

import numpy as np
import pytest
from datasets import Dataset
from reports import public_reports

import whileai_hf as wai
from whileai_hf.measure.delta import Cause, Verdict
from whileai_hf.measure.noise import noise_band
from whileai_hf.measure.paired import sign_flip
from whileai_hf.measure.power import holdout_size


def graded(rewards):
    """Rewards by task id."""
    pairs = [(task, r) for task, values in rewards.items() for r in values]
    return Dataset.from_dict({"task_id": [t for t, _ in pairs], "reward": [r for _, r in pairs]})


def groups(given):
    return graded({t: [1.0] * g["c"] + [0.0] * (g["n"] - g["c"]) for t, g in given.items()})


def flat(name, values):
    return graded({f"{name}{i}": v for i, v in enumerate(values)})


NAMED_GROUPS = {
    "20 tasks, 4 of 4 each": [[1.0] * 4] * 20,
    "50 tasks, half 8 of 8, half 0 of 8": [[1.0] * 8] * 25 + [[0.0] * 8] * 25,
}
JUDGED = {"pass": 1.0, "fail": 0.0, "error": None}


def measured(given):
    if "tasks" in given and isinstance(given["tasks"], dict):
        return wai.pass_at(graded({t: [JUDGED[s] for s in v] for t, v in given["tasks"].items()}))
    if "tasks" in given:
        won = [[1.0]] * given["solved"] + [[0.0]] * (given["tasks"] - given["solved"])
        return wai.pass_at(flat("t", won), k=given["k"])
    if "rewards" in given:
        return wai.pass_at(graded(given["rewards"]), threshold=given["pass_threshold"])
    if isinstance(given["groups"], str):
        return wai.pass_at(flat("t", NAMED_GROUPS[given["groups"]]))
    return wai.pass_at(groups(given["groups"]), k=given.get("k"))


def value_of(estimate):
    return None if estimate is None else estimate.value


@pytest.mark.parametrize(
    "case", [c for c in public_reports("stats") if c.values[0]["feature"] == "pass_at"]
)
def test_pass_at_reports(case):
    expected = case["expected"]
    found = measured(case["input"])
    read = {
        "pass_at_1": value_of(found.pass_at_1),
        "pass_at_k": found.pass_at_1.value if found.k == 1 else value_of(found.pass_at_k),
        "pass_pow_k": value_of(found.pass_hat_k),
        "mean_reward": value_of(found.mean_reward),
        "default_k": found.k,
        "n_tasks_scored": found.n_tasks,
        "n_tasks_planned": found.n_tasks + found.n_unjudged_tasks,
        "judged_share": 1 - found.n_unjudged / found.n_rollouts,
    }
    for name, value in expected.items():
        if name in read:
            assert read[name] == (value if value is None else pytest.approx(value, abs=1e-4)), name
    if expected.get("degenerate"):  # all pass: the interval still says what 20 tasks can say
        assert found.pass_at_1.interval.low < 0.9
    if "ci95" in expected:
        assert (found.pass_at_1.interval.low, found.pass_at_1.interval.high) == (0.0, 1.0)
        assert "one task says nothing about others" in str(found)
    if "half_width_about" in expected:
        interval = found.pass_at_1.interval
        assert (interval.high - interval.low) / 2 == pytest.approx(
            expected["half_width_about"], abs=0.01
        )
    if "names sizes" in expected.get("note", ""):
        assert "2 to 8 judged attempts" in str(found)
    if found.n_short:
        assert f"{found.n_short} tasks have fewer than {found.k} judged attempts" in str(found)
    if "fractional" in expected.get("note", ""):
        assert found.n_partial == 2


def paired(deltas):
    before = flat("t", [[0.0 if d > 0 else 1.0] for d in deltas])
    after = flat("t", [[1.0 if d >= 0 else 0.0] for d in deltas])
    return wai.compare(before, after)


def said(row, text):
    return {"task_id": f"t{row}", "reward": 0.0, "final_text": text,
            "messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": text}]}  # fmt: skip


@pytest.mark.parametrize("case", public_reports("delta"))
def test_delta_reports(case):
    given, expected = case["input"], case["expected"]
    if "draws" in given:  # no draw is as extreme: p counts the data itself
        p, _ = sign_flip(np.pi + np.arange(40) / 7, draws=given["draws"])
        assert p == pytest.approx(expected["p"], abs=1e-5)
    elif "paired_task_deltas" in given:
        report = paired(given["paired_task_deltas"])
        assert report.target.p == pytest.approx(expected["p"])
        if "delta" in expected:
            assert report.target.delta == expected["delta"]
            assert report.verdict is Verdict.NOT_SHOWN
    elif "both_right" in given:
        d = [-1.0] * given["only_a"] + [1.0] * given["only_b"]
        p, _ = sign_flip(np.array(d + [0.0] * (given["both_right"] + given["both_wrong"])))
        assert p == pytest.approx(expected["paired_p"], abs=1e-5)
    elif "effect" in given:
        size = holdout_size(given["effect"], base=given["base_pass_rate"])
        assert size.saturated
        assert size.n_tasks > 2
        assert "saturated" in str(size)
    elif "run_std" in given:
        band = noise_band(given["run_std"], runs=given["runs"])
        assert band.high == pytest.approx(expected["noise_band"], abs=1e-4)
        before = flat("t", [[0.0]] * 8 + [[1.0]] * 92)
        after = flat("t", [[1.0]] * 100)
        report = wai.compare(before, after, run_std=given["run_std"], run_std_runs=given["runs"])
        assert report.verdict is Verdict.WITHIN_NOISE
    elif isinstance(given["before"], list):
        report = wai.compare(
            graded({t: [1.0] for t in given["before"]}), graded({t: [1.0] for t in given["after"]})
        )
        assert report.target.n_tasks == expected["paired_tasks"]
        assert report.n_unpaired == expected["unpaired"]
        assert report.causes == (Cause.TASKS,)
    else:
        sides = [
            wai.Rollouts.from_records(
                [said(i, "" if i < side["no_reply"] else "done") for i in range(side["rows"])]
            )
            for side in (given["before"], given["after"])
        ]
        report = wai.compare(*sides)
        assert report.verdict is Verdict.NOT_COMPARABLE
        assert Cause.ANSWERED in report.causes
