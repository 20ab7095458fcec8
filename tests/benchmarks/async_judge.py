"""How close asynchronous judging comes to the ideal: rows / concurrency times the judge's delay.

Run: python tests/benchmarks/async_judge.py
Prints: wall seconds of `grade` with a judge of 50 ms at concurrency 64, and their ratio to the ideal.
"""

from __future__ import annotations

import asyncio
import time

from datasets import Dataset

import whileai_hf as wai

ROWS, CONCURRENCY, DELAY_S = 6400, 64, 0.05


async def judge(row):
    await asyncio.sleep(DELAY_S)
    return row["n"] % 2


data = Dataset.from_dict({"n": list(range(ROWS))})
wai.grade(data.select(range(64)), judge, progress=False)
start = time.perf_counter()
wai.grade(data, judge, concurrency=CONCURRENCY, progress=False)
wall, ideal = time.perf_counter() - start, ROWS / CONCURRENCY * DELAY_S
print(f"{wall:.2f} s, ideal {ideal:.2f} s, ratio {wall / ideal:.3f} (limit 1.10)")
