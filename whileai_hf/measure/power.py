"""How many tasks prove a gain, and what a set of tasks can prove.

Sizes come from the interval that gives the verdict: the adjusted Wald interval of `compare` is
computed on simulated comparisons of each size, and the size is the smallest at which it excludes
zero often enough. No normal approximation stands between the answer and the verdict.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from datasets import Dataset
from numpy.typing import NDArray
from scipy import optimize, stats

from whileai_hf import columns, defaults
from whileai_hf.errors import InputError
from whileai_hf.measure.interval import check_confidence
from whileai_hf.measure.paired import TOLERANCE, wald_of

Floats = NDArray[np.float64]

#: No answer is looked for beyond this many tasks.
_MOST_TASKS = 10_000_000


class Usable(StrEnum):
    """What a set of tasks can show; the value says what to do."""

    USABLE = "usable: it can show the effect"
    UNDERPOWERED = "underpowered: add tasks or attempts"
    SATURATED = "saturated: the agent passes nearly everything; find harder tasks"
    FLOORED = "floored: the agent passes nearly nothing; find easier tasks"


@dataclass(frozen=True, slots=True)
class Law:
    """How a paired task difference is distributed: its values and their chances."""

    values: Floats  #: (support,), in [-1, 1]
    chances: Floats  #: (support,), summing to one

    @property
    def mean(self) -> float:
        """Expected difference."""
        return float(self.values @ self.chances)

    def tilted(self, effect: float) -> Law:
        """Return the law of the same support whose mean is `effect`, closest to this one.

        Exponential tilting (Efron 1981, Can. J. Stat. 9:139-172): of all laws on these values with
        that mean it has the least relative entropy, and tasks that never differ stay as they are.
        """
        top = float(self.values.max())
        if effect >= top:
            raise InputError(
                f"an effect must be below the largest difference a task shows; got {effect!r} of "
                f"{top:.3g}. Ask for a smaller one, or leave out before= and after=."
            )

        def weights(strength: float) -> Floats:
            exponent = strength * self.values
            weight = self.chances * np.exp(exponent - exponent.max())
            return np.asarray(weight / weight.sum(), dtype=np.float64)

        strength = optimize.brentq(lambda s: float(weights(s) @ self.values) - effect, -400, 400)
        return Law(self.values, weights(strength))


@dataclass(frozen=True, slots=True)
class HoldoutSize:
    """Tasks that prove an effect; `print(result)` is the line to quote."""

    n_tasks: int
    n_tasks_concentrated: int | None  #: where a few tasks carry the whole gain; null if measured
    low: int  #: of `n_tasks`, over resampled tasks where it was measured, else `n_tasks`
    high: int
    effect: float
    k: int
    power: float  #: chance that `compare` shows the effect
    confidence: float
    source: str  #: what the spread of a task was read off
    saturated: bool  #: there is no room for such a gain; the size is for a loss of it

    def __str__(self) -> str:
        span = f" [{self.low}..{self.high}]" if self.low != self.high else ""
        what = f"a {'loss' if self.saturated else 'gain'} of {self.effect:g}"
        said = (
            f"{self.n_tasks}{span} tasks of {self.k} attempts show {what} with {self.power:.0%} power "
            f"({self.confidence:.0%} adjusted-wald, {self.source})"
        )
        if self.n_tasks_concentrated is not None and not self.saturated:
            said += f"; {self.n_tasks_concentrated} where a few tasks carry it"
        if self.saturated:
            said += "; saturated: there is no room for such a gain"
        return said

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class EvalPower:
    """What a graded set of tasks can show; `print(result)` is the line to quote."""

    verdict: Usable
    power: float  #: chance that `compare` shows `effect` on these tasks
    detectable: float | None  #: smallest effect shown with `target` power; null if there is none
    effect: float
    target: float
    base: float  #: mean reward over tasks
    n_tasks: int
    k: int
    confidence: float

    def __str__(self) -> str:
        least = "none" if self.detectable is None else f"{self.detectable:.3f}"
        return (
            f"{self.verdict} ({self.n_tasks} tasks, k={self.k}, mean {self.base:.2f}: a gain of "
            f"{self.effect:g} is shown with {self.power:.0%} power, the least at {self.target:.0%} is "
            f"{least}; {self.confidence:.0%} adjusted-wald)"
        )

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        return {**{n: getattr(self, n) for n in self.__slots__}, "verdict": self.verdict.name}


def holdout_size(
    effect: float,
    *,
    before: Dataset | None = None,
    after: Dataset | None = None,
    base: float = defaults.BASE_PASS_RATE,
    k: int = defaults.REPEATS,
    power: float = defaults.POWER,
    confidence: float = defaults.CONFIDENCE,
    draws: int = defaults.POWER_DRAWS,
    seed: int = 0,
) -> HoldoutSize:
    """How many tasks `compare` needs to show a gain.

    With `before` and `after` the law of a task difference is measured, and tilted to the effect.
    With `before` alone, or neither, it is a model: every task is passed at one rate (the mean of
    `before`, or `base`) and gains alike; the concentrated size lets the fewest tasks that can go to
    a certain pass instead.

    Args:
        effect: Gain in mean reward, in (0, 1).
        before: Graded rollouts of a former evaluation.
        after: The same tasks by another agent.
        base: Pass rate where nothing was measured.
        k: Attempts a task, in the model.
        power: Chance of showing the effect, in (0, 1).
        confidence: Coverage of the interval behind the verdict.
        draws: Simulated comparisons of a size.
        seed: Seed of the simulation.

    Raises:
        InputError: An option is out of range, or nothing is measured.
    """
    _check(effect, power, confidence, k)
    if after is not None and before is None:
        raise InputError("holdout_size needs before= beside after=; got only after. Pass both.")
    if before is not None:
        means, tries = _tasks(before, "holdout_size(before)")
        base, k = float(np.mean(list(means.values()))), tries
    saturated = base + effect > 1
    need = _Need(power, confidence, draws, seed)
    if after is not None and before is not None and not saturated:
        return _measured_size(effect, means, after, k, need)
    source = f"model of a {base:.2f} pass rate"
    if saturated:
        n = need.tasks(_flipped(_even(base, base - effect, k)))
        return HoldoutSize(n, None, n, n, effect, k, power, confidence, source, saturated=True)
    n = need.tasks(_even(base, base + effect, k))
    few = need.tasks(_concentrated(base, effect, k))
    return HoldoutSize(n, few, n, n, effect, k, power, confidence, source, saturated=False)


def detectable_effect(
    n_tasks: int,
    *,
    base: float = defaults.BASE_PASS_RATE,
    k: int = defaults.REPEATS,
    power: float = defaults.POWER,
    confidence: float = defaults.CONFIDENCE,
    draws: int = defaults.POWER_DRAWS,
    seed: int = 0,
) -> float | None:
    """Return the least gain that `compare` shows on so many tasks, or null if there is none.

    Args:
        n_tasks: Tasks of the evaluation.
        base: Pass rate of every task before.
        k: Attempts a task.
        power: Chance of showing the effect.
        confidence: Coverage of the interval behind the verdict.
        draws: Simulated comparisons of an effect.
        seed: Seed of the simulation.

    Raises:
        InputError: An option is out of range.
    """
    _check(0.5, power, confidence, k)
    if n_tasks < 1 or not 0 <= base < 1:
        raise InputError(
            f"detectable_effect needs tasks and room above the base; got {n_tasks!r} tasks at "
            f"{base!r}. Pass a base below 1."
        )
    need = _Need(power, confidence, draws, seed)
    return need.effect(n_tasks, lambda effect: _even(base, base + effect, k), 1 - base)


def eval_power(
    dataset: Dataset,
    *,
    effect: float = defaults.EFFECT,
    power: float = defaults.POWER,
    confidence: float = defaults.CONFIDENCE,
    draws: int = defaults.POWER_DRAWS,
    seed: int = 0,
) -> EvalPower:
    """Say what a graded set of tasks can show before it is used to compare.

    The law of a task difference is that of two agents who pass each task at the rate seen for it,
    shrunk to the mean of all (empirical Bayes of a beta-binomial by moments), tilted to the effect.

    Args:
        dataset: Graded rollouts, rewards in [0, 1].
        effect: Gain that should be shown.
        power: Chance of showing it that is asked for.
        confidence: Coverage of the interval behind the verdict.
        draws: Simulated comparisons.
        seed: Seed of the simulation.

    Raises:
        InputError: No judged rollout, or an option is out of range.
    """
    _check(effect, power, confidence, 1)
    means, k = _tasks(dataset, "eval_power")
    rates = np.array(list(means.values()))
    base, n = float(rates.mean()), rates.size
    law = _rerun_law(rates, k)
    need = _Need(power, confidence, draws, seed)
    room = min(1 - base, float(law.values.max())) - 1e-6
    reached = need.reached(law.tilted(effect), n) if effect < room else 0.0
    least = need.effect(n, law.tilted, room)
    if base > 1 - effect:
        verdict = Usable.SATURATED
    elif base < effect:
        verdict = Usable.FLOORED
    else:
        verdict = Usable.USABLE if reached >= power else Usable.UNDERPOWERED
    return EvalPower(verdict, reached, least, effect, power, base, n, k, confidence)


@dataclass(frozen=True, slots=True)
class _Need:
    """The power asked for, and how it is simulated."""

    power: float
    confidence: float
    draws: int
    seed: int

    def reached(self, law: Law, n: int) -> float:
        """Share of simulated comparisons of `n` tasks whose interval lies above zero.

        Tasks are exchangeable, so a comparison is how often each value comes up: one multinomial.
        """
        rng = np.random.default_rng([self.seed, n])
        counts = rng.multinomial(n, law.chances, size=self.draws)
        low, _ = wald_of(
            counts @ law.values, counts @ law.values**2,
            counts @ (np.abs(law.values) > TOLERANCE), n, self.confidence,
        )  # fmt: skip
        return float(np.mean(low > 0))

    def tasks(self, law: Law) -> int:
        """Smallest number of tasks with the power."""
        high = 2
        while self.reached(law, high) < self.power:
            high *= 2
            if high > _MOST_TASKS:
                raise InputError(
                    f"no size up to {_MOST_TASKS:,} tasks has the power; the effect is "
                    f"{law.mean:.2g}. Ask for a larger effect."
                )
        low = high // 2
        while high - low > max(1, low // 500):
            middle = (low + high) // 2
            if self.reached(law, middle) >= self.power:
                high = middle
            else:
                low = middle
        return high

    def effect(self, n: int, law: Callable[[float], Law], room: float) -> float | None:
        """Smallest effect with the power on `n` tasks."""
        low, high = 0.0, room
        if room <= 0 or self.reached(law(high * (1 - 1e-9)), n) < self.power:
            return None
        while high - low > 1e-4:
            middle = (low + high) / 2
            if self.reached(law(middle), n) >= self.power:
                high = middle
            else:
                low = middle
        return high


def _check(effect: float, power: float, confidence: float, k: int) -> None:
    check_confidence(confidence)
    if not 0 < effect < 1 or not 0 < power < 1 or k < 1:
        raise InputError(
            f"effect and power must lie in (0, 1) and k be at least 1; got {effect!r}, {power!r}, "
            f"{k!r}. Write a gain of five points as 0.05."
        )


def _tasks(dataset: Dataset, step: str) -> tuple[dict[Any, float], int]:
    """Mean reward of each task, and the attempts that most tasks have."""
    table = columns.read(dataset, ["task_id", "reward"], step)
    values = columns.as_numbers(table.column(1), "reward", step)
    codes, ids = columns.as_codes(table.column(0), "task_id", step)
    known = ~np.isnan(values)
    count = np.bincount(codes[known], minlength=len(ids))
    if not known.any() or np.any((values[known] < 0) | (values[known] > 1)):
        raise InputError(
            f"{step} needs judged rollouts with rewards in [0, 1]; got {int(known.sum())} judged of "
            f"{values.size}. Grade them, or scale the rewards."
        )
    total = np.bincount(codes[known], values[known], len(ids))
    means = {t: float(s / n) for t, s, n in zip(ids, total, count, strict=True) if n}
    return means, int(np.bincount(count[count > 0]).argmax())


def _even(p: float, q: float, k: int) -> Law:
    """Every task goes from p to q: the difference of two binomial shares."""
    grid = np.arange(k + 1)
    first, second = stats.binom.pmf(grid, k, p), stats.binom.pmf(grid, k, min(max(q, 0.0), 1.0))
    return _lattice(np.convolve(second, first[::-1]), k)


def _concentrated(base: float, effect: float, k: int) -> Law:
    """The fewest tasks that can carry the gain go to a certain pass; the others stay."""
    share = effect / (1 - base)
    laws = [(1 - share, _even(base, base, k)), (share, _even(base, 1.0, k))]
    return Law(
        np.concatenate([law.values for _, law in laws]),
        np.concatenate([weight * law.chances for weight, law in laws]),
    )


def _flipped(law: Law) -> Law:
    return Law(-law.values[::-1], law.chances[::-1])


def _lattice(chances: Floats, k: int) -> Law:
    possible = chances > 1e-300
    values = np.arange(-k, k + 1) / k
    return Law(values[possible], chances[possible] / chances.sum())


def _rerun_law(rates: Floats, k: int) -> Law:
    """Difference of two runs whose task rates are those seen, shrunk to their mean."""
    base, spread = float(rates.mean()), float(rates.var())
    noise = base * (1 - base)
    # Var(rate) = noise * (1 + (k - 1) * rho) / k, solved for the intraclass correlation rho.
    rho = 0.0 if noise == 0 or k == 1 else (k * spread / noise - 1) / (k - 1)
    rho = min(max(rho, 0.0), 0.99)
    prior = math.inf if rho == 0 else 1 / rho - 1
    weight = 1.0 if prior == math.inf else prior / (prior + k)
    shrunk, counts = np.unique(
        np.round(weight * base + (1 - weight) * rates, 3), return_counts=True
    )
    grid = np.arange(k + 1)
    chances = np.zeros(2 * k + 1)
    for p, times in zip(shrunk, counts, strict=True):
        share = stats.binom.pmf(grid, k, p)
        chances += times * np.convolve(share, share[::-1])
    return _lattice(chances, k)


def _measured_size(
    effect: float, means: dict[Any, float], after: Dataset, k: int, need: _Need
) -> HoldoutSize:
    later, _ = _tasks(after, "holdout_size(after)")
    d = np.array([later[t] - means[t] for t in means if t in later])
    if d.size < 2:
        raise InputError(
            f"a measured size needs at least 2 tasks that both sides have; got {d.size}. "
            "Run the same tasks, or leave out before= and after=."
        )
    n = need.tasks(_padded(d).tilted(effect))
    rng = np.random.default_rng(need.seed)
    sizes = [
        need.tasks(_padded(d[rng.integers(0, d.size, d.size)]).tilted(effect)) for _ in range(100)
    ]
    tails = [(1 - need.confidence) / 2, (1 + need.confidence) / 2]
    low, high = (int(q) for q in np.quantile(sizes, tails))
    return HoldoutSize(
        n, None, min(low, n), max(high, n), effect, k, need.power, need.confidence,
        f"spread of {d.size} paired tasks", saturated=False,
    )  # fmt: skip


def _padded(d: Floats) -> Law:
    """The law seen, with the two pseudo tasks of the interval: a full flip each way, as one task."""
    values, counts = np.unique(np.concatenate([d, [-1.0, 1.0]]), return_counts=True)
    weight = counts.astype(np.float64)
    weight[[0, -1]] -= 0.5
    return Law(values, weight / weight.sum())
