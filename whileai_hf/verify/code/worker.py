"""The worker: runs the candidate, holds no test, answers one request at a time."""

from __future__ import annotations

import asyncio
import io
import socket
import sys
import types
from typing import Any

from whileai_hf.verify.code import codec

_IMMUTABLE = (tuple, int, str, float, bytes, frozenset)
_MUTABLE = (list, dict, set)
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))


def _plain(base: Any, value: Any) -> Any:
    """The builtin value inside `value`, read without any method of its class."""
    return base.__getnewargs__(value)[0]


class Worker:
    """Objects of the candidate by number; values leave as plain data or numbers."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.objects: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.module = types.ModuleType("solution")
        self.out = io.StringIO()

    def number(self, value: Any) -> int:
        """The number of an object."""
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.objects)
            self.objects.append(value)
        return self.numbers[id(value)]

    def handle(self, value: Any) -> list[Any]:
        """The wire form of what is not plain."""
        kind = type(value)
        if kind in _VIEWS:
            return list(self.encode([*value]))
        if kind is Callback:
            return ["T", value.number]
        number = self.number(value)
        if isinstance(value, type):
            bases = [self.encode(base) for base in value.__bases__ if base is not object]
            return ["K", number, value.__name__, bases]
        for base in _IMMUTABLE:
            if issubclass(kind, base):
                plain: Any = frozenset(value) if base is frozenset else _plain(base, value)
                return ["N", number, base.__name__, self.encode(plain)]
        if isinstance(value, types.CoroutineType):
            return ["A", number]
        if hasattr(kind, "__next__"):
            return ["G", number]
        return ["O", number, self.encode(kind) if kind.__module__ == "solution" else None]

    def encode(self, value: Any) -> Any:
        """Plain data, or a handle."""
        return codec.encode(value, self.handle)

    def resolve(self, data: list[Any]) -> Any:
        """The object behind a tag."""
        if data[0] == "H":
            return self.objects[data[1]]
        return Callback(self, data[1])

    def decode(self, data: Any) -> Any:
        """Rebuild a value in the worker."""
        return codec.decode(data, self.resolve)

    def ask(self, message: list[Any]) -> Any:
        """Ask the tester, then serve until it answers."""
        codec.send(self.sock, message)
        return self.serve()

    def serve(self) -> Any:
        """Answer requests until the tester answers ours."""
        while True:
            message = codec.receive(self.sock)
            if message[0] == "ret":
                return self.decode(message[1])
            if message[0] == "exc":
                raise codec.EXCEPTIONS.get(message[1], RuntimeError)(*message[2])
            codec.send(self.sock, self.answer(message))

    def answer(self, message: list[Any]) -> list[Any]:
        """Serve one request."""
        try:
            args = [self.decode(item) for item in message[2]]
            result = getattr(self, "do_" + message[0])(message[1], args)
            same = next((i for i, a in enumerate(args) if a is result and type(a) in _MUTABLE), -1)
            changed = [self.encode(a) if type(a) in _MUTABLE else None for a in args]
            reply = ["ret", ["a", same] if same >= 0 else self.encode(result), changed]
        except StopIteration as error:
            reply = ["stop"] if message[0] == "next" else self.failure(RuntimeError(str(error)))
        except BaseException as error:  # noqa: BLE001
            reply = self.failure(error)
        text = self.out.getvalue()[: 1 << 20]
        self.out.seek(0)
        self.out.truncate()
        return [*reply, text]

    def failure(self, error: BaseException) -> list[Any]:
        """The wire form of an exception."""
        try:
            args = [self.encode(arg) for arg in error.args]
            return ["exc", self.encode(type(error)), args, self.number(error)]
        except BaseException:  # noqa: BLE001
            return ["exc", ["g", "RuntimeError"], [], 0]

    def do_load(self, source: str, args: list[Any]) -> list[str]:
        """Run the candidate; its names."""
        sys.modules["solution"] = self.module
        exec(compile(source, "solution.py", "exec"), self.module.__dict__)
        return [name for name in vars(self.module) if not name.startswith("__")]

    def do_get(self, name: str, args: list[Any]) -> Any:
        """A global of the candidate."""
        return vars(self.module)[name]

    def do_call(self, number: int, args: list[Any]) -> Any:
        """Call an object."""
        named = args[-1]
        return self.objects[number](*args[:-1], **named)

    def do_attr(self, number: int, args: list[Any]) -> Any:
        """Read an attribute."""
        return getattr(self.objects[number], args[0])

    def do_next(self, number: int, args: list[Any]) -> Any:
        """Step an iterator."""
        return next(self.objects[number])

    def do_items(self, number: int, args: list[Any]) -> Any:
        """What iterating a class gives."""
        return list(self.objects[number])

    def do_await(self, number: int, args: list[Any]) -> Any:
        """Run a coroutine."""
        return asyncio.run(self.objects[number])

    def do_op(self, number: int, args: list[Any]) -> Any:
        """Apply a special method."""
        value, name = self.objects[number], args[0]
        if name == "plain":
            base = next((b for b in _MUTABLE if isinstance(value, b)), None)
            return None if base is None else base(value)
        if name == "setattr":
            return setattr(value, args[1], args[2])
        return getattr(type(value), name)(value, *args[1:])


class Callback:
    """A function of the tests, seen from the candidate: it can be called, nothing else."""

    __slots__ = ("number", "worker")

    def __init__(self, worker: Worker, number: int) -> None:
        self.worker, self.number = worker, number

    def __call__(self, *args: Any, **named: Any) -> Any:  # noqa: D102
        return self.worker.ask(
            ["back", self.number, [self.worker.encode(a) for a in (*args, named)]]
        )


def main(sock: socket.socket) -> None:
    """Serve one tester until it hangs up."""
    worker = Worker(sock)
    sys.stdout = sys.stderr = worker.out
    sys.stdin = io.StringIO()
    codec.send(sock, ["ready"])
    while True:
        worker.serve()
