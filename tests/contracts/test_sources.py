"""Defaults are sourced, and the source speaks of itself in the present tense."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import whileai_hf

PACKAGE = Path(whileai_hf.__file__).parent
ROOT = Path(__file__).parents[2]


def test_each_default_has_a_source_or_the_word_convention():
    blocks = re.split(r"\n\n", (PACKAGE / "defaults.py").read_text(encoding="utf-8"))
    constants = [b for b in blocks if re.search(r"^[A-Z_]+ =", b, re.MULTILINE)]
    assert constants
    for block in constants:
        comment, assigned = (
            block.split("\n", 1)[0],
            re.findall(r"^([A-Z_]+)\b.*=", block, re.MULTILINE),
        )
        assert comment.startswith("#:"), assigned
        assert len(assigned) == 1, f"one constant a block: {assigned}"
        words = " ".join(line.lstrip("#: ") for line in block.splitlines() if line.startswith("#:"))
        assert re.search(r"\d{4}|convention", words), f"{assigned[0]} has no source: {words}"


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_a_file_has_a_docstring_and_no_history(path):
    text = path.read_text(encoding="utf-8")
    if not text.strip():
        return
    assert text.lstrip().startswith(('"""', 'r"""')), "a module opens with what it is for"
    assert not re.search(r"\bissue #?\d+|\bwas \w+ before \d|#\d{3,}\b", text)


def test_the_only_way_up_is_the_front_door():
    """`trainers/`, `envs/`, `recipes/` and `notebooks/` import the package and no module of it."""
    wrong = []
    for folder in ("trainers", "recipes", "notebooks"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".ipynb"):
                text = path.read_text(encoding="utf-8")
                if re.search(
                    r"\bfrom whileai_hf\.|\bimport whileai_hf\.|from whileai_hf import _", text
                ):
                    wrong.append(str(path.relative_to(ROOT)))
    assert not wrong
