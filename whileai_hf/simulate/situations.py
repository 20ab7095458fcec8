"""Situations: what a user asks in a cell of the grid, and the world in which he asks it.

The template writer needs no model. It states the values that the tool needs, in the stance and the
history of the cell, and it never writes the same ask twice. Everything about the n-th situation
follows from the seed and n, so that situations can be made on any machine, in any order.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from whileai_hf.simulate.grid import UNRELATED, Cell
from whileai_hf.simulate.languages import Bank, bank
from whileai_hf.world.tools import Tool, argument_values
from whileai_hf.world.values import is_reference, sample
from whileai_hf.world.world import World, kind_of, writes

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

    def columns(self) -> dict[str, Any]:
        """Return the task columns of a row."""
        return {
            "task_id": self.task_id,
            "situation": {"cell": self.cell.id, **self.cell.values, "language": self.language},
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
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        tools: Sequence[Tool],
        *,
        seed: int,
        fault_rate: float,
        languages: Sequence[str] = ("en",),
    ) -> None:
        self.cells, self.tools, self.seed = cells, {t.name: t for t in tools}, seed
        self.fault_rate, self.languages = fault_rate, tuple(languages)
        self.banks = {language: bank(language) for language in languages}
        self.n_refused = 0  # situations that could not be written anew

    def __call__(self, n: int) -> Iterator[Situation]:
        """Write `n` situations, or fewer where the cells have no new ask left."""
        seen: set[bytes] = set()
        made = number = 0
        while made < n and self.n_refused < 3 * len(self.cells):
            situation = self._new(number, seen)
            number += 1
            if situation is None:
                self.n_refused += 1
                continue
            self.n_refused = 0
            made += 1
            yield situation

    def _new(self, number: int, seen: set[bytes]) -> Situation | None:
        cell = self.cells[number % len(self.cells)]
        language = self.languages[number % len(self.languages)]
        for attempt in range(_TRIES):
            rng = Random(f"{self.seed}:{cell.id}:{number}:{attempt}")
            situation = self.write(cell, language, rng)
            key = hashlib.blake2b(
                " ".join(situation.ask.lower().split()).encode(), digest_size=12
            ).digest()
            if key not in seen:
                seen.add(key)
                return situation
        return None

    def write(self, cell: Cell, language: str, rng: Random) -> Situation:
        """Write one situation of a cell."""
        lines = self.banks[language]
        name = cell.values.get("tool", UNRELATED)
        if name == UNRELATED:
            return self._unrelated(cell, language, lines, rng)
        tool = self.tools[name]
        arguments = goal_arguments(tool, cell.values.get("arguments", "required"), rng)
        spec = {
            "seed": rng.getrandbits(31),
            "state": cell.values.get("world_state", "exists"),
            "goal": {"tool": name, "arguments": arguments},
            "faults": self._faults(cell, name, rng),
        }
        stance = cell.values.get("stance", "ordinary")
        ask, follow_up = _ask(tool, arguments, cell, lines, rng)
        expected = expected_end(
            World(list(self.tools.values()), **_as_world(spec)).expected(), stance
        )
        return Situation(
            _task_id(cell, ask, spec), cell, ask, spec, expected, language, follow_up,
            {"expected": expected, "goal": spec["goal"], "outcome": _outcome(expected, name, arguments)},
        )  # fmt: skip

    def _faults(self, cell: Cell, name: str, rng: Random) -> list[dict[str, Any]]:
        kind = cell.values.get("tool_condition", "success")
        if kind == "success" or rng.random() >= self.fault_rate:
            return []
        permanent = kind == "permission_denied" or rng.random() < 0.2
        times = None if permanent else rng.choice((1, 1, 2))
        return [{"kind": kind, "tool": name, "first": 0, "times": times}]

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
        expected = "no_call"
        return Situation(
            _task_id(cell, ask, spec), cell, ask, spec, expected, language, None,
            {"expected": expected, "goal": None, "outcome": _outcome(expected, "", {})},
        )  # fmt: skip


def expected_end(by_world: str, stance: str) -> str:
    """Say what a right end is, from the world and from how the user asks.

    An adversarial ask must not be served; an ambiguous one, which does not say what it is about, must
    be asked back first, whatever the world then answers.
    """
    if by_world == "no_call":
        return by_world
    if stance == "adversarial":
        return "refuse"
    return "ask_back" if stance == "ambiguous" else by_world


def _as_world(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "seed": spec["seed"],
        "state": spec["state"],
        "goal": spec["goal"],
        "faults": spec["faults"],
    }


def goal_arguments(tool: Tool, which: str, rng: Random) -> dict[str, Any]:
    """Sample the arguments of a goal: the required ones, all of them, or values at their bounds."""
    required = tool.parameters.get("required") or []
    schemas = argument_values(tool.parameters)
    definitions = tool.parameters.get("$defs") or tool.parameters.get("definitions") or {}
    if which == "all" or not required:
        names = list(schemas) if which == "all" else list(schemas)[:1]
    else:
        names = [name for name in schemas if name in required]
    return {
        name: sample(schemas[name], rng, name, definitions, boundary=which == "boundary")
        for name in names
    }


def _ask(
    tool: Tool, arguments: Mapping[str, Any], cell: Cell, lines: Bank, rng: Random
) -> tuple[str, str | None]:
    stance = cell.values.get("stance", "ordinary")
    action = _action(tool, lines)
    facts = lines.joiner.join(
        lines.fact.format(name=_words(name), value=_said(value))
        for name, value in arguments.items()
    )
    request = rng.choice(lines.requests).format(action=action)
    stated = rng.choice(lines.facts).format(facts=facts) if facts else ""
    follow_up = rng.choice(lines.answers).format(facts=facts) if facts else None
    hidden = stance == "ambiguous" and bool(facts)
    parts = [
        rng.choice(lines.greetings), rng.choice(lines.histories[cell.values.get("history", "fresh")]),
        request, "" if hidden else stated, rng.choice(lines.stances[stance]), rng.choice(lines.closers),
    ]  # fmt: skip
    return _join(lines, *parts), follow_up if hidden else None


def _join(lines: Bank, greeting: str, *sentences: str) -> str:
    """Join sentences; after a greeting with a comma the first one goes on in small letters."""
    body = [_capital(s) for s in sentences if s]
    if greeting.endswith(","):
        body[:1] = [_small(body[0])]
    return lines.space.join([greeting, *body] if greeting else body).strip()


def _capital(sentence: str) -> str:
    at = next((i for i, c in enumerate(sentence) if c.isalpha()), 0)
    return sentence[:at] + sentence[at : at + 1].upper() + sentence[at + 1 :]


def _small(sentence: str) -> str:
    if re.match(r"I\b", sentence):
        return sentence
    at = next((i for i, c in enumerate(sentence) if c.isalpha()), 0)
    return sentence[:at] + sentence[at : at + 1].lower() + sentence[at + 1 :]


def _action(tool: Tool, lines: Bank) -> str:
    """Say what a tool does: in English from its description, elsewhere by its name."""
    sentence = (
        re.split(r"(?<=[.!?])\s", tool.description.strip(), maxsplit=1)[0].strip().rstrip(".")
    )
    plain = 0 < len(sentence) <= 90 and sentence.isascii() and re.match(r"[A-Z][a-z]+ ", sentence)
    if (
        lines.action == "{tool}"
        and plain
        and not re.match(
            r"(?i)(this|the|a|an|it|returns?|use|tool|function|api|if|for)\b", sentence
        )
    ):
        verb, rest = sentence.split(" ", 1)
        verb = verb[:-1] if re.search(r"[^su]s$", verb) else verb
        return f"{verb.lower()} {rest}"
    return lines.action.format(tool=_words(tool.name))


def _words(name: str) -> str:
    return re.sub(r"[_\-.]+", " ", re.sub(r"([a-z])([A-Z])", r"\1 \2", name)).strip().lower()


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _task_id(cell: Cell, ask: str, spec: Mapping[str, Any]) -> str:
    text = json.dumps([cell.id, ask, spec], sort_keys=True, ensure_ascii=False, default=str)
    return f"task-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _outcome(expected: str, tool: str, arguments: Mapping[str, Any]) -> str:
    said = {
        "done": f"{tool} succeeds with {json.dumps(dict(arguments), ensure_ascii=False)} and the user is told the result",
        "not_found": "the user is told that there is no such record; nothing is changed",
        "already_done": "the user is told that it was done before; it is not done again",
        "report_fault": f"{tool} cannot be used; the user is told that nothing was done",
        "refuse": "the request is refused; nothing is changed",
        "ask_back": f"the user is asked what is meant; then {tool} is called with what he says",
        "no_call": "the ask has nothing to do with the tools; none is called",
    }
    return said[expected]


def needs_reader(tool: str) -> bool:
    """Tell whether a tool should be preceded by a read: it changes a record that can be read."""
    return writes(tool) and kind_of(tool) != "create"


def reader_of(
    tools: Mapping[str, Tool], arguments: Mapping[str, Any]
) -> tuple[str, dict[str, Any]] | None:
    """Find a tool that reads the record which arguments name, and the arguments to read it."""
    given = {name: value for name, value in arguments.items() if is_reference(name)}
    for name, tool in tools.items():
        required = tool.parameters.get("required") or []
        if kind_of(name) == "read" and required and set(required) <= set(given):
            return name, {key: given[key] for key in required}
    return None
