"""trainers/grpo.py trains a tiny model from the command line, on one and two processes, and proves it on held-out tasks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from datasets import load_dataset
from parity import monitor_testbed as bed

import whileai_hf as wai

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


def run(folder, *more, launcher=(sys.executable,)):
    command = [
        *launcher, str(SCRIPT), "--config", str(SCRIPT.with_suffix(".yaml")), "--dataset_name", "tasks.jsonl", "--model_name_or_path", "model",
        "--reward", "rewards.py:digits", "--gold", "rewards.py:right", "--output_dir", "out", "--max_steps", "10", "--learning_rate", "1e-3",
        "--num_generations", "4", "--per_device_train_batch_size", "4", "--gradient_accumulation_steps", "1", "--max_completion_length", "6",
        "--holdout_k", "2", "--holdout_every", "5", "--use_cpu", "True", "--bf16", "False", "--gradient_checkpointing", "False",
        "--report_to", "none", "--save_steps", "5", "--save_strategy", "steps", *more,
    ]  # fmt: skip
    env = {
        **os.environ,
        "PYTHONWARNINGS": "ignore",
        "PYTHONPATH": str(folder),
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=env)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout + done.stderr


def check(folder, said):
    assert "HackMonitor: gold scores" in said
    assert "paired tasks)" in said
    card = (folder / "out" / "report" / "README.md").read_text()
    assert "## Held-out tasks" in card
    holdout = load_dataset(
        "parquet",
        data_files=str(folder / "out" / "report" / "holdout" / "*.parquet"),
        split="train",
    )
    assert set(holdout["run"]) == {"step-0", "step-5", "step-10"}
    assert wai.pass_at(holdout).n_tasks == 4


def test_it_trains_and_proves_and_resumes(folder):
    check(folder, run(folder))
    assert (folder / "out" / "checkpoint-10").exists()
    assert (folder / "out" / "alarms.json").exists()
    said = run(folder, "--max_steps", "12", "--resume_from_checkpoint", "out/checkpoint-10")
    assert "paired tasks)" in said


@pytest.mark.slow
def test_it_trains_with_lora_on_two_processes(folder):
    launcher = (
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc_per_node",
        "2",
    )
    check(
        folder,
        run(
            folder,
            "--use_peft",
            "True",
            "--lora_target_modules",
            "q_proj",
            "v_proj",
            launcher=launcher,
        ),
    )
