"""A judge is trusted where labels show it, and unmeasured where they do not."""

from __future__ import annotations

import numpy as np
import pytest
from grade.labelled_rows import clustered, rows
from reports import public_reports

import whileai_hf as wai

BALANCED = [1.0, 0.0] * 50


def test_a_judge_that_agrees_on_enough_labels_is_trusted():
    found = wai.judge_trust(rows(BALANCED, BALANCED))
    assert found.ok
    assert found.checks["agreement"].estimate.value == 1.0
    assert found.advice == ""
    assert "judge: trusted" in str(found)
    assert found.to_dict()["verdict"] == "pass"


def test_an_always_pass_judge_is_not_trusted_on_balanced_labels():
    found = wai.judge_trust(rows(BALANCED, [1.0] * 100))
    assert found.verdict == "fail"
    assert found.checks["leak"].estimate.value == 1.0


def test_labels_of_one_class_measure_nothing():
    found = wai.judge_trust(rows([1.0] * 60, [1.0] * 60))
    assert found.verdict == "unmeasured"
    assert not found.ok
    assert found.advice == "label rows that failed"


def test_labels_of_a_few_tasks_are_few_labels():
    """Sixty labels of six tasks say what six tasks say."""
    found = wai.judge_trust(rows(BALANCED[:60], BALANCED[:60], per_task=10))
    assert found.verdict == "unmeasured"
    assert found.checks["agreement"].estimate.n_tasks == 6
    assert found.checks["agreement"].estimate.interval.low < 0.8
    assert wai.judge_trust(rows(BALANCED[:60], BALANCED[:60])).ok


def test_a_judge_that_pays_length_is_not_trusted():
    rng = np.random.default_rng(0)
    gold = np.array(BALANCED * 2)
    long = rng.random(gold.size) < 0.5
    reward = np.where(long & (rng.random(gold.size) < 0.35), 1.0, gold)
    texts = ["word " * (60 if tall else 6) for tall in long]
    found = wai.judge_trust(rows(gold.tolist(), reward.tolist(), texts=texts))
    assert found.checks["length bias"].verdict == "fail"
    assert not found.ok
    fair = wai.judge_trust(rows(gold.tolist(), gold.tolist(), texts=texts))
    assert fair.checks["length bias"].verdict == "pass"


def test_a_judge_that_contradicts_itself_is_found():
    said = iter(np.random.default_rng(1).random(10_000) < 0.5)
    data = rows(BALANCED, BALANCED)
    found = wai.judge_trust(data, lambda row: float(next(said)))
    assert found.checks["flips"].verdict == "fail"
    truth = dict(zip(data["rollout_id"], data["gold_reward"], strict=True))
    assert (
        wai.judge_trust(data, lambda row: truth[row["rollout_id"]]).checks["flips"].verdict
        == "pass"
    )
    dead = wai.judge_trust(data, lambda row: None)
    assert dead.checks["flips"].verdict == "unmeasured"


def test_labels_of_a_model_are_no_gold():
    data = wai.attach_labels(
        rows(BALANCED, BALANCED), {f"r{i}": g for i, g in enumerate(BALANCED)}, kind="model"
    )
    assert wai.judge_trust(data).verdict == "unmeasured"
    assert wai.judge_trust(data, allow_model_gold=True).ok


def test_rows_that_broke_are_skipped_and_counted():
    data = rows(BALANCED, [None] * 20 + BALANCED[20:], judge_status=["timeout"] * 20 + ["ok"] * 80)
    found = wai.judge_trust(data)
    assert found.skipped_share == pytest.approx(0.2)
    assert found.verdict == "unmeasured"
    assert "inconclusive" in found.reason


def test_no_labels_at_all_is_unmeasured_and_a_missing_column_is_an_error():
    assert wai.judge_trust(rows([None] * 9, [1.0] * 9)).verdict == "unmeasured"
    assert wai.judge_trust(rows([], []).select(range(0))).verdict == "unmeasured"
    with pytest.raises(wai.SchemaError, match="attach_labels"):
        wai.judge_trust(rows([1.0], [1.0]).remove_columns("gold_reward"))
    with pytest.raises(wai.InputError, match="confidence"):
        wai.judge_agreement(rows([1.0], [1.0]), confidence=95)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_tasks", "per_task", "spread"), [(100, 1, 1e6), (40, 5, 8), (20, 5, 8), (25, 8, 3)]
)
def test_a_judge_at_the_limit_is_trusted_at_the_stated_rate(n_tasks, per_task, spread):
    """Half of what the confidence leaves: 2.5 % false trust at agreement 0.8, labels clustered by task."""
    draws = 400
    kwargs = {"min_agreement": 0.8, "min_kappa": -1.0}
    trusted, failed, good, bad = 0, 0, 0, 0
    for seed in range(draws):
        at = (
            wai.judge_agreement(clustered(0.8, n_tasks, per_task, spread, seed), **kwargs)
            .checks["agreement"]
            .verdict
        )
        trusted += at == "pass"
        failed += at == "fail"
    for seed in range(100):
        good += (
            wai.judge_agreement(clustered(0.95, n_tasks, per_task, spread, seed), **kwargs)
            .checks["agreement"]
            .ok
        )
        bad += (
            wai.judge_agreement(clustered(0.6, n_tasks, per_task, spread, seed), **kwargs)
            .checks["agreement"]
            .verdict
            == "fail"
        )
    print(f"\n{n_tasks} tasks x {per_task}, spread {spread:g}: at the limit trusted {trusted / draws:.1%}, "
          f"rejected {failed / draws:.1%}; 0.95 trusted {good}%, 0.60 rejected {bad}%")  # fmt: skip
    assert trusted / draws < 0.025 + 0.02
    assert failed / draws < 0.025 + 0.025
    assert bad > 60


@pytest.mark.parametrize(
    "case", [c for c in public_reports("judge") if c.id in ("G01", "G02", "G04", "G05")]
)
def test_public_reports(case):
    given, expected = case["input"], case["expected"]
    if "labeled" in given:
        n, skipped = given["labeled"], given["judge_fractional"]
        gold = [1.0, 0.0] * (n // 2)
        data = rows(gold, [0.5] * skipped + gold[skipped:])
    elif "gold_n" in given:
        gold = [1.0, 0.0] * (given["gold_n"] // 2)
        data = rows(gold, gold)
    elif isinstance(given["gold"], str):
        data = rows([1.0] * 9 + [0.0], [1.0] * 10)
    else:
        data = rows(given["gold"], given["judge"])
    found = wai.judge_trust(data)
    assert not found.ok
    if "agreement" in expected:
        assert found.agreement.percent.value == expected["agreement"]
        kappa = found.agreement.kappa
        assert (None if kappa is None else kappa.value) == expected["kappa"]
        assert found.agreement.degenerate == expected.get("degenerate", False)
    if "advice" in expected:
        assert found.advice == expected["advice"]
        # Student's quantile in place of the normal one: no wider than the report's bound
        assert found.checks["agreement"].estimate.interval.low <= expected["wilson_low"]
    if "skipped_share" in expected:
        assert found.skipped_share == pytest.approx(expected["skipped_share"])
        assert expected["verdict"] in found.reason
        assert found.verdict == "unmeasured"
