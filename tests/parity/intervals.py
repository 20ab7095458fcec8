"""Which interval holds its level, and which verdict its error rate: ours beside the formulas of others.

Run: python tests/parity/intervals.py [--trials 4000] [--write]
Prints (and with --write keeps in tests/parity/intervals.md) coverage of nominal 95 % intervals for a
pass rate, coverage for a paired difference, false alarms and power of the verdict of `compare`.

The other formulas, computed on the same draws: lm-evaluation-harness (`mean_stderr`) and inspect_ai
(`stderr`, epochs reduced to their mean) take z times the standard error of the task means; whileai 0.131 takes
the percentile bootstrap over tasks with 2,000 draws; rows taken as independent is what a plain binomial does.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy import special, stats

from whileai_hf.measure.interval import bootstrap, effective_wilson
from whileai_hf.measure.paired import adjusted_wald, sign_flip

Z = 1.959964
SIZES, TRIES = (5, 8, 16, 30, 100), (1, 4, 8)

#: Task pass rates of nine kinds of agent, and their mean.
RATES = {
    "uniform": (lambda r, s: r.beta(1, 1, s), 0.5),
    "U-shaped": (lambda r, s: r.beta(0.3, 0.3, s), 0.5),
    "beta(9,1)": (lambda r, s: r.beta(9, 1, s), 0.9),
    "beta(1.2,.3)": (lambda r, s: r.beta(1.2, 0.3, s), 0.8),
    "beta(.3,2.7)": (lambda r, s: r.beta(0.3, 2.7, s), 0.1),
    "beta(.5,9.5)": (lambda r, s: r.beta(0.5, 9.5, s), 0.05),
    "all .70": (lambda r, s: np.full(s, 0.7), 0.7),
    "all .95": (lambda r, s: np.full(s, 0.95), 0.95),
    "0/1 tasks, .80": (lambda r, s: (r.random(s) < 0.8).astype(float), 0.8),
}


def binomial_wilson(mean, n):
    scale = 1 + Z * Z / n
    middle = (mean + Z * Z / (2 * n)) / scale
    half = Z * np.sqrt(mean * (1 - mean) / n + Z * Z / (4 * n * n)) / scale
    return middle - half, middle + half


def percentile(x, draws=2000):
    ends = np.array([bootstrap(row, 0.95, "percentile", draws, i) for i, row in enumerate(x)])
    return ends[:, 0], ends[:, 1]


MEANS = {
    "whileai_hf (default)": lambda x, k: effective_wilson(x, x.shape[1] * k, 0.95),
    "lm-eval, inspect (z of task means)": lambda x, k: _around(x, Z),
    "clustered t": lambda x, k: _around(x, special.stdtrit(x.shape[1] - 1, 0.975)),
    "whileai (percentile bootstrap)": lambda x, k: percentile(x),
    "rows as independent (Wilson)": lambda x, k: binomial_wilson(x.mean(1), x.shape[1] * k),
}


def _around(x, quantile):
    half = quantile * x.std(1, ddof=1) / np.sqrt(x.shape[1])
    return x.mean(1) - half, x.mean(1) + half


def mean_coverage(trials, seed=0, sizes=SIZES, tries=TRIES, methods=MEANS):
    """Coverage by (method, scenario, n, k), in percent."""
    found = {}
    for i, (name, (draw, truth)) in enumerate(RATES.items()):
        for n in sizes:
            for k in tries:
                rng = np.random.default_rng([seed, i, n, k])
                x = rng.binomial(k, draw(rng, (trials, n))) / k
                for method, interval in methods.items():
                    few = x[:500] if "bootstrap" in method else x
                    low, high = interval(few, k)
                    held = (low <= truth + 1e-9) & (truth - 1e-9 <= high)
                    found[method, name, n, k] = 100 * float(held.mean())
    return found


def _flips(up, down):
    def rates(r, s):
        a = (r.random(s) < 0.6).astype(float)
        u = r.random(s)
        b = np.where((a == 0) & (u < up / 0.4), 1.0, np.where((a == 1) & (u < down / 0.6), 0.0, a))
        return a, b

    return rates, up - down


def _moved(draw, change, mean):
    def rates(r, s):
        a = draw(r, s)
        return a, change(r, a)

    return rates, mean


def _some(share, to):
    return lambda r, a: np.where(r.random(a.shape) < share, to(r, a), a)


#: Before and after of a task, and the mean difference. Sixteen of the kinds that others test, ten of our own.
PAIRS = {
    "equal, uniform": _moved(lambda r, s: r.random(s), lambda r, a: a, 0.0),
    "+.05, uniform": _moved(lambda r, s: r.random(s), lambda r, a: a + 0.1 * (1 - a), 0.05),
    "unrelated": _moved(lambda r, s: r.random(s), lambda r, a: r.random(a.shape), 0.0),
    "ceiling gain": _moved(lambda r, s: r.beta(9, 1, s), lambda r, a: np.sqrt(a), 9 / 9.5 - 0.9),
    "10 % flip up": _flips(0.10, 0.0),
    "8 up, 2 down": _flips(0.08, 0.02),
    "soft": _moved(
        lambda r, s: 0.1 + 0.5 * r.beta(0.5, 0.5, s),
        lambda r, a: (lambda u: np.where(u < 0.2, a + 0.4, np.where(u < 0.4, a - 0.1, a)))(r.random(a.shape)),
        0.06,
    ),
    "ceiling, equal": _moved(
        lambda r, s: np.where(r.random(s) < 0.8, 1.0, r.beta(4, 1, s)), lambda r, a: a, 0.0
    ),
    "floor": _moved(
        lambda r, s: np.where(r.random(s) < 0.8, 0.0, r.uniform(0, 0.5, s)),
        lambda r, a: np.where(a > 0, a + 0.1, a),
        0.02,
    ),
    "heterogeneous": _moved(
        lambda r, s: (lambda u: np.where(u < 1 / 3, 0.0, np.where(u < 2 / 3, 1.0, r.random(s))))(r.random(s)),
        lambda r, a: np.where((a > 0) & (a < 1), np.where(r.random(a.shape) < 0.5, r.random(a.shape), a + 0.3 * (1 - a)), a),
        0.025,
    ),
    "+.30": _moved(lambda r, s: r.uniform(0, 0.7, s), lambda r, a: a + 0.3, 0.3),
    "30 % flip up": _flips(0.30, 0.0),
    "all +.05": _moved(lambda r, s: r.uniform(0.2, 0.7, s), lambda r, a: a + 0.05, 0.05),
    "5 % flip down": _flips(0.0, 0.05),
    "noise and 5 % flips": _moved(
        lambda r, s: np.where(r.random(s) < 0.5, 0.5, 0.0), _some(0.05, lambda r, a: np.ones_like(a)), 0.05 * 0.75
    ),
    "5 up, 5 down": _flips(0.05, 0.05),
    "skewed, mean 0": _moved(
        lambda r, s: np.where(r.random(s) < 0.1, 1.0, 0.4), lambda r, a: np.where(a == 1, 0.0, 0.4 + 1 / 9), 0.0
    ),
    "15 up, 15 down": _flips(0.15, 0.15),
    "2 % flip up": _flips(0.02, 0.0),
    "hard tasks solved": _moved(
        lambda r, s: r.beta(0.3, 2.7, s), _some(0.2, lambda r, a: np.maximum(a, 0.9)), None
    ),
    "easy tasks lost": _moved(
        lambda r, s: r.beta(9, 1, s), _some(0.1, lambda r, a: np.minimum(a, 0.2)), None
    ),
    "regression to .5": _moved(lambda r, s: r.random(s), lambda r, a: 0.5 * a + 0.25, 0.0),
    "halved": _moved(lambda r, s: r.random(s), lambda r, a: a / 2, -0.25),
    "perfect after": _moved(lambda r, s: r.beta(2, 1, s), lambda r, a: np.ones_like(a), 1 / 3),
    "half unrelated": _moved(lambda r, s: r.random(s), _some(0.5, lambda r, a: r.random(a.shape)), 0.0),
    "two kinds": _moved(
        lambda r, s: np.where(r.random(s) < 0.5, 0.1, 0.9), lambda r, a: np.where(a < 0.5, a + 0.2, a - 0.1), 0.05
    ),
}  # fmt: skip
NULLS = [name for name, (_, mean) in PAIRS.items() if mean == 0.0]
GAINS = ("soft", "10 % flip up", "8 up, 2 down", "+.30", "all +.05", "30 % flip up")


def differences(name, n, k, trials, seed=0):
    """Paired task differences of simulated comparisons, (trials, n), and their mean."""
    rates, mean = PAIRS[name]
    rng = np.random.default_rng([seed, list(PAIRS).index(name), n, k])
    if mean is None:
        a, b = rates(np.random.default_rng(12345), 2_000_000)
        mean = float((b - a).mean())
    a, b = rates(rng, (trials, n))
    clip = lambda p: np.clip(p, 0, 1)  # noqa: E731 - one word, used twice
    return (rng.binomial(k, clip(b)) - rng.binomial(k, clip(a))) / k, mean


def paired_coverage(trials, seed=0, sizes=SIZES, tries=TRIES):
    """Coverage of the default and of paired t by (method, scenario, n, k), in percent."""
    found = {}
    for name in PAIRS:
        for n in sizes:
            for k in tries:
                d, mean = differences(name, n, k, trials, seed)
                ends = {"whileai_hf (default)": adjusted_wald(d, 0.95)}
                ends["paired t"] = _around(d, special.stdtrit(n - 1, 0.975))
                for method, (low, high) in ends.items():
                    held = (low <= mean + 1e-9) & (mean - 1e-9 <= high)
                    found[method, name, n, k] = 100 * float(held.mean())
    return found


def verdicts(name, n, k, trials, seed=1):
    """How often each rule calls a difference, in percent."""
    d, _ = differences(name, n, k, trials, seed)
    low, high = adjusted_wald(d, 0.95)
    outside = (low > 0) | (high < 0)
    ours = [o and sign_flip(row)[1] < 0.05 for o, row in zip(outside, d, strict=True)]
    sd = d.std(1, ddof=1)
    t = np.abs(d.mean(1)) * np.sqrt(n) / np.where(sd > 0, sd, np.inf)
    same = (sd == 0) & (d[:, 0] != 0)
    found = {"whileai_hf": ours, "paired t": same | (t > special.stdtrit(n - 1, 0.975))}
    few = d[: min(len(d), 500)]
    found["Wilcoxon"] = [_wilcoxon(row) for row in few]
    if k == 1:
        up, down = (d > 0).sum(1), (d < 0).sum(1)
        found["McNemar exact"] = stats.binom.cdf(np.minimum(up, down), up + down, 0.5) * 2 < 0.05
    return {rule: 100 * float(np.mean(called)) for rule, called in found.items()}


def _wilcoxon(row):
    moved = row[np.abs(row) > 1e-9]
    if moved.size == 0:
        return False
    return stats.wilcoxon(moved, method="asymptotic").pvalue < 0.05


def summary(found, n):
    """(method: smallest, mean absolute deviation from 95, cells within 93 to 98) at one n."""
    out = {}
    for method in dict.fromkeys(key[0] for key in found):
        cells = np.array([v for key, v in found.items() if key[0] == method and key[2] == n])
        out[method] = (
            cells.min(),
            np.abs(cells - 95).mean(),
            np.mean((cells >= 93) & (cells <= 98)),
        )
    return out


def table(found, title, note):
    lines = [
        f"## {title}",
        "",
        note,
        "",
        "| interval | " + " | ".join(f"n={n}" for n in SIZES) + " |",
    ]
    lines.append("|---|" + "---|" * len(SIZES))
    for method in dict.fromkeys(key[0] for key in found):
        cells = [summary(found, n)[method] for n in SIZES]
        lines.append(
            f"| {method} | "
            + " | ".join(f"{a:.1f} / {b:.1f} / {c:.0%}" for a, b, c in cells)
            + " |"
        )
    return "\n".join(lines)


def rates_table(names, title, note, trials):
    sizes = (5, 8, 16, 30, 100)
    lines = [
        f"## {title}",
        "",
        note,
        "",
        "| scenario | k | rule | " + " | ".join(f"n={n}" for n in sizes) + " |",
    ]
    lines.append("|---|---|---|" + "---|" * len(sizes))
    for name in names:
        for k in (1, 4):
            found = [verdicts(name, n, k, trials) for n in sizes]
            lines += [
                f"| {name} | {k} | {rule} | " + " | ".join(f"{f[rule]:.1f}" for f in found) + " |"
                for rule in found[0]
            ]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=4000)
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    what = "smallest coverage / mean absolute deviation from 95 / share of cells within 93 to 98, in percent"
    parts = [
        "# Intervals and verdicts, measured",
        "Made by `python tests/parity/intervals.py --write`.",
        table(
            mean_coverage(args.trials), "Pass rate over tasks",
            f"Nine kinds of agent, k = 1, 4, 8 tries a task, {args.trials} evaluations a cell (500 of the bootstrap): {what}.",
        ),
        table(
            paired_coverage(args.trials), "Paired difference",
            f"{len(PAIRS)} kinds of change, k = 1, 4, 8: {what}. Sparse flips force over-coverage: where nothing changed in most samples, the interval must hold the truth.",
        ),
        rates_table(NULLS, "False alarms of the verdict", "Equal agents: share called better or worse, percent.", args.trials // 2),
        rates_table(GAINS, "Power of the verdict", "Real gains: share called better or worse, percent; shown also where others have more.", args.trials // 2),
    ]  # fmt: skip
    text = "\n\n".join(parts) + "\n"
    print(text)
    if args.write:
        Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
