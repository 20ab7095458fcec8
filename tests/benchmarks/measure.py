"""What measuring costs: pass_at and compare beside NumPy, beside whileai, and as the table grows.

Run: python tests/benchmarks/measure.py [--peer-python PYTHON with whileai 0.131] [--large 10000000]
Prints: CPU of pass_at over the CPU of reading the two columns with NumPy (the limit is 3), CPU of whileai over
ours (the limit is 100), seconds of compare on 2 x 100,000 rows (the limit is 1), and CPU and memory at
100,000, 1,000,000 and 10,000,000 rows (the cost should grow by 10 and the table must not be copied).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import textwrap
import time

import numpy as np
import psutil
import pyarrow as pa
from datasets import Dataset

import whileai_hf as wai

PEER = """
    import json, random, time, warnings
    warnings.simplefilter("ignore")
    import whileai.simulations as wai
    rng = random.Random(0)
    rows = []
    for t in range({rows} // 8):
        p = rng.random()
        for j in range(8):
            rows.append({{"id": f"t{{t}}-{{j}}", "scenario_id": f"t{{t}}", "prompt": f"task {{t}}", "final_text": "done",
                         "steps": [], "reward": int(rng.random() < p), "judge_status": "ok"}})
    start = time.process_time()
    wai.pass_at(rows)
    print(json.dumps([time.process_time() - start]))
"""


def graded(rows: int, seed: int = 0) -> Dataset:
    rng = np.random.default_rng(seed)
    tasks = np.arange(rows) // 8
    rate = rng.random(rows // 8 + 1)[tasks]
    ids = pa.array(np.char.add("t", tasks.astype(str)))
    return Dataset(pa.table({"task_id": ids, "reward": (rng.random(rows) < rate).astype(float)}))


def cpu(call, repeats: int = 5) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        call()
        best = min(best, time.process_time() - start)
    return best


def numpy_cost(dataset: Dataset) -> None:
    """Read both columns and average by task, without intervals or checks."""
    view = dataset.with_format("arrow")[:]
    _, codes = np.unique(view["task_id"].to_numpy(), return_inverse=True)
    reward = view["reward"].to_numpy()
    np.bincount(codes, reward) / np.bincount(codes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer-python")
    parser.add_argument("--peer-rows", type=int, default=100_000)
    parser.add_argument("--large", type=int, default=10_000_000)
    args = parser.parse_args()
    data = graded(100_000)
    ours = cpu(lambda: wai.pass_at(data))
    floor = cpu(lambda: numpy_cost(data))
    print(f"pass_at, 100,000 rows: {ours * 1e3:.1f} ms CPU, {ours / floor:.2f} x NumPy")
    if args.peer_python:
        code = textwrap.dedent(PEER).format(rows=args.peer_rows)
        done = subprocess.run(
            [args.peer_python, "-c", code], capture_output=True, text=True, check=True
        )
        theirs = json.loads(done.stdout.strip().splitlines()[-1])[0]
        mine = (
            cpu(lambda: wai.pass_at(graded(args.peer_rows)), 1)
            if args.peer_rows != 100_000
            else ours
        )
        print(
            f"whileai pass_at, {args.peer_rows:,} rows: {theirs:.2f} s CPU, {theirs / mine:.0f} x ours"
        )
    after = graded(100_000, seed=1)
    print(f"compare, 2 x 100,000 rows: {cpu(lambda: wai.compare(data, after), 3):.2f} s CPU")
    size = 100_000
    while size <= args.large:
        big = graded(size)
        before = psutil.Process().memory_info().rss
        took = cpu(lambda big=big: wai.pass_at(big), 1)
        grown = (psutil.Process().memory_info().rss - before) / 1e6
        held = big.data.nbytes / 1e6
        print(
            f"{size:>10,} rows: {took:6.3f} s CPU, {grown:6.0f} MB more beside a table of {held:.0f} MB"
        )
        size *= 10


if __name__ == "__main__":
    main()
