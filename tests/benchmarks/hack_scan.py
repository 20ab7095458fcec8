"""What a scan for reward hacks costs, ours and whileai's in one run.

Run: python tests/benchmarks/hack_scan.py [--peer-python PYTHON with whileai 0.131] [--rows 10000]
Prints: CPU of `hack_scan` on graded rollouts of 40 words, peak memory, and whileai's CPU over ours.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import textwrap
import time

import numpy as np
from datasets import Dataset

import whileai_hf as wai

PEER = """
    import json, sys, time, warnings
    warnings.simplefilter("ignore")
    import whileai.simulations as wai
    rows = json.load(sys.stdin)
    start = time.process_time()
    wai.hack_scan(rows)
    print(json.dumps(time.process_time() - start))
"""


def rollouts(n: int) -> Dataset:
    rng = np.random.default_rng(0)
    words = np.array(
        [
            a + b
            for a in ("ba", "de", "fi", "go", "lu", "ma", "ne", "pi", "ro", "su")
            for b in ("k", "l", "m", "n", "r", "s", "t", "v", "x", "z")
        ]
    )
    odds = 1 / np.arange(1, len(words) + 1)
    drawn = rng.choice(words, (n, 40), p=odds / odds.sum())
    rate = rng.random(n // 8 + 1)[np.arange(n) // 8]
    return Dataset.from_dict(
        {"task_id": [f"t{i // 8}" for i in range(n)], "reward": (rng.random(n) < rate).astype(float),
         "final_text": [" ".join(row) for row in drawn]}
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer-python")
    parser.add_argument("--rows", type=int, default=10_000)
    args = parser.parse_args()
    data = rollouts(args.rows)
    wai.hack_scan(data.select(range(400)))
    start = time.process_time()
    wai.hack_scan(data)
    ours = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{args.rows:,} rows: {ours:.2f} s CPU, peak {peak:.0f} MB")
    if args.peer_python:
        rows = [
            {"id": f"r{i}", "scenario_id": row["task_id"], "prompt": row["task_id"], "final_text": row["final_text"],
             "steps": [], "reward": int(row["reward"]), "judge_status": "ok"} for i, row in enumerate(data)
        ]  # fmt: skip
        done = subprocess.run([args.peer_python, "-c", textwrap.dedent(PEER)], input=json.dumps(rows), capture_output=True, text=True, check=True)  # fmt: skip
        theirs = json.loads(done.stdout.strip().splitlines()[-1])
        print(f"whileai: {theirs:.2f} s CPU, {theirs / ours:.1f} x ours")


if __name__ == "__main__":
    main()
