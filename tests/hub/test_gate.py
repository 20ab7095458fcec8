"""The gate counts, and refuses what teaches nothing."""

from __future__ import annotations

import pytest

import whileai_hf as wai
from whileai_hf.hub.gate import publish_gate


def test_mixed_groups_pass_and_are_counted():
    report = publish_gate(wai.rows(["a", "a", "b"], ["x"] * 3, reward=[1, 0.5, 1]), "rl")
    assert (report.n_rows, report.n_tasks, report.n_mixed, report.n_ungraded) == (3, 2, 1, 0)
    assert "1 tasks with mixed rewards" in str(report)


def test_rl_data_without_a_gradient_is_refused():
    made = wai.rows(["a", "a", "b"], ["x"] * 3, reward=[0.1 + 0.2, 0.3, 1])
    with pytest.raises(wai.GuardError, match="none of the 2 tasks") as raised:
        publish_gate(made, "rl")
    assert raised.value.report.n_mixed == 0
    assert publish_gate(made, "sft").n_rows == 3


@pytest.mark.parametrize(
    "made", [wai.Rollouts.from_records([]), wai.rows(["a"], ["x"]).remove_columns("reward")]
)
def test_no_graded_rows_are_refused(made):
    with pytest.raises(wai.GuardError, match="needs graded rollouts"):
        publish_gate(made)


def test_an_unknown_mode_is_an_error():
    with pytest.raises(wai.InputError, match="'dpo'"):
        publish_gate(wai.rows(["a"], ["x"], reward=[1]), "dpo")


@pytest.mark.parametrize("repo_id", ["name", "a/b/c", "/x", "x/"])
def test_a_repository_without_an_owner_is_refused(repo_id):
    with pytest.raises(wai.InputError, match="user/name"):
        wai.push(wai.rows(["a"], ["x"], reward=[1]), repo_id)
