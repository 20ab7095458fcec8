"""pass@1, pass^k, pass@k and headroom of graded rollouts, each with its interval over tasks.

* pass@1: how often one try does the job.
* pass^k: how often all of k tries do; reliability (tau-bench, arXiv:2406.12045, section 3).
* pass@k: how often at least one of k does (Chen et al. 2021, arXiv:2107.03374, equation 1).
* headroom: pass@k minus pass@1, what an RL update could close.

Every task weighs the same, whatever its number of attempts, and intervals are over tasks.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import pyarrow as pa
from datasets import Dataset, IterableDataset
from numpy.typing import NDArray

from whileai_hf import columns, defaults, schema
from whileai_hf.errors import InputError, SchemaError
from whileai_hf.measure.interval import Interval, check_confidence, mean_interval

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over tasks with its interval."""

    value: float  #: in [0, 1]
    interval: Interval
    n_tasks: int

    def __str__(self) -> str:
        return f"{self.value:.2f} {self.interval}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        return {"value": self.value, "n_tasks": self.n_tasks, **self.interval.to_dict()}


@dataclass(frozen=True, slots=True)
class PassAt:
    """What graded rollouts say about an agent; `print(result)` is the line to quote."""

    k: int  #: tries of pass^k and pass@k
    pass_at_1: Estimate | None  #: null where partial credit has no threshold
    pass_hat_k: Estimate | None  #: null where no task has k judged attempts, or k is 1
    pass_at_k: Estimate | None
    headroom: Estimate | None
    mean_reward: Estimate | None  #: null where rewards leave [0, 1]
    n_tasks: int  #: tasks with a judged attempt
    n_rollouts: int  #: rows, judged or not
    n_unjudged: int  #: rows without a reward
    n_unjudged_tasks: int  #: tasks without any judged attempt
    n_partial: int  #: rewards strictly between 0 and 1
    n_short: int  #: tasks with fewer than k judged attempts, left out of pass^k and pass@k
    threshold: float | None  #: a reward at or above it is a pass; null means 1 is a pass
    attempts: tuple[int, int]  #: fewest and most judged attempts of a task

    def __str__(self) -> str:
        return f"{self._line()}\n{self._note()}"

    def _line(self) -> str:
        if self.n_tasks == 0:
            return f"not measured: none of {self.n_rollouts} rollouts is judged"
        parts = []
        if self.pass_at_1 is not None:
            parts.append(f"pass@1 {self.pass_at_1}")
        else:
            parts.append(f"mean reward {self.mean_reward}")
        if self.pass_hat_k is not None and self.pass_at_k is not None:
            parts += [f"pass^{self.k} {self.pass_hat_k}", f"pass@{self.k} {self.pass_at_k}"]
        if self.headroom is not None:
            parts.append(f"headroom {self.headroom.value:.2f}")
        return f"{' | '.join(parts)} ({self.n_tasks} task{'s' * (self.n_tasks != 1)}, k={self.k})"

    def _note(self) -> str:
        shown = self.pass_at_1 or self.mean_reward
        said = []
        if shown is not None:
            interval = shown.interval
            said.append(f"{interval.confidence:.0%} intervals over tasks, {interval.method}")
        if self.n_unjudged:
            said.append(f"{self.n_unjudged} of {self.n_rollouts} rollouts unjudged and left out")
        if self.attempts[0] != self.attempts[1]:
            said.append(f"tasks have {self.attempts[0]} to {self.attempts[1]} judged attempts")
        if self.n_unjudged_tasks:
            said.append(f"{self.n_unjudged_tasks} tasks have no judged rollout")
        if self.n_short:
            said.append(
                f"{self.n_short} tasks have fewer than {self.k} judged attempts, so pass^{self.k} and pass@{self.k} leave them out"
            )
        if self.n_partial and self.threshold is None:
            said.append(
                f"{self.n_partial} rewards are partial credit: name a threshold for pass rates"
            )
        elif self.threshold is not None:
            said.append(f"a reward of at least {self.threshold:g} is a pass")
        if self.n_tasks == 1:
            said.append("one task says nothing about others")
        return "; ".join(said)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{name}</td><td>{e.value:.3f}</td><td>{html.escape(str(e.interval))}</td>"
            f"<td>{e.n_tasks}</td></tr>"
            for name, e in self._named().items()
            if e is not None
        )
        return (
            "<table><tr><th></th><th>value</th><th>interval</th><th>tasks</th></tr>"
            f"{rows}</table><p>{html.escape(self._note())}</p>"
        )

    def _named(self) -> dict[str, Estimate | None]:
        return {
            "pass@1": self.pass_at_1, f"pass^{self.k}": self.pass_hat_k,
            f"pass@{self.k}": self.pass_at_k, "headroom": self.headroom,
            "mean reward": self.mean_reward,
        }  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        out = {name: getattr(self, name) for name in self.__slots__}
        return {k: v.to_dict() if isinstance(v, Estimate) else v for k, v in out.items()}


@dataclass(frozen=True, slots=True)
class PassAtTable:
    """`PassAt` by slice, the weakest first; `print(table)` shows where the agent fails."""

    by: str
    slices: dict[str, PassAt]

    def __str__(self) -> str:
        width = max(map(len, self.slices), default=0)
        return "\n".join(f"{name:<{width}}  {value._line()}" for name, value in self.slices.items())

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{html.escape(value._line())}</td></tr>"
            for name, value in self.slices.items()
        )
        return f"<table><tr><th>{html.escape(self.by)}</th><th></th></tr>{rows}</table>"

    def __getitem__(self, name: str) -> PassAt:
        return self.slices[name]

    def to_dict(self) -> dict[str, Any]:
        """Return the slices, for a log."""
        return {name: value.to_dict() for name, value in self.slices.items()}


@overload
def pass_at(
    dataset: Dataset | IterableDataset, *, by: None = None, k: int | None = None,
    threshold: float | None = None, confidence: float = ..., method: str = ..., draws: int = ...,
    seed: int = ...,
) -> PassAt: ...  # fmt: skip


@overload
def pass_at(
    dataset: Dataset | IterableDataset, *, by: str, k: int | None = None,
    threshold: float | None = None, confidence: float = ..., method: str = ..., draws: int = ...,
    seed: int = ...,
) -> PassAtTable: ...  # fmt: skip


def pass_at(
    dataset: Dataset | IterableDataset,
    *,
    k: int | None = None,
    by: str | None = None,
    threshold: float | None = None,
    confidence: float = defaults.CONFIDENCE,
    method: str = "wilson",
    draws: int = defaults.BOOTSTRAP_DRAWS,
    seed: int = 0,
) -> PassAt | PassAtTable:
    """Measure graded rollouts.

    Args:
        dataset: Rows with `task_id` and `reward` (number, boolean, or null for unjudged).
        k: Tries of pass^k and pass@k; null takes the number of judged attempts that most tasks have.
        by: A column, or a path into a JSON column such as `"situation.tool"`, to measure by slice.
        threshold: A reward at or above it is a pass. Needed where rewards are partial credit.
        confidence: Coverage of the intervals.
        method: Interval over tasks, see `whileai_hf.measure.interval.mean_interval`.
        draws: Resamples of a bootstrap.
        seed: Seed of a bootstrap.

    Returns:
        A `PassAt`, or with `by` a `PassAtTable`.

    Raises:
        SchemaError: A column is missing or is no number.
        InputError: `k` is no positive integer, or rewards leave [0, 1] and no threshold is named.
    """
    if k is not None and (isinstance(k, bool) or not isinstance(k, int) or k < 1):
        raise InputError(f"k must be a whole number of at least 1; got {k!r}. Use k=4.")
    check_confidence(confidence)
    options = {"confidence": confidence, "method": method, "draws": draws, "seed": seed}
    extra = [by.split(".")[0]] if by else []
    table = columns.read(dataset, list(dict.fromkeys(["task_id", "reward", *extra])), "pass_at")
    reward = columns.as_numbers(table["reward"], "reward", "pass_at")
    codes, ids = columns.as_codes(table["task_id"], "task_id", "pass_at")
    if by is None:
        return _measure(codes, len(ids), reward, k, threshold, options)
    names = _slices(table[extra[0]], by)
    found: dict[str, PassAt] = {}
    for name in sorted(set(names)):
        chosen = np.array([n == name for n in names])
        local, inverse = np.unique(codes[chosen], return_inverse=True)
        found[name] = _measure(inverse, local.size, reward[chosen], k, threshold, options)
    weakest = sorted(found, key=lambda name: (_rate(found[name]), name))
    return PassAtTable(by, {name: found[name] for name in weakest})


def _rate(result: PassAt) -> float:
    shown = result.pass_at_1 or result.mean_reward
    return 2.0 if shown is None else shown.value


def _slices(column: pa.ChunkedArray, by: str) -> list[str]:
    path = by.split(".")[1:]
    values = column.to_pylist()
    out = []
    for value in values:
        found = schema.restore(schema._object(value)) if path else value
        for key in path:
            found = found.get(key) if isinstance(found, Mapping) else None
        out.append("none" if found is None else str(found))
    if path and values and all(name == "none" for name in out):
        raise SchemaError(
            f"by must name a value that some row has; no row has {by!r}. "
            "Look at dataset[0] for the names that there are."
        )
    return out


def _measure(
    codes: Ints,
    n_ids: int,
    reward: Floats,
    k: int | None,
    threshold: float | None,
    options: Mapping[str, Any],
) -> PassAt:
    judged = ~np.isnan(reward)
    r, c = reward[judged], codes[judged]
    attempts = np.bincount(c, minlength=n_ids)
    kept = attempts > 0
    n = attempts[kept].astype(np.float64)
    inside = bool(np.all((r >= 0) & (r <= 1)))
    if not inside and threshold is None:
        raise InputError(
            f"rewards must lie in [0, 1] for pass rates; got {float(r[(r < 0) | (r > 1)][0])!r}. "
            "Name a threshold: pass_at(dataset, threshold=…)."
        )
    n_partial = int(np.sum((r > 0) & (r < 1)))
    if k is None:
        k = _common(attempts[kept])
    mean = _estimate(np.bincount(c, r, n_ids)[kept] / n, n, options) if inside and n.size else None
    ones = None
    hat = at = head = None
    if n.size and (n_partial == 0 or threshold is not None):
        passed = r >= (1.0 if threshold is None else threshold)
        wins = np.bincount(c, passed.astype(np.float64), n_ids)[kept].astype(np.float64)
        ones = _estimate(wins / n, n, options)
        enough = n >= k
        if k > 1 and enough.any():
            hat, at, head = _of_k(n[enough], wins[enough], k, options)
    return PassAt(
        k=k, pass_at_1=ones, pass_hat_k=hat, pass_at_k=at, headroom=head, mean_reward=mean,
        n_tasks=int(kept.sum()), n_rollouts=reward.size, n_unjudged=int((~judged).sum()),
        n_unjudged_tasks=int((~kept).sum()), n_partial=n_partial,
        n_short=int(np.sum(n < k)) if k > 1 else 0, threshold=threshold,
        attempts=(int(n.min()), int(n.max())) if n.size else (0, 0),
    )  # fmt: skip


def _common(attempts: Ints) -> int:
    """Return the number of attempts that most tasks have; the smaller one of two."""
    return int(np.bincount(attempts).argmax()) if attempts.size else 1


def _of_k(
    n: Floats, wins: Floats, k: int, options: Mapping[str, Any]
) -> tuple[Estimate, Estimate, Estimate]:
    all_pass, none_pass = np.ones_like(n), np.ones_like(n)
    for i in range(k):  # C(c, k) / C(n, k) and C(n - c, k) / C(n, k), without large numbers
        all_pass *= np.maximum(wins - i, 0) / (n - i)
        none_pass *= np.maximum(n - wins - i, 0) / (n - i)
    some_pass = 1 - none_pass
    # An estimate at k uses k attempts at once: n // k independent ones are behind a task's value.
    independent = np.maximum(n // k, 1)
    gap = np.clip(some_pass - wins / n, 0, 1)
    return (
        _estimate(all_pass, independent, options),
        _estimate(some_pass, independent, options),
        _estimate(gap, independent, options),
    )


def _estimate(values: Floats, attempts: Floats, options: Mapping[str, Any]) -> Estimate:
    values = np.clip(values, 0.0, 1.0)
    interval = mean_interval(values, attempts, **options)
    return Estimate(float(values.mean()), interval, int(values.size))
