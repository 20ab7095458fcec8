"""What a simulation has to say of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from whileai_hf.simulate.aim import Aim
from whileai_hf.simulate.grid import Coverage


@dataclass(frozen=True, slots=True)
class SimulationReport:
    """What a run made and why it ended; `print(report)` is the line to quote."""

    n_rollouts: int
    n_tasks: int
    budget: int
    repeats: int
    policy: str
    seed: int
    mode: str
    n_errors: int
    n_saved: int  #: rollouts that a probe of two made unnecessary
    stopped: str  #: "budget", "tasks", "no new situations", "agent failed" or "interrupted"
    coverage: Coverage | None
    aim: Aim | None = None  #: where traces aimed the grid
    degraded: bool = False  #: the rows do not show what was to be measured; the warnings say why

    def __str__(self) -> str:
        said = f"{self.n_rollouts} rollouts of {self.n_tasks} tasks (stopped: {self.stopped})"
        if self.n_saved:
            said += f", {self.n_saved} saved by probing"
        if self.n_errors:
            said += f", {self.n_errors} with errors"
        parts = [said, *(str(part) for part in (self.coverage, self.aim) if part is not None)]
        return "; ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        nested = {"coverage": self.coverage, "aim": self.aim}
        return {**fields, **{k: v.to_dict() if v else None for k, v in nested.items()}}
