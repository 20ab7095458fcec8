"""Intervals and tests for a paired difference: the same tasks, two policies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from whileai_hf import defaults
from whileai_hf.errors import InputError
from whileai_hf.measure.interval import Interval, bootstrap, check_confidence, t_quantile

Floats = NDArray[np.float64]

#: Names of the intervals for a paired difference, the default first.
METHODS = ("adjusted-wald", "t", "bca", "percentile")

#: Differences below this are none: sums of rewards carry rounding.
TOLERANCE = 1e-9


def paired_interval(
    differences: Any,
    *,
    confidence: float = defaults.CONFIDENCE,
    method: str = "adjusted-wald",
    draws: int = defaults.BOOTSTRAP_DRAWS,
    seed: int = 0,
) -> Interval:
    """Interval for the mean of paired task differences in [-1, 1].

    The default appends two pseudo tasks with differences +h and -h and takes the normal interval of
    the n + 2 values (Bonett and Price 2012, J. Educ. Behav. Stat. 37:479-488, which it is for one
    attempt a task; pseudo-observations after Agresti and Min 2005, Stat. Med. 24:729-740). With
    several attempts h is the root mean square of the tasks that changed and of one imagined full
    flip, which is our extension. Where no task changed it is the bound for an event seen in none of
    n (Clopper and Pearson 1934, Biometrika 26:404-413), in either direction.

    Args:
        differences: After minus before, one a task, shape (tasks,).
        confidence: Nominal coverage.
        method: `"adjusted-wald"`, `"t"`, `"bca"` or `"percentile"`.
        draws: Resamples of a bootstrap.
        seed: Seed of a bootstrap.

    Raises:
        InputError: No task, a difference outside [-1, 1], or an unknown method.
    """
    check_confidence(confidence)
    d = np.asarray(differences, dtype=np.float64)
    if d.ndim != 1 or d.size == 0 or not np.all(np.abs(d) <= 1 + TOLERANCE):
        raise InputError(
            f"a paired interval needs one difference in [-1, 1] a task; got {d.size} values of "
            f"shape {d.shape}. Pair the runs by task first."
        )
    if method == "adjusted-wald":
        low, high = map(float, adjusted_wald(d, confidence))
    elif method == "t":
        half = t_quantile(confidence, d.size - 1)
        half *= float(d.std(ddof=1)) / math.sqrt(d.size) if d.size > 1 else 1.0
        low, high = float(d.mean()) - half, float(d.mean()) + half
    elif method in ("bca", "percentile"):
        low, high = bootstrap(d, confidence, method, draws, seed)
    else:
        raise InputError(
            f"method must be one of {', '.join(METHODS)}; got {method!r}. "
            "The default is 'adjusted-wald'."
        )
    return Interval(max(low, -1.0), min(high, 1.0), confidence, method)


def adjusted_wald(differences: Any, confidence: float) -> tuple[Any, Any]:
    """The default interval of `paired_interval`, tasks on the last axis, leading axes batched."""
    d = np.asarray(differences, dtype=np.float64)
    changed = (np.abs(d) > TOLERANCE).sum(-1)
    low, high = wald_of(d.sum(-1), (d * d).sum(-1), changed, d.shape[-1], confidence)
    return low[()], high[()]


def wald_of(
    total: Any, square: Any, changed: Any, n: int, confidence: float
) -> tuple[Floats, Floats]:
    """The adjusted Wald interval from the sums that it is made of, any shape.

    Args:
        total: Sum of the differences.
        square: Sum of their squares.
        changed: Tasks whose difference is not zero.
        n: Tasks.
        confidence: Nominal coverage.
    """
    alpha = 1 - confidence
    h2 = (square + 1.0) / (changed + 1)
    centre = total / (n + 2)
    variance = np.maximum((square + 2 * h2) / (n + 2) - centre**2, 0.0)
    half = float(special.ndtri(1 - alpha / 2)) * np.sqrt(variance / (n + 2))
    half = np.where(changed == 0, nothing_changed(n, confidence), half)
    return np.clip(centre - half, -1, 1), np.clip(centre + half, -1, 1)


def nothing_changed(n: int, confidence: float) -> float:
    """Largest share of tasks that may differ where none of `n` did (Clopper and Pearson 1934)."""
    return float(1 - ((1 - confidence) / 2) ** (1 / n))


def sign_flip(differences: Any, *, draws: int = 20_000, seed: int = 0) -> tuple[float, float]:
    """Two-sided sign-flip permutation test of a mean paired difference of zero.

    Exact at any n where the differences lie on a lattice (rewards of 0 and 1): the law of the sum
    over all sign patterns is a convolution (Pagano and Tritchler 1983, JASA 78:435-440). Real-valued
    differences are enumerated up to 20 tasks and drawn beyond, with ties counted within a tolerance.
    The mid-p counts half of the observed value (Lancaster 1961, JASA 56:223-234; for one attempt a
    task it is the mid-p McNemar test of Fagerland et al. 2013, BMC Med. Res. Methodol. 13:91).

    Args:
        differences: After minus before, one a task, shape (tasks,).
        draws: Sign patterns drawn where the law is neither a lattice nor small.
        seed: Seed of those draws.

    Returns:
        p and mid-p.
    """
    d = np.asarray(differences, dtype=np.float64)
    steps, total = np.abs(d[np.abs(d) > TOLERANCE]), float(d.sum())
    if steps.size == 0:
        return 1.0, 1.0
    observed = abs(total)
    lattice = _lattice(steps)
    if lattice is not None:
        above, at = _convolved(*lattice, observed)
    elif steps.size <= 20:
        signs = 1 - 2 * ((np.arange(2**steps.size)[:, None] >> np.arange(steps.size)) & 1)
        above, at = _counted(np.abs(signs @ steps), observed)
    else:
        above, at = _drawn(steps, observed, draws, seed)
    return min(1.0, above + at), min(1.0, above + at / 2)


def _lattice(steps: Floats) -> tuple[NDArray[np.int64], float] | None:
    """Express the steps as integers times a unit, or say that they are on no small lattice."""
    for denominator in range(1, 257):
        scaled = steps * denominator
        whole = np.rint(scaled)
        if np.all(np.abs(scaled - whole) < 1e-7 * denominator) and whole.sum() < 2_000_000:
            return whole.astype(np.int64), 1 / denominator
    return None


def _convolved(steps: NDArray[np.int64], unit: float, observed: float) -> tuple[float, float]:
    total = int(steps.sum())
    law = np.ones(1)  # law[j]: chance that the steps taken upwards sum to j
    for step, times in zip(*np.unique(steps, return_counts=True), strict=True):
        law = _convolve(law, _spaced_binomial(int(step), int(times)))
    value = np.abs(2 * np.arange(total + 1) - total)
    goal = round(observed / unit)
    return float(law[value > goal].sum()), float(law[value == goal].sum())


def _spaced_binomial(step: int, times: int) -> Floats:
    """Law of the sum of `times` steps of one size, each taken upwards with chance one half."""
    up = np.arange(times + 1)
    log = special.gammaln(times + 1) - special.gammaln(up + 1) - special.gammaln(times - up + 1)
    law = np.zeros(step * times + 1)
    law[::step] = np.exp(log - times * math.log(2))
    return law


def _convolve(a: Floats, b: Floats) -> Floats:
    """Convolve two laws; large ones by FFT, whose error of 1e-16 is far below any p that decides."""
    if a.size * b.size < 10_000_000:
        return np.convolve(a, b)
    n = a.size + b.size - 1
    whole = np.fft.irfft(np.fft.rfft(a, n) * np.fft.rfft(b, n), n)
    return np.maximum(whole, 0.0)


def _counted(sums: Floats, observed: float) -> tuple[float, float]:
    near = np.abs(sums - observed) <= 1e-9 * max(1.0, observed)
    return float(np.mean((sums > observed) & ~near)), float(np.mean(near))


def _drawn(steps: Floats, observed: float, draws: int, seed: int) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    block = max(1, 8_000_000 // steps.size)
    sums = [
        np.abs((1 - 2 * rng.integers(0, 2, (min(block, draws - s), steps.size), np.int8)) @ steps)
        for s in range(0, draws, block)
    ]
    above, at = _counted(np.concatenate(sums), observed)
    # The observed pattern is one of the patterns (Phipson and Smyth 2010, SAGMB 9:39).
    return (above * draws) / (draws + 1), (at * draws + 1) / (draws + 1)
