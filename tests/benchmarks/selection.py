"""What `select(mode="rl")` costs beside the peer (whileai 0.131, in its own environment), in CPU seconds of one run.

Rows: eight attempts a task, replies of 20 words, a tool call and its result in every conversation.

Run: python tests/benchmarks/selection.py [rows] [python of the peer]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import datasets
import numpy as np

import whileai_hf as wai

PEER = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
from whileai.simulations import optimize
rows = [json.loads(line) for line in open(sys.argv[1])]
start = time.process_time()
kept = optimize(rows, mode="rl", target=len(rows))
print(json.dumps([time.process_time() - start, len(kept)]))
"""


def records(n, seed=0):
    rng = np.random.default_rng(seed)
    words = np.array(
        ["order", "refund", "card", "today", "email", "status", "item", "please", "done", "paid"]
    )
    for i in range(n):
        reply = " ".join(rng.choice(words, 20)) + f" {i}."
        call = {"id": "1", "type": "function", "function": {"name": "get_order", "arguments": {"id": i}}}  # fmt: skip
        task = i // 8
        yield {
            "task_id": f"t{task}", "rollout_id": f"r{i}", "reward": float(rng.random() < (task % 11) / 10),
            "finish_reason": "stop", "final_text": reply, "ask": f"Where is order {task}?",
            "messages": [
                {"role": "user", "content": f"Where is order {task}?"},
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "1", "content": "shipped"},
                {"role": "assistant", "content": reply},
            ],
        }  # fmt: skip


def theirs(record):
    return {"scenario_id": record["task_id"], "prompt": record["ask"], **record}


def peer(python, rows, limit):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(theirs(r)) + "\n" for r in rows)
        file.flush()
        try:
            done = subprocess.run([python, "-c", PEER, file.name], capture_output=True, text=True, timeout=limit)  # fmt: skip
        except subprocess.TimeoutExpired:
            return None
    return json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else done.stderr[-300:]


def ours(rows, **options):
    data = wai.Rollouts.from_records(rows)
    start = time.process_time()
    kept = data.select(mode="rl", **options)
    return time.process_time() - start, len(kept)


if __name__ == "__main__":
    datasets.disable_progress_bars()
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    python = sys.argv[2] if len(sys.argv) > 2 else "/tmp/peer/bin/python"
    rows = list(records(n))
    ours(rows[:800])
    took, kept = ours(rows)
    print(f"select, {n} rows: ours {took:.2f} s, {kept} kept")
    if Path(python).exists():
        found = peer(python, rows, 300)
        if isinstance(found, list):
            print(f"  the peer: {found[0]:.1f} s, {found[1]} kept, ratio {found[0] / took:.0f}")
        else:
            print(f"  the peer: {found or 'not done in 300 s'}")
    took, kept = ours(records(10 * n))
    print(f"select, {10 * n} rows: ours {took:.2f} s, {kept} kept")
    data = wai.Rollouts.from_records(rows)
    for name, step in (("with_duplicates", wai.with_duplicates), ("with_near_duplicates", wai.with_near_duplicates),
                       ("build_preference_pairs", wai.build_preference_pairs)):  # fmt: skip
        start = time.process_time()
        step(data)
        print(f"{name}, {n} rows: {time.process_time() - start:.2f} s")
