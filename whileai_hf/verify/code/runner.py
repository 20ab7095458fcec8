"""`run`: one candidate, one text of tests, one verdict that says how it was isolated."""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from typing import Any

from whileai_hf.errors import InputError
from whileai_hf.verify.code import codec, sandbox


@dataclass(frozen=True, slots=True)
class CodeResult:
    """The verdict on one program; `reward` is None when the task, not the program, is at fault."""

    reward: float | None
    reason: str
    passed: int
    total: int
    guarantee: str

    def __str__(self) -> str:
        return f"reward {self.reward} ({self.reason}; isolation: {self.guarantee})"

    def to_dict(self) -> dict[str, Any]:
        """The fields as a dictionary."""
        return asdict(self)


class _Server:
    """One fork server; jobs on it run one after another."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None
        self.control: socket.socket | None = None

    def start(self) -> socket.socket:
        """The control socket of a live server."""
        if self.control is None or self.process is None or self.process.poll() is not None:
            self.close()
            self.control, theirs = socket.socketpair()
            command = [
                sys.executable,
                "-I",
                "-m",
                "whileai_hf.verify.code.server",
                str(theirs.fileno()),
            ]
            env = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1"}
            self.process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], env=env, stdin=subprocess.DEVNULL
            )
            theirs.close()
        return self.control

    def close(self) -> None:
        """End the server; the kernel ends what it started."""
        if self.control is not None:
            self.control.close()
        if self.process is not None:
            self.process.wait()
        self.control = self.process = None

    def verdict(self, job: dict[str, Any], task: dict[str, Any]) -> list[Any]:
        """Run one job."""
        with self.lock:
            control = self.start()
            ours, theirs = socket.socketpair()
            scratch = job["scratch"] = tempfile.mkdtemp(prefix="code-")
            os.chmod(scratch, 0o777)  # noqa: PTH101
            try:
                socket.send_fds(control, [scratch.encode()], [theirs.fileno()])
                theirs.close()
                return _talk(ours, job, task)
            finally:
                ours.close()
                control.recv(1)
                shutil.rmtree(scratch, ignore_errors=True)


def _talk(sock: socket.socket, job: dict[str, Any], task: dict[str, Any]) -> list[Any]:
    deadline = time.monotonic() + job["timeout"] + 2
    sock.settimeout(job["timeout"] + 2)
    try:
        codec.send(sock, [job])
        reply = codec.receive(sock)
        if reply != ["ready"]:
            return reply
        codec.send(sock, [task])
        sock.settimeout(max(0.1, deadline - time.monotonic()))
        return codec.receive(sock)
    except (EOFError, TimeoutError, ConnectionError):
        return [0.0, "the program ran past its deadline or ended the run", 0, 0]


_SERVER = _Server()
atexit.register(_SERVER.close)


@functools.cache
def best_level() -> str:
    """The strongest isolation that starts here, found by starting it; "" when none does."""
    for level in sandbox.LEVELS[:2]:
        if run("x = 1", "assert x == 1", isolation=level).reward == 1:
            return level
    return ""


def run(
    candidate: str,
    tests: str,
    *,
    entry: str | None = None,
    trusted: str = "",
    timeout: float = 5.0,
    memory_mb: int = 1024,
    isolation: str = "auto",
) -> CodeResult:
    """Grade `candidate` by `tests` in two processes.

    Args:
        candidate: Python source; runs only in the sandboxed worker.
        tests: Python source of asserts, `check(candidate)`, test functions or unittest cases.
        entry: the function that `check` receives.
        trusted: helpers of the tests, whose names win over the candidate's.
        timeout: seconds of wall time for the whole run.
        memory_mb: address space of each worker process.
        isolation: "auto", "namespaces", "landlock", or "rlimit" (weaker: only on request).

    Raises:
        InputError: unknown isolation.
    """
    if isolation not in ("auto", *sandbox.LEVELS):
        raise InputError(
            f"isolation is one of auto, {', '.join(sandbox.LEVELS)}; got {isolation!r}; "
            "leave it out for the strongest level that starts here"
        )
    level = best_level() if isolation == "auto" else isolation
    if not level:
        reason = 'no sandbox starts here; isolation="rlimit" asks for the weaker one'
        return CodeResult(None, reason, 0, 0, "none")
    job = {"level": level, "timeout": timeout, "memory_mb": memory_mb}
    task = {"candidate": candidate, "tests": tests, "entry": entry, "trusted": trusted}
    reward, reason, passed, total = _SERVER.verdict(job, task)
    return CodeResult(reward, reason, passed, total, level)
