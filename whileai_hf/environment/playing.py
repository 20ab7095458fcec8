"""Playing a task of an environment: one loop for a model, a stored solution and a fixed policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from whileai_hf import messages as chat
from whileai_hf import schema
from whileai_hf.environment.tasks import EnvironmentTask
from whileai_hf.simulate.agents import Attempt, Turn
from whileai_hf.simulate.grid import Cell
from whileai_hf.simulate.rollout import Rollout
from whileai_hf.simulate.situations import Situation
from whileai_hf.world.tools import read_tools
from whileai_hf.world.values import sample


def start(task: EnvironmentTask, world: Any, agent: Any, max_turns: int, seed: int = 0) -> Rollout:
    """Begin a rollout of a task in its world."""
    situation = Situation(
        task.id, Cell(task.id, {}), task.ask, dict(task.world or {}),
        str(task.privileged.get("expected", "unknown")), "und", task.follow_up, dict(task.privileged),
    )  # fmt: skip
    attempt = Attempt(situation, 0, seed, world, list(task.tools))
    rollout = Rollout(agent, attempt, None, max_turns)
    rollout.messages = [dict(m) for m in task.prompt]
    return rollout


class Script:
    """An agent that says given turns, and then nothing."""

    inline = True

    def __init__(self, turns: Sequence[Mapping[str, Any]], name: str = "script") -> None:
        self.turns, self.name, self._at = list(turns), name, 0

    def respond(self, messages: Sequence[Mapping[str, Any]], attempt: Attempt) -> Turn:
        """Say the next turn."""
        turn = self.turns[self._at] if self._at < len(self.turns) else {"content": ""}
        self._at += 1
        message = chat.normal_messages([{"role": "assistant", "content": "", **turn}])[-1]
        return Turn([_with_ids(message, self._at)], turn.get("finish_reason") or "stop")


def _with_ids(message: dict[str, Any], turn: int) -> dict[str, Any]:
    calls = message.get("tool_calls")
    if not calls:
        return message
    named = [{"id": f"call_{turn}_{i}", **c} for i, c in enumerate(calls)]
    return {**message, "tool_calls": named}


def wire(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Write messages as an OpenAI-compatible server takes them: arguments as text, no key of ours."""
    return [_wired(m) for m in messages]


def _wired(message: Mapping[str, Any]) -> dict[str, Any]:
    out = {k: message[k] for k in ("role", "content", "tool_call_id") if message.get(k) is not None}
    if message.get("tool_calls"):
        out["tool_calls"] = [
            {
                "id": call.get("id") or f"call_{i}",
                "type": "function",
                "function": {"name": function["name"], "arguments": _text(function["arguments"])},
            }
            for i, call in enumerate(message["tool_calls"])
            for function in [call.get("function") or call]
        ]
    return out


def _text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else schema.dumps(arguments)


# Policies that no environment may pay for.


def nothing(task: EnvironmentTask, seed: int) -> list[dict[str, Any]]:
    """Do and say nothing."""
    return []


def asks(task: EnvironmentTask, seed: int) -> list[dict[str, Any]]:
    """Always ask back."""
    return [{"content": "Could you tell me more about what you need?"}] * 2


def refuses(task: EnvironmentTask, seed: int) -> list[dict[str, Any]]:
    """Always refuse."""
    return [{"content": "I am sorry, I cannot help with that."}] * 2


def calls_everything(task: EnvironmentTask, seed: int) -> list[dict[str, Any]]:
    """Call every tool once, with arguments made up from its schema, and claim success."""
    rng = Random(f"{seed}:{task.id}")
    calls = [
        {"function": {"name": tool.name, "arguments": _made_up(tool, rng)}}
        for tool in read_tools(list(task.tools))
    ]
    turns = [{"content": "", "tool_calls": [call]} for call in calls]
    return [*turns, {"content": "Everything has been done as you asked."}]


def _made_up(tool: Any, rng: Random) -> dict[str, Any]:
    properties = tool.parameters.get("properties", {})
    required = tool.parameters.get("required") or []
    return {
        name: sample(properties[name], rng, name, {}) for name in required if name in properties
    }


#: Policies by name; what they earn is in the README of an exported environment.
POLICIES = {
    "does nothing": nothing,
    "always asks": asks,
    "always refuses": refuses,
    "calls everything": calls_everything,
}
