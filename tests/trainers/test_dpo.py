"""trainers/dpo.py trains on the agent's own tokens of preference pairs and proves it on held-out prompts."""

from __future__ import annotations

import json

import pytest
import tiny
from trainers.scripts import LORA, TWO_RANKS, kill_at, run, run_here, save_model
from training.test_preference_formats import call, result, says
from transformers import AutoTokenizer

import whileai_hf as wai

pytestmark = pytest.mark.filterwarnings("ignore")
CITIES = ["Paris", "Rome", "Oslo", "Lima", "Cairo", "Delhi", "Bonn", "Riga"]
REWARD = """
def sunny(completions, **_):
    return [float("sunny" in str(c[-1]["content"])) for c in completions]
"""
OPTIONS = (
    "--dataset_name", "pairs.jsonl", "--reward", "rewards.py:sunny", "--holdout_k", "2", "--holdout_tokens", "8", "--learning_rate", "1e-3",
    "--lr_scheduler_type", "constant", "--save_strategy", "steps", "--per_device_train_batch_size", "2",
)  # fmt: skip


def pair(i):
    city = CITIES[i % 8]
    ask = [{"role": "user", "content": f"Weather in {city}?"}]
    chosen = [call(city), result(), says(f"It is sunny in {city}.")]
    return {
        "prompt": ask, "chosen": chosen, "rejected": [*chosen[:2], says("No idea at all.")], "tools": [tiny.WEATHER], "task_id": f"t{i % 8}",
        "chosen_reward": 1.0, "rejected_reward": 0.0,
    }  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    save_model(tmp_path)
    (tmp_path / "rewards.py").write_text(REWARD)
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(pair(i)) + "\n" for i in range(16)))
    return tmp_path


def losses(folder):
    newest = max(folder.glob("out/checkpoint-*"), key=lambda p: int(p.name.split("-")[1]))
    return [
        row["loss"]
        for row in json.loads((newest / "trainer_state.json").read_text())["log_history"]
        if "loss" in row
    ]


@pytest.mark.parametrize("template", ["qwen3_instruct_2507", "qwen3"])
def test_it_trains_and_proves_it_on_held_out_prompts(template, folder, monkeypatch, capsys):
    save_model(folder, template)
    said = run_here(
        folder, monkeypatch, capsys, "dpo", *OPTIONS, "--max_steps", "8", "--save_steps", "8"
    )
    assert "12 rows for DPO of 12" in said
    assert "paired tasks)" in said
    assert losses(folder)[-1] < 0.69
    found = wai.training_run(folder / "out" / "report").evaluations()
    assert set(found) == {0, 8}
    assert len(set(found[0]["task_id"])) == 2
    given, saved = (
        AutoTokenizer.from_pretrained(folder / name).chat_template for name in ("model", "out")
    )
    assert saved == given


@pytest.mark.slow
def test_a_killed_run_resumes_with_the_same_data_order(folder):
    options = (*OPTIONS, "--max_steps", "12", "--save_steps", "4")
    run(folder, "dpo", *options)
    whole = losses(folder)
    (folder / "out").rename(folder / "whole")
    kill_at(folder, "dpo", "out/checkpoint-4/trainer_state.json", *options)
    assert "paired tasks)" in run(folder, "dpo", *options, "--resume_from_checkpoint", "last")
    assert losses(folder) == pytest.approx(whole, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), LORA], ids=["full", "lora"])
def test_it_trains_on_two_processes(folder, more):
    said = run(
        folder, "dpo", *OPTIONS, "--max_steps", "2", "--save_steps", "2", *more, launcher=TWO_RANKS
    )
    assert said.count("paired tasks)") == 1
