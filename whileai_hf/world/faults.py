"""Faults on a schedule: which call of which tool fails, how, and when it recovers.

A fault is no coin: an agent that retries after a transient one can succeed, and one that does not
cannot, so that recovery can be learned.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from whileai_hf.errors import InputError

#: What a fault returns: the result the agent sees, and whether the call took effect all the same.
Effect = tuple[Any, bool]

#: How to fail, by name: from the result that the call would have had to an `Effect`.
FAULTS: dict[str, Callable[[Any, Mapping[str, Any]], Effect]] = {}


def register_fault(
    name: str,
) -> Callable[
    [Callable[[Any, Mapping[str, Any]], Effect]], Callable[[Any, Mapping[str, Any]], Effect]
]:
    """Add a way to fail.

    Args:
        name: Its name in a schedule and on the grid.

    Example:
        >>> @register_fault("empty_result")
        ... def empty_result(result, context):
        ...     return {}, False
        >>> del FAULTS["empty_result"]
    """

    def add(
        function: Callable[[Any, Mapping[str, Any]], Effect],
    ) -> Callable[[Any, Mapping[str, Any]], Effect]:
        FAULTS[name] = function
        return function

    return add


@register_fault("timeout")
def _timeout(result: Any, context: Mapping[str, Any]) -> Effect:
    return {"error": "timeout", "message": "the tool did not answer in time"}, False


@register_fault("rate_limited")
def _rate_limited(result: Any, context: Mapping[str, Any]) -> Effect:
    return {"error": "rate_limited", "message": "too many requests", "retry_after_s": 1}, False


@register_fault("malformed_result")
def _malformed(result: Any, context: Mapping[str, Any]) -> Effect:
    text = result if isinstance(result, str) else json.dumps(result, default=str)
    return f"{text[: max(4, len(text) // 3)]}\x00<!-- upstream cut -->", False


@register_fault("stale_result")
def _stale(result: Any, context: Mapping[str, Any]) -> Effect:
    if context["writes"]:
        return {"error": "conflict", "message": "the record changed since it was read"}, False
    old = dict(result) if isinstance(result, dict) else {"result": result}
    return {**old, "version": 0, "stale": True, "as_of": "3 days ago"}, False


@register_fault("permission_denied")
def _denied(result: Any, context: Mapping[str, Any]) -> Effect:
    return {"error": "permission_denied", "message": "this account may not use the tool"}, False


@register_fault("partial_write")
def _partial(result: Any, context: Mapping[str, Any]) -> Effect:
    if not context["writes"]:
        return {"error": "incomplete", "message": "only a part of the record was read"}, False
    return {"status": "incomplete", "message": "the change was begun and not finished"}, False


@dataclass(frozen=True, slots=True)
class Fault:
    """One entry of a schedule."""

    kind: str
    tool: str | None = None  #: null is every tool
    first: int = 0  #: calls of the tool that go well before
    times: int | None = 1  #: calls that fail then; null never recovers

    def __post_init__(self) -> None:
        if self.kind not in FAULTS:
            raise InputError(
                f"a fault must be one of {', '.join(FAULTS)}; got {self.kind!r}. "
                "Register a new one with register_fault."
            )
        if self.first < 0 or (self.times is not None and self.times < 1):
            raise InputError(
                f"a fault starts at call 0 or later and lasts at least one; got first={self.first!r}, "
                f"times={self.times!r}. Leave times out for a permanent one."
            )

    def hits(self, tool: str, nth: int) -> bool:
        """Tell whether the nth call of a tool fails, counting from 0."""
        if self.tool not in (None, tool) or nth < self.first:
            return False
        return self.times is None or nth < self.first + self.times

    @property
    def transient(self) -> bool:
        """Whether it recovers."""
        return self.times is not None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for the `world` column."""
        return {name: getattr(self, name) for name in self.__slots__}
