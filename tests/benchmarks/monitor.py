"""What HackMonitor and RunReporter cost a training step: their own seconds by those of the run.

Run: python tests/benchmarks/monitor.py
Prints: for each callback the share of a tiny model's GRPO run that is spent inside it, audits and held-out
sampling aside, beside the limit of 2 %.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from parity import monitor_testbed as bed

import whileai_hf as wai

LIMIT = 0.02


class Clock:
    """Seconds spent inside some methods of an object."""

    def __init__(self, owner, names):
        self.seconds, self.depth = 0.0, 0
        for name in names:
            setattr(owner, name, self._timed(getattr(owner, name)))

    def _timed(self, method):
        def timed(*args, **kwargs):
            start, self.depth = time.perf_counter(), self.depth + 1
            try:
                return method(*args, **kwargs)
            finally:
                self.depth -= 1
                if self.depth == 0:
                    self.seconds += time.perf_counter() - start

        return timed


def share(callback, names, folder):
    clock = Clock(callback, names)
    run = bed.Run("A", "exact", 0.0, 0, 3e-4)
    start = time.perf_counter()
    bed.train(run, folder, callbacks=[callback], wrap=callback.wrap)
    total = time.perf_counter() - start
    return clock.seconds / (total - clock.seconds), clock.seconds / bed.STEPS


def main():
    with tempfile.TemporaryDirectory() as folder:
        bed.warm(bed.BASES[0], bed.tokenizer(), folder)
        monitor = wai.HackMonitor(
            gold=lambda completions, **_: [0.5] * len(completions), write=lambda text: None
        )
        reporter = wai.RunReporter(Path(folder) / "report")
        for name, callback, methods in (
            ("HackMonitor", monitor, ("_record", "on_step_end", "on_log", "on_evaluate")),
            ("RunReporter", reporter, ("_see", "on_step_end", "on_log", "on_evaluate")),
        ):
            found, step = share(callback, methods, folder)
            print(
                f"{name}: {found:.2%} of the run, {1000 * step:.2f} ms a step (limit {LIMIT:.0%})"
            )


if __name__ == "__main__":
    main()
