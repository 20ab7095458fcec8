"""Rows with labels of known truth: judges of known agreement, tasks whose rows hang together."""

from __future__ import annotations

import numpy as np

import whileai_hf as wai


def rows(gold, reward, per_task=1, texts=None, **extra):
    """Labelled rows, `per_task` of them a task."""
    made = [
        {
            "rollout_id": f"r{i}", "task_id": f"t{i // per_task}", "gold_reward": g, "reward": r,
            "final_text": texts[i] if texts else f"reply {i}",
            "messages": [{"role": "user", "content": f"ask {i}"}, {"role": "assistant", "content": texts[i] if texts else f"reply {i}"}],
        }
        for i, (g, r) in enumerate(zip(gold, reward, strict=True))
    ]  # fmt: skip
    return wai.Rollouts.from_records(
        [{**row, **{k: v[i] for k, v in extra.items()}} for i, row in enumerate(made)]
    )


def clustered(agreement, n_tasks, per_task, spread, seed):
    """Labels half of each class, and a judge whose agreement varies from task to task around a mean."""
    rng = np.random.default_rng(seed)
    a, b = agreement * spread, (1 - agreement) * spread
    of_task = np.repeat(rng.beta(a, b, n_tasks), per_task)
    gold = (rng.random(n_tasks * per_task) < 0.5).astype(float)
    agrees = rng.random(gold.size) < of_task
    return rows(gold.tolist(), np.where(agrees, gold, 1 - gold).tolist(), per_task)
