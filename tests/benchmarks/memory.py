"""Memory of long tables: a million rollouts through pass_at, filter and to_parquet.

Run: python tests/benchmarks/memory.py [--rows 1000000]
Prints: peak resident and peak anonymous memory of each step, as a share of the limit of 2 GB.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import whileai_hf as wai
from whileai_hf import schema

LIMIT_MB = 2_000
CHUNK = 10_000


class Peak:
    """The highest resident and anonymous memory of this process while a step runs, in MB."""

    def __enter__(self):
        self.rss = self.anonymous = 0.0
        self.running = True
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()
        self.start = time.process_time()
        return self

    def _watch(self):
        while self.running:
            fields = dict(
                line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines()
            )
            self.rss = max(self.rss, int(fields["VmRSS"].split()[0]) / 1024)
            self.anonymous = max(self.anonymous, int(fields["RssAnon"].split()[0]) / 1024)
            time.sleep(0.01)

    def __exit__(self, *_):
        self.running = False
        self.thread.join()
        self.cpu = time.process_time() - self.start


def write(path: Path, rows: int) -> None:
    """Write rollouts chunk by chunk, as `simulate(output=…)` does."""
    rng = np.random.default_rng(0)
    messages = [
        {"role": "system", "content": "Help customers with orders. " * 8},
        {"role": "user", "content": "Where is order A-1? " * 8},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": "c",
                    "type": "function",
                    "function": {"name": "get_order", "arguments": {"order_id": "A-1"}},
                }
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "c",
            "content": '{"order_id": "A-1", "status": "shipped"}',
        },
        {"role": "assistant", "content": "It was shipped. " * 20},
    ]
    writer = None
    for start in range(0, rows, CHUNK):
        table = schema.to_table(
            {
                "task_id": f"t{(start + i) // 8}",
                "repeat": i % 8,
                "messages": messages,
                "reward": float(rng.random() < 0.6),
            }
            for i in range(min(CHUNK, rows - start))
        )
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(pa.table(table))
    writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "in.parquet"
        steps = {
            "write": lambda: write(path, rows),
            "load": lambda: found.append(wai.load(path)),
            "pass_at": lambda: print(wai.pass_at(found[0])),
            "filter": lambda: found.append(
                found[0].filter(
                    lambda r: [x == 1 for x in r], input_columns=["reward"], batched=True
                )
            ),
            "to_parquet": lambda: found[1].to_parquet(Path(folder) / "out.parquet"),
        }
        found: list = []
        for name, step in steps.items():
            with Peak() as peak:
                step()
            print(
                f"{name:>10}: {peak.cpu:7.1f} s CPU, peak {peak.rss:6.0f} MB resident, "
                f"{peak.anonymous:6.0f} MB anonymous = {peak.anonymous / LIMIT_MB:.2f} of the limit"
            )
        print(f"{rows} rollouts in, {len(found[1])} out")


if __name__ == "__main__":
    main()
