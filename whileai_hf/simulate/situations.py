"""Situations: what a user asks in a cell of the grid, and the world in which he asks it.

The template writer needs no model. It states the values that the tool needs, in the stance and the
history of the cell, and it never writes the same ask twice. Everything about the n-th situation
follows from the seed and n, so that situations can be made on any machine, in any order.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from whileai_hf.simulate.axes import UNRELATED
from whileai_hf.simulate.goals import expected_end, faults_of, forbidden_call, goal_of, outcome
from whileai_hf.simulate.grid import Cell
from whileai_hf.simulate.languages import Bank, bank
from whileai_hf.simulate.phrases import TEXTURES, action, facts, said, textured
from whileai_hf.world.entities import Catalog
from whileai_hf.world.tools import Tool
from whileai_hf.world.world import World

#: Names that make an unrelated ask a new one.
_PLACES = (
    "Lisbon",
    "Oslo",
    "Lima",
    "Kyoto",
    "Cairo",
    "Quito",
    "Turin",
    "Perth",
    "Accra",
    "Dakar",
    "Riga",
    "Hanoi",
)

#: Attempts at an ask that has not been written before.
_TRIES = 40

#: Share of asks that are typed with care; the rest is shared among the other textures.
_CAREFUL = 0.7


@dataclass(frozen=True, slots=True)
class Situation:
    """One task before anybody answers it."""

    task_id: str
    cell: Cell
    ask: str
    world: dict[str, Any]  #: specification of its world
    expected: str  #: the right end: done, not_found, already_done, report_fault, refuse, ask_back, no_call
    language: str = "en"
    follow_up: str | None = None  #: what the user says when asked back
    privileged: dict[str, Any] = field(default_factory=dict)
    texture: str = "plain"  #: how it is typed

    def columns(self) -> dict[str, Any]:
        """Return the task columns of a row."""
        return {
            "task_id": self.task_id,
            "situation": {
                "cell": self.cell.id,
                **self.cell.values,
                "language": self.language,
                "texture": self.texture,
            },
            "world": self.world,
            "privileged": self.privileged,
            "ask": self.ask,
        }


class Writer:
    """Write situations for the cells of a grid, each ask once.

    Args:
        cells: The grid.
        tools: The tools.
        seed: Everything follows from it and the number of the situation.
        fault_rate: Share of fault cells that keep their fault.
        languages: Languages to write in, taken in turn.
        weights: How often each cell is drawn, of mean 1; null takes them in turn.
        refused: Asks that must not be written, such as those of traces.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        tools: Sequence[Tool],
        *,
        seed: int,
        fault_rate: float,
        languages: Sequence[str] = ("en",),
        weights: Sequence[float] | None = None,
        refused: Container[str] = (),
    ) -> None:
        self.cells, self.tools, self.seed = cells, {t.name: t for t in tools}, seed
        self.fault_rate, self.languages = fault_rate, tuple(languages)
        self.banks = {language: bank(language) for language in languages}
        self.list = list(tools)
        self.catalog = Catalog.of(self.list)
        self.weights, self.refused = weights, refused
        self.n_refused = 0  # situations that could not be written anew

    def __call__(self, n: int) -> Iterator[Situation]:
        """Write `n` situations, or fewer where the cells have no new ask left."""
        seen: set[bytes] = set()
        made = 0
        for cell, visit in self._turns():
            if made >= n or self.n_refused >= 3 * len(self.cells):
                return
            situation = self._new(cell, visit, seen)
            if situation is None:
                self.n_refused += 1
                continue
            self.n_refused = 0
            made += 1
            yield situation

    def _turns(self) -> Iterator[tuple[Cell, int]]:
        """Take the cells in turn, or each as often as its weight says, spread evenly."""
        if self.weights is None:
            for visit in itertools.count():
                for cell in self.cells:
                    yield cell, visit
        owed = np.zeros(len(self.cells))
        weights = np.asarray(self.weights, dtype=np.float64)
        visits = [0] * len(self.cells)
        while True:  # smooth weighted round robin: who is owed most goes next
            owed += weights
            at = int(owed.argmax())
            owed[at] -= weights.sum()
            yield self.cells[at], visits[at]
            visits[at] += 1

    def _new(self, cell: Cell, visit: int, seen: set[bytes]) -> Situation | None:
        language = self.languages[(visit + int(cell.id[-6:], 16)) % len(self.languages)]
        for attempt in range(_TRIES):
            rng = Random(f"{self.seed}:{cell.id}:{visit}:{attempt}")
            situation = self.write(cell, language, rng)
            key = hashlib.blake2b(
                " ".join(situation.ask.lower().split()).encode(), digest_size=12
            ).digest()
            if key not in seen and situation.ask not in self.refused:
                seen.add(key)
                return situation
        return None

    def write(self, cell: Cell, language: str, rng: Random) -> Situation:
        """Write one situation of a cell."""
        lines = self.banks[language]
        values = cell.values
        name = values.get("tool", UNRELATED)
        if name == UNRELATED:
            return self._unrelated(cell, language, lines, rng)
        goal = goal_of(values, self.tools, rng)
        spec: dict[str, Any] = {
            "seed": rng.getrandbits(31),
            "state": values.get("world_state", "exists"),
            "goal": goal,
            "faults": faults_of(values, name, self.fault_rate, rng),
        }
        family = values.get("family", "plain")
        aside, kept = self._aside(family, goal, lines, rng)
        ask, follow_up = self._ask(cell, goal, aside, lines, rng)
        texture = self._texture(language, rng)
        stated = [said(v, lines) for step in _steps(goal) for v in step["arguments"].values()]
        ask = textured(ask, texture, rng, stated)
        world = World(self.list, **spec)
        expected = expected_end(world.expected(), values.get("stance", "ordinary"), family)
        about = outcome(expected, name, goal["arguments"])
        kept |= {"expected": expected, "goal": goal, "outcome": about, "follow_up": follow_up}
        return Situation(
            _task_id(cell, ask, spec), cell, ask, spec, expected, language, follow_up, kept, texture
        )

    def _texture(self, language: str, rng: Random) -> str:
        if language == "zh" or rng.random() < _CAREFUL:
            return TEXTURES[0]
        return rng.choice(TEXTURES[1:])

    def _aside(
        self, family: str, goal: Mapping[str, Any], lines: Bank, rng: Random
    ) -> tuple[str, dict[str, Any]]:
        """Write what stands beside the request, and note what must not be done for it."""
        if family == "injection":
            call = forbidden_call(goal, self.list, rng)
            doing = action(self.tools[call["tool"]], self.catalog, call["arguments"], lines, rng)
            return rng.choice(lines.injections).format(action=doing), {"forbidden": call}
        if family == "over_reach":
            return rng.choice(lines.over_reaches), {}
        return rng.choice(lines.controls) if family == "control" else "", {}

    def _ask(
        self, cell: Cell, goal: Mapping[str, Any], aside: str, lines: Bank, rng: Random
    ) -> tuple[str, str | None]:
        stance = cell.values.get("stance", "ordinary")
        arguments = goal["arguments"]
        hidden = stance == "ambiguous"
        doing, rest, search = self._request(goal, hidden, lines, rng)
        every = facts(arguments if not search else rest, lines)
        stated = (
            "" if hidden or not rest else rng.choice(lines.facts).format(facts=facts(rest, lines))
        )
        parts = [
            rng.choice(lines.histories[cell.values.get("history", "fresh")]),
            rng.choice(lines.requests).format(action=doing), search, stated,
            rng.choice(lines.stances[stance]), aside, rng.choice(lines.closers),
        ]  # fmt: skip
        text = _join(lines, rng.choice(lines.greetings), *parts)
        if not hidden or not every:
            return text, None
        return text, rng.choice(lines.answers).format(facts=every)

    def _request(
        self, goal: Mapping[str, Any], hidden: bool, lines: Bank, rng: Random
    ) -> tuple[str, dict[str, Any], str]:
        """Say what is wanted, which arguments are left to state, and how to find what has no id."""
        tool, rest = self.tools[goal["tool"]], dict(goal["arguments"])
        main = self.catalog.main[tool.name]
        search = ""
        first = goal["after"][0] if goal.get("after") else None
        if first is not None and self.catalog.kinds[first["tool"]] == "search" and not hidden:
            rest.pop(main or "", None)
            found = facts(first["arguments"], lines)
            search = rng.choice(lines.searched).format(facts=found) if found else ""
        named = not hidden and main in rest and rng.random() < 0.6
        doing = action(
            tool, self.catalog, {main: rest.pop(main)} if named and main else {}, lines, rng
        )
        if first is not None:
            before = action(self.tools[first["tool"]], self.catalog, {}, lines, rng)
            doing = rng.choice(lines.chained).format(first=before, then=doing)
        return doing, rest, search

    def _unrelated(self, cell: Cell, language: str, lines: Bank, rng: Random) -> Situation:
        text = rng.choice(lines.unrelated).format(
            n=rng.randint(2, 9999), k=rng.randint(2, 99), m=rng.choice(_PLACES)
        )
        stance = rng.choice(lines.stances[cell.values.get("stance", "ordinary")])
        history = rng.choice(lines.histories[cell.values.get("history", "fresh")])
        ask = _join(
            lines, rng.choice(lines.greetings), history, text, stance, rng.choice(lines.closers)
        )
        spec = {"seed": rng.getrandbits(31), "state": "exists", "goal": None, "faults": []}
        kept = {"expected": "no_call", "goal": None, "outcome": outcome("no_call", "", {})}
        return Situation(
            _task_id(cell, ask, spec), cell, ask, spec, "no_call", language, None, kept
        )


def _steps(goal: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [*goal.get("after", ()), goal]


def _join(lines: Bank, greeting: str, *sentences: str) -> str:
    """Join sentences; after a greeting with a comma the first one goes on in small letters."""
    body = [_capital(s) for s in sentences if s]
    if greeting.endswith(","):
        body[:1] = [_small(body[0])]
    return lines.space.join([greeting, *body] if greeting else body).strip()


def _capital(sentence: str) -> str:
    at = next((i for i, c in enumerate(sentence) if c.isalpha()), 0)
    if re.match(r"\S*\d", sentence):
        return sentence  # an id or a number stays as it is
    return sentence[:at] + sentence[at : at + 1].upper() + sentence[at + 1 :]


def _small(sentence: str) -> str:
    if re.match(r"I\b|[A-Z]{2}|\S*\d", sentence):
        return sentence
    at = next((i for i, c in enumerate(sentence) if c.isalpha()), 0)
    return sentence[:at] + sentence[at : at + 1].lower() + sentence[at + 1 :]


def _task_id(cell: Cell, ask: str, spec: Mapping[str, Any]) -> str:
    text = json.dumps([cell.id, ask, spec], sort_keys=True, ensure_ascii=False, default=str)
    return f"task-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
