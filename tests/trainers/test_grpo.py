"""trainers/grpo.py trains a tiny model from the command line, on one and two processes, and proves it on held-out tasks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from datasets import load_dataset
from parity import monitor_testbed as bed
from trainers.scripts import LORA, TWO_RANKS, kill_at, rollouts, run, run_here, save_model

import whileai_hf as wai

pytestmark = pytest.mark.filterwarnings("ignore")
SCRIPT = Path(__file__).parents[2] / "trainers" / "grpo.py"
REWARDS = """
def digits(completions, **_):
    return [float(any(w.isdigit() for w in text.split())) for text in completions]

def right(completions, answer, **_):
    return [float(text.split()[-1:] == [a]) for text, a in zip(completions, answer)]
"""


@pytest.fixture
def folder(tmp_path):
    tok = bed.tokenizer()
    bed.model(tok, 0).save_pretrained(tmp_path / "model")
    tok.save_pretrained(tmp_path / "model")
    (tmp_path / "rewards.py").write_text(REWARDS)
    questions = [f"max of {i % 10} {(3 * i) % 10} {(7 * i) % 10} ?" for i in range(20)]
    lines = [
        json.dumps({"prompt": q, "answer": bed.answer(q), "task_id": f"t{i}"})
        for i, q in enumerate(questions)
    ]
    (tmp_path / "tasks.jsonl").write_text("\n".join(lines))
    return tmp_path


OPTIONS = (
    "--dataset_name", "tasks.jsonl", "--reward", "rewards.py:digits", "--gold", "rewards.py:right", "--max_steps", "10", "--learning_rate", "1e-3",
    "--num_generations", "4", "--per_device_train_batch_size", "4", "--max_completion_length", "6", "--holdout_k", "2", "--holdout_every", "5",
    "--save_steps", "5", "--save_strategy", "steps",
)  # fmt: skip


def test_it_takes_a_verifier_by_its_name(folder, monkeypatch, capsys):
    """ExactMatch reads the column `answer`; the last word of a completion is no answer alone."""
    said = run_here(
        folder, monkeypatch, capsys, "grpo", "--dataset_name", "tasks.jsonl", "--reward", "ExactMatch", "--num_generations", "4",
        "--per_device_train_batch_size", "4", "--max_completion_length", "4", "--holdout_k", "2", "--max_steps", "10", "--save_strategy", "no",
    )  # fmt: skip
    assert "paired tasks)" in said


def test_it_trains_in_the_world_of_the_tasks(tmp_path, monkeypatch, capsys):
    save_model(tmp_path)
    rollouts().to_parquet(tmp_path / "rows.parquet")
    said = run_here(
        tmp_path, monkeypatch, capsys, "grpo", "--dataset_name", "rows.parquet", "--reward", "GoalReached", "--environment", "True",
        "--num_generations", "4", "--per_device_train_batch_size", "4", "--max_completion_length", "24", "--holdout_k", "2", "--max_steps", "10",
        "--save_strategy", "no",
    )  # fmt: skip
    assert "paired tasks)" in said
    found = wai.training_run(tmp_path / "out" / "report").evaluations()
    assert set(found[0]["judge_status"]) == {"ok"}
    assert "world" not in json.dumps(found[0]["messages"][:])


def check(folder, said):
    assert "paired tasks)" in said
    card = (folder / "out" / "report" / "README.md").read_text()
    assert "## Held-out tasks" in card
    holdout = load_dataset(
        "parquet",
        data_files=str(folder / "out" / "report" / "holdout" / "*.parquet"),
        split="train",
    )
    assert set(holdout["run"]) == {"step-0", "step-5", "step-10"}
    assert wai.pass_at(holdout).n_tasks == 5


def test_it_trains_and_proves_and_resumes(folder, monkeypatch, capsys):
    check(folder, run_here(folder, monkeypatch, capsys, "grpo", *OPTIONS))
    assert (folder / "out" / "checkpoint-10").exists()
    assert (folder / "out" / "alarms.json").exists()
    more = ("--max_steps", "12", "--resume_from_checkpoint", "last")
    assert "paired tasks)" in run_here(folder, monkeypatch, capsys, "grpo", *OPTIONS, *more)
    assert wai.training_run(folder / "out" / "report").evaluations().keys() == {0, 5, 10, 12}


@pytest.mark.slow
def test_a_killed_run_goes_on_from_its_last_checkpoint(folder):
    kill_at(folder, "grpo", "out/checkpoint-5/trainer_state.json", *OPTIONS)
    check(folder, run(folder, "grpo", *OPTIONS, "--resume_from_checkpoint", "last"))


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), LORA], ids=["full", "lora"])
def test_it_trains_on_two_processes(folder, more):
    check(folder, run(folder, "grpo", *OPTIONS, *more, launcher=TWO_RANKS))


@pytest.mark.slow
def test_it_trains_in_the_world_on_two_processes(tmp_path):
    save_model(tmp_path)
    rollouts().to_parquet(tmp_path / "rows.parquet")
    said = run(
        tmp_path,
        "grpo",
        *OPTIONS,
        "--dataset_name",
        "rows.parquet",
        "--reward",
        "GoalReached",
        "--gold",
        "GoalReached",
        "--environment",
        "True",
        launcher=TWO_RANKS,
    )
    assert said.count("paired tasks)") == 1
