"""A run folder survives what goes wrong, and its files load."""

from __future__ import annotations

import json

import pytest
from datasets import load_dataset

import whileai_hf as wai
from whileai_hf.training.run_folder import RunFolder, training_run

ODD = [
    {
        "prompt": "q",
        "completion": [
            {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}
        ],
    },
    {
        "prompt": "q",
        "completion": [
            {
                "role": "assistant",
                "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}],
            }
        ],
    },
    {
        "prompt": "q",
        "completion": [
            {
                "role": "assistant",
                "tool_calls": [{"function": {"name": "f", "arguments": {"a": "x"}}}],
            }
        ],
    },
    {
        "prompt": "q",
        "completion": [
            {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}
        ],
    },
    {"prompt": [{"role": "user", "content": "q"}], "completion": [{"no": "role"}]},
    {"prompt": "q", "completion": None},
    {"prompt": "q", "completion": 7},
]


def test_odd_completions_are_written_and_load(tmp_path):
    with RunFolder(tmp_path / "run") as run:
        run.completions(ODD, step=3)
    assert run.problems == []
    plain = load_dataset(
        "json", data_files=str(tmp_path / "run" / "completions.jsonl"), split="train"
    )
    assert len(plain) == len(ODD)
    back = run.rollouts()
    assert back.features == wai.FEATURES
    assert wai.tool_calls(back[1])[0].arguments == {"a": 1}


@pytest.mark.filterwarnings("ignore:a text held")
def test_a_surrogate_is_written(tmp_path):
    run = RunFolder(tmp_path)
    run.completions([{"prompt": "q", "completion": "bad \ud800"}], step=1)
    assert run.problems == []


def test_metrics_keep_numbers_and_leave_the_rest_out(tmp_path):
    run = training_run(tmp_path, config={"lr": 1e-3, "odd": object()})
    run.log({"loss": 0.5, "text": "x", "nan": float("nan"), "none": None}, step=2)
    run.log({"text": "only"}, step=3)
    [row] = run.metrics()
    assert (row["step"], row["loss"]) == (2, 0.5)
    assert not {"text", "nan", "none"} & set(row)
    assert json.loads((tmp_path / "run.json").read_text())["config"]["lr"] == 1e-3


def test_held_out_rollouts_become_a_pass_rate_with_its_interval(tmp_path):
    run = RunFolder(tmp_path)
    rows = [
        {"task_id": f"t{i // 2}", "prompt": "q", "completion": "a", "reward": float(i % 2)}
        for i in range(20)
    ]
    run.holdout(rows, step=5)
    logged = run.metrics()[-1]
    found = wai.pass_at(run.evaluations()[5])
    assert logged["holdout/pass@1"] == pytest.approx(0.5)
    assert logged["holdout/pass@1_low"] < 0.5 < logged["holdout/pass@1_high"]
    assert str(found).startswith("pass@1 0.50")


def test_a_folder_that_cannot_be_written_ends_nothing(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(UserWarning, match="the run goes on"):
        run = _report_everything(tmp_path / "file" / "run")
    assert run.problems


def _report_everything(path):
    run = RunFolder(path)
    run.log({"loss": 1.0}, step=1)
    run.completions(ODD, step=1)
    run.holdout(ODD, step=1)
    run.close()
    return run


def test_a_dead_tracker_ends_nothing(tmp_path, monkeypatch):
    import trackio

    monkeypatch.setattr(trackio, "init", lambda **_: 1 / 0)
    run = RunFolder(tmp_path, project="p")
    with pytest.warns(UserWarning, match="the tracker"):
        run.log({"loss": 1.0}, step=1)
    assert run.metrics()[0]["loss"] == 1.0
