"""delta_report, or compare: did the agent get better on the same tasks, and by how much?

A verdict needs two things that agree: the paired interval excludes zero, and the exact sign-flip test
says so. Neither alone holds its level at small n. A noise floor from re-runs of one model and the
spread between training seeds widen what counts as a change, and what makes two sets of rollouts
incomparable is named instead of being averaged over.
"""

from __future__ import annotations

import enum
import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset
from numpy.typing import NDArray

from whileai_hf import columns, defaults
from whileai_hf.errors import InputError
from whileai_hf.measure.interval import Interval, check_confidence, t_quantile
from whileai_hf.measure.noise import noise_band
from whileai_hf.measure.paired import paired_interval, sign_flip

Floats = NDArray[np.float64]

#: The metric that every graded dataset has.
REWARD = "reward"


class Verdict(enum.Enum):
    """What a comparison shows."""

    BETTER = "better"
    WORSE = "worse"
    NOT_SHOWN = "not shown"
    WITHIN_NOISE = "within the noise of re-runs"
    UNRESOLVED = "unresolved: one training seed an arm; add a seed to resolve"
    NOT_COMPARABLE = "not comparable"
    OVER_OPTIMIZED = "over-optimized: the proxy rose and the target did not follow"

    def __str__(self) -> str:
        return self.value


class Cause(enum.Enum):
    """Why two sets of rollouts cannot be compared; the value says how to repair it."""

    TASKS = "fewer than half of all tasks are shared; run the same tasks with simulate(tasks=…)"
    PROMPTS = "the system prompts differ; compare rollouts of one prompt"
    JUDGES = "the judges differ; grade both sides with one judge"
    ANSWERED = (
        "one side leaves far more rollouts unanswered; repair the agent or its endpoint first"
    )
    GRADED = "the share of judged rollouts differs by more than the difference; judge the rest"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Delta:
    """One metric, before and after, paired by task."""

    metric: str
    before: float
    after: float
    delta: float
    interval: Interval
    p: float  #: exact sign-flip test, conservative
    mid_p: float  #: the one that decides
    p_holm: float  #: mid-p corrected for the number of metrics (Holm 1979, Scand. J. Stat. 6:65-70)
    n_tasks: int
    shown: bool  #: interval and test agree, after correction

    def __str__(self) -> str:
        return (
            f"{self.metric} {self.before:.2f} -> {self.after:.2f}, {self.delta:+.3f} {_signed(self.interval)} "
            f"(mid-p {self.mid_p:.3f}, {self.n_tasks} paired tasks)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {**fields, "interval": self.interval.to_dict()}


@dataclass(frozen=True, slots=True)
class DeltaReport:
    """A comparison; `print(report)` is what to quote."""

    verdict: Verdict
    ok: bool  #: the target is better and nothing that must not regress is worse
    target: Delta
    others: tuple[Delta, ...]
    regressed: tuple[str, ...]  #: metrics of `must_not_regress` that are worse
    causes: tuple[Cause, ...]
    noise: Interval | None  #: what re-runs of one model differ by
    seeds: Interval | None  #: the difference with the spread between training seeds
    n_unpaired: int  #: tasks that only one side has

    def __str__(self) -> str:
        lines = [f"{self.target}: {self.verdict}"]
        interval = self.target.interval
        lines.append(
            f"  {interval.confidence:.0%} interval, {interval.method}; test: exact sign-flip, p {self.target.p:.3f}, mid-p {self.target.mid_p:.3f}"
        )
        if self.noise is not None:
            lines.append(f"  noise of re-runs {_signed(self.noise)}, {self.noise.method}")
        if self.seeds is not None:
            lines.append(f"  with the spread between training seeds {_signed(self.seeds)}")
        lines += [
            f"  {d}{' REGRESSED' if d.metric in self.regressed else ''}, Holm {d.p_holm:.3f}"
            for d in self.others
        ]
        lines += [f"  NOT COMPARABLE: {cause}" for cause in self.causes]
        if self.n_unpaired:
            lines.append(f"  {self.n_unpaired} tasks are on one side only and left out")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        return {
            "verdict": str(self.verdict), "ok": self.ok, "target": self.target.to_dict(),
            "others": [d.to_dict() for d in self.others], "regressed": list(self.regressed),
            "causes": [c.name for c in self.causes], "n_unpaired": self.n_unpaired,
        }  # fmt: skip


def _signed(interval: Interval) -> str:
    return f"[{interval.low:+.3f}, {interval.high:+.3f}]"


def delta_report(
    before: Dataset,
    after: Dataset,
    *,
    target: str = REWARD,
    proxy: str | None = None,
    must_not_regress: Sequence[str] = (),
    metrics: Sequence[str] | None = None,
    run_std: float | None = None,
    run_std_runs: int | None = None,
    train_runs: Mapping[str, Sequence[Dataset]] | None = None,
    confidence: float = defaults.CONFIDENCE,
    method: str = "adjusted-wald",
    seed: int = 0,
) -> DeltaReport:
    """Compare two sets of graded rollouts of the same tasks.

    Args:
        before: Rollouts of the old agent, with `task_id` and `reward`.
        after: Rollouts of the new one.
        target: The metric that decides: `"reward"`, a marker, or `"marker:<name>"`. For every metric
            higher is better.
        proxy: The metric that was trained on; the report fails where it rose and the target did not.
        must_not_regress: Metrics that must not get worse.
        metrics: Further metrics to show; null shows every marker that both sides have.
        run_std: Standard deviation of the metric over re-runs of one model.
        run_std_runs: Re-runs behind it; null takes it as known.
        train_runs: Rollouts of every training seed, `{"before": [...], "after": [...]}`; one side
            may be left out where it was not trained.
        confidence: Coverage of the intervals; the test is at one minus it.
        method: Paired interval, see `whileai_hf.measure.paired.paired_interval`.
        seed: Seed where something is drawn.

    Raises:
        InputError: A metric does not exist, no task is shared, or an option is out of range.

    References:
        Paired questions: Miller 2024, arXiv:2411.00640, section 4.2. Over-optimization: Gao et al.
        2022, arXiv:2210.10760.
    """
    check_confidence(confidence)
    sides = [_Side(before, "before"), _Side(after, "after")]
    wanted = _metrics(sides, target, proxy, must_not_regress, metrics)
    deltas, unpaired = [], 0
    for name in wanted:
        a, b = (side.means(name) for side in sides)
        shared = [t for t in a if t in b]
        if not shared:
            raise InputError(
                f"a paired comparison needs shared tasks; {name!r} has none in common ({len(a)} before, "
                f"{len(b)} after). Run the same tasks: simulate(tasks=before)."
            )
        unpaired = max(unpaired, len(a) + len(b) - 2 * len(shared))
        deltas.append(
            _delta(
                name,
                np.array([a[t] for t in shared]),
                np.array([b[t] for t in shared]),
                confidence,
                method,
                seed,
            )
        )
    deltas = _holm(deltas, confidence)
    main, others = deltas[0], tuple(deltas[1:])
    noise = None
    if run_std is not None:
        noise = noise_band(run_std, runs=run_std_runs, n_tasks=main.n_tasks, confidence=confidence)
    seeds = _seed_interval(train_runs, main, target, confidence)
    causes = tuple(_causes(sides, main, unpaired))
    verdict = _verdict(main, noise, seeds, train_runs, causes)
    if proxy is not None and _over_optimized(next(d for d in deltas if d.metric == proxy), main):
        verdict = Verdict.OVER_OPTIMIZED
    regressed = tuple(
        d.metric for d in deltas if d.metric in must_not_regress and d.interval.high < 0
    )
    return DeltaReport(
        verdict,
        verdict is Verdict.BETTER and not regressed,
        main,
        others,
        regressed,
        causes,
        noise,
        seeds,
        unpaired,
    )


compare = delta_report


class _Side:
    """One side of a comparison: its metrics by task."""

    def __init__(self, dataset: Dataset, name: str) -> None:
        columns.check_dataset(dataset, f"compare({name})")
        self.dataset, self.name = dataset, name
        self.codes, self.ids = columns.task_codes(dataset, "compare")
        self.reward = columns.numbers(dataset, REWARD, "compare")
        self.markers = self._markers()

    def _markers(self) -> dict[str, Floats]:
        if "markers" not in self.dataset.column_names:
            return {}
        rows = columns.read(self.dataset, ["markers"], "compare").column(0).to_pylist()
        found: dict[str, Floats] = {}
        for i, markers in enumerate(rows):
            for marker in markers or ():
                values = found.setdefault(marker["name"], np.full(len(rows), np.nan))
                values[i] = np.nan if marker["value"] is None else marker["value"]
        return found

    def means(self, metric: str) -> dict[Any, float]:
        """Mean of a metric for each task that has it."""
        values = self.reward if metric == REWARD else self.markers[metric.removeprefix("marker:")]
        known = ~np.isnan(values)
        total = np.bincount(self.codes[known], values[known], len(self.ids))
        count = np.bincount(self.codes[known], minlength=len(self.ids))
        return {t: float(s / n) for t, s, n in zip(self.ids, total, count, strict=True) if n}

    @property
    def judged(self) -> float:
        """Share of rollouts with a reward."""
        return float(np.mean(~np.isnan(self.reward))) if self.reward.size else 0.0

    @property
    def answered(self) -> float:
        """Share of rollouts in which the agent said something."""
        if "final_text" not in self.dataset.column_names or not self.reward.size:
            return 1.0
        text = columns.read(self.dataset, ["final_text"], "compare").column(0)
        if not (pa.types.is_string(text.type) or pa.types.is_large_string(text.type)):
            return 1.0
        said = pc.utf8_length(pc.utf8_trim_whitespace(text))
        return float(np.mean(said.fill_null(0).to_numpy() > 0))

    def distinct(self, column: str) -> set[Any]:
        """Values of a column, nulls aside."""
        if column not in self.dataset.column_names:
            return set()
        return {
            v
            for v in columns.read(self.dataset, [column], "compare").column(0).unique().to_pylist()
            if v
        }

    def prompts(self) -> set[str]:
        """System prompts of the first rollout of some tasks."""
        if "messages" not in self.dataset.column_names or not len(self.dataset):
            return set()
        rows = self.dataset.select(range(min(8, len(self.dataset))))["messages"][:]
        first = [m[0] for m in rows if m]
        return {m.get("content") or "" for m in first if m.get("role") == "system"}


def _metrics(
    sides: Sequence[_Side],
    target: str,
    proxy: str | None,
    guarded: Sequence[str],
    extra: Sequence[str] | None,
) -> list[str]:
    shared = sorted(set(sides[0].markers) & set(sides[1].markers))
    named = [target, *([proxy] if proxy else []), *guarded, *(shared if extra is None else extra)]
    known = {REWARD, *shared, *(f"marker:{m}" for m in shared)}
    for name in named:
        if name not in known:
            raise InputError(
                f"a metric must be the reward or a marker that both sides have; got {name!r}. "
                f"There are: {', '.join([REWARD, *shared])}."
            )
    return list(dict.fromkeys(named))


def _delta(name: str, a: Floats, b: Floats, confidence: float, method: str, seed: int) -> Delta:
    d = b - a
    if np.any(np.abs(d) > 1 + 1e-9):
        raise InputError(
            f"a metric must lie in [0, 1]; the differences of {name!r} reach {float(np.abs(d).max()):.3g}. "
            "Scale it first."
        )
    interval = paired_interval(d, confidence=confidence, method=method, seed=seed)
    p, mid = sign_flip(d, seed=seed)
    return Delta(
        name,
        float(a.mean()),
        float(b.mean()),
        float(d.mean()),
        interval,
        p,
        mid,
        mid,
        len(d),
        False,
    )


def _holm(deltas: Sequence[Delta], confidence: float) -> list[Delta]:
    """Correct further metrics for their number; the target alone is not one of several."""
    others = list(deltas[1:])
    order = sorted(range(len(others)), key=lambda i: others[i].mid_p)
    corrected, worst = {}, 0.0
    for rank, i in enumerate(order):
        worst = max(worst, min(1.0, (len(others) - rank) * others[i].mid_p))
        corrected[i] = worst
    out = [_shown(deltas[0], deltas[0].mid_p, confidence)]
    return out + [_shown(d, corrected[i], confidence) for i, d in enumerate(others)]


def _shown(d: Delta, p_holm: float, confidence: float) -> Delta:
    shown = d.interval.excludes_zero and p_holm < 1 - confidence
    return Delta(
        d.metric, d.before, d.after, d.delta, d.interval, d.p, d.mid_p, p_holm, d.n_tasks, shown
    )


def _seed_interval(
    train_runs: Mapping[str, Sequence[Dataset]] | None, main: Delta, target: str, confidence: float
) -> Interval | None:
    """Widen the difference by the spread between training seeds: its variance adds sd^2 / n an arm."""
    if train_runs is None:
        return None
    if unknown := set(train_runs) - {"before", "after"}:
        raise InputError(
            f"train_runs must have the keys 'before' and 'after'; got {sorted(unknown)[0]!r}. Rename it."
        )
    extra, df = 0.0, math.inf
    for runs in train_runs.values():
        if len(runs) < 2:
            return None
        means = [float(np.mean(list(_Side(run, "seed").means(target).values()))) for run in runs]
        extra += float(np.var(means, ddof=1)) / len(means)
        df = min(df, len(means) - 1)
    half = (main.interval.high - main.interval.low) / 2
    quantile = t_quantile(confidence, df)
    wide = math.hypot(half, quantile * math.sqrt(extra))
    centre = (main.interval.high + main.interval.low) / 2
    return Interval(centre - wide, centre + wide, confidence, f"{main.interval.method} and seeds")


def _causes(sides: Sequence[_Side], main: Delta, unpaired: int) -> list[Cause]:
    a, b = sides
    causes = []
    if unpaired > main.n_tasks:
        causes.append(Cause.TASKS)
    prompts = a.prompts(), b.prompts()
    if prompts[0] and prompts[1] and not prompts[0] & prompts[1]:
        causes.append(Cause.PROMPTS)
    judges = a.distinct("judge"), b.distinct("judge")
    if judges[0] and judges[1] and judges[0] != judges[1]:
        causes.append(Cause.JUDGES)
    if abs(a.answered - b.answered) > defaults.ANSWERED_GAP:
        causes.append(Cause.ANSWERED)
    if abs(a.judged - b.judged) > max(abs(main.delta), 0.01):
        causes.append(Cause.GRADED)
    return causes


def _verdict(
    main: Delta,
    noise: Interval | None,
    seeds: Interval | None,
    train_runs: Any,
    causes: Sequence[Cause],
) -> Verdict:
    if causes:
        return Verdict.NOT_COMPARABLE
    if train_runs is not None and seeds is None:
        return Verdict.UNRESOLVED
    if not main.shown or (seeds is not None and not seeds.excludes_zero):
        return Verdict.NOT_SHOWN
    if noise is not None and noise.low <= main.delta <= noise.high:
        return Verdict.WITHIN_NOISE
    return Verdict.BETTER if main.delta > 0 else Verdict.WORSE


def _over_optimized(proxy: Delta, target: Delta) -> bool:
    if proxy.metric == target.metric or not (proxy.shown and proxy.delta > 0):
        return False
    return not (target.shown and target.delta > 0) or proxy.interval.low > target.interval.high
