"""What preference data holds beside preference: how far length alone would get."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from whileai_hf import defaults
from whileai_hf.measure.interval import Interval, mean_interval

#: Pairs from which a share of longer replies can be called a bias, and from which only all of them can.
_MANY, _FEW = 8, 3


@dataclass(frozen=True, slots=True)
class PairReport:
    """What pairs were made, and how far length explains them; `print(report)` is what to read."""

    n_in: int
    n_prompts: int
    n_pairs: int
    n_tasks: int
    without: dict[str, int]  #: prompts that gave no pair, by reason
    left_out: dict[str, int]  #: rows that could not be compared, by reason
    n_first_turn_identical: int  #: pairs whose replies share their first turn, exported as prompt
    chosen_longer: (
        float | None
    )  #: share of pairs with the longer reply chosen, ties half; null without pairs
    interval: Interval | None  #: of `chosen_longer`, over tasks
    length_ratio: float | None  #: median of the chosen by the rejected length
    warnings: tuple[str, ...]

    @property
    def length_baseline(self) -> float | None:
        """Share of pairs that a rule which reads length alone gets right, in its better direction."""
        return None if self.chosen_longer is None else max(self.chosen_longer, 1 - self.chosen_longer)  # fmt: skip

    def __str__(self) -> str:
        lines = [f"{self.n_pairs} pairs of {self.n_tasks} tasks, out of {self.n_in} rollouts of {self.n_prompts} prompts"]  # fmt: skip
        lines += [f"  {n} prompts without a pair: {why}" for why, n in self.without.items()]
        lines += [f"  {n} rollouts left out: {why}" for why, n in self.left_out.items()]
        if self.n_first_turn_identical:
            lines.append(f"  {self.n_first_turn_identical} pairs share their first turn, which is prompt")  # fmt: skip
        if self.chosen_longer is None:
            lines.append("  length: not measured, no pair")
        else:
            lines.append(
                f"  length: the chosen reply is the longer one in {self.chosen_longer:.2f} {self.interval} of "
                f"{self.n_pairs} pairs, {self.length_ratio:.2f} times as long (median); length alone gets "
                f"{self.length_baseline:.2f} right ({_said(self.interval)})"
            )
        return "\n".join([*lines, *(f"  warning: {w}" for w in self.warnings)])

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, for a log."""
        return {
            "n_in": self.n_in, "n_prompts": self.n_prompts, "n_pairs": self.n_pairs, "n_tasks": self.n_tasks,
            "without": dict(self.without), "left_out": dict(self.left_out), "chosen_longer": self.chosen_longer,
            "length_baseline": self.length_baseline, "length_ratio": self.length_ratio, "warnings": list(self.warnings),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class UnpairedReport:
    """How many replies carry each label; `print(report)` is what to read."""

    n_in: int
    n_desirable: int
    n_undesirable: int
    left_out: dict[str, int]  #: rows that carry no label, by reason

    @property
    def weights(self) -> tuple[float, float] | None:
        """Weights `(desirable, undesirable)` that balance the labels; null where one is missing.

        KTO, arXiv:2402.01306, section 4.2: the products of weight and count should be alike; here
        the rarer label is raised.
        """
        good, bad = self.n_desirable, self.n_undesirable
        if not good or not bad:
            return None
        return (max(1.0, bad / good), max(1.0, good / bad))

    def __str__(self) -> str:
        said = f"{self.n_desirable} desirable and {self.n_undesirable} undesirable replies of {self.n_in} rollouts"
        said += "".join(f"\n  {n} left out: {why}" for why, n in self.left_out.items())
        if self.weights is None:
            return said + "\n  weights: none, KTO needs both labels"
        return said + f"\n  KTOConfig(desirable_weight={self.weights[0]:.3g}, undesirable_weight={self.weights[1]:.3g}) balances them"  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, for a log."""
        return {
            "n_in": self.n_in, "n_desirable": self.n_desirable, "n_undesirable": self.n_undesirable,
            "left_out": dict(self.left_out), "weights": self.weights,
        }  # fmt: skip


def pair_report(
    n_in: int,
    n_prompts: int,
    lengths: Sequence[tuple[str, int, int]],
    pairs: Sequence[Mapping[str, Any]],
    without: Counter[str],
    left_out: Counter[str],
) -> PairReport:
    """Measure pairs.

    Args:
        n_in: Rows that were given.
        n_prompts: Prompts among them.
        lengths: Task, chosen and rejected length of each pair.
        pairs: The pairs.
        without: Prompts without a pair, by reason.
        left_out: Rows that could not be compared, by reason.
    """
    longer, interval, ratio = None, None, None
    by_task: dict[str, list[float]] = {}
    for task, a, b in lengths:
        by_task.setdefault(task, []).append(0.5 if a == b else float(a > b))
    if lengths:
        longer = float(np.mean([x for values in by_task.values() for x in values]))
        interval = mean_interval([float(np.mean(v)) for v in by_task.values()], [len(v) for v in by_task.values()])  # fmt: skip
        ratio = float(np.median([(a + 1) / (b + 1) for _, a, b in lengths]))
    return PairReport(
        n_in, n_prompts, len(pairs), len(by_task), dict(+without), dict(+left_out),
        sum(p["first_turn_identical"] for p in pairs), longer, interval, ratio, _warnings(lengths),
    )  # fmt: skip


def _warnings(lengths: Sequence[tuple[str, int, int]]) -> tuple[str, ...]:
    for n, side in ((sum(a > b for _, a, b in lengths), "longer"), (sum(a < b for _, a, b in lengths), "shorter")):  # fmt: skip
        many = len(lengths) >= _MANY and n >= defaults.LENGTH_BIAS * len(lengths)
        if many or (len(lengths) >= _FEW and n == len(lengths)):
            return (
                f"length: the chosen reply is the {side} one in {n} of {len(lengths)} pairs, so the pairs teach "
                "length. Grade more attempts, or raise max_pairs with length_match=True.",
            )
    return ()


def _said(interval: Interval | None) -> str:
    return "" if interval is None else f"{interval.confidence:.0%} interval over tasks, {interval.method}"  # fmt: skip
