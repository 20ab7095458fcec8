"""GoalReached: whether a rollout left its world as the task wanted, whatever it said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from whileai_hf import messages as chat
from whileai_hf.verify.base import Verifier
from whileai_hf.world.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalReached(Verifier):
    """1 where the world ended as it could and should; the calls decide, no wording does.

    Where the goal can be reached, its tool has to have succeeded with the goal's arguments, and
    nothing may have been written twice. Where it cannot (the record is missing, the tool stays
    broken, it was done before), something has to have been tried and nothing written. Where the
    task needs no tool, nothing may be written.

    Attributes:
        field: Column of the world that the calls of the row are replayed in.
    """

    field: str | None = "world"

    def candidate(self, row: Mapping[str, Any]) -> Any:
        """Return the world after the calls of the row, or null where it cannot be rebuilt."""
        if not row.get("world"):
            return None
        world = World.from_row(row)
        for call in chat.tool_calls(row.get("messages") or []):
            world.call(call.name, call.raw if call.malformed else call.arguments)
        return world

    def check(self, answer: Any, reference: Any) -> tuple[float | None, str]:
        """Read the end of a world."""
        if answer is None:
            return None, "the row has no world to rebuild"
        return reached(answer)


def reached(world: World) -> tuple[float, str]:
    """Return 1 or 0 for the end of a world, and the reason."""
    expected = world.expected()
    if expected == "done":
        if not world.achieved():
            return 0.0, "the goal was not reached"
        return (
            (0.0, "a write was repeated")
            if world.repeated_writes()
            else (1.0, "the goal was reached")
        )
    if world.wrote():
        return 0.0, "something was written that should not be"
    if expected != "no_call" and not world.log:
        return 0.0, "nothing was tried"
    return 1.0, "nothing was written that should not be"
