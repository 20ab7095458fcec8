"""The mock world: a pure, seeded state machine that answers tool calls.

One object serves every door: `simulate`, an exported environment, and a trainer. It validates
arguments against the tool's schema, holds entities, applies the fault schedule, logs every call, and
can be rebuilt from its specification (`World.spec`, the `world` column) and its log.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from whileai_hf import schema
from whileai_hf.errors import InputError
from whileai_hf.world.answers import Answers, mark_of
from whileai_hf.world.entities import Catalog
from whileai_hf.world.faults import FAULTS, Fault
from whileai_hf.world.kinds import kind_of, writes
from whileai_hf.world.tools import Tool, read_tools
from whileai_hf.world.values import is_reference

__all__ = ["STATES", "World", "as_text", "kind_of", "writes"]

#: What can be the case with the entity that a task is about.
STATES = ("exists", "missing", "acted", "duplicate", "partial", "unknown")


class World:
    """What one rollout acts on.

    Args:
        tools: The tools, in any form that `read_tools` takes.
        seed: Everything that is invented follows from it.
        state: What is the case with the goal's entity, one of `STATES`.
        goal: What the task asks for, `{"tool": name, "arguments": {…}}`, and under `"after"` the calls
            that must have succeeded before; null for a task that needs no tool.
        faults: The schedule.
        execute: A function `(name, arguments) -> result` of the user that answers instead; faults and
            the log stay.

    Attributes:
        log: Every call so far: tool, arguments, result, status, fault, and whether it took effect.
    """

    def __init__(
        self,
        tools: Any,
        *,
        seed: int = 0,
        state: str = "exists",
        goal: Mapping[str, Any] | None = None,
        faults: Iterable[Fault | Mapping[str, Any]] = (),
        execute: Callable[[str, dict[str, Any]], Any] | None = None,
    ) -> None:
        if state not in STATES:
            raise InputError(f"state must be one of {', '.join(STATES)}; got {state!r}. Pick one.")
        given = read_tools(tools)
        self.tools: dict[str, Tool] = {t.name: t for t in given}
        self.seed, self.state, self.execute = seed, state, execute
        self.faults = tuple(f if isinstance(f, Fault) else Fault(**f) for f in faults)
        self.goal = _read_goal(goal, self.tools)
        self.catalog = Catalog.of(given)
        self.log: list[dict[str, Any]] = []
        self._calls: dict[str, int] = {}
        self._scene: Answers | None = None

    # Building and rebuilding.

    @property
    def spec(self) -> dict[str, Any]:
        """What rebuilds this world before its first call, as JSON."""
        return {
            "seed": self.seed, "state": self.state, "goal": self.goal,
            "faults": [fault.to_dict() for fault in self.faults],
        }  # fmt: skip

    @classmethod
    def from_row(cls, row: Mapping[str, Any], execute: Any = None) -> World:
        """Rebuild the world of a rollout from its `tools` and `world` columns."""
        if not row.get("world"):
            raise InputError(
                f"a row needs its world to rebuild it; row {row.get('rollout_id')!r} has none. "
                "Rows that `simulate` made carry one; push with privileged=True to keep it."
            )
        spec = row["world"]
        return cls(
            _tools_of(schema.dumps(row.get("tools") or [])), seed=spec["seed"], state=spec["state"], goal=spec["goal"],
            faults=spec["faults"], execute=execute,
        )  # fmt: skip

    def replay(self, log: Sequence[Mapping[str, Any]]) -> World:
        """Make the calls of a log on a fresh copy, and return it."""
        fresh = World(
            list(self.tools.values()), seed=self.seed, state=self.state, goal=self.goal,
            faults=self.faults, execute=self.execute,
        )  # fmt: skip
        for entry in log:
            fresh.call(entry["tool"], entry["arguments"])
        return fresh

    @property
    def scene(self) -> Answers:
        """The state behind the answers; it is set when it is first needed."""
        if self._scene is None:
            self._scene = Answers(self.tools, self.catalog, self.seed, self.state, self.goal)
        return self._scene

    @property
    def records(self) -> dict[str, dict[str, Any]]:
        """The records as they are now, by id."""
        return self.scene.store.records

    # Answering.

    def call(self, name: str, arguments: Any) -> Any:
        """Answer one tool call and log it; whatever comes in, an answer comes out.

        Args:
            name: Name of a tool.
            arguments: Its arguments: an object, or JSON text as a model writes it.

        Returns:
            The result that the agent sees: JSON, or text where a fault garbled it.
        """
        arguments, problem = _arguments(arguments)
        tool = self.tools.get(name)
        if tool is None:
            known = ", ".join(self.tools) or "none"
            return self._note(
                name,
                arguments,
                _error("unknown_tool", f"no tool {name!r}; there are: {known}"),
                "invalid",
            )
        problem = problem or tool.problem(arguments)
        if problem:
            return self._note(name, arguments, _error("invalid_arguments", problem), "invalid")
        nth = self._calls.get(name, 0)
        self._calls[name] = nth + 1
        fault = next((f for f in self.faults if f.hits(name, nth)), None)
        if fault is not None:
            return self._fail(tool, arguments, fault)
        result, status = self._run(tool, arguments)
        return self._note(name, arguments, result, status, effect=status == "ok")

    def _fail(self, tool: Tool, arguments: dict[str, Any], fault: Fault) -> Any:
        """Answer a call that the schedule lets fail."""
        changes = self._writes(tool.name)
        context = {"tool": tool.name, "arguments": dict(arguments), "writes": changes}
        result, took_effect = FAULTS[fault.kind](self._would(tool, arguments, changes), context)
        if took_effect:
            self._run(tool, arguments)
        if fault.kind == "partial_write" and changes and self.execute is None:
            self.scene.begin(tool.name, arguments)
        return self._note(tool.name, arguments, result, "fault", fault.kind, took_effect)

    def _would(self, tool: Tool, arguments: dict[str, Any], changes: bool) -> Any:
        """Say what a call would have returned, without making it."""
        if self.execute is not None:
            return {"status": "ok"} if changes else self._run(tool, arguments)[0]
        before = self.scene.snapshot()
        result, _ = self._run(tool, arguments)
        self.scene.restore(before)
        return result

    def _note(
        self, name: str, arguments: Any, result: Any, status: str, fault: str | None = None,
        effect: bool = False,
    ) -> Any:  # fmt: skip
        self.log.append(
            {
                "tool": name,
                "arguments": arguments,
                "result": result,
                "status": status,
                "fault": fault,
                "effect": effect and self._writes(name),
            }
        )
        return result

    def _run(self, tool: Tool, arguments: dict[str, Any]) -> tuple[Any, str]:
        if self.execute is not None:
            try:
                return self.execute(tool.name, dict(arguments)), "ok"
            except Exception as error:  # noqa: BLE001 - a failing tool is what the agent sees
                return _error(type(error).__name__, str(error)), "error"
        return self.scene.answer(tool.name, arguments)

    def _writes(self, name: str) -> bool:
        return self.catalog.kinds.get(name) in ("create", "update", "delete")

    # What a program can check at the end.

    def achieved(self) -> bool:
        """Tell whether the goal's tool succeeded with the goal's arguments, after what must come before."""
        if self.goal is None:
            return False
        steps = [*self.goal.get("after", ()), {k: self.goal[k] for k in ("tool", "arguments")}]
        for entry in self.log:
            if entry["status"] == "ok" and self.is_step(entry, steps[0]):
                steps = steps[1:]
                if not steps:
                    return True
        return False

    def wrote(self) -> list[dict[str, Any]]:
        """Return the calls that changed the world."""
        return [e for e in self.log if e["effect"]]

    def repeated_writes(self) -> int:
        """Count calls that wrote, or tried to, what had been written before."""
        marks = [mark_of(e["tool"], e["arguments"]) for e in self.wrote()]
        again: int = sum(
            isinstance(e["result"], dict) and e["result"].get("error") == "already_done"
            for e in self.log
        )
        return (
            len(marks) - len(set(marks)) + (again if self.state != "acted" else max(again - 1, 0))
        )

    def expected(self) -> str:
        """Say what a right end is, from state and schedule alone.

        One of `done`, `not_found`, `already_done`, `report_fault`, `no_call`.
        """
        if self.goal is None:
            return "no_call"
        name = self.goal["tool"]
        needed = {None, name, *(step["tool"] for step in self.goal.get("after", ()))}
        if any(not f.transient and f.tool in needed for f in self.faults):
            return "report_fault"
        named = bool(self.catalog.refs[name])
        kind = self.catalog.kinds[name]
        if self.state == "missing" and (named or kind in ("read", "search")):
            return "not_found"
        if self.state == "acted" and named and self._writes(name):
            return "already_done"
        return "done"

    def is_step(self, entry: Mapping[str, Any], step: Mapping[str, Any]) -> bool:
        """Tell whether a logged call is a step of the goal; a twin of its entity is as good."""
        given = entry["arguments"]
        if entry["tool"] != step["tool"] or not isinstance(given, Mapping):
            return False
        for name, value in step["arguments"].items():
            twin = self.state == "duplicate" and is_reference(name)
            if given.get(name) != value and not (
                twin and str(given.get(name)) == self.scene.twin_of(str(value))
            ):
                return False
        return True


def _read_goal(goal: Mapping[str, Any] | None, tools: Mapping[str, Tool]) -> dict[str, Any] | None:
    if not goal:
        return None
    made: dict[str, Any] = {"tool": goal["tool"], "arguments": dict(goal["arguments"])}
    if goal.get("after"):
        made["after"] = [
            {"tool": step["tool"], "arguments": dict(step["arguments"])} for step in goal["after"]
        ]
    for step in [made, *made.get("after", ())]:
        if step["tool"] not in tools:
            raise InputError(
                f"the goal must name one of the tools; got {step['tool']!r}. "
                f"They are: {', '.join(tools)}."
            )
    return made


@functools.lru_cache(maxsize=256)
def _tools_of(schemas: str) -> list[Tool]:
    """Read the tools of a row; rows of one run share theirs."""
    return read_tools(json.loads(schemas))


def _arguments(arguments: Any) -> tuple[Any, str | None]:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments) if arguments.strip() else {}
        except ValueError as error:
            return arguments, f"arguments are not JSON: {error}"
    if arguments is None:
        return {}, None
    return (
        (dict(arguments), None)
        if isinstance(arguments, Mapping)
        else (arguments, "arguments must be an object")
    )


def _error(kind: str, message: str) -> dict[str, Any]:
    return {"error": kind, "message": message}


def as_text(result: Any) -> str:
    """Write a result as the text of a tool message."""
    if isinstance(result, str):
        return result
    return json.dumps(result, ensure_ascii=False, default=str)
