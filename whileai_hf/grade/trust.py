"""judge_trust: whether a judge may be believed, held against labels of people.

Labels of one task hang together, so every interval is over tasks. A judge is trusted only where the
lower ends of its intervals reach the limits; what the labels cannot show is "unmeasured", never a pass.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from datasets import Dataset

from whileai_hf import columns, defaults
from whileai_hf.grade.labelled import Labelled, flips, leak, length_bias, miss, read_labelled
from whileai_hf.grade.shares import Check, Verdict, at_least, overall
from whileai_hf.measure.agreement import Agreement, agreement
from whileai_hf.measure.interval import check_confidence

#: What to do about each verdict.
_ADVICE = {
    Verdict.PASS: "",
    Verdict.FAIL: "another judge, or a clearer rubric",
    Verdict.UNMEASURED: "more labels, not another judge",
}


@dataclass(frozen=True, slots=True)
class JudgeTrust:
    """What labels say about a judge; `print(result)` is the line to quote."""

    judge: str
    verdict: Verdict  #: of what is required: enough labels of both classes, agreement, kappa, no failed check
    reason: str
    advice: str  #: what to do next, empty where nothing is to be done
    agreement: Agreement | None  #: null where nothing was labelled and judged by both
    required: tuple[Check, ...]  #: all must pass
    watched: tuple[Check, ...]  #: none may fail
    skipped_share: (
        float  #: labelled rows that could not be compared: not judged, or scored between 0 and 1
    )

    @property
    def ok(self) -> bool:
        """Whether the judge is trusted."""
        return self.verdict is Verdict.PASS

    @property
    def checks(self) -> dict[str, Check]:
        """Every check by its name."""
        return {check.name: check for check in (*self.required, *self.watched)}

    def __str__(self) -> str:
        words = {"pass": "trusted", "fail": "not trusted", "unmeasured": "unmeasured"}
        lines = [f"{self.judge}: {words[self.verdict]} ({self.reason})"]
        lines += [f"  {check}" for check in (*self.required, *self.watched)]
        if self.advice:
            lines.append(f"  next: {self.advice}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        return {
            "judge": self.judge, "verdict": str(self.verdict), "reason": self.reason, "advice": self.advice,
            "skipped_share": self.skipped_share,
            "agreement": None if self.agreement is None else self.agreement.to_dict(),
            "required": [c.to_dict() for c in self.required], "watched": [c.to_dict() for c in self.watched],
        }  # fmt: skip


def judge_agreement(
    dataset: Dataset,
    *,
    gold: str = "gold_reward",
    reward: str = "reward",
    threshold: float | None = None,
    min_agreement: float = defaults.JUDGE_MIN_AGREEMENT,
    min_kappa: float = defaults.JUDGE_MIN_KAPPA,
    allow_model_gold: bool = False,
    confidence: float = defaults.CONFIDENCE,
) -> JudgeTrust:
    """Hold a judge's rewards against labels, without asking the judge again.

    Args:
        dataset: Rows with `task_id`, the judge's rewards and the labels.
        gold: Column of the labels; see `attach_labels`.
        reward: Column of the judge's rewards.
        threshold: Numbers at or above it are a pass. Without it only 0 and 1 are compared, and a row
            with a number between them is skipped and counted.
        min_agreement: Share of rows on which the judge must agree with the labels.
        min_kappa: Cohen's kappa that it must reach.
        allow_model_gold: Whether labels that a model gave (`gold_kind`) may count.
        confidence: Coverage of the intervals. The chance that a judge which just misses a limit is
            trusted is half of what is left.

    Returns:
        Agreement and kappa with what they are held against, and the shares of wrong passes (`leak`) and
        wrong fails (`miss`).

    Raises:
        SchemaError: A column is missing.
    """
    return _trust(
        dataset,
        None,
        gold,
        reward,
        threshold,
        min_agreement,
        min_kappa,
        allow_model_gold,
        confidence,
        0,
        0,
    )


def judge_trust(
    dataset: Dataset,
    judge: Any = None,
    *,
    gold: str = "gold_reward",
    reward: str = "reward",
    threshold: float | None = None,
    min_agreement: float = defaults.JUDGE_MIN_AGREEMENT,
    min_kappa: float = defaults.JUDGE_MIN_KAPPA,
    allow_model_gold: bool = False,
    sample: int = defaults.JUDGE_RECHECKED,
    confidence: float = defaults.CONFIDENCE,
    seed: int = 0,
) -> JudgeTrust:
    """Say whether a judge may be believed.

    Args:
        dataset: Graded rows with labels; see `judge_agreement` for the columns.
        judge: The judge itself, to be asked again about a sample; null leaves that unmeasured.
        gold: Column of the labels.
        reward: Column of the judge's rewards.
        threshold: Numbers at or above it are a pass.
        min_agreement: Share of rows on which the judge must agree with the labels.
        min_kappa: Cohen's kappa that it must reach.
        allow_model_gold: Whether labels that a model gave may count.
        sample: Rows about which the judge is asked again.
        confidence: Coverage of the intervals.
        seed: Of the sample.

    Returns:
        Trusted: enough labels of both classes, agreement and kappa at or above their limits at the lower
        ends, and no watched check failed. Not trusted: an upper end below a limit, or a watched check
        failed. Everything else is unmeasured. Watched are wrong passes, wrong fails, length bias (the
        difference in the pass rate of long and short replies of one label) and flips (another verdict on
        the same row).

    Raises:
        SchemaError: A column is missing.
    """
    return _trust(
        dataset, judge, gold, reward, threshold, min_agreement, min_kappa, allow_model_gold, confidence, sample, seed,
    )  # fmt: skip


def _trust(
    dataset: Dataset, judge: Any, gold: str, reward: str, threshold: float | None, min_agreement: float,
    min_kappa: float, allow_model_gold: bool, confidence: float, sample: int, seed: int,
) -> JudgeTrust:  # fmt: skip
    check_confidence(confidence)
    columns.check_dataset(dataset, "judge_trust")
    columns.check_columns(dataset, ["task_id", reward, gold], "judge_trust")
    found = read_labelled(dataset, gold, reward, threshold)
    both = None
    if found.mine.size:
        both = agreement(dataset, (reward, gold), threshold=threshold, confidence=confidence)
    n = int(found.mine.size)
    required = (
        at_least(
            "agreement",
            both.percent if both else None,
            n,
            min_agreement,
            "no row has both" * (both is None),
        ),
        at_least(
            "kappa",
            both.kappa if both else None,
            n,
            min_kappa,
            "" if both and both.kappa else "not measurable: one class",
        ),
    )
    watched = [leak(found, confidence), miss(found, confidence)]
    if "final_text" in dataset.column_names:
        watched.append(length_bias(found, confidence))
    if judge is not None:
        watched.append(flips(dataset, judge, reward, threshold, confidence, sample, seed))
    verdict, reason, advice = _verdict(found, required, watched, _kinds(dataset), allow_model_gold)
    return JudgeTrust(
        _name(dataset, judge), verdict, reason, advice, both, required, tuple(watched), found.skipped_share,
    )  # fmt: skip


def _verdict(
    found: Labelled,
    required: Sequence[Check],
    watched: Sequence[Check],
    kinds: frozenset[str],
    allow_model: bool,
) -> tuple[Verdict, str, str]:
    """Say what the checks come to, why, and what to do about it."""
    more = _ADVICE[Verdict.UNMEASURED]
    if "model" in kinds and not allow_model:
        return (
            Verdict.UNMEASURED,
            "labels of a model are no gold",
            "labels of people, or allow_model_gold=True",
        )
    if not found.mine.size:
        return Verdict.UNMEASURED, "no row has both a label and a reward of 0 or 1", more
    if found.skipped_share > defaults.JUDGE_MAX_SKIPPED:
        why = f"inconclusive: {found.skipped_share:.0%} of the labelled rows could not be compared"
        return (
            Verdict.UNMEASURED,
            why,
            "name a threshold, or repair the judge so that it judges every row",
        )
    failed = next((c for c in (*required, *watched) if c.verdict is Verdict.FAIL), None)
    if failed is not None:
        return Verdict.FAIL, f"{failed.name} failed", _ADVICE[Verdict.FAIL]
    if len(set(found.gold.tolist())) < 2:
        missing = "failed" if found.gold[0] else "passed"
        return (
            Verdict.UNMEASURED,
            f"no label says that a row {missing}",
            f"label rows that {missing}",
        )
    open_ = next((c for c in required if c.verdict is Verdict.UNMEASURED), None)
    if open_ is not None:
        return (
            Verdict.UNMEASURED,
            f"the interval of {open_.name} reaches below {open_.limit:g}",
            more,
        )
    return overall(required), "agreement and kappa hold", ""


def _kinds(dataset: Dataset) -> frozenset[str]:
    if "gold_kind" not in dataset.column_names:
        return frozenset()
    return frozenset(
        v
        for v in columns.read(dataset, ["gold_kind"], "judge_trust").column(0).unique().to_pylist()
        if v
    )


def _name(dataset: Dataset, judge: Any) -> str:
    if judge is not None:
        return str(getattr(judge, "name", None) or getattr(judge, "__name__", type(judge).__name__))
    if "judge" in dataset.column_names:
        names = [
            v
            for v in columns.read(dataset, ["judge"], "judge_trust").column(0).unique().to_pylist()
            if v
        ]
        if len(names) == 1:
            return str(names[0])
    return "judge"
