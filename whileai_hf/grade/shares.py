"""Shares of rows with intervals over tasks, and checks that can be "unmeasured"."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whileai_hf.measure.interval import Interval, t_quantile, wilson_of
from whileai_hf.measure.paired import nothing_changed
from whileai_hf.measure.pass_at import Estimate

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Verdict(StrEnum):
    """What a check found; only `PASS` is one."""

    PASS = "pass"
    FAIL = "fail"
    UNMEASURED = "unmeasured"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at; `print(check)` is the line to quote."""

    name: str
    verdict: Verdict
    estimate: Estimate | None  #: null where nothing could be estimated
    n_rows: int
    limit: float | None = None  #: what the interval is held against
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether it passed; what is unmeasured did not."""
        return self.verdict is Verdict.PASS

    def __str__(self) -> str:
        if self.estimate is None:
            return f"{self.name}: {self.verdict} ({self.note or f'{self.n_rows} rows'})"
        held = "" if self.limit is None else f", held against {self.limit:g}"
        note = f"; {self.note}" if self.note else ""
        size = f"{self.n_rows} rows of {self.estimate.n_tasks} tasks"
        return f"{self.name} {self.estimate} ({size}{held}): {self.verdict}{note}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        kept = {n: getattr(self, n) for n in self.__slots__}
        estimate = None if self.estimate is None else self.estimate.to_dict()
        return kept | {"estimate": estimate, "verdict": str(self.verdict)}


def share(values: Any, tasks: Any, confidence: float) -> Estimate:
    """Share of rows, with Wilson's interval at the effective sample size that the tasks imply.

    The variance is a jackknife over tasks of the ratio of sums; where the rows of no task differ the
    size is the number of tasks, because rows of one task may say the same thing.

    Args:
        values: One number in [0, 1] a row, shape (rows,), rows at least 1.
        tasks: Task of each row, shape (rows,).
        confidence: Nominal coverage.
    """
    x = np.asarray(values, dtype=np.float64)
    _, codes = np.unique(np.asarray(tasks), return_inverse=True)
    sums, counts = np.bincount(codes, x), np.bincount(codes).astype(np.float64)
    n, mean = counts.size, float(x.mean())
    if n < 2:
        return Estimate(mean, Interval(0.0, 1.0, confidence, "wilson"), n)
    left = (sums.sum() - sums) / (counts.sum() - counts)
    variance = (n - 1) / n * float(((left - left.mean()) ** 2).sum())
    low, high = (float(end) for end in wilson_of(mean, variance, n, x.size, confidence))
    return Estimate(mean, Interval(max(low, 0.0), min(high, 1.0), confidence, "wilson"), n)


def jackknifed(statistic: Callable[[Ints], float], tasks: Any, confidence: float) -> Estimate:
    """A statistic in [-1, 1] of rows, with Student's interval from a jackknife over tasks.

    Args:
        statistic: From the indices of rows to the value, NaN where it cannot be computed.
        tasks: Task of each row, shape (rows,).
        confidence: Nominal coverage.
    """
    _, codes = np.unique(np.asarray(tasks), return_inverse=True)
    rows, n = np.arange(codes.size), int(codes.max()) + 1
    value = statistic(rows)
    left = np.array([statistic(rows[codes != task]) for task in range(n)])
    left = left[~np.isnan(left)]
    if n < 2 or left.size < 2 or math.isnan(value):
        return Estimate(value, Interval(-1.0, 1.0, confidence, "jackknife"), n)
    spread = (left.size - 1) / left.size * float(((left - left.mean()) ** 2).sum())
    half = t_quantile(confidence, n - 1) * math.sqrt(spread)
    half = half if spread > 1e-24 else nothing_changed(n, confidence)
    interval = Interval(max(value - half, -1.0), min(value + half, 1.0), confidence, "jackknife")
    return Estimate(value, interval, n)


def at_least(
    name: str, estimate: Estimate | None, n_rows: int, limit: float, note: str = ""
) -> Check:
    """Pass where the interval lies at or above a limit, fail where it lies below."""
    if estimate is None:
        return Check(name, Verdict.UNMEASURED, None, n_rows, limit, note)
    interval = estimate.interval
    verdict = Verdict.PASS if interval.low >= limit else Verdict.UNMEASURED
    verdict = Verdict.FAIL if interval.high < limit else verdict
    return Check(name, verdict, estimate, n_rows, limit, note)


def at_most(
    name: str, estimate: Estimate | None, n_rows: int, limit: float, note: str = ""
) -> Check:
    """Pass where the interval lies at or below a limit, fail where it lies above."""
    if estimate is None:
        return Check(name, Verdict.UNMEASURED, None, n_rows, limit, note)
    interval = estimate.interval
    verdict = Verdict.PASS if interval.high <= limit else Verdict.UNMEASURED
    verdict = Verdict.FAIL if interval.low > limit else verdict
    return Check(name, verdict, estimate, n_rows, limit, note)


def within(name: str, estimate: Estimate | None, n: int, limit: float, note: str = "") -> Check:
    """Pass where the interval lies within the limit on both sides, fail where it shows a gap of that size."""
    if estimate is None:
        return Check(name, Verdict.UNMEASURED, None, n, limit, note)
    low, high = estimate.interval.low, estimate.interval.high
    verdict = Verdict.PASS if -limit <= low and high <= limit else Verdict.UNMEASURED
    if estimate.interval.excludes_zero and abs(estimate.value) >= limit:
        verdict = Verdict.FAIL
    return Check(name, verdict, estimate, n, limit, note)


def overall(checks: Sequence[Check]) -> Verdict:
    """Fail where one check fails, pass where all pass."""
    found = {check.verdict for check in checks}
    if Verdict.FAIL in found:
        return Verdict.FAIL
    return Verdict.PASS if found == {Verdict.PASS} else Verdict.UNMEASURED
