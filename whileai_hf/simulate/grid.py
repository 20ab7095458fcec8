"""The grid: which situations an agent can meet, covered pair by pair.

A situation is a cell: a value on each axis. The rule-free cells are a covering array, in which every
pair of values of two axes occurs (strength 2; Cohen et al. 1997, IEEE Trans. Softw. Eng. 23:437-444).
Each clause of the system prompt adds a block of its own that pairs it with every value of every
other axis, so that an edit of one clause changes only the cells of that clause.
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
from whileai_hf.world.faults import FAULTS
from whileai_hf.world.tools import Tool, read_tools
from whileai_hf.world.values import is_reference
from whileai_hf.world.world import STATES

STANCES = (
    "ordinary", "hurried", "unsure", "mistaken", "ambiguous", "boundary", "adversarial",
    "exploratory", "conflicting", "retry",
)  # fmt: skip
HISTORIES = (
    "fresh",
    "prior_failure",
    "prior_partial_action",
    "contradicts_earlier",
    "repeat_visit",
)
ARGUMENTS = ("required", "all", "boundary")

#: Tool values that are no tool: an ask that none of the tools serves.
UNRELATED = "unrelated"

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


def axes(
    tools: Sequence[Tool], extra: Mapping[str, Sequence[str]] | None = None
) -> dict[str, list[str]]:
    """Return the axes of a tool set, without the rules.

    Args:
        tools: The tools; none leaves the axes that a conversation alone has.
        extra: Axes of the user's own, by name.
    """
    found: dict[str, list[str]] = {}
    if tools:
        found["tool"] = [*(t.name for t in tools), UNRELATED]
    found["stance"] = list(STANCES)
    if tools:
        refers = any(is_reference(n) for t in tools for n in t.parameters.get("properties", {}))
        found["world_state"] = list(STATES) if refers else ["exists", "missing"]
        found["tool_condition"] = ["success", *FAULTS]
        found["arguments"] = list(ARGUMENTS)
    found["history"] = list(HISTORIES)
    for name, values in (extra or {}).items():
        if name in found or name == "rule" or not values:
            raise InputError(
                f"an axis of your own needs a new name and values; got {name!r} with {values!r}. "
                f"Taken are: rule, {', '.join(found)}."
            )
        found[name] = [str(v) for v in values]
    return found


def _possible(values: Mapping[str, str]) -> bool:
    """Tell whether a situation can be: an ask that no tool serves meets no tool, state or fault."""
    if values.get("tool") != UNRELATED:
        return True
    plain = {"world_state": "exists", "tool_condition": "success", "arguments": "required"}
    return all(values.get(axis, value) == value for axis, value in plain.items())


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
    factors = axes(tools, extra)
    rules = clauses(system_prompt)[:MAX_RULES]
    cells = [
        Cell.of({"rule": "none", **row}) for row in _cover(factors, min(strength, len(factors)))
    ]
    for rule in rules:
        cells += [Cell.of({"rule": rule, **row}) for row in _block(rule, factors)]
    return list({cell.id: cell for cell in cells}.values())


def _cover(factors: Mapping[str, list[str]], strength: int) -> list[dict[str, str]]:
    """Cover the axes of real tools, then the other axes for an ask that no tool serves."""
    real = {
        name: [v for v in values if not (name == "tool" and v == UNRELATED)]
        for name, values in factors.items()
    }
    rows = (
        covertable.make(real, strength=strength)
        if strength > 1
        else [{n: v} for n, vs in real.items() for v in vs]
    )
    rows = [{name: str(row[name]) for name in real} for row in rows]
    if "tool" in factors:
        free = {
            n: v
            for n, v in real.items()
            if n not in ("tool", "world_state", "tool_condition", "arguments")
        }
        more = covertable.make(free, strength=min(strength, len(free)))
        plain = {
            "tool": UNRELATED,
            "world_state": "exists",
            "tool_condition": "success",
            "arguments": "required",
        }
        rows += [{n: str({**row, **plain}[n]) for n in factors} for row in more]
    return rows


def _block(rule: str, factors: Mapping[str, list[str]]) -> list[dict[str, str]]:
    """Pair a rule with every value of every axis, rotated by the rule's own text."""
    turn = int(hashlib.sha256(rule.encode()).hexdigest()[:8], 16)
    real = {n: [v for v in vs if not (n == "tool" and v == UNRELATED)] for n, vs in factors.items()}
    length = max(map(len, real.values()))
    return [
        {n: vs[(i + turn // (j + 1)) % len(vs)] for j, (n, vs) in enumerate(real.items())}
        for i in range(length)
    ]


@dataclass(frozen=True, slots=True)
class Coverage:
    """Which pairs of values a set of situations met; `print(coverage)` is the line to quote."""

    n_cells: int
    n_pairs: int  #: pairs that can occur
    n_met: int
    missing: tuple[tuple[str, str, str, str], ...]  #: axis, value, axis, value; the first hundred
    impossible: int  #: pairs that no situation can have
    rules_left_out: int  #: clauses of the system prompt beyond the limit

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
    factors = {"rule": ["none", *rules[:MAX_RULES]], **axes(read_tools(tools), extra)}
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
    can = [pair for pair in every if _possible({pair[0]: pair[1], pair[2]: pair[3]})]
    missing = [pair for pair in can if pair not in met and not _rule_free(pair)]
    possible = [pair for pair in can if not _rule_free(pair)]
    return Coverage(
        len(cells), len(possible), len(possible) - len(missing), tuple(missing[:100]),
        len(every) - len(possible), max(len(rules) - MAX_RULES, 0),
    )  # fmt: skip


def _rule_free(pair: tuple[str, str, str, str]) -> bool:
    """Tell whether a pair joins a rule with an ask that no tool serves, which no rule governs."""
    values = {pair[0]: pair[1], pair[2]: pair[3]}
    return values.get("rule", "none") != "none" and values.get("tool") == UNRELATED
