"""The README keeps its word: its Python blocks run in order, and its text blocks are what they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import whileai_hf as wai

README = Path(__file__).parents[2] / "README.md"
TEXT = README.read_text(encoding="utf-8")
#: A Python block, and the text block right after it if there is one.
BLOCK = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n```text\n(?P<output>.*?)```)?", re.DOTALL)
BLOCKS = [m.groupdict() for m in BLOCK.finditer(TEXT)]


@pytest.mark.parametrize("index", range(len(BLOCKS)))
def test_a_block_runs_and_prints_what_it_says(index, tmp_path):
    block = BLOCKS[index]
    if "# needs" in block["code"].split("\n", 1)[0]:
        compile(
            block["code"], "README.md", "exec"
        )  # a key, a model or a Hub account: only its syntax
        return
    done = subprocess.run(
        [sys.executable, "-c", block["code"]], capture_output=True, text=True, cwd=tmp_path,
        env={**os.environ, "PYTHONWARNINGS": "ignore", "HF_DATASETS_DISABLE_PROGRESS_BARS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    if block["output"]:
        assert done.stdout.strip() == block["output"].strip()


def test_the_readme_names_only_what_exists():
    names = set(re.findall(r"\bwai\.(\w+)", TEXT))
    assert names
    assert not sorted(name for name in names if not hasattr(wai, name))


def test_every_recipe_trainer_and_notebook_is_named():
    index = TEXT + (README.parent / "recipes" / "README.md").read_text(encoding="utf-8")
    files = [
        p
        for folder in ("recipes", "trainers", "notebooks")
        for p in (README.parent / folder).rglob("*")
        if p.suffix in (".py", ".ipynb")
    ]
    missing = [
        str(p.relative_to(README.parent))
        for p in files
        if p.name not in index and ".ipynb_checkpoints" not in str(p)
    ]
    assert not missing


def test_the_two_commands_are_there_and_exist():
    makefile = (README.parent / "Makefile").read_text(encoding="utf-8")
    for target in ("quickstart", "test"):
        assert f"make {target}" in TEXT
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
