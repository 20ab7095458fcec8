"""The recipes of training run from end to end on a tiny model."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
from trainers.scripts import save_model

pytestmark = pytest.mark.filterwarnings("ignore")
RECIPES = Path(__file__).parents[2] / "recipes" / "04-train"


@pytest.mark.parametrize(
    ("name", "more", "says"),
    [
        ("label_tokens", (), ["sequences of", "--- trained\n<tool_call>", "final turns alone"]),
        ("prefer_without_tool_results", ("--steps", "1"), ["rows for DPO of", "in the loss, ours", "loss 0.69"]),
        ("grpo_in_a_world", ("--steps", "1", "--tokens", "16", "--output", "out"), ["held out", "paired tasks)"]),
    ],
)  # fmt: skip
def test_a_recipe_runs_on_a_tiny_model(name, more, says, tmp_path, monkeypatch, capsys):
    save_model(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name, "--model", "model", *more])
    runpy.run_path(str(RECIPES / f"{name}.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert all(part in said for part in says), said
    if "in the loss, ours" in said:
        assert "<tool_response>" not in said.split("in the loss, ours")[1]
