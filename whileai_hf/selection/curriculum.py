"""Which tasks to train on next, by what the policy does on them now.

Each function reads the pass rate of a task over all its judged rollouts, with its interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from datasets import Dataset, Value
from numpy.typing import NDArray

from whileai_hf import columns, defaults
from whileai_hf.errors import InputError
from whileai_hf.measure.interval import Interval, mean_interval
from whileai_hf.rollouts import Rollouts
from whileai_hf.selection.gates import Band
from whileai_hf.selection.group_stats import (  # fmt: skip
    TOLERANCE,
    ensure_group_stats,
    group_stats,
    with_group_stats,
)


@dataclass(frozen=True, slots=True)
class GroupSignal:
    """How many tasks carry a gradient; `print(signal)` is the line to quote."""

    n_tasks: int
    all_pass: int  #: tasks whose attempts all earned 1
    all_fail: int  #: tasks whose attempts all earned 0
    all_equal: int  #: tasks whose attempts all earned the same, between 0 and 1
    mixed: int  #: tasks whose attempts earned different rewards
    single: int  #: tasks with one judged attempt, which can have no spread
    unjudged: int  #: tasks without a reward
    share_mixed: float | None  #: of tasks with two judged attempts or more; null without any
    interval: Interval | None  #: of `share_mixed`, over tasks

    def __str__(self) -> str:
        unanimous = self.all_pass + self.all_fail + self.all_equal
        said = f"{unanimous} groups unanimous, {self.mixed or 'none'} mixed"
        said += f" ({self.all_pass} all pass, {self.all_fail} all fail, {self.all_equal} all the same in part)"
        if self.single or self.unjudged:
            said += f"; {self.single} with one judged attempt, {self.unjudged} unjudged"
        if self.share_mixed is None or self.interval is None:
            return said + "; share with a gradient not measured"
        return said + f"; share with a gradient {self.share_mixed:.2f} {self.interval} ({self.interval.confidence:.0%} interval over {unanimous + self.mixed} tasks, {self.interval.method})"  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Return the counts, for a log."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "interval"}


def group_signal(dataset: Dataset) -> GroupSignal:
    """Count the tasks whose attempts differ in reward: the only ones that GRPO learns from.

    Args:
        dataset: Rollouts with `task_id` and `reward`.

    Raises:
        SchemaError: A column is missing.

    References:
        GRPO, arXiv:2402.03300, section 4.1.1; DAPO, arXiv:2503.14476, equation 11.
    """
    columns.check_dataset(dataset, "group_signal")
    stats = group_stats(dataset, "group_signal")
    several = stats.attempts >= 2
    mixed = several & (np.nan_to_num(stats.spread) > TOLERANCE)
    same = several & ~mixed
    rate = stats.rate
    full, none = same & (rate > 1 - TOLERANCE), same & (rate < TOLERANCE)
    share, interval = None, None
    if several.any():
        share = float(mixed[several].mean())
        interval = mean_interval(mixed[several].astype(float))
    return GroupSignal(
        len(stats.task_ids), int(full.sum()), int(none.sum()), int((same & ~full & ~none).sum()), int(mixed.sum()),
        int((stats.attempts == 1).sum()), int((stats.attempts == 0).sum()), share, interval,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class CurriculumReport:
    """Where the tasks went; `print(report)` is what to read."""

    tiers: tuple[int, ...]  #: tasks of each tier, easiest first
    solved: int
    not_ready: int
    unmeasured: int  #: tasks with too few judged attempts to place

    def __str__(self) -> str:
        said = ", ".join(f"tier {i} {n}" for i, n in enumerate(self.tiers, 1))
        return (
            f"curriculum, tasks: {said}; left out: solved {self.solved}, not ready {self.not_ready}, "
            f"unmeasured {self.unmeasured}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the counts, for a log."""
        return {name: getattr(self, name) for name in self.__slots__}


def curriculum(
    dataset: Dataset,
    *,
    solved: float = defaults.DIFFICULTY_BAND[1],
    floor: float = defaults.DIFFICULTY_BAND[0],
    tiers: int = 3,
    min_attempts: int = 2,
) -> Rollouts:
    """Order the tasks from easy to hard, in tiers of about equal size, as the column `tier`.

    Args:
        dataset: Graded rollouts.
        solved: Pass rate above which a task is left out as solved.
        floor: Pass rate below which a task is left out as not ready.
        tiers: Number of tiers, tier 1 being the easiest.
        min_attempts: Judged attempts below which a task is not placed.

    Returns:
        The rows of the placed tasks, easiest task first, with `tier` and the facts of
        `with_group_stats`; `.report` counts the others.

    Raises:
        InputError: An option is out of range.
        SchemaError: A column is missing.
    """
    Band(1, floor, solved)  # checks the two
    for name, value in (("tiers", tiers), ("min_attempts", min_attempts)):
        _at_least_one(name, value)
    stated = ensure_group_stats(dataset, "curriculum")
    codes, ids = columns.task_codes(stated, "curriculum")
    rate, attempts = _of_tasks(stated, codes)
    known = attempts >= min_attempts
    placed = np.flatnonzero(known & (rate <= solved + TOLERANCE) & (rate >= floor - TOLERANCE))
    order = placed[np.lexsort((placed, -rate[placed]))]
    tier = np.zeros(len(ids), dtype=np.int64)
    for i, part in enumerate(np.array_split(order, tiers), 1):
        tier[part] = i
    place = np.zeros(len(ids), dtype=np.int64)
    place[order] = np.arange(len(order))
    rows = np.flatnonzero(tier[codes] > 0)
    rows = rows[np.argsort(place[codes[rows]], kind="stable")]
    marked = columns.with_columns(stated, {"tier": (tier[codes], Value("int64"))})
    report = CurriculumReport(
        tuple(int((tier == i).sum()) for i in range(1, tiers + 1)),
        int((known & (rate > solved + TOLERANCE)).sum()), int((known & (rate < floor - TOLERANCE)).sum()),
        int((~known).sum()),
    )  # fmt: skip
    return Rollouts.of(Dataset.select(marked, rows), report)


def retire_solved(
    dataset: Dataset,
    *,
    solved: float = defaults.DIFFICULTY_BAND[1],
    sure: bool = False,
    min_attempts: int = 2,
) -> Rollouts:
    """Leave out the rows of tasks that the policy solves; tasks with few attempts stay.

    Args:
        dataset: Graded rollouts.
        solved: Pass rate above which a task is solved.
        sure: Whether the whole interval of the pass rate must lie above.
        min_attempts: Judged attempts below which a task stays.

    Raises:
        InputError: An option is out of range.
        SchemaError: A column is missing.
    """
    Band(1, 0.0, solved)
    _at_least_one("min_attempts", min_attempts)
    stated = ensure_group_stats(dataset, "retire_solved")
    rate = columns.numbers(stated, "pass_rate_low" if sure else "pass_rate", "retire_solved")
    attempts = columns.numbers(stated, "attempts", "retire_solved")
    out = (attempts >= min_attempts) & (np.nan_to_num(rate) > solved + TOLERANCE)
    return Rollouts.of(Dataset.select(dataset, np.flatnonzero(~out)))


def next_round(
    tasks: Dataset,
    last: Dataset,
    *,
    band: tuple[float, float] = defaults.DIFFICULTY_BAND,
    sure: bool = False,
    unseen: bool = True,
) -> Rollouts:
    """Pick the tasks for the next round of online sampling by what the last one measured.

    Args:
        tasks: One row a task, or rollouts, with `task_id`.
        last: Graded rollouts of the last round.
        band: Pass rates in the last round that a task may have.
        sure: Whether the interval of a pass rate must lie outside the band before a task is dropped.
        unseen: Whether tasks that the last round did not measure stay.

    Returns:
        The rows of `tasks` whose task lies in the band.

    Raises:
        InputError: The band is no band, or the two have no task in common.
        SchemaError: A column is missing.
    """
    gate = Band(1, *band, sure=sure)
    codes, ids = columns.task_codes(tasks, "next_round")
    stated = with_group_stats(last)
    names = ("task_id", "attempts", "pass_rate", "pass_rate_low", "pass_rate_high")
    measured = {r["task_id"]: r for r in stated.select_columns(names) if r["attempts"]}
    if ids and not any(i in measured for i in ids):
        raise InputError(
            f"next_round needs tasks that the last round measured; none of {len(ids)} tasks is among "
            f"its {len(measured)}, first {ids[0]!r}. Check that both use the same task_id."
        )
    keep = np.array([gate(measured[i]) if i in measured else unseen for i in ids], dtype=bool)
    return Rollouts.of(Dataset.select(tasks, np.flatnonzero(keep[codes] if ids else [])))


def _of_tasks(
    stated: Dataset, codes: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return pass rate and attempts of each task, shape (tasks,)."""
    first = np.unique(codes, return_index=True)[1]
    rate, attempts = (columns.numbers(stated, n, "curriculum")[first] for n in ("pass_rate", "attempts"))  # fmt: skip
    return np.nan_to_num(rate, nan=-1.0), np.nan_to_num(attempts)


def _at_least_one(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InputError(f"{name} must be a whole number of at least 1; got {value!r}. Use 2.")
