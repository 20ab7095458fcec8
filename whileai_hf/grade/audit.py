"""audit_grades: read a sample of a verifier's failures again, with a judge that reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from datasets import Dataset

from whileai_hf import columns, defaults
from whileai_hf.errors import InputError
from whileai_hf.grade.labelled import rewards_of
from whileai_hf.grade.shares import Check, Ints, Verdict, at_most, share
from whileai_hf.measure.interval import check_confidence


@dataclass(frozen=True, slots=True)
class Audit:
    """What a second reading found; `print(audit)` is the line to quote."""

    false_fails: Check  #: share of the audited rewards of 0 that the second reader passes
    false_passes: Check  #: share of the audited rewards of 1 that it fails
    rows: tuple[int, ...]  #: rows, in the dataset's order, on which the two disagree

    @property
    def ok(self) -> bool:
        """Whether both shares were measured and neither is too large; one that was not asked for counts."""
        return self.false_fails.ok and self.false_passes.verdict is not Verdict.FAIL

    def __str__(self) -> str:
        return f"{self.false_fails}\n{self.false_passes}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        return {
            "false_fails": self.false_fails.to_dict(), "false_passes": self.false_passes.to_dict(), "rows": list(self.rows),
        }  # fmt: skip


def audit_grades(
    dataset: Dataset,
    judge: Any,
    *,
    sample: int = defaults.AUDIT_ROWS,
    passes: int = 0,
    threshold: float = 1.0,
    limit: float = defaults.PROBE_LIMIT,
    confidence: float = defaults.CONFIDENCE,
    seed: int = 0,
) -> Audit:
    """Ask a second judge about rows that a first one failed, and about some that it passed.

    Args:
        dataset: Graded rows with `task_id` and `reward`.
        judge: The second reader; it may read the reference (`privileged`).
        sample: Rewards of 0 to read again.
        passes: Rewards of 1 to read again.
        threshold: A reward of the second reader at or above it is a pass.
        limit: Share that may be wrong.
        confidence: Coverage of the intervals.
        seed: Of the sample.

    Returns:
        Both shares with intervals over tasks; a side that was not read, or that the interval leaves open, is
        unmeasured. The second reader is no truth: read the rows that it names.

    Raises:
        SchemaError: There is no `task_id` or no `reward`.
        InputError: A sample is negative, or both are 0.
    """
    check_confidence(confidence)
    columns.check_dataset(dataset, "audit_grades")
    columns.check_columns(dataset, ["task_id", "reward"], "audit_grades")
    if (
        not (isinstance(sample, int) and isinstance(passes, int))
        or min(sample, passes) < 0
        or not sample + passes
    ):
        raise InputError(f"sample and passes must be whole numbers, one of them positive; got {sample!r} and {passes!r}. Read 40 failures.")  # fmt: skip
    rewards = columns.numbers(dataset, "reward", "audit_grades")
    codes, _ = columns.task_codes(dataset, "audit_grades")
    rng = np.random.default_rng(seed)
    failed = np.sort(rng.permutation(np.flatnonzero(rewards == 0))[:sample])
    passed = np.sort(rng.permutation(np.flatnonzero(rewards == 1))[:passes])
    again = rewards_of(dataset.select([*failed.tolist(), *passed.tolist()]), judge)
    said = np.where(np.isnan(again), np.nan, (again >= threshold).astype(np.float64))
    fails, wrong = _side("false fails", failed, said[: failed.size], 0, codes, limit, confidence)
    kept, also = _side("false passes", passed, said[failed.size :], 1, codes, limit, confidence)
    return Audit(fails, kept, (*wrong, *also))


def _side(
    name: str, rows: Ints, said: Any, given: int, codes: Ints, limit: float, confidence: float
) -> tuple[Check, tuple[int, ...]]:
    judged = ~np.isnan(said)
    n = int(judged.sum())
    if not n:
        return Check(name, Verdict.UNMEASURED, None, 0, limit, "no row was read again"), ()
    wrong = said[judged] != given
    check = at_most(name, share(wrong, codes[rows][judged], confidence), n, limit)
    return check, tuple(int(i) for i in rows[judged][wrong])
