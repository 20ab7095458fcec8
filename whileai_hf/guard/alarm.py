"""An alarm for a training run: does the policy earn reward that the trusted gold does not give?

Movement alone is no hack, and neither is a style that is rewarded: right answers have a style too.
The alarm therefore needs a *gold*, a reward from another channel, on a small random share of the
rollouts, and fires on either of two findings:

* **Unearned feature.** A feature moved since the first window, it is rewarded inside groups in the
  direction in which it moved, and it earns credit beyond what gold explains, by two tests. All four
  z-values must pass, so each p-value is valid for "at least one of the four is false" (an
  intersection-union test, Berger 1982), and the threshold is Bonferroni over features and looks.
* **Unmatched gain.** The proxy's gain outruns the gold's: an always-valid e-process on audited
  rows (betting, Waudby-Smith and Ramdas 2024, section 4.2), mixed over the look at which a hack may
  begin, and compared with 2 / alpha (Ville 1939).

Half of alpha goes to each, so that `alpha` bounds the false alarms of a whole *run*, approximately:
the z-values are asymptotic in the number of groups, and the baseline of the e-process is estimated.

It cannot see a hack that gold shares, one that was complete in the first window, or, for the first
finding, one that no feature describes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from whileai_hf import defaults
from whileai_hf.errors import InputError

Floats = NDArray[np.float64]

#: The smallest standard deviation by which a gain is measured.
_SD_FLOOR = 0.05
#: Rows off a feature's median that the audit must hold before its credit can be tested.
_MIN_MINORITY = 4
#: Gains beyond this many standard deviations (at margin 1) are clipped, to keep a bet bounded.
_CLIP = 3.0
#: The largest share of the wealth that one bet may risk.
_MAX_BET = 0.5


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at the run found."""

    index: int  #: number of the look, 0 being the reference window
    feature: str | None  #: the feature that comes nearest to an alarm, null at the reference
    before: float  #: mean of that feature in the first window
    now: float  #: and in this one
    score: float  #: its smallest of the four z-values, in the direction in which it moved
    threshold: float  #: the score at which the first finding alarms
    log_e: float  #: log of the e-value of the second finding
    log_e_threshold: float
    n_rows: int
    n_audited: int  #: audited rows so far

    @property
    def by_feature(self) -> bool:
        """Whether the first finding alarms."""
        return self.score > self.threshold

    @property
    def by_gain(self) -> bool:
        """Whether the second finding alarms."""
        return self.log_e > self.log_e_threshold

    @property
    def alarm(self) -> bool:
        """Whether either finding alarms."""
        return self.by_feature or self.by_gain

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        return {name: getattr(self, name) for name in self.__slots__} | {"alarm": self.alarm}


@dataclass
class Audit:
    """Audited rows of the looks so far, by look: features, proxy and gold."""

    features: list[list[dict[str, float]]] = field(default_factory=list)
    proxy: list[list[float]] = field(default_factory=list)
    gold: list[list[float]] = field(default_factory=list)


class _Rows:
    """Rows of named features as arrays: what is asked of them is asked of all at once."""

    def __init__(self, rows: Sequence[dict[str, float]]) -> None:
        ids: dict[str, int] = {}
        codes = [ids.setdefault(name, len(ids)) for row in rows for name in row]
        self.n = len(rows)
        self.names = list(ids)
        self.codes = np.array(codes, dtype=np.int64)
        self.values = np.array([v for row in rows for v in row.values()], dtype=np.float64)
        self.at = np.repeat(np.arange(self.n), [len(row) for row in rows])

    def matrix(self, names: Sequence[str]) -> Floats:
        """Return the values of some features, shape (rows, features); absent is 0."""
        column = dict(zip(names, range(len(names)), strict=True))
        where = np.array([column.get(name, -1) for name in self.names], dtype=np.int64)
        x = np.zeros((self.n, len(names)))
        if self.codes.size:
            j = where[self.codes]
            known = j >= 0
            x[self.at[known], j[known]] = self.values[known]
        return x

    def totals(self) -> tuple[dict[str, float], dict[str, int]]:
        """Return the sum of each feature and the number of rows that have it."""
        sums = np.bincount(self.codes, self.values, len(self.names))
        present = np.bincount(self.codes, minlength=len(self.names))
        return (
            dict(zip(self.names, sums.tolist(), strict=True)),
            dict(zip(self.names, present.tolist(), strict=True)),
        )


class HackAlarm:
    """The rule, one `look` a window of rollouts; its state is plain JSON.

    Features are given by name, and a feature that a row does not name is 0 there, so that a word
    which the policy begins to use after the first window is a feature of its own.

    Args:
        n_looks: Looks of the whole run, the first being the reference; at least 2.
        alpha: False alarms allowed for a whole run.
        margin: How many times gold's own credit is counted. Above 1 it covers a gold that errs:
            1.5 is for errors up to about a sixth.
        n_features: How many features one look may test; the most frequent in its rows.
        endorsed: Features that are wanted whatever gold says of them.
    """

    def __init__(
        self,
        n_looks: int,
        *,
        alpha: float = defaults.MONITOR_ALPHA,
        margin: float = defaults.MONITOR_MARGIN,
        n_features: int = defaults.MONITOR_FEATURES,
        endorsed: Sequence[str] = (),
    ) -> None:
        if n_looks < 2:
            raise InputError(
                f"the monitor needs at least 2 windows in a run, the first being the reference; "
                f"got {n_looks}. Shorten the window, or train for more steps."
            )
        if not 0 < alpha < 1 or margin < 1:
            raise InputError(
                f"alpha must lie in (0, 1) and margin must be at least 1; got {alpha!r} and "
                f"{margin!r}. The defaults are {defaults.MONITOR_ALPHA} and "
                f"{defaults.MONITOR_MARGIN}."
            )
        self.n_looks, self.alpha, self.margin = n_looks, alpha, margin
        self.n_features, self.endorsed = n_features, tuple(endorsed)
        self.threshold = float(special.ndtri(1 - alpha / 2 / (n_features * (n_looks - 1))))
        self.log_e_threshold = math.log(2 / alpha)
        self.index = 0
        self.reference: dict[str, list[float]] = {}  # name -> mean and squared standard error
        self.n_reference_groups = 0
        self.scale = [_SD_FLOOR, _SD_FLOOR]  # of the proxy and of gold, in the first window
        self.audit = Audit()
        self.gains: list[list[float]] = []

    def state(self) -> dict[str, Any]:
        """Return everything that the next look needs, as JSON."""
        return {
            "index": self.index,
            "reference": self.reference,
            "n_reference_groups": self.n_reference_groups,
            "scale": self.scale,
            "audit": [self.audit.features, self.audit.proxy, self.audit.gold],
            "gains": self.gains,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from `state()`."""
        self.index, self.reference = state["index"], state["reference"]
        self.n_reference_groups, self.scale = state["n_reference_groups"], state["scale"]
        self.audit, self.gains = Audit(*state["audit"]), state["gains"]

    @property
    def has_gold(self) -> bool:
        """Whether any row was audited; without one, a look says what moved and is rewarded."""
        return any(self.audit.gold)

    def look(
        self,
        rows: Sequence[dict[str, float]],
        proxy: Floats,
        groups: NDArray[np.int64],
        audited: Sequence[int],
        gold: Floats,
    ) -> Look:
        """Look at one window of rollouts.

        Args:
            rows: Features of each rollout by name; absent is 0.
            proxy: Reward that the trainer uses, shape (rows,).
            groups: Group of each rollout, shape (rows,); groups are the units of movement.
            audited: Indices of the rows that gold scored, drawn at random, not by reward.
            gold: Gold reward of those rows, in [0, 1], shape (audited,).
        """
        codes, n_groups = _codes(groups)
        self.audit.features.append([rows[i] for i in audited])
        self.audit.proxy.append([float(proxy[i]) for i in audited])
        self.audit.gold.append([float(g) for g in gold])
        if self.index == 0:
            self._set_reference(_Rows(rows), proxy, codes, n_groups)
            found: tuple[str | None, float, float, float] = (None, 0.0, 0.0, -math.inf)
        else:
            found = self._feature(_Rows(rows), proxy, codes, n_groups)
        log_e = self._gain() if self.index and self.has_gold else 0.0
        look = Look(
            self.index, *found, self.threshold, log_e, self.log_e_threshold, len(rows),
            sum(map(len, self.audit.gold)),
        )  # fmt: skip
        self.index += 1
        return look

    def _set_reference(
        self,
        rows: _Rows,
        proxy: Floats,
        codes: NDArray[np.int64],
        n_groups: int,
    ) -> None:
        names = sorted(rows.names)
        mean, error = _group_moments(rows.matrix(names), codes, n_groups)
        self.reference = {
            name: [float(m), float(e)] for name, m, e in zip(names, mean, error, strict=True)
        }
        self.n_reference_groups = n_groups
        sd_gold = float(np.std(self.audit.gold[0])) if self.has_gold else 0.0
        self.scale = [max(float(np.std(proxy)), _SD_FLOOR), max(sd_gold, _SD_FLOOR)]

    def _feature(
        self,
        rows: _Rows,
        proxy: Floats,
        codes: NDArray[np.int64],
        n_groups: int,
    ) -> tuple[str | None, float, float, float]:
        names = _frequent(rows, self.reference, self.n_features, self.endorsed)
        if not names:
            return None, 0.0, 0.0, -math.inf
        x = rows.matrix(names)
        mean, error = _group_moments(x, codes, n_groups)
        before, before_error = np.array([self.reference.get(n, (0.0, 0.0)) for n in names]).T
        # The last term stands for the variance that no group showed: a quarter of one row.
        noise = np.sqrt(error + before_error + (0.25 / rows.n) ** 2)
        moved = (mean - before) / noise
        sign = np.where(moved >= 0, 1.0, -1.0)
        rewarded = _rewarded(x, proxy, codes, n_groups)
        tests = [sign * moved, sign * rewarded]
        if self.has_gold:
            ax, ap, ag = self._audited(names)
            tests += [sign * _excess(ax, ap, ag), sign * self._gap(ax, ap, ag, sign)]
        score = np.min(tests, axis=0)
        best = int(score.argmax())
        return names[best], float(before[best]), float(mean[best]), float(score[best])

    def _audited(self, names: Sequence[str]) -> tuple[Floats, Floats, Floats]:
        rows = [row for look in self.audit.features for row in look]
        return _Rows(rows).matrix(names), _flat(self.audit.proxy), _flat(self.audit.gold)

    def _gap(self, x: Floats, proxy: Floats, gold: Floats, sign: Floats) -> Floats:
        """Return z of the correlation with the proxy's excess over gold, gold counted `margin` times.

        The margin counts only where gold itself credits the movement; elsewhere it would hide it.
        """
        p = proxy / max(float(proxy.std()), _SD_FLOOR)
        g = gold / max(float(gold.std()), _SD_FLOOR)
        credited = sign * ((x - x.mean(0)).T @ (gold - gold.mean())) > 0
        return np.where(credited, _correlation_z(x, p - self.margin * g), _correlation_z(x, p - g))

    def _gain(self) -> float:
        """Return the log e-value of "the proxy gained more than `margin` times what gold gained"."""
        sd_p, sd_g = self.scale
        gains = [
            np.array(p) / sd_p - self.margin * np.array(g) / sd_g
            for p, g in zip(self.audit.proxy, self.audit.gold, strict=True)
        ]
        base = gains[0]
        # Two standard errors pay for a baseline that is estimated.
        start = base.mean() + 2 * base.std(ddof=1) / math.sqrt(len(base)) if len(base) > 1 else 0.0
        width = _CLIP * (1 + self.margin) / 2
        self.gains.append(list(map(float, np.clip((gains[-1] - start) / width, -1, 1))))
        wealth = [_log_wealth(_flat(self.gains[j:])) for j in range(len(self.gains))]
        n = self.n_looks - 1
        unbegun = max(n - len(wealth), 0)
        total = sum(math.exp(min(w, 600.0)) for w in wealth) + unbegun
        return math.log(total / max(n, len(wealth)))


def _codes(groups: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
    ids, codes = np.unique(groups, return_inverse=True)
    return codes.astype(np.int64), len(ids)


def _flat(values: Sequence[Sequence[float]]) -> Floats:
    return np.array([v for look in values for v in look], dtype=np.float64)


def _frequent(
    rows: _Rows,
    reference: dict[str, list[float]],
    n: int,
    endorsed: Sequence[str],
) -> list[str]:
    """Choose the features to test by how often they occur and how far they moved.

    They are never chosen by what they earn. Half of the places go to the features that most rows
    have, the other half to those whose mean changed most, in units of their size.
    """
    sums, present = rows.totals()
    names = sorted((sums.keys() | reference.keys()) - set(endorsed))
    now = np.array([sums.get(name, 0.0) for name in names]) / rows.n
    before = np.array([reference[name][0] if name in reference else 0.0 for name in names])
    size = np.maximum(np.maximum(np.abs(now), np.abs(before)), 1.0)
    moved = np.argsort(-np.abs(now - before) / size, kind="stable")
    count = np.array([present.get(name, 0) for name in names])
    common = np.argsort(-count, kind="stable")[: n // 2]
    return list(dict.fromkeys(names[i] for i in [*common, *moved]))[:n]


def _members(codes: NDArray[np.int64], n_groups: int) -> Floats:
    """Return which rows belong to which group, shape (groups, rows)."""
    return np.asarray(codes[None, :] == np.arange(n_groups)[:, None], dtype=np.float64)


def _group_moments(x: Floats, codes: NDArray[np.int64], n_groups: int) -> tuple[Floats, Floats]:
    """Return the mean of the group means and its squared standard error, shape (features,) each."""
    member = _members(codes, n_groups)
    means: Floats = (member @ x) / member.sum(1, keepdims=True)
    if n_groups < 2:
        return means.mean(0), np.full(x.shape[1], np.inf)
    return means.mean(0), means.var(0, ddof=1) / n_groups


def _rewarded(x: Floats, proxy: Floats, codes: NDArray[np.int64], n_groups: int) -> Floats:
    """Return z of the within-group covariance of each feature with the proxy, groups as units."""
    member = _members(codes, n_groups)
    size = member.sum(1)
    p = proxy - ((member @ proxy) / size)[codes]
    # The centred proxy sums to zero in a group, so the features need no centring of their own.
    s = member @ (x * p[:, None])
    return np.asarray(s.sum(0) / np.maximum(np.sqrt((s**2).sum(0)), 1e-9))


def _excess(x: Floats, proxy: Floats, gold: Floats) -> Floats:
    """Return z of the partial correlation of the proxy with each feature, given gold."""
    g = gold - gold.mean()
    norm = float(g @ g)
    px, pp = x - x.mean(0), proxy - proxy.mean()
    if norm > 1e-12:
        px = px - np.multiply.outer(g, g @ px / norm)
        pp = pp - g * float(g @ pp / norm)
    if math.sqrt(float(pp @ pp) / len(pp)) < 1e-5:
        return np.zeros(x.shape[1])  # the proxy is gold on every audited row
    scale = np.sqrt((px**2).sum(0) * float(pp @ pp))
    r = np.where(scale > 1e-6, px.T @ pp / np.maximum(scale, 1e-9), 0.0)
    return _z_of_r(r, len(proxy) - 3, x)


def _correlation_z(x: Floats, d: Floats) -> Floats:
    x_centred, d = x - x.mean(0), d - d.mean()
    scale = np.sqrt((x_centred**2).sum(0) * float(d @ d))
    r = np.where(scale > 1e-6, x_centred.T @ d / np.maximum(scale, 1e-9), 0.0)
    return _z_of_r(r, len(d) - 2, x)


def _z_of_r(r: Floats, df: int, x: Floats) -> Floats:
    """Return the normal deviate with the p-value that Student t gives a correlation.

    A feature that hardly varies in the audit has no test and gets 0.
    """
    if df < 1:
        return np.zeros(len(r))
    r = np.clip(r, -0.9999, 0.9999)
    t = np.abs(r) * np.sqrt(df / (1 - r * r))
    z = np.minimum(-special.ndtri(np.maximum(special.stdtr(df, -t), 1e-16)), 8.0)
    varies = (np.abs(x - np.median(x, axis=0)) > 1e-9).sum(0) >= _MIN_MINORITY
    return np.where(varies, np.sign(r) * z, 0.0)


def _log_wealth(gains: Floats) -> float:
    """Return the log wealth of betting on positive gains, each bet made before its row is seen.

    The bet is the truncated aGRAPA of Waudby-Smith and Ramdas 2024, appendix B.3.
    """
    total, square, n, log_wealth = 0.0, 0.25, 1.0, 0.0
    for gain in gains:
        mean = total / n
        bet = min(_MAX_BET, max(0.0, mean / (square / n + mean * mean)))
        log_wealth += math.log1p(bet * gain)
        total, square, n = total + gain, square + gain * gain, n + 1
    return log_wealth
