"""How much to run: what a mode presets, and the options that a call sets instead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from whileai_hf import defaults
from whileai_hf.errors import InputError

#: What each mode presets: attempts at a task, how they are spent, and the share of faults kept.
MODES: dict[str, dict[str, Any]] = {
    "explore": {"repeats": 1, "policy": "fixed", "fault_rate": defaults.FAULT_RATE},
    "sft": {"repeats": defaults.REPEATS, "policy": "fixed", "fault_rate": defaults.FAULT_RATE},
    "rl": {"repeats": defaults.RL_REPEATS, "policy": "successive", "fault_rate": defaults.RL_FAULT_RATE},
    "eval": {"repeats": defaults.REPEATS, "policy": "fixed", "fault_rate": defaults.FAULT_RATE},
    "adaptive": {"repeats": defaults.RL_REPEATS, "policy": "successive", "fault_rate": defaults.FAULT_RATE},
}  # fmt: skip

#: How attempts are spent: always k, or two as a probe and the rest where the two differ.
POLICIES = ("fixed", "successive")


@dataclass(frozen=True, slots=True)
class Plan:
    """How much one call of `simulate` runs."""

    budget: int  #: rollouts at most
    repeats: int
    policy: str
    fault_rate: float
    runs: int
    concurrency: int
    max_turns: int
    replay: bool

    @classmethod
    def of(
        cls, mode: str, budget: Any, repeats: Any, policy: Any, fault_rate: Any, runs: Any,
        concurrency: Any, max_turns: Any, replay: bool, n_seeds: int = 0,
    ) -> Plan:  # fmt: skip
        """Check the options of a call, each null one taken from the mode's preset."""
        if mode not in MODES:
            raise InputError(f"mode must be one of {', '.join(MODES)}; got {mode!r}. Pick one.")
        preset = MODES[mode]
        repeats = preset["repeats"] if repeats is None else repeats
        if budget is None and replay:
            budget = repeats * 1_000_000 if isinstance(repeats, int) else defaults.BUDGET
        elif budget is None:
            needed = n_seeds * repeats if isinstance(repeats, int) else 0
            budget = max(defaults.BUDGET, needed)
        counts = {
            "budget": budget,
            "repeats": repeats,
            "runs": runs,
            "concurrency": concurrency,
            "max_turns": max_turns,
        }
        for name, value in counts.items():
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(
                    f"{name} must be a whole number of at least 1; got {value!r}. Raise it."
                )
        if not replay and budget < n_seeds * repeats:
            raise InputError(
                f"the budget must pay all seeds; {n_seeds} seeds of {repeats} attempts need "
                f"{n_seeds * repeats} rollouts, got {budget!r}. Raise it, or pass fewer seeds."
            )
        policy = preset["policy"] if policy is None else policy
        if policy not in POLICIES:
            raise InputError(
                f"repeat_policy must be one of {', '.join(POLICIES)}; got {policy!r}. Pick one."
            )
        rate = preset["fault_rate"] if fault_rate is None else fault_rate
        if not isinstance(rate, (int, float)) or not 0 <= rate <= 1:
            raise InputError(f"fault_rate must lie in [0, 1]; got {rate!r}. 0 is no fault.")
        return cls(budget, repeats, policy, float(rate), runs, concurrency, max_turns, replay)
