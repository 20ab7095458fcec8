"""Worker processes that compare expressions: from any thread, with a deadline that ends the process.

The clock of a request starts when a worker takes it, so waiting for a worker is no timeout. Workers
start when they are needed and end with this process.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import queue
import select
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

from whileai_hf.errors import WhileaiError

#: Seconds until a new worker must have loaded its libraries.
_START_SECONDS = 60.0
#: Requests after which a worker is replaced: computer algebra keeps caches.
_REQUESTS = 2_000


class Slow(Exception):
    """A comparison did not end in its time."""


@dataclass(slots=True)
class Budget:
    """What one judgment may still compute."""

    left: float  #: seconds


class Worker:
    """One process, one request at a time."""

    def __init__(self) -> None:
        env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "PYTHONUTF8": "1",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "whileai_hf.verify.math_worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env,
        )  # fmt: skip
        self.buffer = b""
        self.requests = 0
        try:
            ready = self._line(_START_SECONDS)
        except Slow:
            ready = ""
        if ready != "ready":
            self.close()
            raise WhileaiError(
                "comparing expressions needs a process with math-verify; it did not start. "
                "Install it with: pip install math-verify"
            )

    def ask(self, request: list[str], seconds: float) -> bool | None:
        """Send one comparison and wait for its verdict.

        Raises:
            Slow: It did not end in time; the process is then gone.
        """
        self.requests += 1
        try:
            assert self.process.stdin is not None
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
            line = self._line(seconds)
        except OSError as error:
            self.close()
            raise Slow from error
        except Slow:
            self.close()
            raise
        verdict: bool | None = json.loads(line)
        return verdict

    def _line(self, seconds: float) -> str:
        assert self.process.stdout is not None
        deadline = time.monotonic() + seconds
        descriptor = self.process.stdout.fileno()
        while b"\n" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                raise Slow
            chunk = os.read(descriptor, 65536)
            if not chunk:  # it died: out of memory, most likely
                raise Slow
            self.buffer += chunk
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line.decode()

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):  # what was not yet written goes nowhere
                if stream is not None:
                    stream.close()
        self.process.wait()


class Pool:
    """As many workers as there are processors, started when they are needed."""

    def __init__(self, size: int) -> None:
        self.free: queue.LifoQueue[Worker | None] = queue.LifoQueue()
        for _ in range(size):
            self.free.put(None)
        self.pid = os.getpid()

    def ask(self, request: list[str], budget: Budget) -> bool | None:
        """Compare in the next free worker; only what the worker spends counts."""
        worker = self.free.get()
        try:
            if worker is not None and (
                worker.requests >= _REQUESTS or worker.process.poll() is not None
            ):
                worker.close()
                worker = None
            if worker is None:
                worker = Worker()
            start = time.monotonic()
            verdict = worker.ask(request, budget.left)
            budget.left -= time.monotonic() - start
        except BaseException:
            worker = None
            raise
        finally:
            self.free.put(worker)
        return verdict

    def close(self) -> None:
        """End every free worker."""
        while not self.free.empty():
            worker = self.free.get_nowait()
            if worker is not None:
                worker.close()


_lock = threading.Lock()
_pool: Pool | None = None


def pool() -> Pool:
    """Return the workers of this process; a forked child gets its own."""
    global _pool
    with _lock:
        if _pool is None or _pool.pid != os.getpid():
            _pool = Pool(min(4, os.cpu_count() or 1))
            atexit.register(_pool.close)
        return _pool
