"""What decontamination costs beside a set of word tuples and the peer (whileai 0.131, in its own environment).

CPU seconds of one run on one machine: rows of 250 words against prompts of 45, 1 % of the rows planted; then 3,000 rows
against 1,000 prompts that share a template.

Run: python tests/benchmarks/decontaminate.py [rows] [prompts] [python of the peer]
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import datasets
import numpy as np
from datasets import Dataset

import whileai_hf as wai

PEER = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
from whileai import decontaminate
rows, prompts = json.load(open(sys.argv[1]))
start = time.process_time()
kept, _ = decontaminate([{"prompt": r} for r in rows], [{"prompt": p} for p in prompts])
print(json.dumps([time.process_time() - start, len(rows) - len(kept)]))
"""


def texts(rows, prompts, seed=0):
    rng = np.random.default_rng(seed)
    vocabulary = np.array(["".join(rng.choice(list("etaoinshrdlu"), rng.integers(2, 9))) for _ in range(30_000)])  # fmt: skip
    ranks = np.minimum(rng.zipf(1.3, size=(rows, 250)) - 1, 29_999)
    made = [" ".join(vocabulary[r]).capitalize() + "." for r in ranks]
    held_out = [" ".join(vocabulary[rng.integers(0, 30_000, 45)]) + "?" for _ in range(prompts)]
    for i in rng.choice(rows, rows // 100, replace=False):
        made[i] += " " + held_out[rng.integers(prompts)]
    return made, held_out


def template(i, n):
    return f"A shop sells {i} pens a day for {n} days. How many pens does the shop sell in all of them?"


def tuples(rows, prompts, n=8):
    """A row is dropped where it shares one run of words: the plain rule, with less to do than ours."""
    word = re.compile(r"\w+")
    runs = lambda t: zip(*(t[i:] for i in range(n)), strict=False)  # noqa: E731 - one line, used twice
    index = {run for p in prompts for run in runs(word.findall(p.lower()))}
    return sum(any(run in index for run in runs(word.findall(r.lower()))) for r in rows)


def timed(what):
    start = time.process_time()
    found = what()
    return time.process_time() - start, found


def peer(python, rows, prompts, limit=300):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump([rows, prompts], file)
        file.flush()
        try:
            done = subprocess.run(
                [python, "-c", PEER, file.name], capture_output=True, text=True, timeout=limit
            )
        except subprocess.TimeoutExpired:
            return None
    return json.loads(done.stdout.splitlines()[-1])


def ours(rows, prompts):
    made = Dataset.from_dict({"prompt": rows})
    return timed(lambda: len(rows) - len(wai.decontaminate(made, prompts)))


if __name__ == "__main__":
    datasets.disable_progress_bars()
    n_rows, n_prompts = (int(a) for a in (*sys.argv[1:3], "20000", "2000")[:2]) if len(sys.argv) > 2 else (20_000, 2_000)  # fmt: skip
    python = sys.argv[3] if len(sys.argv) > 3 else "/tmp/peer/bin/python"
    rows, prompts = texts(n_rows, n_prompts)
    for part in (n_rows // 4, n_rows):
        took, dropped = ours(rows[:part], prompts)
        plain, hit = timed(lambda part=part: tuples(rows[:part], prompts))
        print(f"{part} rows x {n_prompts} prompts: ours {took:.2f} s ({dropped} dropped), set of tuples {plain:.2f} s ({hit} hit), ratio {plain / took:.1f}")  # fmt: skip
    shared = [template(i, i % 97) for i in range(3_000)], [template(i + 5_000, i % 89) for i in range(1_000)]  # fmt: skip
    took, dropped = ours(*shared)
    print(f"3000 x 1000 of one template: ours {took:.2f} s ({dropped} dropped)")
    if Path(python).exists():
        theirs = peer(python, *shared)
        print("  the peer: " + (f"{theirs[0]:.1f} s ({theirs[1]} dropped), ratio {theirs[0] / took:.0f}" if theirs else "not done in 300 s"))  # fmt: skip
        few = rows[: n_rows // 10]
        took, _ = ours(few, prompts)
        theirs = peer(python, few, prompts)
        print(f"{len(few)} rows x {n_prompts} prompts: ours {took:.2f} s, the peer " + (f"{theirs[0]:.1f} s, ratio {theirs[0] / took:.1f}" if theirs else "not done in 300 s"))  # fmt: skip
