"""trainers/sft.py trains on masked turns, proves it in the world of held-out tasks, and resumes as if nothing was."""

from __future__ import annotations

import json

import pytest
from datasets import load_dataset
from safetensors.torch import load_file
from trainers.scripts import LORA, TWO_RANKS, kill_at, rollouts, run, run_here, save_model

import whileai_hf as wai

pytestmark = pytest.mark.filterwarnings("ignore")
OPTIONS = (
    "--dataset_name", "rows.parquet", "--reward", "GoalReached", "--holdout_k", "2", "--holdout_tokens", "60", "--learning_rate", "3e-3",
    "--lr_scheduler_type", "constant", "--save_strategy", "steps",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    save_model(tmp_path)
    rows = rollouts(rate=0.0).filter(lambda row: row["reward"] == 1.0 and len(row["messages"]) == 5)
    rows.to_parquet(tmp_path / "rows.parquet")
    return tmp_path


def held_out(folder):
    files = str(folder / "out" / "report" / "holdout" / "*.parquet")
    return load_dataset("parquet", data_files=files, split="train")


def losses(folder):
    newest = max(folder.glob("out/checkpoint-*"), key=lambda p: int(p.name.split("-")[1]))
    return [
        row["loss"]
        for row in json.loads((newest / "trainer_state.json").read_text())["log_history"]
        if "loss" in row
    ]


def test_it_trains_and_proves_it_on_held_out_tasks(folder, monkeypatch, capsys):
    options = (*OPTIONS, "--max_steps", "40", "--save_steps", "40")
    said = run_here(folder, monkeypatch, capsys, "sft", *options)
    assert "sequences of" in said
    assert "paired tasks)" in said
    rows = held_out(folder)
    assert set(rows["run"]) == {"step-0", "step-40"}
    assert not set(rows["task_id"]) & set(wai.load(folder / "rows.parquet")["task_id"]) - set(
        rows["task_id"]
    )
    assert losses(folder)[-1] < losses(folder)[0] / 3


@pytest.mark.slow
def test_a_killed_run_resumes_with_the_same_data_order(folder):
    options = (
        *OPTIONS,
        "--max_steps",
        "30",
        "--save_steps",
        "10",
        "--per_device_train_batch_size",
        "2",
    )
    run(folder, "sft", *options)
    whole, weights = losses(folder), load_file(folder / "out" / "model.safetensors")
    (folder / "out").rename(folder / "whole")
    kill_at(folder, "sft", "out/checkpoint-10/trainer_state.json", *options)
    said = run(folder, "sft", *options, "--resume_from_checkpoint", "last")
    assert "paired tasks)" in said
    assert losses(folder) == pytest.approx(whole, abs=1e-5)
    resumed = load_file(folder / "out" / "model.safetensors")
    assert all((resumed[name] - weights[name]).abs().max() < 1e-4 for name in weights)


@pytest.mark.slow
@pytest.mark.parametrize(
    "more", [(), LORA, ("--packing", "True", "--max_length", "512")], ids=["full", "lora", "packed"]
)
def test_it_trains_on_two_processes(folder, more):
    said = run(
        folder, "sft", *OPTIONS, "--max_steps", "4", "--save_steps", "4", *more, launcher=TWO_RANKS
    )
    assert said.count("paired tasks)") == 1
    assert set(held_out(folder)["run"]) == {"step-0", "step-4"}
