"""Exports are exact, hold nothing that only a judge may read, and teach no broken conversation."""

from __future__ import annotations

import json

import pytest
from datasets import Dataset, load_dataset
from reports import public_reports

import whileai_hf as wai
from whileai_hf.training.export import FORMATS

SECRET = "SECRET-77"
CALL = {
    "id": "c",
    "type": "function",
    "function": {"name": "pay", "arguments": {"amount": 1 / 3, "to": None, "big": 10**25}},
}
TOOL = {
    "type": "function",
    "function": {"name": "pay", "parameters": {"type": "object", "properties": {}}},
}


def rollouts(reward=1.0):
    messages = [
        {"role": "user", "content": "pay"},
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c", "content": "paid", "status": "error"},
        {"role": "assistant", "content": "Done."},
    ]
    return wai.Rollouts.from_records(
        [{"task_id": "t", "reward": reward, "messages": messages, "tools": [TOOL], "loss_mask": [0, 1, 0, 1], "world": {"seed": SECRET},
          "privileged": {"reference": SECRET}, "mine": 7}]
    )  # fmt: skip


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("format", FORMATS)
def test_no_format_holds_what_only_a_judge_may_read(format, tmp_path):
    report = rollouts().export(tmp_path / "x", format=format)
    assert report.n_rows == 1
    assert SECRET.encode() not in (tmp_path / "x").read_bytes()


def test_messages_keep_every_column_and_every_number(tmp_path):
    rollouts().export(tmp_path / "x.jsonl")
    [row] = lines(tmp_path / "x.jsonl")
    assert (
        row["messages"][1]["tool_calls"][0]["function"]["arguments"]
        == CALL["function"]["arguments"]
    )
    assert (row["loss_mask"], row["mine"], row["reward"]) == ([0, 1, 0, 1], 7, 1.0)
    back = next(iter(wai.load(tmp_path / "x.jsonl").records()))
    assert (
        back["messages"][1]["tool_calls"][0]["function"]["arguments"]
        == CALL["function"]["arguments"]
    )


def test_openai_has_arguments_as_text_and_trl_as_objects(tmp_path):
    rollouts().export(tmp_path / "o.jsonl", format="openai")
    rollouts().export(tmp_path / "t.jsonl", format="trl")
    text = lines(tmp_path / "o.jsonl")[0]["messages"][1]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(text) == CALL["function"]["arguments"]
    row = lines(tmp_path / "t.jsonl")[0]
    assert (
        row["messages"][1]["tool_calls"][0]["function"]["arguments"]
        == CALL["function"]["arguments"]
    )
    assert "loss_mask" not in row
    assert "status" not in row["messages"][2]


def test_parquet_loads_with_its_features(tmp_path):
    rollouts().export(tmp_path / "x.parquet", format="parquet")
    back = load_dataset("parquet", data_files=str(tmp_path / "x.parquet"), split="train")
    assert {"world", "privileged"} & set(back.column_names) == set()
    assert back.features["messages"] == wai.FEATURES["messages"]
    assert back[0]["mine"] == 7


def test_no_tools_are_null(tmp_path):
    wai.rows(["q"], ["a"]).export(tmp_path / "x.jsonl", format="trl")
    assert lines(tmp_path / "x.jsonl")[0]["tools"] is None


def test_a_mask_writes_one_line_a_trained_turn_which_a_trainer_trains_exactly(tmp_path):
    report = rollouts().export(tmp_path / "x.jsonl", format="trl", mask="column")
    rows = lines(tmp_path / "x.jsonl")
    assert (report.n_rows, report.n_trained_turns) == (2, 2)
    assert [len(r["prompt"]) for r in rows] == [1, 3]
    assert [r["completion"][0]["content"] for r in rows] == ["", "Done."]
    assert (
        rows[0]["completion"][0]["tool_calls"][0]["function"]["arguments"]
        == CALL["function"]["arguments"]
    )
    report = rollouts().export(tmp_path / "x.jsonl", format="trl", mask="final")
    assert [r["completion"][0]["content"] for r in lines(tmp_path / "x.jsonl")] == ["Done."]


def test_a_masked_export_leaves_a_cut_turn_out_and_refuses_other_formats(tmp_path):
    rows = wai.Rollouts.from_records([{**dict(rollouts()[0]), "finish_reason": "length"}])
    report = rows.export(tmp_path / "x.jsonl", format="trl", mask="final")
    assert (report.n_rows, report.refused) == (0, {"a last turn that the token limit cut": 1})
    with pytest.raises(wai.InputError, match="'openai'"):
        rows.export(tmp_path / "x.jsonl", format="openai", mask="final")
    with pytest.raises(wai.InputError, match="'last'"):
        rows.export(tmp_path / "x.jsonl", format="trl", mask="last")


@pytest.mark.parametrize("case", [p for p in public_reports("mask") if p.id == "K09"])
def test_public_report_on_the_format_of_a_masked_export(case, tmp_path):
    assert case["input"] == {"format": "trl", "mask_mode": "last"}
    rollouts().export(tmp_path / "x.jsonl", format="trl", mask="final")
    [row] = lines(tmp_path / "x.jsonl")
    assert set(case["expected"]["columns"]) <= set(row)
    assert case["expected"]["no_column"] not in row


@pytest.mark.parametrize("case", [p for p in public_reports("tool_calls") if p.id == "T10"])
def test_public_report_on_results_without_calls(case, tmp_path):
    report = wai.from_chats([case["input"]["messages"]]).export(tmp_path / "x.jsonl")
    assert (report.n_rows > 0) is case["expected"]["exported_as_sft"]
    assert report.refused == {"a result without its call": 1}


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([{"role": "user", "content": "x"}], "no agent turn"),
        (
            [
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{"}}],
                }
            ],
            "a call that cannot be read",
        ),
        (
            [
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}],
                }
            ],
            "a call without its result",
        ),
    ],
)
def test_a_conversation_that_would_teach_nonsense_is_left_out_and_counted(messages, why, tmp_path):
    report = wai.from_chats([messages]).export(tmp_path / "x.jsonl")
    assert report.refused == {why: 1}
    assert why in str(report)


def test_rows_that_failed_are_counted_aloud(tmp_path):
    assert "1 rows did not earn" in str(rollouts(reward=0.0).export(tmp_path / "x.jsonl"))


def test_bad_input_is_refused_and_leaves_an_old_file_alone(tmp_path):
    (tmp_path / "x.jsonl").write_text("old")
    with pytest.raises(wai.InputError, match="'csv'"):
        rollouts().export(tmp_path / "x.jsonl", format="csv")
    with pytest.raises(wai.InputError, match="folder"):
        rollouts().export(tmp_path / "nowhere" / "x.jsonl")
    with pytest.raises(wai.SchemaError, match="'messages'"):
        wai.export(Dataset.from_dict({"a": [1]}), tmp_path / "x.jsonl")
    assert (tmp_path / "x.jsonl").read_text() == "old"


def test_no_rows_are_an_empty_file(tmp_path):
    assert wai.Rollouts.from_records([]).export(tmp_path / "x.jsonl").n_rows == 0
    assert len(wai.load(tmp_path / "x.jsonl")) == 0
