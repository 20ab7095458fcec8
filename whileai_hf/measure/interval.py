"""Confidence intervals for a mean over tasks whose values lie in [0, 1].

A task is the unit: eight attempts at one task are not eight tasks. The default is a Wilson interval
at the effective sample size that the spread between tasks implies, with Student's quantile.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from whileai_hf import defaults
from whileai_hf.errors import InputError

Floats = NDArray[np.float64]

#: Names of the intervals for a mean, the default first.
METHODS = ("wilson", "t", "bca", "percentile", "beta-binomial")


#: Degrees of freedom where no variance is estimated. The quantile is then 2 instead of 1.96, as Agresti
#: and Coull round it (1998, Am. Stat. 52:119-126): it keeps Wilson's interval from its dips below 93 %.
_KNOWN_DF = 60


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval and how it was made."""

    low: float
    high: float
    confidence: float  #: nominal coverage, in (0, 1)
    method: str

    def __str__(self) -> str:
        return f"[{self.low:.2f}..{self.high:.2f}]"

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    @property
    def excludes_zero(self) -> bool:
        """Whether zero lies outside."""
        return self.low > 0 or self.high < 0

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        return {name: getattr(self, name) for name in self.__slots__}


def check_confidence(confidence: float) -> None:
    """Refuse a coverage outside (0, 1)."""
    if not isinstance(confidence, (int, float)) or not 0 < confidence < 1:
        raise InputError(
            f"confidence must lie in (0, 1); got {confidence!r}. Use {defaults.CONFIDENCE} for 95 %."
        )


def t_quantile(confidence: float, df: float) -> float:
    """Return the two-sided Student quantile; infinite for no degree of freedom."""
    return math.inf if df < 1 else float(special.stdtrit(df, 0.5 + confidence / 2))


def mean_interval(
    values: Any,
    attempts: Any = None,
    *,
    confidence: float = defaults.CONFIDENCE,
    method: str = "wilson",
    draws: int = defaults.BOOTSTRAP_DRAWS,
    seed: int = 0,
) -> Interval:
    """Interval for the mean over tasks of a value in [0, 1].

    Args:
        values: One value a task, shape (tasks,).
        attempts: Attempts behind each value, shape (tasks,); default one each. They bound the
            effective sample size from above.
        confidence: Nominal coverage.
        method: `"wilson"`: Wilson 1927 (JASA 22:209-212, the score interval) at the effective
            sample size m(1 - m) / se^2, clamped to [tasks, attempts] (Korn and Graubard 1998,
            Survey Methodology 24:193-201), with Student's quantile at tasks - 1 (at 60 or more where
            every task has one pass or fail, so that no variance is estimated). `"t"`: clustered
            (Miller 2024, arXiv:2411.00640, section 2.2) with Student's quantile. `"percentile"`
            and `"bca"`: bootstrap over tasks (Efron 1987, JASA 82:171-185). `"beta-binomial"`: the
            posterior of the mean of a beta-binomial with flat priors on mean and concentration.
        draws: Resamples of a bootstrap.
        seed: Seed of a bootstrap.

    Raises:
        InputError: No task, an unknown method, or a value outside [0, 1].
    """
    check_confidence(confidence)
    x = np.asarray(values, dtype=np.float64)
    n = np.ones_like(x) if attempts is None else np.asarray(attempts, dtype=np.float64)
    if x.ndim != 1 or x.size == 0 or n.shape != x.shape:
        raise InputError(
            f"an interval needs one value a task; got shapes {x.shape} and {n.shape}. "
            "Pass two flat arrays of one length."
        )
    if not np.all((x >= -1e-9) & (x <= 1 + 1e-9)):
        raise InputError(
            f"values must lie in [0, 1]; got {float(x[~((x >= 0) & (x <= 1))][0])!r}. Scale them."
        )
    if method == "wilson":
        low, high = map(float, effective_wilson(x, float(n.sum()), confidence))
    elif method == "t":
        low, high = _student(x, confidence)
    elif method in ("percentile", "bca"):
        low, high = bootstrap(x, confidence, method, draws, seed)
    elif method == "beta-binomial":
        low, high = _beta_binomial(np.rint(x * n), n, confidence)
    else:
        raise InputError(
            f"method must be one of {', '.join(METHODS)}; got {method!r}. The default is 'wilson'."
        )
    return Interval(max(low, 0.0), min(high, 1.0), confidence, method)


def effective_wilson(values: Any, attempts: Any, confidence: float) -> tuple[Any, Any]:
    """The default interval of `mean_interval`, tasks on the last axis, leading axes batched.

    Args:
        values: Values in [0, 1], shape (..., tasks).
        attempts: Attempts behind all tasks together, broadcast against the leading axes.
        confidence: Nominal coverage.
    """
    x = np.asarray(values, dtype=np.float64)
    n = x.shape[-1]
    m = x.mean(-1)
    if n < 2:
        return np.zeros_like(m)[()], np.ones_like(m)[()]
    # One pass or fail a task: the variance is the mean's own, and nothing is estimated beside it.
    known = np.all((x == 0) | (x == 1)) and np.all(np.asarray(attempts) <= n)
    df = max(n - 1, _KNOWN_DF) if known else n - 1
    low, high = wilson_of(m, x.var(-1, ddof=1) / n, n, attempts, confidence, df=df)
    return low[()], high[()]


def wilson_of(
    mean: Any, variance: Any, n: int, attempts: Any, confidence: float, *, df: int | None = None
) -> tuple[Floats, Floats]:
    """Wilson interval of a proportion whose variance was estimated over clusters.

    Args:
        mean: The proportion, any shape.
        variance: Squared standard error of `mean` over clusters.
        n: Clusters, at least 2; they bound the effective sample size from below.
        attempts: Observations; they bound it from above.
        confidence: Nominal coverage.
        df: Degrees of freedom of Student's quantile; null takes n - 1.
    """
    m, v = np.asarray(mean, dtype=np.float64), np.asarray(variance, dtype=np.float64)
    spread = np.maximum(m * (1 - m), 0.0)
    seen = np.where(v > 1e-24, spread / np.maximum(v, 1e-24), float(n))
    size = np.clip(seen, n, np.maximum(attempts, n))
    q = t_quantile(confidence, n - 1 if df is None else df)
    scale = 1 + q * q / size
    middle = (m + q * q / (2 * size)) / scale
    half = q * np.sqrt(spread / size + q * q / (4 * size * size)) / scale
    return middle - half, middle + half


def _student(x: Floats, confidence: float) -> tuple[float, float]:
    if x.size < 2:
        return 0.0, 1.0
    half = t_quantile(confidence, x.size - 1) * float(x.std(ddof=1)) / math.sqrt(x.size)
    return float(x.mean()) - half, float(x.mean()) + half


def bootstrap_means(x: Floats, draws: int, seed: int) -> Floats:
    """Return the means of resampled tasks, shape (draws,).

    Tasks of one value are exchangeable, so resampling tasks is drawing how often each distinct value
    comes up: one multinomial draw a resample.
    """
    values, counts = np.unique(x, return_counts=True)
    rng = np.random.default_rng(seed)
    if values.size <= 1024:
        return np.asarray(rng.multinomial(x.size, counts / x.size, size=draws) @ values / x.size)
    block = max(1, 4_000_000 // x.size)
    sizes = [min(block, draws - start) for start in range(0, draws, block)]
    return np.concatenate([x[rng.integers(0, x.size, (k, x.size))].mean(axis=1) for k in sizes])


def bootstrap(
    x: Floats, confidence: float, method: str, draws: int, seed: int
) -> tuple[float, float]:
    """Percentile or BCa interval over tasks (Efron 1987, equations 2.3 and 6.4)."""
    means = bootstrap_means(x, draws, seed)
    tails = np.array([(1 - confidence) / 2, (1 + confidence) / 2])
    if method == "bca":
        m = float(x.mean())
        below = (np.sum(means < m) + 0.5 * np.sum(means == m)) / draws
        shift = special.ndtri(np.clip(below, 1 / draws, 1 - 1 / draws))
        centred = m - x  # the jackknife means move by this over n - 1
        spread = float((centred**2).sum()) ** 1.5
        acceleration = float((centred**3).sum()) / (6 * spread) if spread > 0 else 0.0
        z = shift + special.ndtri(tails)
        tails = special.ndtr(shift + z / (1 - acceleration * z))
    low, high = np.quantile(means, tails)
    return float(low), float(high)


def _beta_binomial(passes: Floats, attempts: Floats, confidence: float) -> tuple[float, float]:
    """Posterior interval of the mean on a grid of mean and intraclass correlation."""
    mean = (np.arange(200) + 0.5) / 200
    rho = (np.arange(40) + 0.5) / 40
    a = mean[:, None] * (1 / rho - 1)[None]
    b = (1 - mean)[:, None] * (1 / rho - 1)[None]
    pairs, counts = np.unique(np.stack([passes, attempts]), axis=1, return_counts=True)
    log = np.zeros_like(a)
    for (c, n), times in zip(pairs.T, counts, strict=True):
        log += times * (special.betaln(c + a, n - c + b) - special.betaln(a, b))
    weight = np.exp(log - log.max()).sum(axis=1)
    cdf = np.concatenate([[0.0], np.cumsum(weight / weight.sum())])
    edges = np.arange(201) / 200
    low, high = np.interp([(1 - confidence) / 2, (1 + confidence) / 2], cdf, edges)
    return float(low), float(high)
