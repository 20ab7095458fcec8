"""How much a measurement moves when nothing changed: re-runs of one agent on the same tasks.

A difference between two agents that is smaller than the difference between two runs of one of them
says nothing. The band is read off re-runs, and it is never zero: runs that agree exactly only bound
how often a task may flip.
"""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from datasets import Dataset
from numpy.typing import NDArray
from scipy import special

from whileai_hf import columns, defaults
from whileai_hf.errors import InputError
from whileai_hf.measure.interval import Interval, check_confidence, t_quantile
from whileai_hf.measure.paired import nothing_changed

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class EvalVariance:
    """What re-runs of one agent differ by; `print(result)` is the line to quote."""

    metric: str
    run_std: float  #: sample standard deviation of the run means
    std_interval: Interval  #: of `run_std`, chi-square
    band: Interval  #: in which two single runs of one agent differ
    means: tuple[float, ...]  #: mean over tasks of each run
    within_std: float  #: what the attempts of single tasks alone make a run mean vary by
    n_runs: int
    n_tasks: int  #: tasks that every run measured
    n_left_out: int  #: tasks that some run lacks

    @property
    def identical(self) -> bool:
        """Whether every run gave every task the same value."""
        return self.within_std == 0 and self.run_std == 0

    def __str__(self) -> str:
        shown = ", ".join(f"{m:.3f}" for m in self.means)
        said = (
            f"{self.metric}: run std {self.run_std:.4f} [{self.std_interval.low:.4f}.."
            f"{self.std_interval.high:.4f}] over {self.n_runs} runs of {self.n_tasks} tasks ({shown}); "
            f"two runs differ by up to {self.band.high:.4f} "
            f"({self.band.confidence:.0%}, {self.band.method})"
        )
        if self.identical:
            said += "; the runs are identical, so the band is what that still allows"
        if self.n_left_out:
            said += f"; {self.n_left_out} tasks are not in every run and left out"
        return said

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        out = {name: getattr(self, name) for name in self.__slots__}
        return {
            **out,
            "means": list(self.means),
            "band": self.band.to_dict(),
            "std_interval": self.std_interval.to_dict(),
        }


def eval_variance(
    *runs: Dataset,
    metric: str = "reward",
    by: str = "run",
    confidence: float = defaults.CONFIDENCE,
) -> EvalVariance:
    """Measure what re-runs of one agent on the same tasks differ by.

    The band is Student's quantile at runs - 1 times the standard deviation of a difference of two
    runs, the square root of two times `run_std` (Lambert et al. 2025, arXiv:2504.12501, chapter
    Evaluation, report re-run noise; the band is ours). Where no run changed any task it is the
    largest share of tasks that may flip unseen (Clopper and Pearson 1934, Biometrika 26:404-413).

    Args:
        runs: Graded rollouts, one dataset a run; or one dataset that names its run in `by`.
        metric: A column of numbers in [0, 1].
        by: Column that names the run, where one dataset holds them all.
        confidence: Coverage of the band and of the interval.

    Raises:
        SchemaError: A column is missing.
        InputError: Fewer than two runs, or no task that all of them measured.
    """
    check_confidence(confidence)
    tables = [_task_means(run, metric, None) for run in runs]
    if len(runs) == 1:
        tables = _by_run(runs[0], metric, by)
    if len(tables) < 2:
        raise InputError(
            f"eval_variance needs at least 2 runs of one agent; got {len(tables)}. "
            "Run the tasks again: simulate(tasks=rows, runs=3)."
        )
    shared = [task for task in tables[0] if all(task in table for table in tables)]
    if not shared:
        raise InputError(
            f"re-runs must share their tasks; {len(tables)} runs share none. "
            "Run the same tasks: simulate(tasks=rows)."
        )
    values = np.array([[table[task] for task in shared] for table in tables])  # (runs, tasks)
    n_runs, n_tasks = values.shape
    means = values.mean(axis=1)
    run_std = float(means.std(ddof=1))
    run_std = 0.0 if run_std < 1e-12 else run_std
    within = float(np.sqrt(values.var(axis=0, ddof=1).sum())) / n_tasks
    band = noise_band(run_std, runs=n_runs, n_tasks=n_tasks, confidence=confidence)
    tails = [0.5 + confidence / 2, 0.5 - confidence / 2]
    low, high = (
        run_std * math.sqrt((n_runs - 1) / float(special.chdtri(n_runs - 1, 1 - t))) for t in tails
    )
    everything = set().union(*tables)
    return EvalVariance(
        metric, run_std, Interval(low, high, confidence, "chi-square"), band,
        tuple(map(float, means)), 0.0 if within < 1e-12 else within, n_runs, n_tasks,
        len(everything) - len(shared),
    )  # fmt: skip


def noise_band(
    run_std: float,
    *,
    runs: int | None = None,
    n_tasks: int | None = None,
    n_before: int = 1,
    n_after: int = 1,
    confidence: float = defaults.CONFIDENCE,
) -> Interval:
    """Band in which two measurements of one agent differ.

    Args:
        run_std: Standard deviation of the metric over re-runs of one agent.
        runs: Re-runs behind `run_std`; null takes it as known.
        n_tasks: Tasks of a run. With `run_std` zero the band is what n_tasks * (runs - 1) unchanged
            tasks still allow, instead of zero.
        n_before: Runs that are averaged before.
        n_after: Runs that are averaged after.
        confidence: Coverage.

    Raises:
        InputError: A negative or unknown spread, or fewer than 2 runs.
    """
    if not run_std >= 0 or (runs is not None and runs < 2) or min(n_before, n_after) < 1:
        raise InputError(
            f"run_std must be at least 0 and come from 2 or more runs; got {run_std!r} of {runs!r}. "
            "Use eval_variance on re-runs of one agent."
        )
    if run_std == 0 and n_tasks:
        half = nothing_changed(n_tasks * ((runs or 2) - 1), confidence)
        return Interval(-half, half, confidence, "no task changed, Clopper-Pearson")
    if runs is None:
        quantile, how = float(special.ndtri(0.5 + confidence / 2)), "a known sd"
    else:
        quantile, how = t_quantile(confidence, runs - 1), f"t of {runs} runs"
    half = quantile * run_std * math.sqrt(1 / n_before + 1 / n_after)
    return Interval(-half, half, confidence, how)


def _by_run(dataset: Dataset, metric: str, by: str) -> list[dict[Any, float]]:
    table = columns.read(dataset, [by], "eval_variance")
    codes, names = columns.as_codes(table.column(0), by, "eval_variance")
    return [_task_means(dataset, metric, codes == i) for i in range(len(names))]


def _task_means(
    dataset: Dataset, metric: str, chosen: NDArray[np.bool_] | None
) -> dict[Any, float]:
    table = columns.read(dataset, ["task_id", metric], "eval_variance")
    values = columns.as_numbers(table.column(1), metric, "eval_variance")
    codes, ids = columns.as_codes(table.column(0), "task_id", "eval_variance")
    known = ~np.isnan(values) if chosen is None else chosen & ~np.isnan(values)
    total = np.bincount(codes[known], values[known], len(ids))
    count = np.bincount(codes[known], minlength=len(ids))
    return {t: float(s / n) for t, s, n in zip(ids, total, count, strict=True) if n}
