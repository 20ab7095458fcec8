"""grade: one contract, five statuses, and a broken judge that harms nobody."""

from __future__ import annotations

import asyncio
import time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import whileai_hf as wai

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def rows(n=3, **options):
    return wai.rows([f"q{i}" for i in range(n)], [f"a{i}" for i in range(n)], **options)


def graded(answer, n=1, **options):
    return wai.grade(rows(n), lambda row: answer, progress=False, **options)


@pytest.mark.parametrize(
    "reward", [1, 1.0, True, np.float32(1), np.int64(1), Decimal(1), Fraction(1), np.array(1.0)]
)
def test_every_kind_of_number_is_a_reward(reward):
    assert graded(reward)["reward"][:] == [1.0]
    assert graded({"reward": reward})["judge_status"][:] == ["ok"]


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (None, "missing_reward"), ({}, "missing_reward"), ({"score": 1}, "missing_reward"), ({"reward": None}, "missing_reward"),
        ("1", "invalid_result"), (float("nan"), "invalid_result"), (5, "invalid_result"), (-0.5, "invalid_result"),
        ([1], "invalid_result"), (np.array([1, 2]), "invalid_result"), ({"reward": "good"}, "invalid_result"), (float("inf"), "invalid_result"),
    ],
)  # fmt: skip
def test_anything_else_is_a_status_and_no_zero(answer, status):
    out = graded(answer)
    assert out["judge_status"][:] == [status]
    assert out["reward"][:] == [None]
    assert out["reason"][0]


def test_a_judge_that_raises_is_an_error_on_its_row_alone():
    def judge(row):
        if row["final_text"] == "a1":
            raise ValueError("broken")
        return 1

    out = wai.grade(rows(), judge, progress=False)
    assert out["judge_status"][:] == ["ok", "error", "ok"]
    assert out["reason"][1] == "ValueError: broken"


def test_everything_a_judge_says_is_kept():
    out = graded(
        {
            "reward": 0.7,
            "reason": "why",
            "markers": {"kept": 1, "odd": "high"},
            "failure_class": "late",
            "cost": 3,
            "odd": object(),
        }
    )
    row = next(iter(out.records()))
    assert (row["reward"], row["reason"], row["failure_class"], row["markers"]) == (
        0.7,
        "why",
        "late",
        {"kept": 1.0},
    )
    assert row["judge_meta"]["cost"] == 3
    assert row["judge_meta"]["invalid_markers"] == {"odd": "'high'"}


def test_a_rating_on_another_scale_is_mapped():
    assert graded(5, scale=(1, 9))["reward"][:] == [0.5]
    assert graded(10, scale=(1, 9))["judge_status"][:] == ["invalid_result"]


def test_a_judge_sees_a_copy_with_exact_arguments_and_markers_as_a_mapping():
    made = wai.Rollouts.from_records(
        [{"task_id": "t", "markers": {"old": 0.5}, "seeded": ["leak"], "messages": [{"role": "assistant", "content": "", "tool_calls": [
            {"type": "function", "function": {"name": "pay", "arguments": {"amount": 1 / 3}}}]}]}]
    )  # fmt: skip
    seen = {}

    def judge(row):
        seen["amount"] = row["messages"][0]["tool_calls"][0]["function"]["arguments"]["amount"]
        seen["markers"] = row["markers"]
        row["messages"].clear()
        row["seeded"].append("spoiled")
        row["messages"] = "gone"
        assert row.get("nothing") is None
        return {"reward": 1, "markers": {"new": 0.0}}

    out = wai.grade(made, judge, progress=False)
    assert seen == {"amount": 1 / 3, "markers": {"old": 0.5}}
    assert out[0]["messages"] == made[0]["messages"]
    assert out[0]["seeded"] == ["leak"]
    assert next(iter(out.records()))["markers"] == {"old": 0.5, "new": 0.0}


def test_a_hung_judge_costs_its_timeout_and_no_more():
    def judge(row):
        time.sleep(5 if row["final_text"] == "a0" else 0)
        return 1

    start = time.monotonic()
    out = wai.grade(rows(4), judge, timeout=0.3, concurrency=2, progress=False)
    assert out["judge_status"][:] == ["timeout", "ok", "ok", "ok"]
    assert time.monotonic() - start < 4
    assert wai.grade(rows(1), judge, timeout=0.2, progress=False)["judge_status"][:] == ["timeout"]


def test_an_asynchronous_judge_runs_many_at_once_and_times_out():
    async def judge(row):
        await asyncio.sleep(5 if row["final_text"] == "a1" else 0.01)
        return 1

    start = time.monotonic()
    out = wai.grade(rows(30), judge, timeout=0.5, concurrency=30, progress=False)
    assert out["judge_status"][:] == ["ok", "timeout", *["ok"] * 28]
    assert time.monotonic() - start < 4


def test_an_asynchronous_judge_works_inside_a_running_loop():
    async def main():
        async def judge(row):
            return 1

        return wai.grade(rows(), judge, progress=False)["reward"][:]

    assert asyncio.run(main()) == [1.0] * 3


def test_a_judge_is_asked_again_as_often_as_allowed():
    tries = []

    def judge(row):
        tries.append(1)
        if len(tries) < 3:
            raise OSError("busy")
        return 1

    assert wai.grade(rows(1), judge, retries=2, progress=False)["reward"][:] == [1.0]


def test_a_checkpoint_judges_nothing_twice(tmp_path):
    asked = []

    def judge(row):
        asked.append(row["final_text"])
        if len(asked) == 3:
            raise KeyboardInterrupt
        return {"reward": 1, "markers": {"m": 0.5}}

    with pytest.raises(KeyboardInterrupt):
        wai.grade(
            rows(5),
            judge,
            checkpoint=tmp_path / "c.jsonl",
            timeout=None,
            concurrency=1,
            progress=False,
        )
    out = wai.grade(
        rows(5), judge, checkpoint=tmp_path / "c.jsonl", timeout=None, concurrency=1, progress=False
    )
    assert sorted(set(asked)) == [f"a{i}" for i in range(5)]
    assert asked.count("a0") == asked.count("a1") == 1
    assert out["reward"][:] == [1.0] * 5
    assert out.report.n_resumed == 2


def test_a_torn_line_of_a_checkpoint_is_judged_again(tmp_path):
    path = tmp_path / "c.jsonl"
    wai.grade(rows(3), lambda row: 1, checkpoint=path, progress=False)
    path.write_text(path.read_text()[:-20])
    out = wai.grade(rows(3), lambda row: 0, checkpoint=path, name="<lambda>", progress=False)
    assert sorted(out["reward"][:]) == [0.0, 1.0, 1.0]


def test_columns_that_were_there_stay_and_the_input_is_untouched():
    made = rows().add_column("mine", [1, 2, 3]).sort("mine", reverse=True)
    out = wai.grade(made, lambda row: row["mine"] == 2, progress=False)
    assert out["mine"][:] == [3, 2, 1]
    assert out["reward"][:] == [0.0, 1.0, 0.0]
    assert made["reward"][:] == [None] * 3
    assert isinstance(out, wai.Rollouts)


def test_no_rows_are_graded_to_no_rows():
    assert len(wai.grade(wai.Rollouts.from_records([]), lambda row: 1, progress=False)) == 0


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"judge": 3}, "got int"),
        ({"timeout": 0}, "timeout"),
        ({"concurrency": 0}, "concurrency"),
        ({"retries": -1}, "retries"),
        ({"scale": (3, 1)}, "scale"),
    ],
)
def test_options_out_of_range_are_refused(options, what):
    given = {"judge": lambda row: 1, **options}
    with pytest.raises(wai.InputError, match=what):
        wai.grade(rows(), progress=False, **given)


@pytest.mark.filterwarnings("default::UserWarning")
def test_what_looks_wrong_is_said():
    with pytest.warns(UserWarning, match="tells nothing apart"):
        out = wai.grade(rows(), lambda row: {"reward": 1, "markers": {"m": 1.0}}, progress=False)
    assert any("may never fire" in note for note in out.warnings)
    with pytest.warns(UserWarning, match="not judged"):
        wai.grade(rows(), lambda row: None, progress=False)
    silent = wai.rows(["a", "b"], ["", " "])
    with pytest.warns(UserWarning, match="without a word"):
        wai.grade(silent, lambda row: row["repeat"], progress=False)


@pytest.mark.filterwarnings("default::UserWarning")
def test_a_tool_that_never_works_is_named():
    call = {"id": "c", "type": "function", "function": {"name": "run_query", "arguments": {}}}
    messages = [
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": '{"error": "down"}'},
    ]
    made = wai.Rollouts.from_records({"task_id": f"t{i}", "messages": messages} for i in range(10))
    with pytest.warns(UserWarning, match="run_query failed in all of its 10 calls"):
        wai.grade(made, lambda row: float(row["task_id"] == "t0"), progress=False)


def test_the_report_counts_the_statuses():
    out = wai.grade(
        rows(), lambda row: None if row["final_text"] == "a0" else 1, name="mine", progress=False
    )
    assert str(out.report) == "mine: 2 of 3 rollouts judged (1 missing_reward)"
    assert out["judge"][:] == ["mine"] * 3


def test_an_interrupt_inside_a_judge_reaches_the_user():
    def judge(row):
        raise KeyboardInterrupt

    for timeout in (None, 5):
        with pytest.raises(KeyboardInterrupt):
            wai.grade(rows(3), judge, timeout=timeout, concurrency=2, progress=False)
