"""ToolCalls: the calls that an agent made against those that it should have made."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from whileai_hf import messages as chat
from whileai_hf import schema
from whileai_hf.errors import InputError
from whileai_hf.verify.base import Verifier

#: In which order calls must come.
ORDERS = ("any", "strict")
#: How texts are compared.
TEXTS = ("exact", "loose")

#: What loose comparison ignores, as BFCL's checker does.
_LOOSE = re.compile(r"[ ,./\-_*^()'\"]")
_ABSENT = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalls(Verifier):
    """1 where the calls of a rollout are the reference's, each as often as it is listed.

    Arguments are compared as JSON: 12 and 12.0 are one number, `true` and 1 are not, text is text. An
    argument that one side leaves out equals the default that the tool's schema states. A call that
    cannot be read is a wrong call.

    Attributes:
        order: `"any"`, or `"strict"` where the calls must come in the reference's order.
        extra: Whether further calls are allowed.
        alternatives: Whether the reference lists the accepted values of each argument, as the Berkeley
            Function-Calling Leaderboard writes them (`{"unit": ["C", "celsius", ""]}`); an empty text
            among them means that the argument may be left out.
        text: `"exact"`, or `"loose"` where case, spaces and punctuation are ignored.
    """

    order: str = "any"
    extra: bool = False
    alternatives: bool = False
    text: str = "exact"

    def __post_init__(self) -> None:
        for name, value, known in (("order", self.order, ORDERS), ("text", self.text, TEXTS)):
            if value not in known:
                raise InputError(
                    f"{name} must be one of {', '.join(known)}; got {value!r}. Pick one."
                )

    def candidate(self, row: Mapping[str, Any]) -> Any:
        """Return the calls of the row, and the defaults that its tools state."""
        made = chat.tool_calls(row["messages"] or []) if row.get("messages") else []
        calls = [(call.name, None if call.malformed else call.arguments) for call in made]
        return calls, _defaults(row.get("tools"))

    def check(self, answer: Any, reference: Any) -> tuple[float | None, str]:
        """Compare; a reference that is no list of calls gives null."""
        wanted = _listed(schema.restore(reference))
        if wanted is None:
            return None, "the reference is no list of calls"
        made, defaults = answer
        if self.order == "strict":
            right = self._in_order(made, wanted, defaults)
        else:
            right = self._matched(made, wanted, defaults)
        return (1.0, "the calls are those of the reference") if right else (0.0, "the calls differ")

    def _same(self, made: tuple[str, Any], wanted: tuple[str, Any], defaults: Any) -> bool:
        if made[0] != wanted[0] or made[1] is None:
            return False
        stated = defaults.get(made[0], {})
        if self.alternatives:
            return self._fits(made[1], wanted[1], stated)
        return self._equal({**stated, **made[1]}, {**stated, **wanted[1]})

    def _equal(self, a: Any, b: Any) -> bool:
        return same_value(_folded(a), _folded(b)) if self.text == "loose" else same_value(a, b)

    def _fits(self, made: Mapping[str, Any], wanted: Any, stated: Mapping[str, Any]) -> bool:
        """Whether every argument is one of its accepted values."""
        if not isinstance(wanted, Mapping) or set(made) - set(wanted):
            return False
        return all(
            self._accepted(made.get(name, stated.get(name, _ABSENT)), options, name in made)
            for name, options in wanted.items()
        )

    def _accepted(self, value: Any, options: Any, given: bool) -> bool:
        listed = options if isinstance(options, (list, tuple)) else [options]
        if not given and (not listed or any(option == "" or option is None for option in listed)):
            return True
        return value is not _ABSENT and any(self._is(value, option) for option in listed)

    def _is(self, value: Any, option: Any) -> bool:
        if isinstance(option, Mapping):
            return isinstance(value, Mapping) and self._fits(value, option, {})
        if isinstance(option, (list, tuple)) and isinstance(value, (list, tuple)):
            same = len(value) == len(option)
            return same and all(self._is(v, o) for v, o in zip(value, option, strict=True))
        return self._equal(value, option)

    def _in_order(self, made: Sequence[Any], wanted: Sequence[Any], defaults: Any) -> bool:
        at = 0
        for call in made:
            if at < len(wanted) and self._same(call, wanted[at], defaults):
                at += 1
            elif not self.extra:
                return False
        return at == len(wanted)

    def _matched(self, made: Sequence[Any], wanted: Sequence[Any], defaults: Any) -> bool:
        left = list(made)
        for call in wanted:
            found = next((m for m in left if self._same(m, call, defaults)), None)
            if found is None:
                return False
            left.remove(found)
        return self.extra or not left


def _listed(reference: Any) -> list[tuple[str, dict[str, Any]]] | None:
    """Read reference calls: `[name, arguments]`, `{"name", "arguments"}`, or the OpenAI form."""
    if isinstance(reference, Mapping):
        reference = reference.get("calls", [reference])
    if not isinstance(reference, (list, tuple)):
        return None
    out = []
    for call in reference:
        if isinstance(call, (list, tuple)) and len(call) == 2 and isinstance(call[0], str):
            call = {"name": call[0], "arguments": call[1]}
        if not isinstance(call, Mapping):
            return None
        normal = chat.normal_call(call)
        if normal.get("malformed"):
            return None
        out.append((normal["function"]["name"], normal["function"]["arguments"]))
    return out


def _defaults(tools: Any) -> dict[str, dict[str, Any]]:
    """Return the default of each argument that a schema states, by tool."""
    out: dict[str, dict[str, Any]] = {}
    for tool in tools or []:
        function = tool.get("function") or tool
        properties = (function.get("parameters") or {}).get("properties") or {}
        stated = {
            n: p["default"]
            for n, p in properties.items()
            if isinstance(p, Mapping) and "default" in p
        }
        out[str(function.get("name"))] = stated
    return out


def _folded(value: Any) -> Any:
    """Fold the texts of a JSON value for loose comparison."""
    if isinstance(value, str):
        return _LOOSE.sub("", value).casefold()
    if isinstance(value, Mapping):
        return {k: _folded(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_folded(v) for v in value]
    return value


def same_value(a: Any, b: Any) -> bool:
    """Tell whether two JSON values are equal; numbers by value, a boolean is no number."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return a == b or math.isclose(a, b, rel_tol=1e-12)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same_value(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(map(same_value, a, b))
    return type(a) is type(b) and bool(a == b)
