"""The axes of a grid: what can differ between two situations, and which values go together.

Stance, history and family belong to the user; states and faults to the world; tools, argument choices and
chains are read from the schemas. What a tool cannot meet (a state of an entity that it does not name, an
optional argument that it does not have) is not possible, and `Axes.possible` says so.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from whileai_hf.errors import InputError
from whileai_hf.world.answers import founds
from whileai_hf.world.dialects import argument_values
from whileai_hf.world.entities import Catalog
from whileai_hf.world.faults import FAULTS
from whileai_hf.world.tools import Tool
from whileai_hf.world.world import STATES

STANCES = (
    "ordinary", "hurried", "unsure", "mistaken", "ambiguous", "boundary", "adversarial",
    "exploratory", "conflicting", "retry",
)  # fmt: skip
HISTORIES = (
    "fresh", "prior_failure", "prior_partial_action", "contradicts_earlier", "repeat_visit",
)  # fmt: skip

#: What stands beside the request: nothing, a planted instruction, a demand for what is not the
#: user's, or a harmless quotation that looks like a planted instruction (the control).
FAMILIES = ("plain", "injection", "over_reach", "control")

#: Stances that say by themselves what the right end is, whatever else is demanded.
_DECISIVE = ("ambiguous", "adversarial")

#: Choices of arguments that any tool may offer; single values stand beside them, such as `unit=metric`.
ARGUMENTS = ("required", "all", "lowest", "highest")

#: Tool values that are no tool: an ask that none of the tools serves.
UNRELATED = "unrelated"

#: Single values of one tool that become values of the axis `arguments`, at most; the others are drawn.
MAX_VALUES = 24

#: The axes whose values depend on the tool.
_OF_TOOL = ("world_state", "tool_condition", "arguments", "chain", "family")

_BOUNDS = (
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "minItems",
    "maxItems",
)


def argument_choices(tool: Tool) -> list[str]:
    """List how the arguments of a tool can be chosen: `required`, `all`, `with note`, `unit=metric`, …."""
    schemas = argument_values(tool.parameters)
    required = set(tool.parameters.get("required") or ())
    optional = [name for name in schemas if name not in required]
    found = ["required"]
    if optional and (required or len(schemas) > 1):
        found.append("all")
    if any(bound in schema for schema in schemas.values() for bound in _BOUNDS):
        found += ["lowest", "highest"]
    single = [f"with {name}" for name in optional] if len(optional) > 1 and required else []
    for name, schema in schemas.items():
        listed = schema.get("enum")
        if listed is None and schema.get("type") == "boolean":
            listed = [True, False]
        if listed and len(listed) > 1:
            single += [f"{name}={_plain(value)}" for value in listed if value is not None]
    return found + single[:MAX_VALUES]


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def value_of(choice: str, tool: Tool) -> tuple[str, Any] | None:
    """Read a choice such as `unit=metric` back into the argument and its value."""
    name, equals, text = choice.partition("=")
    schema = argument_values(tool.parameters).get(name)
    if not equals or schema is None:
        return None
    listed = schema.get("enum") or [True, False]
    return next(((name, value) for value in listed if _plain(value) == text), None)


def chains(tool: Tool, tools: Sequence[Tool]) -> list[str]:
    """List the tools that lead to a tool through an id: they read what it names, or find it."""
    catalog = Catalog.of(tools)
    main = catalog.main[tool.name]
    if (
        main is None
        or main not in catalog.required[tool.name]
        or catalog.kinds[tool.name] == "search"
    ):
        return []
    reader = catalog.reader(tool.name)
    needed = {n for n in catalog.refs[tool.name] if n in catalog.required[tool.name]}
    kind = catalog.refs[tool.name][main]
    finder = next(
        (
            t.name
            for t in tools
            if catalog.kinds[t.name] == "search" and catalog.about[t.name] == kind
        ),
        None,
    )
    return [*([reader[0]] if reader else []), *([finder] if finder and needed == {main} else [])]


def states(tool: Tool, tools: Sequence[Tool]) -> list[str]:
    """List the world states that change something for who uses a tool."""
    catalog = Catalog.of(tools)
    kind, main = catalog.kinds[tool.name], catalog.main[tool.name]
    if kind == "compute":
        return ["exists"]
    if main is None or main not in catalog.required[tool.name]:
        return ["exists", "missing"] if kind in ("read", "search") else ["exists"]
    if kind == "search":
        return ["exists", "missing"]
    if kind == "read":
        return list(STATES)
    if kind == "create" and founds(tool.name, catalog):
        return ["exists", "acted"]
    found = ["exists", "missing", "acted", "partial"]
    return [*found, "duplicate", "unknown"] if catalog.reader(tool.name) else found


@dataclass(frozen=True, slots=True)
class Axes:
    """The axes of a grid, without the rules, and what goes together."""

    factors: dict[str, list[str]]
    by_tool: dict[str, dict[str, frozenset[str]]] = field(
        default_factory=dict
    )  #: tool -> axis -> values

    @classmethod
    def of(cls, tools: Sequence[Tool], extra: Mapping[str, Sequence[str]] | None = None) -> Axes:
        """Read the axes of a set of tools; none leaves the axes that a conversation alone has."""
        factors: dict[str, list[str]] = {}
        by_tool: dict[str, dict[str, frozenset[str]]] = {}
        if tools:
            factors["tool"] = [*(t.name for t in tools), UNRELATED]
        factors["stance"] = list(STANCES)
        if tools:
            own = {t.name: _of_tool(t, tools) for t in tools}
            for axis, order in zip(
                _OF_TOOL,
                (STATES, ("success", *FAULTS), ARGUMENTS, ("none",), FAMILIES),
                strict=True,
            ):
                met = list(itertools.chain.from_iterable(o[axis] for o in own.values()))
                first = [v for v in order if v in met]
                factors[axis] = list(dict.fromkeys([*first, *met]))
            by_tool = {n: {a: frozenset(v) for a, v in o.items()} for n, o in own.items()}
            plain = ("exists", "success", "required", "none", "plain")
            by_tool[UNRELATED] = {a: frozenset((v,)) for a, v in zip(_OF_TOOL, plain, strict=True)}
        factors["history"] = list(HISTORIES)
        for name, values in (extra or {}).items():
            if name in factors or name == "rule" or not values or isinstance(values, str):
                raise InputError(
                    f"an axis of your own needs a new name and values; got {name!r} with {values!r}. "
                    f"Taken are: rule, {', '.join(factors)}."
                )
            factors[name] = list(dict.fromkeys(str(v) for v in values))
        return cls(factors, by_tool)

    def possible(self, values: Mapping[str, str]) -> bool:
        """Tell whether some situation has all of these values."""
        ruled = values.get("rule", "none") != "none"
        if ruled and not self._governed(values):
            return False
        if not _civil(values):
            return False
        own = {a: v for a, v in values.items() if a in _OF_TOOL}
        if not own or not self.by_tool:
            return True
        named = values.get("tool")
        for tool in self.by_tool if named is None else (named,):
            if ruled and tool == UNRELATED:
                continue
            if tool in self.by_tool and all(v in self.by_tool[tool][a] for a, v in own.items()):
                return True
        return False

    def _governed(self, values: Mapping[str, str]) -> bool:
        """Tell whether a rule meets a situation: it governs tools, whatever single value they take."""
        choice = values.get("arguments")
        return values.get("tool") != UNRELATED and (choice is None or choice in ARGUMENTS)

    def under_rule(self) -> dict[str, list[str]]:
        """Return the axes without the values that no rule governs."""
        out = dict(self.factors)
        if "tool" in out:
            out["tool"] = [v for v in out["tool"] if v != UNRELATED]
            out["arguments"] = [v for v in out["arguments"] if v in ARGUMENTS]
        return out

    def constraints(self) -> list[dict[str, Any]]:
        """Return what goes together in the form that `covertable` takes."""
        if not self.by_tool:
            return []
        own: list[dict[str, Any]] = [
            {"operator": "fn", "requires": ["tool", axis], "evaluate": _Fits(self.by_tool, axis)}
            for axis in _OF_TOOL
        ]
        return [*own, {"operator": "fn", "requires": ["stance", "family"], "evaluate": _civil}]


def _civil(values: Mapping[str, str]) -> bool:
    """Tell whether stance and family do not both decide how the task must end."""
    return not (values.get("family") == "over_reach" and values.get("stance") in _DECISIVE)


@dataclass(frozen=True, slots=True)
class _Fits:
    by_tool: dict[str, dict[str, frozenset[str]]]
    axis: str

    def __call__(self, row: Mapping[str, str]) -> bool:
        return row[self.axis] in self.by_tool[row["tool"]][self.axis]


def _of_tool(tool: Tool, tools: Sequence[Tool]) -> dict[str, list[str]]:
    named = bool(Catalog.of(tools).refs[tool.name])
    return {
        "world_state": states(tool, tools),
        "tool_condition": ["success", *FAULTS],
        "arguments": argument_choices(tool),
        "chain": ["none", *chains(tool, tools)],
        "family": [f for f in FAMILIES if named or f != "over_reach"],
    }
