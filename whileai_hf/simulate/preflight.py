"""Before a run: what is wrong with tools and prompt, and how much to run.

`preflight` reads the specification as the simulator will, so that what it cannot see is said before
anything is spent. `recommend` turns the grid into a number of tasks and attempts.
"""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import Any

from whileai_hf import defaults
from whileai_hf.errors import InputError
from whileai_hf.simulate.grid import MAX_RULES, clauses, grid
from whileai_hf.simulate.plan import MODES
from whileai_hf.world.entities import Catalog
from whileai_hf.world.tools import Tool, read_tools


@dataclass(frozen=True, slots=True)
class ToolCheck:
    """One tool as the simulator reads it."""

    name: str
    kind: str  #: read, search, create, update, delete or compute
    about: str  #: kind of its entity
    issues: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Preflight:
    """What there is to simulate, and what is wrong with it; `print(preflight)` is the text to quote."""

    tools: tuple[ToolCheck, ...]
    rules: tuple[str, ...]
    n_cells: int
    warnings: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing has to be repaired."""
        return not self.warnings and not any(tool.issues for tool in self.tools)

    def __str__(self) -> str:
        lines = [
            f"{len(self.tools)} tools, {len(self.rules)} rules, {self.n_cells} situations cover every pair"
        ]
        for tool in self.tools:
            said = "; ".join(tool.issues) or "fine"
            lines.append(f"  {tool.name} ({tool.kind} {tool.about}): {said}")
        return "\n".join([*lines, *(f"  ! {warning}" for warning in self.warnings)])

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        tools = [{name: getattr(t, name) for name in t.__slots__} for t in self.tools]
        return {
            "tools": tools,
            "rules": list(self.rules),
            "n_cells": self.n_cells,
            "warnings": list(self.warnings),
        }


def preflight(tools: Any, system_prompt: str | None = None) -> Preflight:
    """Check tools and prompt before a run.

    Args:
        tools: The tools, in any form that `wai.tool_schemas` takes.
        system_prompt: The agent's system prompt.

    Raises:
        InputError: There is neither a tool nor a prompt, or a tool cannot be read.

    Example:
        >>> print(preflight([{"name": "get_order"}]))
        1 tools, 0 rules, 72 situations cover every pair
          get_order (read order): no description; no parameters
          ! no system prompt: the grid has no rules
          ! no tool writes: nothing can be done wrongly, only told wrongly
    """
    given = read_tools(tools)
    if not given and not (system_prompt or "").strip():
        raise InputError("preflight needs tools or a system prompt; got neither. Pass tools=[...].")
    rules = clauses(system_prompt)
    catalog = Catalog.of(given)
    checks = tuple(
        ToolCheck(t.name, catalog.kinds[t.name], catalog.about[t.name], tuple(_issues(t, catalog)))
        for t in given
    )
    return Preflight(
        checks, tuple(rules[:MAX_RULES]), len(grid(given, system_prompt)),
        tuple(_warnings(system_prompt, rules, given, catalog)),
    )  # fmt: skip


def _issues(tool: Tool, catalog: Catalog) -> list[str]:
    found = []
    properties = tool.parameters.get("properties", {})
    if not tool.description.strip():
        found.append("no description")
    if not properties:
        found.append("no parameters")
    elif not tool.parameters.get("required"):
        found.append("no required argument")
    bare = [n for n, s in properties.items() if isinstance(s, dict) and not s.get("description")]
    if properties and len(bare) == len(properties) > 1:
        found.append("no argument is described")
    untyped = [
        n for n, s in properties.items()
        if isinstance(s, dict) and not {"type", "enum", "anyOf", "oneOf", "allOf", "$ref", "const"} & set(s)
    ]  # fmt: skip
    if untyped:
        found.append(f"{', '.join(untyped)} may be anything: no type")
    writes = catalog.kinds[tool.name] in ("update", "delete")
    if writes and catalog.main[tool.name] and catalog.reader(tool.name) is None:
        found.append(f"no tool reads the {catalog.about[tool.name]} that it changes")
    return found


def _warnings(
    prompt: str | None, rules: list[str], tools: list[Tool], catalog: Catalog
) -> list[str]:
    found = []
    if not (prompt or "").strip():
        found.append("no system prompt: the grid has no rules")
    elif len(prompt or "") < defaults.THIN_PROMPT:
        found.append(f"a system prompt of {len(prompt or '')} characters hardly states a policy")
    elif not rules:
        found.append("no clause of the system prompt reads as a rule")
    if len(rules) > MAX_RULES:
        found.append(f"{len(rules) - MAX_RULES} clauses beyond the first {MAX_RULES} are left out")
    if tools and not any(kind in ("create", "update", "delete") for kind in catalog.kinds.values()):
        found.append("no tool writes: nothing can be done wrongly, only told wrongly")
    return found


@dataclass(frozen=True, slots=True)
class Recommendation:
    """How much to run; `print(recommendation)` says why."""

    mode: str
    situations: int
    repeats: int
    budget: int  #: rollouts, situations times repeats
    n_cells: int
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.mode}: {self.situations} situations x {self.repeats} = budget {self.budget} "
            f"({self.n_cells} cells; {self.reason})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        return {name: getattr(self, name) for name in self.__slots__}


def recommend(
    tools: Any,
    system_prompt: str | None = None,
    *,
    mode: str = "rl",
    repeats: int | None = None,
    target: int | None = None,
    mixed_rate: float = defaults.MIXED_RATE,
) -> Recommendation:
    """Say how many situations and attempts a run needs.

    Args:
        tools: The tools.
        system_prompt: The agent's system prompt.
        mode: What the rows are for; the modes of `simulate`.
        repeats: Attempts at a task; null is the mode's preset.
        target: Rows that are wanted in the end: for `"rl"` those of tasks with a gradient, for `"sft"`
            all; null is the default of each.
        mixed_rate: Share of tasks on which attempts differ, in (0, 1]; measure it on a small run.

    Raises:
        InputError: The mode is unknown, or a number out of range.
    """
    if mode not in MODES:
        raise InputError(f"mode must be one of {', '.join(MODES)}; got {mode!r}. Pick one.")
    if not 0 < mixed_rate <= 1:
        raise InputError(
            f"mixed_rate must lie in (0, 1]; got {mixed_rate!r}. It is the share of tasks with a gradient."
        )
    k = MODES[mode]["repeats"] if repeats is None else repeats
    for name, value in (("repeats", k), ("target", 1 if target is None else target)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(
                f"{name} must be a whole number of at least 1; got {value!r}. Raise it."
            )
    cells = len(grid(read_tools(tools), system_prompt))
    if mode in ("rl", "adaptive"):
        rows = defaults.RL_MIXED_ROWS if target is None else target
        needed = math.ceil(rows / (k * mixed_rate))
        situations = max(2 * cells, needed)
        reason = f"each cell twice; {needed} tasks give {rows} rows with a gradient at a mixed rate of {mixed_rate:g}"
    elif mode == "sft":
        rows = defaults.SFT_ROWS if target is None else target
        situations = max(cells, math.ceil(rows / k))
        reason = f"each cell once; {rows} rows teach a behaviour"
    else:
        situations = max(cells, 1 if target is None else math.ceil(target / k))
        reason = "each cell once; wai.holdout_size says how many tasks prove a gain"
    return Recommendation(mode, situations, k, situations * k, cells, reason)
