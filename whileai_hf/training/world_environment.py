"""world_environment: the mock world as `environment_factory` of GRPOTrainer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import GenericAlias
from typing import Any, Literal, Union

from whileai_hf import schema
from whileai_hf.errors import InputError
from whileai_hf.world.tools import Tool, read_tools
from whileai_hf.world.world import World, as_text

#: Names of methods that TRL reads as something else than a tool.
_TAKEN = ("reset", "get_reward")

_TYPES = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict, "null": type(None)}  # fmt: skip


def world_environment(
    tools: Any, *, reward: Callable[[World], float | None] | None = None
) -> type[Any]:
    """Return a class for `environment_factory` whose tools act on the world of each task.

    Train on rows of `to_grpo(..., privileged=True)`: `reset` rebuilds the world from their `world`.
    TRL shows tools as functions, so what a schema says of nested objects is shown as `object`; the
    world checks arguments against the schema itself, and answers what is wrong with them.

    Args:
        tools: The tools, in any form that `simulate` takes.
        reward: A function of the world at the end; null leaves the reward to `reward_funcs`, such as
            `wai.GoalReached().reward_func()`.

    Raises:
        InputError: A tool cannot be a Python method; the name is given.

    Example:
        `GRPOTrainer(..., environment_factory=world_environment(tools), reward_funcs=[reward])`
    """
    methods = {tool.name: _method(tool) for tool in read_tools(tools)}
    if not methods:
        raise InputError("an environment needs tools; got none. Pass the tools of the rollouts.")
    body: dict[str, Any] = {"__doc__": "The world of one rollout.", "reset": _reset, **methods}
    if reward is not None:
        body["get_reward"] = lambda self: reward(self.world)
    body["_schemas"] = [tool.schema for tool in read_tools(tools)]
    return type("WorldEnvironment", (), body)


def _reset(self: Any, **row: Any) -> None:
    """Rebuild the world of a task before its first call."""
    record = schema.to_record({k: row.get(k) for k in ("world", "rollout_id", "tools")})
    own, given = _names(self._schemas), _names(record["tools"] or self._schemas)
    if own != given:
        raise InputError(
            f"one environment serves one set of tools, {', '.join(own)}; a task has {', '.join(given)}. "
            "Give environment_factory a mapping, and the rows the column 'environment'."
        )
    self.world = World.from_row({**record, "tools": self._schemas})


def _names(schemas: Any) -> list[str]:
    return sorted(s["function"]["name"] for s in schemas)


def _method(tool: Tool) -> Callable[..., str]:
    """Make a method whose signature and docstring give the schema of a tool back."""
    if tool.name in _TAKEN or tool.name.startswith("_") or not tool.name.isidentifier():
        raise InputError(
            f"TRL's tools are methods: a tool needs a public Python name other than reset and "
            f"get_reward; got {tool.name!r}. Rename the tool."
        )

    def method(self: Any, **arguments: Any) -> str:
        return as_text(self.world.call(tool.name, arguments))

    described = tool.parameters.get("properties", {})
    required = tool.parameters.get("required", ())
    try:
        parameters = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, annotation=_hint(kind),
                default=inspect.Parameter.empty if name in required else kind.get("default"),
            )
            for name, kind in described.items()
        ]  # fmt: skip
    except ValueError as error:
        raise InputError(
            f"TRL's tools are methods: an argument needs a Python name; in {tool.name!r} {error}. "
            "Rename the argument."
        ) from error
    receiver = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    method.__signature__ = inspect.Signature([receiver, *parameters])  # type: ignore[attr-defined]
    method.__annotations__ = {p.name: p.annotation for p in parameters}
    method.__name__ = method.__qualname__ = tool.name
    method.__doc__ = _docstring(tool, described)
    return method


def _docstring(tool: Tool, described: Mapping[str, Mapping[str, Any]]) -> str:
    lines = [_line(tool.description) or tool.name, "", "Args:"]
    lines += [
        f"    {n}: {_line(kind.get('description', '')) or n}" for n, kind in described.items()
    ]
    return "\n".join(lines)


def _line(text: Any) -> str:
    """Put a description on one line, on which no section of a docstring can begin."""
    return " ".join(str(text).split())


def _hint(kind: Mapping[str, Any]) -> Any:
    """Return the Python type that `transformers` turns back into a schema."""
    values = kind.get("enum")
    if values and all(isinstance(v, (str, int, bool, type(None))) for v in values):
        return Literal[tuple(values)]
    choices = kind.get("anyOf") or kind.get("oneOf")
    if choices:
        return Union[tuple(_hint(c) for c in choices)]  # noqa: UP007 - the members are only known here
    name = kind.get("type")
    if isinstance(name, list):
        return Union[tuple(_TYPES.get(n, str) for n in name)]  # noqa: UP007 - the same
    if name == "array" and isinstance(kind.get("items"), Mapping) and kind["items"]:
        return GenericAlias(list, (_hint(kind["items"]),))
    return _TYPES.get(name, Any) if isinstance(name, str) else Any
