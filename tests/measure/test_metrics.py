"""The evaluate modules: loaded by path without a hub, combined, equal to the functions."""

from __future__ import annotations

from pathlib import Path

import evaluate
import pytest
from datasets import Dataset

import whileai_hf as wai

NAMES = ("judge_agreement", "pass_at_k", "pass_hat_k")


@pytest.fixture(autouse=True)
def _offline(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)


def load(name):
    return evaluate.load(wai.metric_path(name))


@pytest.mark.parametrize("name", ["pass_at_k", "pass_hat_k"])
def test_a_pass_rate_equals_the_function(name):
    rewards, tasks = [1, 0, 1, 1, 0, 0, 0, 0], list("aaaabbbb")
    found = load(name).compute(predictions=rewards, references=tasks, k=2)
    rows = Dataset.from_dict({"task_id": tasks, "reward": rewards})
    expected = getattr(wai.pass_at(rows, k=2), name)
    assert found[name] == expected.value
    assert (found[name + "_low"], found[name + "_high"]) == (
        expected.interval.low,
        expected.interval.high,
    )
    assert found[name + "_tasks"] == 2


def test_batches_add_up_and_metrics_combine():
    both = evaluate.combine([load("pass_at_k"), load("pass_hat_k")])
    both.add_batch(predictions=[1, 0], references=["a", "a"])
    both.add_batch(predictions=[1, 1], references=["b", "b"])
    found = both.compute()
    assert found["pass_at_k"] == 1.0
    assert found["pass_hat_k"] == 0.5


def test_k_beyond_the_attempts_is_none_and_no_number():
    assert load("pass_at_k").compute(predictions=[1.0], references=["a"], k=4)["pass_at_k"] is None


def test_judge_agreement_equals_the_function():
    judge, gold, tasks = [1, 0, 1, 1], [1, 0, 0, 1], list("aabb")
    found = load("judge_agreement").compute(predictions=judge, references=gold, task_ids=tasks)
    rows = Dataset.from_dict({"task_id": tasks, "reward": judge, "gold_reward": gold})
    expected = wai.agreement(rows)
    assert found["kappa"] == expected.kappa.value
    assert found["agreement_low"] == expected.percent.interval.low
    one_class = load("judge_agreement").compute(predictions=[1, 1], references=[1, 1])
    assert one_class["kappa"] is None


@pytest.mark.parametrize("name", NAMES)
def test_each_folder_is_a_whole_space(name):
    folder = Path(wai.metric_path(name))
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert card.startswith("---\ntitle:")
    assert "sdk: gradio" in card
    assert "app_file: app.py" in card
    assert {p.name for p in folder.iterdir()} >= {f"{name}.py", "app.py", "requirements.txt"}


def test_a_metric_that_does_not_exist_is_an_error():
    with pytest.raises(wai.InputError, match=r"pass_at_k.*'polte'"):
        wai.metric_path("polte")
