"""Answers: what a valid call returns and changes, once it is known that it does not fail.

A scene is set around the goal of the task: its entities exist, are missing, were acted on, come twice,
are half done, or are in a state that has to be read first. Everything else comes to be when it is asked for.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from random import Random
from typing import Any

from whileai_hf.world.entities import COUNTER, Catalog, Store, matches, sought
from whileai_hf.world.kinds import words_of
from whileai_hf.world.tools import Tool

#: Status of a record after some verbs; a mere edit of fields leaves it as it is, the rest is done.
_STATUS = {"cancel": "cancelled", "close": "closed", "revoke": "revoked"}
_EDITS = frozenset(["update", "modify", "change", "edit", "set", "move", "rename", "assign"])

#: Verbs that leave nothing behind, and verbs whose argument may name what is yet to be made.
_ERASES = frozenset(["delete", "remove", "drop", "rm", "rmdir", "erase", "discard"])
_FOUNDS = frozenset(
    [
        "create",
        "add",
        "new",
        "open",
        "register",
        "make",
        "mkdir",
        "touch",
        "insert",
        "upload",
        "write",
    ]
)

#: What the status of the goal's entity says in each state of the world.
_SHOWN = {"acted": "done", "partial": "pending", "unknown": "verifying"}

#: An entity: its kind and its id.
Named = tuple[str, str]


def mark_of(tool: str, arguments: Any) -> str:
    """Name a call by what it asks for, to see one that is repeated."""
    return json.dumps([tool, arguments], sort_keys=True, default=str)


def founds(tool: str, catalog: Catalog) -> bool:
    """Tell whether a call makes the very entity that it names, so that it must not exist before."""
    main = catalog.main[tool]
    return (
        main is not None
        and catalog.kinds[tool] == "create"
        and catalog.refs[tool][main] == catalog.about[tool]
        and bool(_FOUNDS.intersection(words_of(tool)))
    )


class Answers:
    """The state of one world, and how it answers.

    Args:
        tools: The tools by name.
        catalog: What they say about entities.
        seed: Everything that is invented follows from it.
        state: What is the case with the entities of the goal.
        goal: What the task asks for, or null.
    """

    def __init__(
        self, tools: Mapping[str, Tool], catalog: Catalog, seed: int, state: str,
        goal: Mapping[str, Any] | None,
    ) -> None:  # fmt: skip
        self.tools, self.catalog, self.seed = tools, catalog, seed
        self.state, self.goal = state, goal
        self.store = Store(catalog, seed)
        self.version = 0
        self.reads = 0
        self.done: dict[str, int] = {}  # marks of successful writes, and the version they made
        self.searched: set[str] = set()
        self.verifying: set[str] = set()
        self.subjects: list[Named] = []  # the entities of the goal
        self.main: Named | None = None  # the one that the goal is about
        self.twins: dict[str, str] = {}
        if goal is not None:
            self._set_scene(goal)

    def _set_scene(self, goal: Mapping[str, Any]) -> None:
        tool, arguments = goal["tool"], goal["arguments"]
        self.subjects = self.catalog.named(tool, arguments)
        self.main = self._main(tool, arguments)
        if self.state == "missing":
            return
        shown = _SHOWN.get(self.state, "active")
        known = self._known(goal)
        main = self.main
        for kind, identifier in self.subjects:
            if (kind, identifier) == main and founds(tool, self.catalog) and self.state == "exists":
                continue  # it is what the goal makes
            status = shown if (kind, identifier) == main else "active"
            found = {**known.get(kind, {}), "status": status}
            self.store.invent(kind, identifier, found)
        if main is None:
            return
        if self.state == "duplicate":
            self._twin(*main)
        if self.state == "unknown":
            self.verifying.add(main[1])

    def _known(self, goal: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Fields of the goal's records that follow from the goal: who they name, what finds them."""
        known: dict[str, dict[str, Any]] = {}
        calls = [*goal.get("after", ()), goal]
        for step in calls:
            about = self.catalog.about[step["tool"]]
            for name in self.catalog.links.get(about, {}):
                if name in step["arguments"]:
                    known.setdefault(about, {})[name] = step["arguments"][name]
            if self.catalog.kinds[step["tool"]] == "search":
                known.setdefault(about, {}).update(self._found_by(about, step["arguments"]))
        return known

    def _found_by(self, kind: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Fields that make a record of a kind answer a search."""
        fields = self.catalog.fields.get(kind, {})
        links = self.catalog.links.get(kind, {})
        out: dict[str, Any] = {}
        words = []
        for name, value in sought(arguments).items():
            if name in fields or name in links or name == self.catalog.id_field(kind):
                out[name] = value
            elif isinstance(value, str):
                words.append(value)
        return out | ({"keywords": " ".join(words)} if words else {})

    def _twin(self, kind: str, identifier: str) -> None:
        typed = self.store.typed(kind, identifier)
        twin = str(typed + 1) if isinstance(typed, int) else f"{identifier}-B"
        self.twins[identifier] = twin
        self.store.invent(kind, twin)

    def twin_of(self, identifier: str) -> str | None:
        """Return the id of the record that an id may be mistaken for."""
        return self.twins.get(identifier)

    def _main(self, tool: str, arguments: Mapping[str, Any]) -> Named | None:
        """Return the entity that a call is about, or null where it names none."""
        name = self.catalog.main[tool]
        if name is None or arguments.get(name) is None:
            return next(iter(self.catalog.named(tool, arguments)), None)
        value = arguments[name]
        value = value[0] if isinstance(value, list) and value else value
        return (
            (self.catalog.refs[tool][name], str(value)) if isinstance(value, (str, int)) else None
        )

    # One call.

    def answer(self, tool: str, arguments: dict[str, Any]) -> tuple[Any, str]:
        """Answer a valid call; the second value is `ok` or `error`."""
        kind = self.catalog.kinds[tool]
        if kind == "compute":
            rng = Random(f"{self.seed}:{mark_of(tool, arguments)}")
            return {"result": round(rng.uniform(1, 1000), 2)}, "ok"
        mark = mark_of(tool, arguments)
        named = self.catalog.named(tool, arguments)
        main = self._main(tool, arguments)
        if kind in ("update", "delete") and self._repeats(tool, mark, main):
            return _error("already_done", "this was done before and was not done again"), "error"
        for one in named:
            made_here = one == main and founds(tool, self.catalog)
            if not made_here and self.store.find(*one) is None:
                return _error("not_found", f"no {one[0]} {one[1]!r}"), "error"
        if kind == "search":
            return self._search(tool, arguments), "ok"
        if kind == "read":
            return self._read(tool, main, arguments)
        return self._write(tool, kind, main, arguments, mark)

    def _repeats(self, tool: str, mark: str, main: Named | None) -> bool:
        """Tell whether a write was made before; an edit may come back once something else was written."""
        if mark not in self.done:
            return False
        record = self.store.find(*main) if main is not None else None
        edits = bool(_EDITS.intersection(words_of(tool)))
        return not (edits and record is not None and record[COUNTER] != self.done[mark])

    def _hidden(self, tool: str) -> bool:
        """Tell whether a task has nothing to find here: its subject is missing."""
        if self.state != "missing" or self.goal is None:
            return False
        about = self.catalog.about
        subjects = {kind for kind, _ in self.subjects} or {about[self.goal["tool"]]}
        return about[tool] in subjects

    def _search(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        about, mark = self.catalog.about[tool], mark_of(tool, arguments)
        if self._hidden(tool):
            return {"results": [], "total": 0}
        wanted = sought(arguments)
        found = [r for r in self.store.of_kind(about) if matches(r, wanted)]
        if not found and mark not in self.searched:
            rng = Random(f"{self.seed}:search:{mark}")
            known = self._found_by(about, arguments)
            own = known.pop(self.catalog.id_field(about), None)
            for i in range(1 if own is not None else rng.randint(1, 3)):
                new = self.store.fresh_id(about, 1_000_000 + len(self.store.records) + i)
                found.append(self.store.invent(about, str(own) if own is not None else new, known))
        self.searched.add(mark)
        shown = found[: _limit(arguments)]
        return {"results": copy.deepcopy(shown), "total": len(found)}

    def _read(
        self, tool: str, main: Named | None, arguments: dict[str, Any]
    ) -> tuple[dict[str, Any], str]:
        self.reads += 1
        if main is None:
            if self._hidden(tool):
                return _error("not_found", "there is no such record"), "error"
            return copy.deepcopy(self._by_nature(tool, arguments)), "ok"
        record = self.store.find(*main)
        assert record is not None
        twin = self.twins.get(main[1])
        if twin is not None and self.store.find(main[0], twin) is not None:
            both = [record, self.store.find(main[0], twin)]
            return {"warning": "several records match", "matches": copy.deepcopy(both)}, "ok"
        if main[1] in self.verifying and self.reads > 1:
            self.verifying.discard(main[1])
            record["status"] = "active"
        return copy.deepcopy(record), "ok"

    def _by_nature(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the record that arguments describe without naming one: the weather of a city."""
        about = self.catalog.about[tool]
        wanted = sought(arguments)
        found = next((r for r in self.store.of_kind(about) if wanted and matches(r, wanted)), None)
        if found is not None:
            return found
        number = Random(f"{self.seed}:{mark_of(tool, arguments)}").randint(10**6, 10**9)
        return self.store.invent(about, self.store.fresh_id(about, number), wanted)

    def _write(
        self, tool: str, kind: str, main: Named | None, arguments: dict[str, Any], mark: str
    ) -> tuple[Any, str]:
        problem = self._refusal(tool, main)
        if problem is not None:
            return problem, "error"
        self.version += 1
        record = self.store.find(*main) if main is not None else None
        resumed = record is not None and record["status"] == "pending"
        if resumed and record is not None:
            record["status"] = "active"
        if kind == "create" or main is None or record is None:
            done = self._create(tool, main, arguments)
        elif _ERASES.intersection(words_of(tool)):
            self.store.delete(*main)
            done = {"ok": True, "status": "deleted"}
        else:
            done = self._update(tool, main, record, arguments)
        self.done[mark] = done.get(COUNTER, 0)
        return {**done, **({"resumed": True} if resumed else {})}, "ok"

    def _refusal(self, tool: str, main: Named | None) -> dict[str, Any] | None:
        """Say why a write cannot be made now, or null."""
        if main is None:
            return None
        identifier = main[1]
        acted = self.state == "acted" and self.goal is not None and tool == self.goal["tool"]
        if acted and main == self.main:
            return _error("already_done", f"{identifier} was already handled")
        if founds(tool, self.catalog) and self.store.find(*main) is not None:
            return _error("already_done", f"there is a {main[0]} {identifier} already")
        if identifier in self.verifying:
            return _error(
                "state_unknown", f"the state of {identifier} is being verified; read it again"
            )
        if identifier in self.twins and self.reads == 0:
            return _error("ambiguous", f"{identifier} matches several records; read it to see them")
        return None

    def _create(self, tool: str, main: Named | None, arguments: dict[str, Any]) -> dict[str, Any]:
        about = self.catalog.about[tool]
        own = main[1] if main is not None and founds(tool, self.catalog) else None
        identifier = own if own is not None else self.store.fresh_id(about, self.version)
        given = {k: v for k, v in arguments.items() if k != COUNTER}
        self.store.invent(about, identifier, {**given, "status": "created"})
        return {"ok": True, "id": self.store.typed(about, identifier), "status": "created"}

    def _update(
        self, tool: str, main: Named, record: dict[str, Any], arguments: dict[str, Any]
    ) -> dict[str, Any]:
        verbs = words_of(tool)
        if not _EDITS.intersection(verbs):
            record["status"] = next((_STATUS[v] for v in verbs if v in _STATUS), "done")
        links, refs = self.catalog.links.get(main[0], {}), self.catalog.refs[tool]
        record |= {
            k: v for k, v in arguments.items() if k != COUNTER and (k not in refs or k in links)
        }
        record[COUNTER] += 1
        return {"ok": True, "status": record["status"], COUNTER: record[COUNTER]}

    def begin(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """Leave what a call writes half done."""
        main = self._main(tool, arguments)
        record = self.store.find(*main) if main is not None else None
        if record is not None and self._refusal(tool, main) is None:
            record["status"] = "pending"

    def snapshot(self) -> tuple[Any, ...]:
        """Copy the state, to go back to it."""
        mine = (self.version, self.reads, dict(self.done), set(self.searched), set(self.verifying))
        return (self.store.snapshot(), mine)

    def restore(self, state: tuple[Any, ...]) -> None:
        """Go back to a state."""
        self.store.restore(state[0])
        self.version, self.reads, self.done, self.searched, self.verifying = state[1]


def _limit(arguments: Mapping[str, Any]) -> int | None:
    found = arguments.get("limit", arguments.get("max_results"))
    return found if isinstance(found, int) and found > 0 else None


def _error(kind: str, message: str) -> dict[str, Any]:
    return {"error": kind, "message": message}
