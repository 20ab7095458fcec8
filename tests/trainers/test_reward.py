"""trainers/reward.py trains a reward model on preference pairs and proves it on held-out ones."""

from __future__ import annotations

import json

import pytest
from trainers.scripts import TWO_RANKS, kill_at, run, run_here, save_model
from trainers.test_dpo import losses, pair

import whileai_hf as wai

pytestmark = pytest.mark.filterwarnings("ignore")
OPTIONS = (
    "--dataset_name", "pairs.jsonl", "--learning_rate", "3e-3", "--lr_scheduler_type", "constant", "--save_strategy", "steps",
    "--per_device_train_batch_size", "2",
)  # fmt: skip
LORA = (
    "--use_peft",
    "True",
    "--lora_task_type",
    "SEQ_CLS",
    "--lora_target_modules",
    "q_proj",
    "v_proj",
)


@pytest.fixture
def folder(tmp_path):
    save_model(tmp_path)
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(pair(i)) + "\n" for i in range(16)))
    return tmp_path


def test_it_trains_and_proves_it_on_held_out_pairs(folder, monkeypatch, capsys):
    options = (*OPTIONS, "--max_steps", "12", "--save_steps", "12", "--margin", "True")
    said = run_here(folder, monkeypatch, capsys, "reward", *options)
    assert "12 rows for reward modelling of 12" in said
    assert "paired tasks)" in said
    found = wai.training_run(folder / "out" / "report").evaluations()
    assert set(found) == {0, 12}
    assert sum(found[12]["reward"]) == len(found[12]) == 4


@pytest.mark.slow
def test_a_killed_run_resumes_with_the_same_data_order(folder):
    options = (*OPTIONS, "--max_steps", "12", "--save_steps", "4")
    run(folder, "reward", *options)
    whole = losses(folder)
    (folder / "out").rename(folder / "whole")
    kill_at(folder, "reward", "out/checkpoint-4/trainer_state.json", *options)
    assert "paired tasks)" in run(folder, "reward", *options, "--resume_from_checkpoint", "last")
    assert losses(folder) == pytest.approx(whole, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), LORA], ids=["full", "lora"])
def test_it_trains_on_two_processes(folder, more):
    said = run(
        folder,
        "reward",
        *OPTIONS,
        "--max_steps",
        "2",
        "--save_steps",
        "2",
        *more,
        launcher=TWO_RANKS,
    )
    assert said.count("paired tasks)") == 1
