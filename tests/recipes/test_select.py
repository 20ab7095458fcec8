"""The recipes of selection run offline and print what they promise."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

RECIPES = Path(__file__).parents[2] / "recipes" / "03-select"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("select_what_teaches", ["groups unanimous", "rl selection: kept", "pairs of", "KTOConfig", "curriculum, tasks", "next round"]),
        ("decontaminate", ["kept 2 of 4 rows", "by hand: 2 rows", "stricter: 1 rows"]),
    ],
)  # fmt: skip
def test_a_recipe_runs(name, says, capsys):
    runpy.run_path(str(RECIPES / f"{name}.py"), run_name="__main__")
    said = capsys.readouterr().out
    assert all(part in said for part in says), said
