"""A judge beside people's labels, row by row: wrong passes, wrong fails, length bias, flips."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow.compute as pc
from datasets import Dataset

from whileai_hf import columns, defaults
from whileai_hf.grade.runner import grade
from whileai_hf.grade.shares import Check, Floats, Ints, Verdict, at_most, jackknifed, share, within


@dataclass(frozen=True, slots=True)
class Labelled:
    """The rows that a judge and a person both labelled, as classes."""

    mine: Ints  #: (rows,), 1 where the judge passes the row
    gold: Ints  #: (rows,), 1 where the person does
    tasks: Ints  #: (rows,)
    lengths: Floats  #: (rows,), words of the reply
    n_labelled: int  #: rows with a label, compared or not

    @property
    def skipped_share(self) -> float:
        """Share of the labelled rows that could not be compared."""
        return 1 - self.mine.size / self.n_labelled if self.n_labelled else 0.0


def read_labelled(dataset: Dataset, gold: str, reward: str, threshold: float | None) -> Labelled:
    """Read the rows that hold both a label and a reward; see `judge_agreement` for the columns."""
    mine, theirs = (columns.numbers(dataset, name, "judge_trust") for name in (reward, gold))
    codes, _ = columns.task_codes(dataset, "judge_trust")
    if "judge_status" in dataset.column_names and reward == "reward":
        status = columns.read(dataset, ["judge_status"], "judge_trust").column(0)
        ok = pc.fill_null(pc.equal(status, "ok"), True).to_numpy(zero_copy_only=False)
        mine = np.where(ok, mine, np.nan)
    lengths = np.zeros(len(mine))
    if "final_text" in dataset.column_names:
        texts = columns.read(dataset, ["final_text"], "judge_trust").column(0).to_pylist()
        lengths = np.array([len(text or "") for text in texts], dtype=np.float64)
    mine, theirs = classes(mine, threshold), classes(theirs, threshold)
    kept = ~np.isnan(mine) & ~np.isnan(theirs)
    labelled = int(np.sum(~np.isnan(theirs)))
    return Labelled(
        mine[kept].astype(np.int64),
        theirs[kept].astype(np.int64),
        codes[kept],
        lengths[kept],
        labelled,
    )


def classes(values: Floats, threshold: float | None) -> Floats:
    """Pass and fail as 1 and 0; what is neither is NaN."""
    if threshold is not None:
        return np.where(np.isnan(values), np.nan, (values >= threshold).astype(np.float64))
    return np.where(np.isin(values, (0.0, 1.0)), values, np.nan)


def leak(found: Labelled, confidence: float) -> Check:
    """How many of the rows that people failed the judge passes."""
    return _wrong("leak", found, 0, confidence)


def miss(found: Labelled, confidence: float) -> Check:
    """How many of the rows that people passed the judge fails."""
    return _wrong("miss", found, 1, confidence)


def _wrong(name: str, found: Labelled, label: int, confidence: float) -> Check:
    rows = found.gold == label
    n = int(rows.sum())
    wrong = share(found.mine[rows] != label, found.tasks[rows], confidence) if n else None
    return at_most(name, wrong, n, defaults.JUDGE_MAX_WRONG, "" if n else "no label of that class")


def length_bias(found: Labelled, confidence: float) -> Check:
    """Whether long replies pass more often than short ones of the same label."""
    long = np.zeros(found.mine.size, dtype=bool)
    for label in (0, 1):
        rows = found.gold == label
        if rows.any():
            long[rows] = found.lengths[rows] > np.median(found.lengths[rows])

    def difference(rows: Ints) -> float:
        gaps, weights = [], []
        for label in (0, 1):
            own = rows[found.gold[rows] == label]
            tall = long[own]
            if tall.any() and not tall.all():
                gaps.append(found.mine[own][tall].mean() - found.mine[own][~tall].mean())
                weights.append(own.size)
        return float(np.average(gaps, weights=weights)) if gaps else float("nan")

    n = int(found.mine.size)
    estimate = (
        jackknifed(difference, found.tasks, confidence)
        if n and not np.isnan(difference(np.arange(n)))
        else None
    )
    return within(
        "length bias",
        estimate,
        n,
        defaults.JUDGE_LENGTH_GAP,
        "" if estimate else "replies of one length",
    )


def flips(
    dataset: Dataset,
    judge: Any,
    reward: str,
    threshold: float | None,
    confidence: float,
    sample: int,
    seed: int,
) -> Check:
    """How often the judge says something else about the same row."""
    before = classes(columns.numbers(dataset, reward, "judge_trust"), threshold)
    judged = np.flatnonzero(~np.isnan(before))
    picked = np.sort(np.random.default_rng(seed).permutation(judged)[:sample])
    again = rewards_of(dataset.select(picked.tolist()), judge)
    after = classes(again, threshold)
    kept = ~np.isnan(after)
    if not kept.any():
        return Check(
            "flips", Verdict.UNMEASURED, None, 0, defaults.JUDGE_MAX_FLIPS, "it judged no row again"
        )
    codes, _ = columns.task_codes(dataset, "judge_trust")
    flipped = share((after != before[picked])[kept], codes[picked][kept], confidence)
    return at_most("flips", flipped, int(kept.sum()), defaults.JUDGE_MAX_FLIPS)


def rewards_of(dataset: Dataset, judge: Any) -> Floats:
    """Ask a judge about rows; what it does not judge is NaN."""
    with _no_warnings():
        graded = grade(dataset, judge, progress=False)
    return columns.numbers(graded, "reward", "judge")


@contextlib.contextmanager
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that edited rows look odd is the point of editing them
        yield
