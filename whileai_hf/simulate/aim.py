"""Aiming: graded traces say where an agent fails, and the grid goes there more often.

Each trace is placed on the axes that it shows: the tool it called, what its results said, and the
cell where it carries one. A value on which more traces fail than on average draws more situations; a
share of the budget stays spread over everything, because traces show only what was asked so far.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from datasets import Dataset

from whileai_hf import columns, defaults, schema
from whileai_hf import messages as chat
from whileai_hf.errors import InputError
from whileai_hf.simulate.axes import UNRELATED
from whileai_hf.simulate.grid import Cell
from whileai_hf.simulate.near import NearCopies, normal

#: Words of a tool result that say which condition the tool was in.
_CONDITIONS = {
    "timeout": ("timeout", "timed out", "time-out"),
    "rate_limited": ("rate limit", "rate_limit", "too many requests", "429"),
    "permission_denied": ("permission", "forbidden", "not allowed", "unauthorized", "403", "401"),
    "stale_result": ("stale", "conflict", "out of date"),
}
_MISSING = ("not_found", "not found", "no such", "does not exist", "404")

#: Keys of a result under which a tool reports a failure; the words of other fields mean nothing.
_FAILED = ("error", "errors", "exception")

#: Traces that must show a value before it is aimed at, and the most that one value can weigh.
_SUPPORT, _MOST = 3, 4.0


@dataclass(frozen=True, slots=True)
class Aim:
    """Where traces aim a grid; `print(aim)` is the line to quote."""

    n_traces: int
    n_graded: int
    n_failed: int  #: reward below 1
    lifts: dict[tuple[str, str], float]  #: axis and value -> failure rate over the average one
    asks: tuple[str, ...]  #: what the traces asked; none of it comes back

    def __str__(self) -> str:
        top = sorted(self.lifts.items(), key=lambda item: -item[1])[:3]
        said = ", ".join(f"{a}={v} x{lift:.1f}" for (a, v), lift in top if lift > 1)
        return (
            f"{self.n_failed} of {self.n_graded} graded traces failed"
            f"{f'; aimed at {said}' if said else '; no value fails more than the others'}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log; the asks are counted."""
        lifts = {f"{axis}={value}": lift for (axis, value), lift in self.lifts.items()}
        return {
            "n_traces": self.n_traces,
            "n_graded": self.n_graded,
            "n_failed": self.n_failed,
            "lifts": lifts,
        }

    def weights(self, cells: Sequence[Cell], explore: float = defaults.EXPLORE) -> list[float]:
        """Return a weight for each cell, of mean 1.

        Args:
            cells: The grid.
            explore: Share that is spread evenly.
        """
        raw = []
        for cell in cells:
            product = 1.0
            for axis, value in cell.values.items():
                product *= self.lifts.get((axis, value), 1.0)
            raw.append(product)
        mean = sum(raw) / len(raw)
        return [explore + (1 - explore) * value / mean for value in raw]

    def sources(self) -> Sources:
        """Return the asks of the traces, to keep them out."""
        return Sources(self.asks)


class Sources:
    """Asks that must not come back, to the letter, inside another one, or nearly so."""

    def __init__(self, asks: Sequence[str]) -> None:
        self.exact = {normal(ask) for ask in asks}
        self.long = [n for n in self.exact if len(n) >= 20]
        self.near = NearCopies(defaults.TRACE_COPY)
        self.near.extend(asks)

    def __contains__(self, ask: object) -> bool:
        text = normal(str(ask))
        if text in self.exact or any(source in text for source in self.long):
            return True
        return self.near.holds(str(ask))


def aim_at(traces: Dataset) -> Aim:
    """Read where traces fail.

    Args:
        traces: Graded rollouts.

    Raises:
        InputError: No row has a reward.
    """
    seen: Counter[tuple[str, str]] = Counter()
    failed: Counter[tuple[str, str]] = Counter()
    n_graded = n_failed = 0
    asks = []
    for row in _rows(traces):
        asks.append(chat.first_ask(row["messages"]) or str(row.get("ask") or ""))
        reward = row.get("reward")
        if reward is None:
            continue
        n_graded += 1
        n_failed += reward < 1
        for place in places(row):
            seen[place] += 1
            failed[place] += reward < 1
    if not n_graded:
        raise InputError(
            f"traces must be graded to aim at what failed; none of {len(traces)} rows has a reward. "
            "Grade them first: traces.grade(judge=...)."
        )
    base = (n_failed + 1) / (n_graded + 2)
    lifts = {
        place: min(_MOST, max(1 / _MOST, (failed[place] + 1) / (n + 2) / base))
        for place, n in seen.items()
        if n >= _SUPPORT
    }
    return Aim(
        len(traces), n_graded, n_failed, lifts if n_failed else {}, tuple(dict.fromkeys(asks))
    )


def _rows(traces: Dataset) -> Iterator[dict[str, Any]]:
    for batch in columns.batches(traces):
        for values in zip(*batch.values(), strict=True):
            yield schema.to_record(dict(zip(batch, values, strict=True)))


def places(row: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Say where on the axes a rollout lies: by its cell, or by its calls and what they returned."""
    known = row.get("situation") or {}
    own = {k: v for k, v in known.items() if k not in ("cell", "language", "texture")}
    if own:
        return {(axis, str(value)) for axis, value in own.items()}
    calls = chat.tool_calls(row["messages"])
    if not calls:
        return {("tool", UNRELATED)}
    found = {("tool", call.name) for call in calls}
    conditions = {condition for call in calls if (condition := condition_of(call.result))}
    for condition in conditions:
        found.add(
            ("world_state", "missing") if condition == "missing" else ("tool_condition", condition)
        )
    if not conditions:
        found |= {("tool_condition", "success"), ("world_state", "exists")}
    return found


def condition_of(result: str | None) -> str | None:
    """Say which fault a tool result reports, or null; only what is said of an error counts.

    A record whose own field reads like one (`{"status": "paid"}`, `{"subject": "timeout"}`) is no fault.
    """
    text = _error_text(result or "").lower()
    if not text:
        return None
    for condition, words in _CONDITIONS.items():
        if any(word in text for word in words):
            return condition
    return "missing" if any(word in text for word in _MISSING) else "malformed_result"


def _error_text(result: str) -> str:
    """Return what a result says of an error; a result that is no JSON is one if it opens like one."""
    try:
        value = json.loads(result)
    except ValueError:
        return (
            result
            if result.lower().lstrip().startswith(("error", "traceback", "exception"))
            else ""
        )
    if not isinstance(value, Mapping):
        return ""
    said = [str(value[key]) for key in _FAILED if value.get(key)]
    if value.get("status") in ("error", "failed", "timeout"):
        said.append(str(value["status"]))
    return " ".join([*said, str(value.get("message", ""))]) if said else ""
