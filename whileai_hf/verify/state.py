"""StateEqual: the state in which a rollout left the world against the one that was wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from whileai_hf import messages as chat
from whileai_hf import schema
from whileai_hf.verify.base import Verifier
from whileai_hf.verify.calls import same_value
from whileai_hf.world.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class StateEqual(Verifier):
    """1 where the end state is the reference, key by key; how the agent got there does not matter.

    The reference is `privileged.state`, or the column `field`.

    Attributes:
        state: A function of the row that returns its end state; null replays the calls of the row in
            its world and takes the records of that.
        unordered: Dotted paths of lists whose order does not matter.
        ignored: Dotted paths that are not compared.
    """

    field: str | None = "privileged.state"
    state: Callable[[Mapping[str, Any]], Any] | None = None
    unordered: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    def candidate(self, row: Mapping[str, Any]) -> Any:
        """Return the end state of the row, or null where it cannot be rebuilt."""
        if self.state is not None:
            return self.state(row)
        if not row.get("world"):
            return None
        world = World.from_row(row)
        for call in chat.tool_calls(row["messages"] or []):
            world.call(call.name, call.raw if call.malformed else call.arguments)
        return world.records

    def check(self, answer: Any, reference: Any) -> tuple[float | None, str]:
        """Compare two states."""
        if answer is None:
            return None, "the row has no world to rebuild"
        wanted = self._plain(schema.restore(reference), "")
        found = self._plain(answer, "")
        if same_value(found, wanted):
            return 1.0, "the end state is the reference"
        return 0.0, "the end state differs"

    def _plain(self, value: Any, path: str) -> Any:
        """Copy a state without what is ignored, its unordered lists sorted."""
        if isinstance(value, Mapping):
            inner = {k: f"{path}.{k}" if path else str(k) for k in value}
            return {
                k: self._plain(v, inner[k])
                for k, v in value.items()
                if inner[k] not in self.ignored
            }
        if isinstance(value, (list, tuple)):
            items = [self._plain(v, path) for v in value]
            return sorted(items, key=_order) if path in self.unordered else items
        return value


def _order(value: Any) -> str:
    """Order values by their text, a number by its value: 8 and 8.0 are one number."""
    if isinstance(value, Mapping):
        return repr(sorted((k, _order(v)) for k, v in value.items()))
    if isinstance(value, list):
        return repr([_order(v) for v in value])
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return repr(float(value))
    return repr(value)
