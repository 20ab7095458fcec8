"""Facts about a task as columns on each of its rows: attempts, passes, pass rate, spread.

Every gate on difficulty reads these columns, so the rate it judges is the policy's own: measured on
all judged rollouts, before any row is dropped as a duplicate, truncated or junk.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from datasets import Dataset, Value
from numpy.typing import NDArray
from scipy.special import ndtri

from whileai_hf import columns
from whileai_hf.defaults import CONFIDENCE
from whileai_hf.errors import InputError

#: The columns that `with_group_stats` adds, and their types.
STATS = {
    "attempts": Value("int64"),
    "passes": Value("float64"),
    "pass_rate": Value("float64"),
    "pass_rate_low": Value("float64"),
    "pass_rate_high": Value("float64"),
    "reward_spread": Value("float64"),
}

#: How far two rewards may lie apart and still be the same number (convention: float rounding).
TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class GroupStats:
    """Facts of each task, arrays of shape (tasks,)."""

    task_ids: list[str]  #: in the order in which they first appear
    codes: NDArray[np.int64]  #: the task of each row, shape (rows,)
    attempts: NDArray[np.int64]  #: rollouts with a reward
    passes: NDArray[np.float64]  #: sum of the rewards
    spread: NDArray[np.float64]  #: largest minus smallest reward, NaN without a reward

    @property
    def rate(self) -> NDArray[np.float64]:
        """Mean reward, NaN where no attempt has a reward."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.passes / self.attempts, dtype=np.float64)


def group_stats(dataset: Dataset, step: str) -> GroupStats:
    """Measure each task of a dataset that has `task_id` and `reward`."""
    rewards = columns.numbers(dataset, "reward", step)
    codes, ids = columns.task_codes(dataset, step)
    judged = np.flatnonzero(~np.isnan(rewards))
    code, reward = codes[judged], rewards[judged]
    low, high = np.full(len(ids), np.inf), np.full(len(ids), -np.inf)
    np.minimum.at(low, code, reward)
    np.maximum.at(high, code, reward)
    attempts = np.bincount(code, minlength=len(ids))
    passes = np.bincount(code, weights=reward, minlength=len(ids)).astype(np.float64)
    spread = np.full(len(ids), np.nan)
    np.subtract(high, low, out=spread, where=attempts > 0)
    return GroupStats(ids, codes, attempts, passes, spread)


def with_group_stats(dataset: Dataset, *, confidence: float = CONFIDENCE) -> Dataset:
    """Add what is known of each row's task: attempts, passes, pass rate with interval, spread.

    The columns are `attempts` (rollouts with a reward), `passes` (sum of the rewards, so that
    partial credit counts in part), `pass_rate` (passes by attempts), `pass_rate_low` and
    `pass_rate_high` (Wilson's score interval, conservative for partial credit, whose variance is
    smaller) and `reward_spread` (largest minus smallest reward). They are null on a task without a
    reward. Nothing else of the dataset is read or copied.

    Args:
        dataset: Rollouts with `task_id` and `reward`, a reward lying in [0, 1].
        confidence: Coverage of the interval, in (0, 1).

    Raises:
        SchemaError: A column is missing.
        InputError: `confidence` or a reward lies outside its range.

    References:
        Wilson 1927, JASA 22(158); attempts at one task are independent draws of one rate.
    """
    step = "with_group_stats"
    columns.check_dataset(dataset, step)
    if not 0.0 < confidence < 1.0:
        raise InputError(f"confidence must lie in (0, 1); got {confidence!r}. Try 0.95.")
    stats = group_stats(dataset, step)
    rate = stats.rate
    if np.any((rate < 0) | (rate > 1)):
        bad = int(np.flatnonzero((rate < 0) | (rate > 1))[0])
        raise InputError(
            f"a pass rate needs rewards in [0, 1]; task {stats.task_ids[bad]!r} has a mean of "
            f"{rate[bad]:.3g}. Scale the rewards first: grade(..., scale=(low, high))."
        )
    low, high = wilson(rate, stats.attempts, confidence)
    per_task = (stats.attempts, stats.passes, rate, low, high, stats.spread)
    new = {
        name: (np.asarray(values)[stats.codes], kind)
        for (name, kind), values in zip(STATS.items(), per_task, strict=True)
    }
    return columns.with_columns(dataset, new)


def ensure_group_stats(dataset: Dataset, step: str) -> Dataset:
    """Return the dataset with group facts: its own where it has them, measured where it has none.

    Facts that were measured before rows were dropped stay right afterwards. Facts that the rewards
    contradict, because the rows were graded again, are refused.
    """
    if any(name not in dataset.column_names for name in STATS):
        return with_group_stats(dataset)
    now = group_stats(dataset, step)
    first = np.unique(now.codes, return_index=True)[1]
    stamped = {name: columns.numbers(dataset, name, step)[first] for name in ("attempts", "passes")}
    attempts, passes = np.nan_to_num(stamped["attempts"]), np.nan_to_num(stamped["passes"])
    failed_now, failed = now.attempts - now.passes, attempts - passes
    wrong = (now.attempts > attempts) | (now.passes > passes + TOLERANCE)
    wrong |= failed_now > failed + TOLERANCE
    if wrong.any():
        bad = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"{step} needs attempts and passes that fit the rewards; task {now.task_ids[bad]!r} "
            f"states {passes[bad]:g} of {attempts[bad]:g} passed, and its rows hold "
            f"{now.passes[bad]:g} of {now.attempts[bad]}. Run with_group_stats(dataset) again."
        )
    return dataset


def wilson(
    rate: NDArray[np.float64], n: NDArray[np.int64], confidence: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Wilson's score interval of each rate; NaN where `n` is 0."""
    z2 = float(ndtri(0.5 + confidence / 2)) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        centre = (rate + z2 / (2 * n)) / (1 + z2 / n)
        half = np.sqrt(z2 * (rate * (1 - rate) / n + z2 / (4 * n * n))) / (1 + z2 / n)
    return np.clip(centre - half, 0.0, 1.0), np.clip(centre + half, 0.0, 1.0)
