"""What labels cost beside plain `apply_chat_template` and tokenization, and what memory they take.

Both sides read the same Parquet file, run as one `map` and write the same number of tokens. The limit is
1.5 times on a template with generation marks; one without them renders what comes before each turn.

Run: python tests/benchmarks/to_sft.py [rows] [--memory]
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
import datasets
import tiny
from datasets import load_dataset

import whileai_hf as wai

parser = argparse.ArgumentParser()
parser.add_argument("rows", type=int, nargs="?", default=10_000)
parser.add_argument("--memory", action="store_true", help="measure memory alone")
ARGS = parser.parse_args()
ROWS = ARGS.rows


def write(path, n):
    """Write rollouts of three agent turns and about 200 tokens."""
    records = (
        {
            "task_id": f"t{i}", "rollout_id": f"r{i}", "messages": tiny.conversation(i, bad_first=True), "tools": [tiny.WEATHER],
            "loss_mask": [0, 0, 0, 0, 1, 0, 1],
        }
        for i in range(n)
    )  # fmt: skip
    wai.Rollouts.from_records(records).to_parquet(path)


def plain(rows, tok, path):
    """Apply the template and tokenize, as a trainer does without labels."""

    def tokenize(row):
        made = tok.apply_chat_template(row["messages"], tools=row["tools"], return_dict=True)
        return {"input_ids": made["input_ids"], "labels": made["input_ids"]}

    return rows.map(tokenize, remove_columns=rows.column_names, cache_file_name=path)


def timed(what):
    start = time.perf_counter()
    made = what()
    return time.perf_counter() - start, sum(
        map(len, made.with_format("arrow")[:]["input_ids"].to_pylist())
    )


def peak(path, n):
    """Label `n` rows in a process of its own; return MiB at its peak over what it had before."""
    datasets.disable_progress_bars()
    rows, tok = (
        load_dataset("parquet", data_files=path, split="train", cache_dir=f"{path}.cache"),
        tiny.tokenizer(),
    )
    wai.to_sft(rows.select(range(500)), tok)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    made = wai.to_sft(rows.select(range(n)), tok)
    print(
        f"{n:7} rows: {len(made)} sequences, {(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024:.0f} MiB more than 500 rows"
    )


def ratio(rows, name, folder):
    """Print the median of three ratios on one template."""
    times = []
    for again in range(3):
        tok = tiny.tokenizer(getattr(tiny, name))
        out = f"{folder}/plain-{name}-{again}.arrow"
        base, tokens = timed(lambda tok=tok, out=out: plain(rows, tok, out))
        ours, same = timed(lambda tok=tok: wai.to_sft(rows, tok, mask="assistant"))
        assert tokens == same
        times.append((ours / base, ours, base))
    found, ours, base = sorted(times)[1]
    print(
        f"{name}: to_sft {ours:.1f} s, plain {base:.1f} s, ratio {found:.2f} ({ROWS} rows, {tokens} tokens, median of 3)"
    )


if __name__ == "__main__":
    datasets.disable_progress_bars()
    datasets.disable_caching()
    folder = tempfile.mkdtemp()
    path = f"{folder}/rows.parquet"
    write(path, ROWS)
    rows = load_dataset("parquet", data_files=path, split="train", cache_dir=folder)
    for name in () if ARGS.memory else ("CHATML", "UNMARKED"):
        ratio(rows, name, folder)
    for n in (ROWS // 4, ROWS):
        process = multiprocessing.get_context("spawn").Process(target=peak, args=(path, n))
        process.start()
        process.join()
