"""The mock world: a pure, seeded state machine that answers tool calls.

One object serves every door: `simulate`, an exported environment, and a trainer. It validates
arguments against the tool's schema, holds entities, applies the fault schedule, logs every call, and
can be rebuilt from its specification (`World.spec`, the `world` column) and its log.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any

from whileai_hf import schema
from whileai_hf.errors import InputError
from whileai_hf.world.faults import FAULTS, Fault
from whileai_hf.world.tools import Tool, read_tools
from whileai_hf.world.values import is_reference, new_id, sample

#: What can be the case with the entity that a task is about.
STATES = ("exists", "missing", "acted", "duplicate", "partial", "unknown")

#: What a tool does, by the verbs of its name, the first that fits.
_KINDS = (
    ("search", r"search|list|find|query|filter|browse|lookup_all"),
    ("compute", r"calculate|compute|convert|estimate|sum|solve|translate"),
    ("read", r"get|look|fetch|read|show|view|check|describe|status|track|retrieve|info|verify|count"),
    ("delete", r"delete|remove|cancel|close|drop|revoke|unsubscribe"),
    ("create", r"create|add|new|open|book|place|register|submit|send|post|make|schedule|order|reserve|upload|write"),
    ("update", r"update|modify|change|edit|set|move|rename|apply|return|exchange|refund|pay|transfer|assign|approve"),
)  # fmt: skip


def kind_of(name: str) -> str:
    """Say what a tool does, from the first verb of its name: read, search, create, update, delete, compute.

    What no verb tells is an update: a tool that is not known to read may write.
    """
    words = re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()
    for word in re.split(r"[^a-z]+", words):
        for kind, verbs in _KINDS:
            if re.fullmatch(verbs, word):
                return kind
    return "update"


def writes(name: str) -> bool:
    """Tell whether a tool changes the world."""
    return kind_of(name) in ("create", "update", "delete")


class World:
    """What one rollout acts on.

    Args:
        tools: The tools, in any form that `read_tools` takes.
        seed: Everything that is invented follows from it.
        state: What is the case with the goal's entity, one of `STATES`.
        goal: What the task asks for, `{"tool": name, "arguments": {…}}`; null for a task that needs no
            tool.
        faults: The schedule.
        execute: A function `(name, arguments) -> result` of the user that answers instead; faults and
            the log stay.

    Attributes:
        log: Every call so far: tool, arguments, result, status, whether it took effect.
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
        self.tools: dict[str, Tool] = {t.name: t for t in read_tools(tools)}
        self.seed, self.state, self.execute = seed, state, execute
        self.goal = {"tool": goal["tool"], "arguments": dict(goal["arguments"])} if goal else None
        self.faults = tuple(f if isinstance(f, Fault) else Fault(**f) for f in faults)
        if self.goal and self.goal["tool"] not in self.tools:
            raise InputError(
                f"the goal must name one of the tools; got {self.goal['tool']!r}. "
                f"They are: {', '.join(self.tools)}."
            )
        self.log: list[dict[str, Any]] = []
        self.records: dict[str, dict[str, Any]] = {}
        self.version = 0
        self._calls: dict[str, int] = {}
        self._reads = 0
        self._done: list[str] = []  # successful writes, to see one that is repeated
        self._set_scene()

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

    def _set_scene(self) -> None:
        self.references: dict[str, str] = {}
        if self.goal is None:
            return
        for name, value in self.goal["arguments"].items():
            if is_reference(name) and isinstance(value, (str, int)):
                self.references[name] = str(value)
        state = {"acted": "done", "partial": "pending", "unknown": "verifying"}.get(
            self.state, "active"
        )
        if self.state == "missing":
            return
        for name, value in self.references.items():
            self._invent(value, name, state)
            if self.state == "duplicate":
                self._invent(f"{value}-B", name, "active")

    def _invent(self, identifier: str, name: str, state: str) -> dict[str, Any]:
        rng = Random(f"{self.seed}:{name}:{identifier}")
        record: dict[str, Any] = {name: identifier, "status": state, "version": 1}
        for tool in self.tools.values():
            for field, kind in tool.parameters.get("properties", {}).items():
                if len(record) < 8 and field not in record and not is_reference(field):
                    record[field] = sample(kind, rng, field, tool.parameters.get("$defs"))
        record["owner"] = sample({"type": "string"}, rng, "customer_name")
        record["updated"] = sample({"type": "string", "format": "date"}, rng, "date")
        self.records[identifier] = record
        return record

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
        if fault is None:
            result, status = self._run(tool, arguments, effect=True)
            return self._note(name, arguments, result, status)
        would, _ = self._run(tool, arguments, effect=False)
        result, took_effect = FAULTS[fault.kind](would, {"tool": name, "writes": writes(name)})
        if took_effect:
            self._run(tool, arguments, effect=True)
        if fault.kind == "partial_write" and writes(name):
            self._begin(arguments)
        return self._note(name, arguments, result, "fault", fault.kind)

    def _note(
        self, name: str, arguments: Any, result: Any, status: str, fault: str | None = None
    ) -> Any:
        self.log.append(
            {
                "tool": name,
                "arguments": arguments,
                "result": result,
                "status": status,
                "fault": fault,
            }
        )
        return result

    def _run(self, tool: Tool, arguments: dict[str, Any], *, effect: bool) -> tuple[Any, str]:
        if self.execute is not None:
            try:
                return self.execute(tool.name, dict(arguments)), "ok"
            except Exception as error:  # noqa: BLE001 - a failing tool is what the agent sees
                return _error(type(error).__name__, str(error)), "error"
        before = {k: dict(v) for k, v in self.records.items()} if not effect else None
        saved = (self.version, self._reads, list(self._done))
        result, status = self._answer(tool, arguments)
        if before is not None:
            self.records = before
            self.version, self._reads, self._done = saved
        return result, status

    def _answer(self, tool: Tool, arguments: dict[str, Any]) -> tuple[Any, str]:
        kind = kind_of(tool.name)
        if kind == "compute":
            rng = Random(
                f"{self.seed}:{tool.name}:{json.dumps(arguments, sort_keys=True, default=str)}"
            )
            return {"result": round(rng.uniform(1, 1000), 2)}, "ok"
        if kind == "search":
            return self._search(arguments), "ok"
        keys = [
            str(v) for n, v in arguments.items() if is_reference(n) and isinstance(v, (str, int))
        ]
        missing = next((k for k in keys if k not in self.records), None)
        if missing is not None and not (kind == "create" and not self.references):
            return _error("not_found", f"no record {missing!r}"), "error"
        if kind == "read":
            return self._read(keys), "ok"
        return self._write(tool, kind, keys, arguments)

    def _search(self, arguments: dict[str, Any]) -> dict[str, Any]:
        found = [dict(r) for r in self.records.values()]
        if self.state == "missing":
            return {"results": [], "total": 0}
        if not found:
            rng = Random(f"{self.seed}:search:{json.dumps(arguments, sort_keys=True, default=str)}")
            found = [
                dict(self._invent(new_id("record_id", rng), "record_id", "active"))
                for _ in range(rng.randint(1, 3))
            ]
        return {"results": found, "total": len(found)}

    def _read(self, keys: Sequence[str]) -> dict[str, Any]:
        self._reads += 1
        if not keys:
            if self.state == "missing":
                return _error("not_found", "there is no such record")
            identifier = f"REC-{self.seed % 90000 + 10000}"
            record = self.records.get(identifier) or self._invent(identifier, "record_id", "active")
            return dict(record)
        record = self.records[keys[0]]
        if self.state == "duplicate" and f"{keys[0]}-B" in self.records:
            matches = [dict(record), dict(self.records[f"{keys[0]}-B"])]
            return {"warning": "several records match", "matches": matches}
        if self.state == "unknown" and record["status"] == "verifying" and self._reads > 1:
            record["status"] = "active"
        return dict(record)

    def _write(
        self, tool: Tool, kind: str, keys: Sequence[str], arguments: dict[str, Any]
    ) -> tuple[Any, str]:
        mark = json.dumps([tool.name, arguments], sort_keys=True, default=str)
        if mark in self._done and kind != "create":
            return _error("already_done", "this was done before and was not done again"), "error"
        record = self.records.get(keys[0]) if keys else None
        if record is not None:
            if record["status"] == "done":
                return _error("already_done", f"{keys[0]} was already handled"), "error"
            if record["status"] == "verifying":
                return _error(
                    "state_unknown", f"the state of {keys[0]} is being verified; read it again"
                ), "error"
            if self.state == "duplicate" and f"{keys[0]}-B" in self.records and self._reads == 0:
                return _error(
                    "ambiguous", f"{keys[0]} matches several records; read it to see them"
                ), "error"
        self._done.append(mark)
        self.version += 1
        return self._apply(kind, record, arguments), "ok"

    def _apply(
        self, kind: str, record: dict[str, Any] | None, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        if kind == "create" or record is None:
            rng = Random(f"{self.seed}:new:{self.version}")
            identifier = new_id("new_id", rng)
            self.records[identifier] = {
                "id": identifier,
                "status": "created",
                "version": 1,
                **arguments,
            }
            return {"ok": True, "id": identifier, "status": "created"}
        resumed = record["status"] == "pending"
        changes = {k: v for k, v in arguments.items() if not is_reference(k)}
        record.update(changes, status="done", version=record["version"] + 1)
        return {
            "ok": True,
            "status": "done",
            "version": record["version"],
            **({"resumed": True} if resumed else {}),
        }

    def _begin(self, arguments: Mapping[str, Any]) -> None:
        for name, value in arguments.items():
            if is_reference(name) and str(value) in self.records:
                self.records[str(value)]["status"] = "pending"

    # What a program can check at the end.

    def achieved(self) -> bool:
        """Tell whether the goal's tool succeeded with the goal's arguments."""
        return any(self._is_goal(entry) and entry["status"] == "ok" for entry in self.log)

    def wrote(self) -> list[dict[str, Any]]:
        """Return the calls that changed the world."""
        return [e for e in self.log if e["status"] == "ok" and writes(e["tool"])]

    def repeated_writes(self) -> int:
        """Count calls that wrote what had been written before."""
        marks = [
            json.dumps([e["tool"], e["arguments"]], sort_keys=True, default=str)
            for e in self.wrote()
        ]
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
        if any(not f.transient and f.tool in (None, name) for f in self.faults):
            return "report_fault"
        if self.state == "missing" and (self.references or kind_of(name) in ("read", "search")):
            return "not_found"
        if self.state == "acted" and self.references and writes(name) and kind_of(name) != "create":
            return "already_done"
        return "done"

    def _is_goal(self, entry: Mapping[str, Any]) -> bool:
        goal = self.goal
        if (
            goal is None
            or entry["tool"] != goal["tool"]
            or not isinstance(entry["arguments"], Mapping)
        ):
            return False
        wanted = goal["arguments"]
        given = entry["arguments"]
        same = all(given.get(k) == v for k, v in wanted.items())
        twin = self.state == "duplicate" and all(
            given.get(k) in (v, f"{v}-B") if is_reference(k) else given.get(k) == v
            for k, v in wanted.items()
        )
        return same or twin


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
