"""A rollout as a rule reads it: the log of its calls, where they led, and what was said at the end."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from whileai_hf import messages as chat
from whileai_hf import schema
from whileai_hf.errors import InputError
from whileai_hf.grade import wording
from whileai_hf.world.kinds import words_of, writes
from whileai_hf.world.tools import Tool, read_tools
from whileai_hf.world.world import World, as_text

#: Words in the name of a tool that hands the user over; that is a way to report, and no change.
_HANDOVER = frozenset(["human", "escalate", "handoff", "handover"])


@dataclass(frozen=True, slots=True)
class Trace:
    """One rollout, read once for every rule."""

    calls: tuple[chat.ToolCall, ...]
    log: tuple[dict[str, Any], ...]  #: as `World.log`: tool, arguments, result, status, effect
    world: World | None  #: holds that log; null where the row has no world
    tools: dict[str, Tool] | None  #: null where the row does not say which there are
    messages: tuple[Mapping[str, Any], ...]
    text: str  #: the last words of the agent, without reasoning
    said: wording.Wording
    privileged: Mapping[str, Any]
    error: str | None  #: why the rollout broke off

    @classmethod
    def of(cls, row: Mapping[str, Any], world: World | None = None) -> Trace:
        """Read a row.

        Args:
            row: A record, or what `grade` shows a judge.
            world: The world at its end; null rebuilds it from the row by making the calls again. Where
                the answers then differ from those in the messages (the tools ran elsewhere), the
                messages are believed.
        """
        messages = tuple(row.get("messages") or ())
        calls = tuple(chat.tool_calls(messages))
        given = row.get("tools")
        tools = None if given is None else tools_of(given)
        if world is None and row.get("world") and given:
            world = _rebuilt(row, given, calls)
        log = tuple(world.log) if world is not None else tuple(_entries(calls, tools or {}))
        text = row.get("final_text")
        text = chat.final_text(messages) if text is None else chat.text_of(text)
        text = chat.without_reasoning(text)
        kept = row.get("privileged")
        return cls(
            calls, log, world, tools, messages, text, wording.read(text),
            schema.restore(kept) if isinstance(kept, Mapping) else {}, row.get("error"),
        )  # fmt: skip

    @property
    def asks(self) -> list[str]:
        """What the user wrote, turn by turn."""
        return [chat.text_of(m.get("content")) for m in self.messages if m.get("role") == "user"]

    @property
    def goal(self) -> Mapping[str, Any] | None:
        """What the task asks of the tools, or null where it asks nothing or nobody knows."""
        return self.world.goal if self.world is not None else None

    def writes(self, name: str) -> bool:
        """Tell whether a tool changes the world and does not merely hand the user over."""
        if _HANDOVER.intersection(words_of(name)):
            return False
        tool = (self.tools or {}).get(name)
        return writes(name, tool.description if tool else "")

    def wrote(self) -> list[dict[str, Any]]:
        """Return the calls that changed the world."""
        return [e for e in self.log if e["effect"] and self.writes(e["tool"])]

    def seen_before(self, turn: int) -> str:
        """Return what the agent had been told when it wrote message `turn`, its own words left out."""
        told = [m for m in self.messages[:turn] if m.get("role") != "assistant"]
        return "\n".join(chat.text_of(m.get("content")) for m in told)


def tools_of(given: Any) -> dict[str, Tool]:
    """Read the tools of a row; rows of one run share theirs."""
    return _tools_of(schema.dumps(schema.restore(list(given))))


@functools.lru_cache(maxsize=256)
def _tools_of(text: str) -> dict[str, Tool]:
    try:
        return {t.name: t for t in read_tools(json.loads(text))}
    except InputError:
        return {}


def _rebuilt(row: Mapping[str, Any], tools: Any, calls: Sequence[chat.ToolCall]) -> World | None:
    """Make the calls again, or take the answers from the messages where they came from elsewhere."""
    try:
        world = World.from_row(
            {"tools": schema.restore(list(tools)), "world": schema.restore(row["world"])}
        )
    except (InputError, KeyError, TypeError):
        return None  # a world of another kind: nothing here can rebuild it
    same = True
    for call in calls:
        answer = world.call(call.name, call.raw if call.malformed else call.arguments)
        same = same and (call.result is None or call.result == as_text(answer))
    if not same:
        world.log[:] = _entries(calls, world.tools)
    return world


def _entries(calls: Sequence[chat.ToolCall], tools: Mapping[str, Tool]) -> list[dict[str, Any]]:
    """Write calls and their answers as the log of a world."""
    return [_entry(call, tools) for call in calls]


def _entry(call: chat.ToolCall, tools: Mapping[str, Tool]) -> dict[str, Any]:
    result: Any = call.result
    with contextlib.suppress(ValueError):
        result = json.loads(call.result or "")
    failed = isinstance(result, Mapping) and bool(result.get("error"))
    status = "error" if failed or call.malformed or call.status not in ("ok", None) else "ok"
    if call.result is None:
        status = "error"  # nothing answered
    tool = tools.get(call.name)
    changes = writes(call.name, tool.description if tool else "")
    return {
        "tool": call.name, "arguments": call.raw if call.malformed else call.arguments, "result": result,
        "status": status, "fault": None, "effect": status == "ok" and changes,
    }  # fmt: skip
