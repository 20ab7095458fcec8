"""The gate before publishing: data that teaches nothing, or that nobody graded, does not leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from datasets import Dataset

from whileai_hf import columns
from whileai_hf.errors import GuardError, InputError

#: What a set of rollouts can be published for.
MODES = ("rl", "sft", "eval")


@dataclass(frozen=True, slots=True)
class GateReport:
    """What the gate counted; `print(report)` is the line to quote."""

    mode: str | None  #: what the rows are for, null where nobody said
    n_rows: int
    n_ungraded: int  #: rows without a reward
    n_tasks: int
    n_mixed: int  #: tasks whose rewards differ, which alone carry an advantage

    def __str__(self) -> str:
        graded = self.n_rows - self.n_ungraded
        return (
            f"{self.n_rows} rollouts of {self.n_tasks} tasks, {graded} graded, "
            f"{self.n_mixed} tasks with mixed rewards"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        return {name: getattr(self, name) for name in self.__slots__}


def publish_gate(dataset: Dataset, mode: str | None = None) -> GateReport:
    """Refuse rollouts that are not graded, and RL data without a gradient.

    A group whose rewards are all equal has zero advantage (GRPO, arXiv:2402.03300, equation for
    the group-relative advantage), so a set of nothing but such groups trains nothing.

    Args:
        dataset: Rollouts with `task_id` and `reward`.
        mode: `"rl"`, `"sft"` or `"eval"`; null checks only that the rows are graded.

    Raises:
        GuardError: The rows may not be published; `.report` holds the counts.
    """
    if mode is not None and mode not in MODES:
        raise InputError(f"mode must be one of {', '.join(MODES)} or None; got {mode!r}. Pick one.")
    if "reward" not in dataset.column_names or len(dataset) == 0:
        raise GuardError(
            f"publishing needs graded rollouts; got {len(dataset)} rows"
            f"{'' if 'reward' in dataset.column_names else ' without a reward column'}. "
            "Run grade(dataset, judge) first, or pass gate=False."
        )
    report = _count(dataset, mode)
    if report.n_ungraded:
        raise GuardError(
            f"publishing needs a reward on every rollout; {report.n_ungraded} of {report.n_rows} "
            "have none. Grade them, filter them out (see `judge_status`), or pass gate=False.",
            report,
        )
    if mode == "rl" and report.n_mixed == 0:
        raise GuardError(
            f"RL data needs tasks whose rewards differ; none of the {report.n_tasks} tasks has "
            "any. Roll out harder or easier tasks, or pass gate=False.",
            report,
        )
    return report


def _count(dataset: Dataset, mode: str | None) -> GateReport:
    table = columns.read(dataset, ["task_id", "reward"], "push")
    codes, ids = columns.as_codes(table["task_id"], "task_id", "push")
    reward = columns.as_numbers(table["reward"], "reward", "push")
    graded = ~np.isnan(reward)
    low, high = np.full(len(ids), np.inf), np.full(len(ids), -np.inf)
    np.minimum.at(low, codes[graded], reward[graded])
    np.maximum.at(high, codes[graded], reward[graded])
    return GateReport(
        mode, len(reward), int((~graded).sum()), len(ids), int((high - low > 1e-9).sum())
    )
