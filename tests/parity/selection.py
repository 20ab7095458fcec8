"""What the difficulty band keeps, and what rejection sampling is worth beside chance, on policies of known truth.

Part one: 2,000 tasks whose true pass rate is uniform in [0, 1]; how many are kept whose rate lies in the band, and
how many outside it, at k attempts, by the rate alone and with the interval's say. Part two: graded attempts at tasks
with a hidden quality of the reply that the reward shows in part; the mean quality of what is kept, by the best reward
and by chance. Writes tests/parity/selection.md.

Run: python tests/parity/selection.py
"""

from __future__ import annotations

from pathlib import Path

import datasets
import numpy as np
from datasets import Dataset

import whileai_hf as wai

PAGE = Path(__file__).with_suffix(".md")
LOW, HIGH = 0.2, 0.8


def attempts(rates, k, rng):
    """Graded attempts of tasks with known pass rates."""
    rewards = rng.random((len(rates), k)) < rates[:, None]
    ids = [f"t{i}" for i in range(len(rates)) for _ in range(k)]
    return Dataset.from_dict({"task_id": ids, "reward": rewards.ravel().astype(float)})


def band(tasks=2_000, seed=0):
    """Shares of tasks that stay, by where their true rate lies; each with its binomial standard error below 0.03."""
    rng = np.random.default_rng(seed)
    rates = rng.random(tasks)
    inside = (rates >= LOW) & (rates <= HIGH)
    far = (rates < LOW / 2) | (rates > 1 - LOW / 2)
    for k in (4, 8, 16):
        rows = wai.with_group_stats(attempts(rates, k, rng))
        shares = [k]
        for gates in (
            [wai.Band()],
            [wai.Band(sure=True)],
            [wai.Spread()],
            [wai.Spread(), wai.Band()],
        ):
            kept = set(wai.select(rows, mode="rl", gates=gates)["task_id"])
            stays = np.array([f"t{i}" in kept for i in range(tasks)])
            shares += [stays[inside].mean(), stays[far].mean()]
        yield shares


def rejection(tasks=2_000, k=8, seed=0):
    """Mean hidden quality of the kept replies, with its standard error over tasks."""
    rng = np.random.default_rng(seed)
    quality = np.clip(rng.beta(2, 2, tasks)[:, None] + rng.normal(0, 0.2, (tasks, k)), 0, 1)
    for noise in (0.0, 0.1, 0.3):
        seen = np.clip(quality + rng.normal(0, noise, quality.shape), 0, 1)
        rows = Dataset.from_dict({
            "task_id": [f"t{i}" for i in range(tasks) for _ in range(k)], "reward": seen.ravel(), "quality": quality.ravel(),
        })  # fmt: skip
        line = [noise, quality.mean()]
        for pick in ("best", "random"):
            kept = wai.select(rows, mode="sft", gates=[wai.Judged()], top=1, pick=pick, seed=seed)
            values = np.array(kept["quality"])
            line += [values.mean(), values.std(ddof=1) / np.sqrt(len(values))]
        yield line


def page():
    lines = [
        "# What selection keeps", "",
        f"Made by `tests/parity/selection.py`. Share of tasks kept, of 2,000 whose true pass rate is uniform in [0, 1]: of those whose rate lies in [{LOW}, {HIGH}],",
        f"and of those far outside (below {LOW / 2} or above {1 - LOW / 2}). Standard errors are below 0.03.", "",
        "| k | band: in | far out | band, sure: in | far out | spread: in | far out | spread and band: in | far out |",
        "|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    lines += ["| " + " | ".join([str(k), *(f"{s:.2f}" for s in shares)]) + " |" for k, *shares in band()]  # fmt: skip
    lines += [
        "", "Rejection sampling (`top=1`) beside its control, mean hidden quality of the kept reply of each of 2,000 tasks, eight",
        "attempts each, ± one standard error; the reward shows the quality with noise of the standard deviation given.", "",
        "| noise of the reward | all attempts | `pick=\"best\"` | `pick=\"random\"` |", "|---|---|---|---|",
    ]  # fmt: skip
    for noise, everything, best, e1, chance, e2 in rejection():
        lines.append(f"| {noise} | {everything:.3f} | {best:.3f} ± {e1:.3f} | {chance:.3f} ± {e2:.3f} |")  # fmt: skip
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    datasets.disable_progress_bars()
    made = page()
    PAGE.write_text(made, encoding="utf-8")
    print(made)
