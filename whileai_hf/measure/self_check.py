"""self_check: agents of known truth, measured by this installation.

Simulated agents whose pass rates are known go through the same calls that a user makes. What comes
out is the share of intervals that hold the truth, of equal agents called different, and of better
agents called better, each with its own interval over the trials.
"""

from __future__ import annotations

import html
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from datasets import Dataset
from numpy.typing import NDArray
from tqdm.auto import tqdm

from whileai_hf.errors import InputError
from whileai_hf.measure.agreement import agreement
from whileai_hf.measure.delta import Verdict, delta_report
from whileai_hf.measure.interval import mean_interval
from whileai_hf.measure.noise import noise_band
from whileai_hf.measure.pass_at import Estimate, pass_at
from whileai_hf.measure.power import holdout_size

Floats = NDArray[np.float64]
Trial = Callable[[np.random.Generator], bool]


@dataclass(frozen=True, slots=True)
class Check:
    """One property, as often as it held in simulation."""

    name: str
    found: Estimate  #: share of trials; `n_tasks` is the number of trials
    least: float  #: the share must not be shown to be below it
    most: float  #: nor above it

    @property
    def ok(self) -> bool:
        """Whether the interval of the share reaches into what is asked for."""
        return self.found.interval.high >= self.least and self.found.interval.low <= self.most

    def __str__(self) -> str:
        return (
            f"{'ok  ' if self.ok else 'FAIL'} {self.name}: {self.found.value:.1%} "
            f"[{self.found.interval.low:.1%}..{self.found.interval.high:.1%}] of "
            f"{self.found.n_tasks} trials, asked {self.least:.0%} to {self.most:.0%}"
        )


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """What this installation's numbers are worth; `print(result)` shows every check."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """Whether every check holds."""
        return all(check.ok for check in self.checks)

    def __str__(self) -> str:
        return "\n".join(map(str, self.checks))

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Return the checks, for a log."""
        return {check.name: {**check.found.to_dict(), "ok": check.ok} for check in self.checks}


def self_check(*, trials: int = 300, seed: int = 0, progress: bool = True) -> SelfCheck:
    """Simulate agents with known truth through `pass_at`, `compare`, `agreement` and the sizes.

    Args:
        trials: Simulated evaluations a check; 300 take under a minute.
        seed: Seed of the simulation.
        progress: Whether to show a bar.

    Raises:
        InputError: Fewer than 20 trials.
    """
    if trials < 20:
        raise InputError(
            f"self_check needs at least 20 trials; got {trials!r}. Leave the default of 300."
        )
    plan = _plan()
    found = []
    with tqdm(total=len(plan) * trials, desc="self_check", disable=not progress) as bar:
        for i, (name, least, most, trial) in enumerate(plan):
            held = np.zeros(trials)
            for j in range(trials):
                held[j] = trial(np.random.default_rng([seed, i, j]))
                bar.update()
            share = Estimate(float(held.mean()), mean_interval(held), trials)
            found.append(Check(name, share, least, most))
    return SelfCheck(tuple(found))


def _plan() -> list[tuple[str, float, float, Trial]]:
    size = holdout_size(0.2, base=0.5, k=4).n_tasks
    return [
        ("pass@1 interval holds the truth (16 tasks, 4 tries)", 0.93, 0.98, _covers(16, 4)),
        ("pass@1 interval holds the truth (100 tasks, 1 try)", 0.93, 0.98, _covers(100, 1)),
        ("compare alarms on equal agents (16 tasks, 4 tries)", 0.0, 0.06, _alarms(16, 4)),
        ("compare alarms on equal agents (100 tasks, 1 try)", 0.0, 0.06, _alarms(100, 1)),
        (f"compare shows a gain of 0.2 at its size ({size} tasks)", 0.75, 0.9, _shows(size, 0.2)),
        ("kappa interval holds the truth (30 tasks, 4 labels)", 0.92, 0.99, _kappa(30, 4)),
        ("two runs stay inside the band of three re-runs", 0.93, 0.97, _stays),
    ]


def _graded(rates: Floats, k: int, rng: np.random.Generator) -> Dataset:
    won = rng.random((rates.size, k)) < rates[:, None]
    return Dataset.from_dict(
        {"task_id": np.repeat(np.arange(rates.size), k), "reward": won.ravel().astype(float)}
    )


def _covers(n: int, k: int) -> Trial:
    def trial(rng: np.random.Generator) -> bool:
        found = pass_at(_graded(rng.beta(1, 1, n), k, rng)).pass_at_1
        return found is not None and 0.5 in found.interval

    return trial


def _alarms(n: int, k: int) -> Trial:
    def trial(rng: np.random.Generator) -> bool:
        rates = rng.beta(1, 1, n)
        report = delta_report(_graded(rates, k, rng), _graded(rates, k, rng))
        return report.verdict in (Verdict.BETTER, Verdict.WORSE)

    return trial


def _shows(n: int, effect: float) -> Trial:
    def trial(rng: np.random.Generator) -> bool:
        before, after = (np.full(n, rate) for rate in (0.5, 0.5 + effect))
        return delta_report(_graded(before, 4, rng), _graded(after, 4, rng)).ok

    return trial


def _kappa(n: int, k: int) -> Trial:
    def trial(rng: np.random.Generator) -> bool:
        gold = rng.random(n * k) < 0.5
        judge = np.where(rng.random(n * k) < 0.85, gold, ~gold)
        rows = Dataset.from_dict(
            {"task_id": np.repeat(np.arange(n), k), "reward": judge.astype(float),
             "gold_reward": gold.astype(float)}
        )  # fmt: skip
        kappa = agreement(rows).kappa
        return kappa is not None and 0.7 in kappa.interval

    return trial


def _stays(rng: np.random.Generator) -> bool:
    means = 0.6 + 0.02 * rng.standard_normal(5)
    band = noise_band(float(means[:3].std(ddof=1)), runs=3)
    return bool(means[3] - means[4] in band)
