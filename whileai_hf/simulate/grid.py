"""The grid: which situations an agent can meet, covered pair by pair.

A situation is a cell: a value on each axis. The rule-free cells are a covering array, in which every
pair of values of two axes occurs (strength 2; Cohen et al. 1997, IEEE Trans. Softw. Eng. 23:437-444).
Each clause of the system prompt adds a block of its own that pairs it with every value of every
other axis it governs, so that an edit of one clause changes only the cells of that clause.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import covertable

from whileai_hf.errors import InputError
from whileai_hf.simulate.axes import UNRELATED, Axes
from whileai_hf.world.tools import Tool, read_tools

__all__ = ["UNRELATED", "Cell", "Coverage", "clauses", "coverage", "grid"]

#: Clauses of a system prompt that become rules, at most; what comes later is named in the coverage.
MAX_RULES = 32


@dataclass(frozen=True, slots=True)
class Cell:
    """One situation: a value on each axis, and a stable name."""

    id: str
    values: dict[str, str]

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Cell:
        """Name a cell by what it says, so that the same situation has the same id in every run."""
        text = json.dumps(dict(sorted(values.items())), ensure_ascii=False)
        return cls(f"cell-{hashlib.sha256(text.encode()).hexdigest()[:10]}", dict(values))


def clauses(system_prompt: str | None) -> list[str]:
    """Split a system prompt into the rules that it states.

    Sentences, bullets and lines are clauses; what only says who the agent is ("You are …") is none,
    nor is what has fewer than three words.
    """
    if not system_prompt:
        return []
    found = []
    for part in re.split(r"(?<=[.!?。！？;；])\s+|(?<=[。！？；])|\n+", system_prompt):
        text = re.sub(r"^[\s\-*•#>\d.)]+", "", part).strip()
        words = text.split() if " " in text else list(text)
        if len(words) >= 3 and not re.match(
            r"(?i)you are\b|you're\b|sie sind\b|eres\b|tu es\b|你是", text
        ):
            found.append(text)
    return list(dict.fromkeys(found))


def grid(
    tools: Sequence[Tool],
    system_prompt: str | None = None,
    *,
    strength: int = 2,
    extra: Mapping[str, Sequence[str]] | None = None,
) -> list[Cell]:
    """Return the cells that cover the situations.

    Args:
        tools: The tools.
        system_prompt: Its clauses become the axis `rule`.
        strength: Every combination of values of this many axes occurs; 2 or 3.
        extra: Axes of the user's own.

    Raises:
        InputError: `strength` is neither 2 nor 3, or an axis is taken or empty.
    """
    if strength not in (2, 3):
        raise InputError(f"strength must be 2 or 3; got {strength!r}. 2 covers every pair.")
    axes = Axes.of(tools, extra)
    blocks = [[{"rule": "none", **row} for row in _cover(axes.factors, axes, strength)]]
    for rule in clauses(system_prompt)[:MAX_RULES]:
        rows = _cover(axes.under_rule(), axes, strength - 1, rule)
        blocks.append([{"rule": rule, **row} for row in rows])
    return list({cell.id: cell for cell in map(Cell.of, _merged(blocks))}.values())


def _cover(
    factors: Mapping[str, list[str]], axes: Axes, strength: int, salt: str = ""
) -> list[dict[str, str]]:
    """Cover every combination of `strength` axes that can be."""
    rows = covertable.make(
        dict(factors),
        strength=min(strength, len(factors)),
        constraints=axes.constraints(),
        salt=salt,
    )
    return [{name: str(row[name]) for name in factors} for row in rows]


def _merged(blocks: Sequence[Sequence[dict[str, str]]]) -> list[dict[str, str]]:
    """Deal the blocks evenly, so that a budget short of the grid meets every rule all the same."""
    placed = [
        ((i + 0.5) / len(block), at, row)
        for at, block in enumerate(blocks)
        for i, row in enumerate(block)
    ]
    return [row for _, _, row in sorted(placed, key=lambda entry: entry[:2])]


@dataclass(frozen=True, slots=True)
class Coverage:
    """Which pairs of values a set of situations met; `print(coverage)` is the line to quote."""

    n_cells: int
    n_pairs: int  #: pairs that can occur
    n_met: int
    missing: tuple[tuple[str, str, str, str], ...]  #: axis, value, axis, value; the first hundred
    impossible: int  #: pairs that no situation can have
    rules_left_out: int  #: clauses of the system prompt beyond the limit
    never: tuple[tuple[str, str, str, str], ...] = ()  #: pairs that cannot occur; the first hundred

    @property
    def share(self) -> float:
        """Share of the possible pairs that were met."""
        return self.n_met / self.n_pairs if self.n_pairs else 1.0

    def __str__(self) -> str:
        left = f", {self.rules_left_out} clauses left out" if self.rules_left_out else ""
        return (
            f"{self.n_met} of {self.n_pairs} pairs met ({self.share:.0%}) by {self.n_cells} situations; "
            f"{self.impossible} pairs cannot occur{left}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        return {name: getattr(self, name) for name in self.__slots__} | {"share": self.share}


def coverage(
    situations: Iterable[Mapping[str, Any]],
    tools: Any,
    system_prompt: str | None = None,
    extra: Mapping[str, Sequence[str]] | None = None,
) -> Coverage:
    """Say which pairs of values a set of situations met, and which never can be.

    Args:
        situations: The `situation` column, or mappings from axis to value.
        tools: The tools, in any form that `wai.tool_schemas` takes.
        system_prompt: Its clauses are the axis `rule`.
        extra: Axes of the user's own.
    """
    rules = clauses(system_prompt)
    axes = Axes.of(read_tools(tools), extra)
    factors = {"rule": ["none", *rules[:MAX_RULES]], **axes.factors}
    met: set[tuple[str, str, str, str]] = set()
    cells = set()
    for situation in situations:
        values = {n: str(situation[n]) for n in factors if situation.get(n) is not None}
        cells.add(json.dumps(values, sort_keys=True))
        met.update(
            (a, values[a], b, values[b])
            for a, b in itertools.combinations(factors, 2)
            if a in values and b in values
        )
    every = [
        (a, x, b, y)
        for a, b in itertools.combinations(factors, 2)
        for x in factors[a]
        for y in factors[b]
    ]
    can = [pair for pair in every if axes.possible({pair[0]: pair[1], pair[2]: pair[3]})]
    missing = [pair for pair in can if pair not in met]
    never = sorted(set(every) - set(can))
    return Coverage(
        len(cells), len(can), len(can) - len(missing), tuple(missing[:100]),
        len(never), max(len(rules) - MAX_RULES, 0), tuple(never[:100]),
    )  # fmt: skip
