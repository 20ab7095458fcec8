"""Exact plain data over a socket: JSON frames, tagged containers, never pickle or eval."""

from __future__ import annotations

import base64
import builtins
import collections
import datetime
import decimal
import fractions
import json
import socket
import struct
from collections.abc import Callable
from typing import Any

MAX_FRAME = 8 << 20
MAX_COMMAS = 1_000_000
MAX_DEPTH = 150

EXCEPTIONS: dict[str, type[BaseException]] = {
    name: value
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
}
TYPES: dict[str, type] = {
    t.__name__: t
    for t in (int, float, str, bool, bytes, list, tuple, dict, set, frozenset, complex, object)
}
_SEQUENCES: dict[type, str] = {
    list: "l",
    tuple: "t",
    set: "s",
    frozenset: "f",
    collections.deque: "q",
}
_BY_TAG: dict[str, Callable[[Any], Any]] = {tag: t for t, tag in _SEQUENCES.items()}
_MAPS: dict[type, str] = {dict: "d", collections.Counter: "dc", collections.OrderedDict: "do"}
_MAP_BY_TAG: dict[str, Callable[..., Any]] = {tag: t for t, tag in _MAPS.items()}
_TEXTS: dict[str, Callable[[str], Any]] = {
    "D": decimal.Decimal,
    "F": fractions.Fraction,
    "dt": datetime.datetime.fromisoformat,
    "da": datetime.date.fromisoformat,
    "ti": datetime.time.fromisoformat,
}
_TEXT_TAGS: dict[type, tuple[str, Callable[[Any], str]]] = {
    decimal.Decimal: ("D", str),
    fractions.Fraction: ("F", str),
    datetime.datetime: ("dt", datetime.datetime.isoformat),
    datetime.date: ("da", datetime.date.isoformat),
    datetime.time: ("ti", datetime.time.isoformat),
}


class ProtocolError(Exception):
    """A message outside the wire format."""


def encode(value: Any, handle: Callable[[Any], list[Any]], depth: int = 0) -> Any:
    """Turn `value` into JSON data; what is not plain goes through `handle`."""
    kind = type(value)
    if value is None or kind in (bool, float, str):
        return value
    if kind is int:
        return value if -(2**63) < value < 2**63 else ["i", format(value, "x")]
    if depth > MAX_DEPTH:
        raise ValueError("value is cyclic or nested too deeply")
    if kind in _SEQUENCES:
        return [_SEQUENCES[kind], *(encode(item, handle, depth + 1) for item in value)]
    if kind in _MAPS:
        flat = [encode(x, handle, depth + 1) for pair in value.items() for x in pair]
        return [_MAPS[kind], *flat]
    if kind in _TEXT_TAGS:
        tag, text = _TEXT_TAGS[kind]
        return [tag, text(value)]
    return _encode_rare(value, kind, handle)


def _encode_rare(value: Any, kind: type, handle: Callable[[Any], list[Any]]) -> list[Any]:
    if kind in (bytes, bytearray):
        return ["b" if kind is bytes else "B", base64.b64encode(value).decode()]
    if kind is complex:
        return ["c", value.real, value.imag]
    if kind is range:
        return ["r", value.start, value.stop, value.step]
    if kind is type:
        if value in TYPES.values():
            return ["g", str(value.__name__)]
        if value in EXCEPTIONS.values():
            return ["g", str(value.__name__)]
    return handle(value)


def decode(data: Any, resolve: Callable[[list[Any]], Any], depth: int = 0) -> Any:
    """Rebuild a value from checked JSON data.

    Raises:
        ProtocolError: the data does not follow the format.
    """
    if data is None or type(data) in (bool, int, float, str):
        return data
    if type(data) is not list or not data or type(data[0]) is not str or depth > MAX_DEPTH + 5:
        raise ProtocolError("not a value")
    tag, rest = data[0], data[1:]
    try:
        if tag in _BY_TAG:
            return _BY_TAG[tag]([decode(item, resolve, depth + 1) for item in rest])
        if tag in _MAP_BY_TAG:
            flat = [decode(item, resolve, depth + 1) for item in rest]
            return _MAP_BY_TAG[tag](dict(zip(flat[::2], flat[1::2], strict=True)))
        if tag in _TEXTS and type(rest[0]) is str and len(rest[0]) < 10_000:
            return _TEXTS[tag](rest[0])
        return _decode_rare(tag, rest, resolve)
    except (ValueError, TypeError, IndexError, KeyError, ArithmeticError, RecursionError) as error:
        raise ProtocolError(f"bad {tag!r}") from error


def _decode_rare(tag: str, rest: list[Any], resolve: Callable[[list[Any]], Any]) -> Any:
    if tag == "i" and type(rest[0]) is str and len(rest[0]) < 2_000_000:
        return int(rest[0], 16)
    if tag in ("b", "B"):
        raw = base64.b64decode(rest[0], validate=True)
        return raw if tag == "b" else bytearray(raw)
    if tag == "c" and all(type(x) in (int, float) for x in rest):
        return complex(rest[0], rest[1])
    if tag == "r" and all(type(x) is int for x in rest):
        return range(rest[0], rest[1], rest[2])
    if tag == "g":
        return TYPES[rest[0]] if rest[0] in TYPES else EXCEPTIONS[rest[0]]
    return resolve([tag, *rest])


def send(sock: socket.socket, message: list[Any]) -> None:
    """Send one frame: four bytes of length, then JSON."""
    body = json.dumps(message, separators=(",", ":")).encode()
    sock.sendall(struct.pack(">I", len(body)) + body)


def receive(sock: socket.socket) -> list[Any]:
    """Read one frame; refuse it before parsing when it is too large.

    Raises:
        ProtocolError: oversized or malformed frame.
        EOFError: the other side is gone.
    """
    (size,) = struct.unpack(">I", _exactly(sock, 4))
    if size > MAX_FRAME:
        raise ProtocolError("message too large")
    body = _exactly(sock, size)
    if body.count(b",") > MAX_COMMAS:
        raise ProtocolError("message has too many values")
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ProtocolError("message is not JSON") from error
    if type(message) is not list or not message:
        raise ProtocolError("message is not a list")
    return message


def _exactly(sock: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        piece = sock.recv(min(size - len(parts), 1 << 20))
        if not piece:
            raise EOFError("the other side is gone")
        parts += piece
    return bytes(parts)
