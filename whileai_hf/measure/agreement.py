"""Agreement between raters: a judge against people, or people among themselves.

Labels of one task hang together, so intervals are over tasks. A table in which nobody ever
disagrees on the class, because there is only one, measures no agreement beyond chance: kappa and
alpha are then "not measurable", neither 0 nor 1.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import krippendorff
import numpy as np
from datasets import Dataset
from numpy.typing import NDArray

from whileai_hf import columns, defaults
from whileai_hf.errors import InputError
from whileai_hf.measure.interval import Interval, check_confidence, wilson_of
from whileai_hf.measure.pass_at import Estimate

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Distinct labels beyond which a column holds scores and no classes.
_MOST_CLASSES = 50


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far raters agree; `print(result)` is the line to quote."""

    raters: tuple[str, ...]
    classes: tuple[str, ...]
    percent: Estimate  #: share of rows (of pairs of raters, with more than two) that agree
    kappa: Estimate | None  #: Cohen's, for two raters; null where it is not measurable
    alpha: Estimate | None  #: Krippendorff's, nominal; null where it is not measurable
    confusion: tuple[tuple[int, ...], ...] | None  #: (classes, classes), rows are the last rater
    n_rows: int  #: rows with at least two labels
    n_tasks: int
    n_skipped: int  #: rows with fewer than two labels, or a label between two classes

    @property
    def degenerate(self) -> bool:
        """Whether every label is of one class, or every rater has one of his own."""
        return self.alpha is None or (len(self.raters) == 2 and self.kappa is None)

    @property
    def skipped_share(self) -> float:
        """Share of rows that were left out."""
        return self.n_skipped / max(1, self.n_rows + self.n_skipped)

    def __str__(self) -> str:
        shown = [f"agreement {self.percent}"]
        if len(self.raters) == 2:
            shown.append(f"kappa {self.kappa or 'not measurable: one class'}")
        shown.append(f"alpha {self.alpha or 'not measurable: one class'}")
        interval = self.percent.interval
        said = (
            f"{' | '.join(shown)} ({self.n_rows} rows of {self.n_tasks} tasks, "
            f"{' vs '.join(self.raters)})\n{interval.confidence:.0%} intervals over tasks, {interval.method}"
        )
        if self.n_skipped:
            said += f"; {self.n_skipped} rows without two labels left out"
        return said

    def _repr_html_(self) -> str:
        if self.confusion is None:
            return f"<pre>{html.escape(str(self))}</pre>"
        head = "".join(f"<th>{html.escape(c)}</th>" for c in self.classes)
        rows = "".join(
            f"<tr><th>{html.escape(c)}</th>{''.join(f'<td>{n}</td>' for n in counts)}</tr>"
            for c, counts in zip(self.classes, self.confusion, strict=True)
        )
        corner = html.escape(f"{self.raters[1]} \\ {self.raters[0]}")
        return f"<pre>{html.escape(str(self))}</pre><table><tr><th>{corner}</th>{head}</tr>{rows}</table>"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        out = {name: getattr(self, name) for name in self.__slots__}
        return {k: v.to_dict() if isinstance(v, Estimate) else v for k, v in out.items()}


def agreement(
    dataset: Dataset,
    raters: Sequence[str] = ("reward", "gold_reward"),
    *,
    threshold: float | None = None,
    confidence: float = defaults.CONFIDENCE,
) -> Agreement:
    """Measure how far raters agree on the same rows.

    Args:
        dataset: Rows with `task_id` and a column of labels for each rater: numbers, booleans, text,
            or null for no label.
        raters: Columns of labels, two or more; the last one is the gold of the confusion table.
        threshold: Numbers at or above it are a pass, the others are not. Without it a number between
            0 and 1 is no class, and its row is left out and counted.
        confidence: Coverage of the intervals.

    Returns:
        Percent agreement; for two raters Cohen's kappa (Cohen 1960, Educ. Psychol. Meas. 20:37-46);
        Krippendorff's nominal alpha (Krippendorff 2019, Content Analysis, chapter 12). Each interval
        is Wilson's on the scale of observed agreement at the effective sample size that the variance
        over tasks implies (for kappa and alpha a jackknife over tasks); chance agreement maps its
        ends back. The construction is ours.

    Raises:
        SchemaError: A column is missing.
        InputError: Fewer than two raters, or no row that two of them labelled.
    """
    check_confidence(confidence)
    if len(raters) < 2 or len(set(raters)) != len(raters):
        raise InputError(
            f"agreement needs two or more different raters; got {list(raters)!r}. "
            'Name their columns: raters=("reward", "gold_reward").'
        )
    table = columns.read(dataset, ["task_id", *raters], "agreement")
    labels, classes = _labels([table[name].to_pylist() for name in raters], raters, threshold)
    codes, _ = columns.as_codes(table["task_id"], "task_id", "agreement")
    kept = np.sum(labels >= 0, axis=0) >= 2
    if not kept.any():
        raise InputError(
            f"agreement needs rows that two raters labelled; none of {labels.shape[1]} is. "
            "Attach labels of 0 and 1: attach_labels(dataset, labels)."
        )
    labels = labels[:, kept]
    _, tasks = np.unique(codes[kept], return_inverse=True)
    pairs = _Coincidences(labels, len(classes), tasks)
    alpha = pairs.estimate(pairs.alpha_chance, confidence)
    if alpha is not None:
        exact = krippendorff.alpha(
            value_counts=_value_counts(labels, len(classes)), level_of_measurement="nominal"
        )
        alpha = Estimate(float(exact), alpha.interval, alpha.n_tasks)
    two = len(raters) == 2
    return Agreement(
        raters=tuple(raters), classes=classes,
        percent=pairs.percent(confidence),
        kappa=pairs.estimate(pairs.kappa_chance, confidence) if two else None,
        alpha=alpha,
        confusion=_confusion(labels, len(classes)) if two else None,
        n_rows=int(kept.sum()), n_tasks=pairs.n_tasks, n_skipped=int((~kept).sum()),
    )  # fmt: skip


class _Coincidences:
    """Sums over tasks from which every coefficient, and each leave-one-task-out copy, is read."""

    def __init__(self, labels: Ints, n_classes: int, tasks: Ints) -> None:
        self.n_tasks = int(tasks.max()) + 1
        self.n_rows = labels.shape[1]
        counts = _value_counts(labels, n_classes)  # (rows, classes)
        raters = counts.sum(axis=1)
        # A row of m labels holds m (m - 1) ordered pairs, each of weight 1 / (m - 1).
        agreed = (counts * (counts - 1)).sum(axis=1) / (raters - 1)
        self.agreed = self._by_task(agreed, tasks)
        self.weight = self._by_task(raters.astype(np.float64), tasks)
        self.totals = np.stack([self._by_task(c, tasks) for c in counts.T.astype(np.float64)], -1)
        self.rows = self._by_task(np.ones(self.n_rows), tasks)
        self.sides = np.stack(
            [
                np.stack([self._by_task(side == c, tasks) for c in range(n_classes)], -1)
                for side in labels[:2]
            ]
        )  # (2, tasks, classes)

    def _by_task(self, values: Any, tasks: Ints) -> Floats:
        sums = np.bincount(tasks, np.asarray(values, dtype=np.float64), self.n_tasks)
        return np.asarray(sums, dtype=np.float64)

    def _without_each(self, sums: Floats) -> Floats:
        """The sum over all tasks, then over all but each one: (1 + tasks, ...)."""
        total = sums.sum(axis=0, keepdims=True)
        return np.concatenate([total, total - sums])

    def observed(self) -> Floats:
        """Observed agreement, whole and without each task, (1 + tasks,)."""
        whole = self._without_each(self.weight)
        return self._without_each(self.agreed) / np.where(whole > 0, whole, np.nan)

    def alpha_chance(self) -> Floats:
        """Chance agreement of Krippendorff's alpha."""
        totals = self._without_each(self.totals)
        n = totals.sum(axis=-1)
        chance = (totals * (totals - 1)).sum(axis=-1) / np.where(n > 1, n * (n - 1), 1.0)
        return np.asarray(chance, dtype=np.float64)

    def kappa_chance(self) -> Floats:
        """Chance agreement of Cohen's kappa: the product of both raters' shares."""
        first, second = (self._without_each(side) for side in self.sides)
        n = self._without_each(self.rows)
        chance = (first * second).sum(axis=-1) / np.where(n > 0, n, 1.0) ** 2
        return np.asarray(chance, dtype=np.float64)

    def percent(self, confidence: float) -> Estimate:
        """Observed agreement with its interval."""
        observed = self.observed()
        return self._on_agreement(observed[0], _jackknife(observed), observed[0], 0.0, confidence)

    def estimate(self, chance_of: Any, confidence: float) -> Estimate | None:
        """A chance-corrected coefficient with its interval, or null where chance explains all."""
        observed, chance = self.observed(), chance_of()
        if chance[0] > 1 - 1e-9:
            return None
        corrected = (observed - chance) / np.where(chance < 1 - 1e-9, 1 - chance, np.nan)
        # A task without which only one class is left says nothing of the coefficient's variance.
        variance = _jackknife(corrected) * (1 - chance[0]) ** 2
        return self._on_agreement(corrected[0], variance, observed[0], float(chance[0]), confidence)

    def _on_agreement(
        self, value: float, variance: float, agreed: float, chance: float, confidence: float
    ) -> Estimate:
        if self.n_tasks < 2:
            low, high = 0.0, 1.0
        else:
            ends = wilson_of(agreed, variance, self.n_tasks, self.n_rows, confidence)
            low, high = (float(end) for end in ends)
        low, high = ((end - chance) / (1 - chance) for end in (low, high))
        interval = Interval(max(low, -1.0), min(high, 1.0), confidence, "wilson")
        return Estimate(float(value), interval, self.n_tasks)


def _jackknife(values: Floats) -> float:
    """Variance of a statistic from its value without each task (Efron and Tibshirani 1993, eq. 11.5)."""
    left = values[1:][~np.isnan(values[1:])]
    if left.size < 2:
        return 0.0
    return float((left.size - 1) / left.size * ((left - left.mean()) ** 2).sum())


def _labels(
    given: Sequence[list[Any]], raters: Sequence[str], threshold: float | None
) -> tuple[Ints, tuple[str, ...]]:
    """Number the classes: (raters, rows) with -1 for no label, and the names of the classes."""
    read = [[_label(value, threshold) for value in side] for side in given]
    names = sorted({label for side in read for label in side if label is not None})
    if len(names) > _MOST_CLASSES:
        raise InputError(
            f"agreement compares classes; the columns {', '.join(raters)} hold {len(names)} different "
            "labels. Name a threshold, or bin the scores."
        )
    index = {name: i for i, name in enumerate(names)}
    rows = [[-1 if label is None else index[label] for label in side] for side in read]
    return np.array(rows, dtype=np.int64), tuple(names)


def _label(value: Any, threshold: float | None) -> str | None:
    if value is None or isinstance(value, str):
        return value
    number = float(value)
    if math.isnan(number):
        return None
    if threshold is not None:
        return "pass" if number >= threshold else "fail"
    return f"{number:g}" if number.is_integer() else None


def _value_counts(labels: Ints, n_classes: int) -> Ints:
    """How many raters gave each class to each row, (rows, classes)."""
    counts = [(labels == c).sum(axis=0, dtype=np.int64) for c in range(n_classes)]
    return np.stack(counts, axis=-1)


def _confusion(labels: Ints, n_classes: int) -> tuple[tuple[int, ...], ...]:
    """Counts by (second rater, first rater)."""
    both = np.bincount(labels[1] * n_classes + labels[0], minlength=n_classes**2)
    return tuple(tuple(int(n) for n in row) for row in both.reshape(n_classes, n_classes))
