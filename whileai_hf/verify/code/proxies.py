"""What tests hold of a candidate: stand-ins whose comparisons the tester decides."""

from __future__ import annotations

import socket
import sys
import types
from collections.abc import Iterator
from typing import Any

from whileai_hf.verify.code import codec


class CandidateFault(BaseException):
    """The worker broke the protocol or died; tests cannot catch their way past it."""


class UnsupportedTests(BaseException):
    """The tests need something that cannot cross between the two processes."""


class Session:
    """The tester's end of the channel to one worker."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.fault = ""
        self.unsupported = ""
        self.touched = False
        self.functions: list[Any] = []
        self.classes: dict[int, type] = {}

    def encode(self, value: Any) -> Any:
        """Plain data, or a handle."""
        return codec.encode(value, self.handle)

    def handle(self, value: Any) -> list[Any]:
        """The wire form of what is not plain."""
        if isinstance(value, Remote):
            return ["H", object.__getattribute__(value, "_handle")]
        if isinstance(value, type):
            number = next((n for n, c in self.classes.items() if c is value), None)
            if number is not None:
                return ["H", number]
        if hasattr(value, "_remote_handle"):
            return ["H", value._remote_handle]
        if type(value) in (types.FunctionType, types.BuiltinFunctionType):
            self.functions.append(value)
            return ["T", len(self.functions) - 1]
        self.unsupported = f"tests pass a {type(value).__name__} to the candidate"
        raise UnsupportedTests(self.unsupported)

    def resolve(self, data: list[Any]) -> Any:
        """The object behind a tag."""
        tag, number = data[0], data[1]
        if type(number) is not int:
            raise codec.ProtocolError("bad handle")
        if tag == "O":
            kind = codec.decode(data[2], self.resolve) if data[2] is not None else Remote
            return make(
                kind if isinstance(kind, type) and issubclass(kind, Remote) else Remote,
                self,
                number,
            )
        if tag == "K":
            return self.remote_class(number, data[2], data[3])
        if tag == "N":
            return self.rebuilt(number, data[2], data[3])
        if tag == "G":
            return self.generator(number)
        if tag == "A":
            return self.coroutine(number)
        if tag == "T" and 0 <= number < len(self.functions):
            return self.functions[number]
        raise codec.ProtocolError(f"unknown tag {tag!r}")

    def remote_class(self, number: int, name: str, coded: list[Any]) -> type:
        """The tester's class for a class of the candidate."""
        if number not in self.classes:
            bases = [codec.decode(base, self.resolve) for base in coded]
            errors = [b for b in bases if isinstance(b, type) and issubclass(b, BaseException)]
            remote = [b for b in bases if isinstance(b, RemoteClass)]
            space = {"_session": self, "_number": number}
            if errors:
                self.classes[number] = type(str(name), (errors[0],), {})
            else:
                self.classes[number] = RemoteClass(str(name), tuple(remote) or (Remote,), space)
        return self.classes[number]

    def rebuilt(self, number: int, base_name: str, coded: Any) -> Any:
        """A value with the builtin operators whose public attributes are asked for."""
        base = codec.TYPES[base_name]
        if base not in (tuple, int, str, float, bytes, frozenset):
            raise codec.ProtocolError("bad base")

        def forward(this: Any, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            return self.request("attr", number, [name])

        space = {"__getattr__": forward, "_remote_handle": number}
        return type(base_name, (base,), space)(codec.decode(coded, self.resolve))

    def generator(self, number: int) -> Iterator[Any]:
        """A generator that steps the candidate's iterator."""
        while True:
            try:
                yield self.request("next", number, [])
            except StopRemote:
                return

    async def coroutine(self, number: int) -> Any:
        """A coroutine that the worker runs to its end."""
        return self.request("await", number, [])

    def request(self, verb: str, target: Any, args: list[Any]) -> Any:
        """One question to the worker; serves its callbacks meanwhile."""
        if self.fault:
            raise CandidateFault(self.fault)
        try:
            codec.send(self.sock, [verb, target, [self.encode(arg) for arg in args]])
            while (reply := codec.receive(self.sock))[0] == "back":
                self.call_back(reply)
            return self.outcome(reply, args)
        except (codec.ProtocolError, EOFError, OSError, IndexError, KeyError) as error:
            if getattr(error, "_crossed", False):
                raise
            self.fault = f"the program broke off: {error}"
            raise CandidateFault(self.fault) from None

    def outcome(self, reply: list[Any], args: list[Any]) -> Any:
        """The value or the exception that a reply carries."""
        sys.stdout.write(str(reply[-1]))
        if reply[0] == "stop":
            raise StopRemote
        if reply[0] == "exc":
            raise self.crossing(reply)
        for old, new in zip(args, reply[2], strict=False):
            replace(old, codec.decode(new, self.resolve))
        if type(reply[1]) is list and reply[1][0] == "a":
            return args[reply[1][1]]
        return codec.decode(reply[1], self.resolve)

    def crossing(self, reply: list[Any]) -> BaseException:
        """An exception from the name table; never one that ends a loop or skips a test."""
        kind = codec.decode(reply[1], self.resolve)
        values = [codec.decode(arg, self.resolve) for arg in reply[2]]
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise codec.ProtocolError("not an exception")
        if issubclass(kind, StopIteration | StopAsyncIteration | GeneratorExit):
            kind = RuntimeError
        try:
            error: BaseException = kind(*values)
        except TypeError:
            error = RuntimeError(f"{kind.__name__} with odd arguments")
        error._crossed = True  # type: ignore[attr-defined]
        return error

    def call_back(self, message: list[Any]) -> None:
        """Run a function of the tests for the candidate."""
        try:
            args = [codec.decode(arg, self.resolve) for arg in message[2]]
            result = self.functions[message[1]](*args[:-1], **args[-1])
            codec.send(self.sock, ["ret", self.encode(result)])
        except Exception as error:  # noqa: BLE001
            name = type(error).__name__
            codec.send(self.sock, ["exc", name if name in codec.EXCEPTIONS else "RuntimeError", []])


class StopRemote(Exception):
    """An iterator of the candidate ended."""


def replace(old: Any, new: Any) -> None:
    """Give the tests' own container the content that the candidate left in its copy."""
    if type(old) is list and type(new) is list:
        old[:] = new
    elif type(old) is type(new) and type(old) in (dict, set):
        old.clear()
        old.update(new)


class RemoteClass(type):
    """A class of the candidate; calling it builds the object in the worker."""

    _session: Session
    _number: int

    def __call__(cls, *args: Any, **named: Any) -> Any:  # noqa: D102
        return cls._session.request("call", cls._number, [*args, named])

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return cls._session.request("attr", cls._number, [name])

    def __iter__(cls) -> Iterator[Any]:
        return iter(cls._session.request("items", cls._number, []))


class Remote:
    """An object of the candidate. It is never equal to plain data unless it holds plain data."""

    _session: Session
    _handle: int
    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name not in ("__doc__", "__name__"):
            raise AttributeError(name)
        return self._session.request("attr", self._handle, [name])

    def __setattr__(self, name: str, value: Any) -> None:
        self._session.request("op", self._handle, ["setattr", name, value])

    def __call__(self, *args: Any, **named: Any) -> Any:  # noqa: D102
        return self._session.request("call", self._handle, [*args, named])

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Remote):
            if other._handle == self._handle:
                return True
            return self._session.request("op", self._handle, ["__eq__", other]) is True
        plain = self._session.request("op", self._handle, ["plain"])
        return plain is not None and not isinstance(plain, Remote) and bool(plain == other)

    def __enter__(self) -> Any:
        return self._session.request("op", self._handle, ["__enter__"])

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        name = kind if kind is None or codec.EXCEPTIONS.get(kind.__name__) is kind else Exception
        return self._session.request("op", self._handle, ["__exit__", name, None, None]) is True

    def __contains__(self, item: Any) -> bool:
        return any(other == item for other in self)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._session.request("op", self._handle, ["__setitem__", key, value])

    def __len__(self) -> int:
        return int(self._session.request("op", self._handle, ["__len__"]))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._session.request("op", self._handle, ["__iter__"]))

    def __getitem__(self, key: Any) -> Any:
        return self._session.request("op", self._handle, ["__getitem__", key])

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return str(self._session.request("op", self._handle, ["__repr__"]))

    def __str__(self) -> str:
        return str(self._session.request("op", self._handle, ["__str__"]))


def make(kind: type, session: Session, number: int) -> Remote:
    """A stand-in for object `number` of the worker."""
    remote: Remote = object.__new__(kind)
    object.__setattr__(remote, "_session", session)
    object.__setattr__(remote, "_handle", number)
    return remote
