"""The tester: forks the worker before it reads the tests, then decides every check itself."""

from __future__ import annotations

import ast
import asyncio
import builtins
import inspect
import io
import os
import signal
import socket
import sys
import types
import unittest
from typing import Any

from whileai_hf.verify.code import codec, sandbox, worker
from whileai_hf.verify.code.proxies import CandidateFault, Session, UnsupportedTests


def fork_worker(job: dict[str, Any], keep_closed: list[socket.socket]) -> socket.socket:
    """Start the worker in its sandbox; only the channel to it comes back."""
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        try:
            for sock in (ours, *keep_closed):
                sock.close()
            sandbox.enter(job["level"], job["scratch"], job["timeout"], job["memory_mb"])
            worker.main(theirs)
        except sandbox_errors as error:
            codec.send(theirs, ["refused", str(error)])
        finally:
            os._exit(0)
    theirs.close()
    return ours


sandbox_errors = (OSError, KeyError)


def main(host: socket.socket) -> None:
    """Grade one program; the verdict leaves on `host`, which the worker never has."""
    if sys.platform == "linux":
        sandbox.prctl(4, 0)
    job = codec.receive(host)[0]
    signal.setitimer(signal.ITIMER_REAL, job["timeout"] + 0.5)
    channel = fork_worker(job, [host])
    first = codec.receive(channel)
    if first != ["ready"]:
        codec.send(host, [None, f"the sandbox did not start: {first[-1]}", 0, 0])
        return
    codec.send(host, ["ready"])
    task = codec.receive(host)[0]
    sys.stdout, sys.stdin = io.StringIO(), io.StringIO()
    codec.send(host, grade(Session(channel), task))


def grade(session: Session, task: dict[str, Any]) -> list[Any]:
    """[reward, reason, passed, total] of one candidate under one text of tests."""
    try:
        tree = ast.parse(task["tests"])
    except SyntaxError as error:
        return [None, f"the tests cannot be read: {error.msg}", 0, 0]
    needs = unserved(tree)
    if needs:
        return [None, f"the tests use {needs}, which two processes do not serve", 0, 0]
    try:
        names = session.request("load", task["candidate"], [])
        space = namespace(session, tree, names, task)
        passed, total = run(tree, space, task.get("entry"))
    except (Exception, SystemExit, KeyboardInterrupt, CandidateFault) as error:  # noqa: BLE001
        passed, total = 0, 1
        reason = f"{type(error).__name__}: {error}"[:300]
    except UnsupportedTests as error:
        return [None, str(error), 0, 0]
    else:
        reason = f"{passed} of {total} tests passed"
    if session.unsupported:
        return [None, session.unsupported, passed, total]
    if session.fault:
        return [0.0, session.fault[:300], passed, total]
    if not session.touched:
        return [None, "the tests take nothing from the candidate", passed, total]
    if not total:
        return [None, "the tests contain no check that was reached", 0, 0]
    return [float(passed == total), reason, passed, total]


def namespace(
    session: Session, tree: ast.Module, names: Any, task: dict[str, Any]
) -> dict[str, Any]:
    """What the tests see: candidate names that occur in them, never over a builtin or a helper."""
    space: dict[str, Any] = {"__name__": "hidden_tests"}
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    used |= {a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names}
    used.add(str(task.get("entry")))
    solution = types.ModuleType("solution")
    for name in names if type(names) is list else []:
        entry = name == task.get("entry")
        if type(name) is str and name in used and (entry or not hasattr(builtins, name)):
            session.touched = True
            if name in sys.stdlib_module_names:
                space[name] = __import__(name)
            else:
                space[name] = session.request("get", name, [])
            setattr(solution, name, space[name])
    sys.modules["solution"] = solution
    exec(compile(task.get("trusted") or "", "trusted", "exec"), space)
    return space


_UNSERVED = {"threading", "concurrent", "getsource", "signature", "open", "AsyncWith", "AsyncFor"}


def unserved(tree: ast.Module) -> str:
    """What the tests, by their text alone, need that cannot cross; "" when nothing."""
    for node in ast.walk(tree):
        words = [getattr(node, field, None) for field in ("id", "attr", "name", "module")]
        words += [type(node).__name__]
        for word in words:
            if isinstance(word, str) and word.split(".")[0] in _UNSERVED:
                return word
    return ""


class _Marker(ast.NodeTransformer):
    """Count every assert statement that is reached."""

    def visit_Assert(self, node: ast.Assert) -> list[ast.stmt]:
        """Put the mark before the assert."""
        mark = ast.parse("__reached__.append(1)").body[0]
        return [ast.copy_location(mark, node), node]


def run(tree: ast.Module, space: dict[str, Any], entry: str | None) -> tuple[int, int]:
    """Run module body, `check(candidate)`, test functions and classes; (passed, total)."""
    reached: list[int] = []
    asserts = any(isinstance(node, ast.Assert) for node in ast.walk(tree))
    marked = ast.fix_missing_locations(_Marker().visit(tree))
    space["__reached__"] = reached
    before = set(space)
    exec(compile(marked, "tests", "exec"), space)
    checks: list[Any] = []
    own = {name: value for name, value in space.items() if name not in before}
    if isinstance(own.get("check"), types.FunctionType) and entry:
        checks.append(lambda: own["check"](space[entry]))
    for name, value in own.items():
        if isinstance(value, types.FunctionType) and name.startswith("test"):
            checks.append(value)
        elif isinstance(value, type) and value.__module__ == "hidden_tests":
            checks += methods(value, name)
    top = int(bool(reached))
    passed = top + sum(one(check) for check in checks)
    total = top + len(checks)
    if asserts and not reached and passed:
        raise AssertionError("no assert was reached")
    return passed, total


def methods(kind: type, name: str) -> list[Any]:
    """The tests of a unittest case or of a plain `Test…` class."""
    if issubclass(kind, unittest.TestCase):
        return list(unittest.defaultTestLoader.loadTestsFromTestCase(kind))
    if not name.startswith("Test"):
        return []
    found = []
    for key in [key for key in vars(kind) if key.startswith("test")]:
        instance = kind()
        setup = getattr(instance, "setup_method", None)
        test = getattr(instance, key)
        found.append(lambda setup=setup, test=test: (setup and setup(), test())[1])
    return found


def one(check: Any) -> bool:
    """Whether one test passes; a skipped one does not."""
    if isinstance(check, unittest.TestCase):
        result = unittest.TestResult()
        check.run(result)
        return result.wasSuccessful() and result.testsRun == 1 and not result.skipped
    if inspect.isfunction(check) and any(
        p.default is p.empty for p in inspect.signature(check).parameters.values()
    ):
        raise UnsupportedTests(f"{check.__name__} takes fixtures")
    try:
        result = check()
        if inspect.iscoroutine(result):
            asyncio.run(result)
    except (Exception, SystemExit):  # noqa: BLE001
        return False
    return True
