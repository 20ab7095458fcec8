"""compare_judges: several judges against the same labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset

from whileai_hf import columns, defaults
from whileai_hf.errors import InputError
from whileai_hf.grade.labelled import classes, rewards_of
from whileai_hf.grade.shares import Check, Ints, at_least, jackknifed
from whileai_hf.grade.trust import JudgeTrust, judge_agreement


@dataclass(frozen=True, slots=True)
class JudgeComparison:
    """Judges held against the same labels; `print(result)` is the table to quote."""

    judges: tuple[JudgeTrust, ...]  #: the highest kappa first, those without one last
    better: tuple[
        Check, ...
    ]  #: how much more often the first one agrees with the labels than each other

    def __str__(self) -> str:
        lines = []
        for found in self.judges:
            both = found.agreement
            shown = (
                "nothing to compare"
                if both is None
                else f"kappa {both.kappa or 'not measurable'} | agreement {both.percent}"
            )
            n = 0 if both is None else both.n_rows
            lines.append(f"{found.judge}: {shown} ({n} rows): {found.verdict}")
        return "\n".join([*lines, *map(str, self.better)])

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        return {
            "judges": [j.to_dict() for j in self.judges],
            "better": [c.to_dict() for c in self.better],
        }


def compare_judges(
    dataset: Dataset, judges: Mapping[str, Any], *, gold: str = "gold_reward", threshold: float | None = None,
    confidence: float = defaults.CONFIDENCE,
) -> JudgeComparison:  # fmt: skip
    """Hold several judges against the same labels.

    Args:
        dataset: Rows with `task_id` and labels.
        judges: By name: a judge, or the name of a column that holds its rewards.
        gold: Column of the labels.
        threshold: Numbers at or above it are a pass.
        confidence: Coverage of the intervals.

    Returns:
        Each judge as `judge_agreement` finds it, by kappa; and for the first one how much more often it
        agrees than each other, paired by row, with its interval over tasks. "Unmeasured" is a difference
        that the labels do not show.

    Raises:
        InputError: Fewer than two judges.
    """
    if len(judges) < 2:
        raise InputError(
            f"compare_judges needs two or more judges; got {list(judges)!r}. Name each of them."
        )
    columns.check_columns(dataset, ["task_id", gold], "compare_judges")
    rewards = {
        name: columns.numbers(dataset, judge, "compare_judges")
        if isinstance(judge, str)
        else rewards_of(dataset, judge)
        for name, judge in judges.items()
    }
    theirs = classes(columns.numbers(dataset, gold, "compare_judges"), threshold)
    codes, _ = columns.task_codes(dataset, "compare_judges")
    found = {}
    for name, values in rewards.items():
        columns_of = {
            "task_id": pa.array(codes),
            "reward": pa.array(values, from_pandas=True),
            gold: pa.array(theirs, from_pandas=True),
        }
        trust = judge_agreement(
            Dataset(pa.table(columns_of)), gold=gold, threshold=threshold, confidence=confidence
        )
        found[name] = (
            trust,
            classes(values, threshold) == theirs,
            ~np.isnan(values) & ~np.isnan(theirs),
        )
    order = sorted(found, key=lambda name: -_kappa(found[name][0]))
    first = order[0]
    better = [_gain(first, name, found, codes, confidence) for name in order[1:]]
    named = tuple(_renamed(found[name][0], name) for name in order)
    return JudgeComparison(named, tuple(better))


def _gain(
    first: str, other: str, found: Mapping[str, Any], codes: Ints, confidence: float
) -> Check:
    """How much more often one judge agrees with the labels than another, on rows that both judged."""
    kept = found[first][2] & found[other][2]
    gain = found[first][1][kept].astype(np.float64) - found[other][1][kept]

    def mean(rows: Ints) -> float:
        return float(gain[rows].mean())

    estimate = jackknifed(mean, codes[kept], confidence) if kept.any() else None
    return at_least(f"{first} over {other}", estimate, int(kept.sum()), 0.0)


def _kappa(trust: JudgeTrust) -> float:
    kappa = trust.agreement.kappa if trust.agreement else None
    return -2.0 if kappa is None else kappa.value


def _renamed(trust: JudgeTrust, name: str) -> JudgeTrust:
    return JudgeTrust(name, *(getattr(trust, field) for field in JudgeTrust.__slots__[1:]))
