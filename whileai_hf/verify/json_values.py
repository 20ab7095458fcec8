"""The JSON value that an answer holds, read strictly: no repair, no duplicate key, no NaN.

The value is the whole text, the last fenced block, or the last object (or else array) in prose. A
fence that is cut runs to the end of the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from whileai_hf.extras import require

#: Characters of an answer that are read.
_MAX_CHARS = 1_000_000

_FENCE = re.compile(
    r"^[ \t]*(?P<f>`{3,}|~{3,})[ \t]*(?P<lang>[\w+-]*)[^\n]*\n(?P<body>.*?)(?:^[ \t]*(?P=f)|\Z)",
    re.DOTALL | re.MULTILINE,
)
#: What opens a value, and not a placeholder such as {title} or a citation.
_OPENS = re.compile(r"\{\s*[\"'}]|\[\s*(?:[\[{\"\]]|-?\d|true\b|false\b|null\b)")


class NoJSON(Exception):
    """The text holds no JSON value; the message is the reason, and quotes nothing."""


def read_json(text: str, *, repair: bool = False) -> Any:
    """Return the JSON value of a text.

    Args:
        text: The answer, reasoning removed.
        repair: Whether `json_repair` may close, quote and strip what is broken.

    Raises:
        NoJSON: There is none that is valid.
        MissingExtra: `repair` without `json_repair`.
    """
    text = text[-_MAX_CHARS:].strip()
    fenced = [
        m["body"]
        for m in _FENCE.finditer(text)
        if m["lang"].lower() in ("", "json", "json5", "jsonc")
    ]
    try:
        return _strict(text)
    except NoJSON as error:
        reason = error
    body = fenced[-1].strip() if fenced else None
    try:
        return _strict(body) if body is not None else _last_in_prose(text)
    except NoJSON as error:
        reason = error if body is not None or _OPENS.search(text) else reason
    if repair:
        return _repaired(body if body is not None else text)
    raise reason


def _strict(text: str) -> Any:
    value, end = _decoded(text, 0)
    if text[end:].strip():
        raise NoJSON("text stands beside the JSON value")
    return value


def _decoded(text: str, at: int) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError:
        raise NoJSON("it is no valid JSON") from None
    except RecursionError:
        raise NoJSON("it is nested too deeply") from None
    except ValueError as error:  # ours, or an integer of too many digits
        raise NoJSON(
            str(error) if error.args and error.args[0] in _REASONS else "it is no valid JSON"
        ) from None


_DUPLICATE, _CONSTANT = "it holds a duplicate key", "NaN and Infinity are no JSON"
_REASONS = (_DUPLICATE, _CONSTANT)


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        raise ValueError(_DUPLICATE)
    return out


def _constant(_: str) -> Any:
    raise ValueError(_CONSTANT)


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant)


def _last_in_prose(text: str) -> Any:
    """Read left to right, so that what is inside a value is no value of its own; take the last one."""
    objects: list[Any] = []
    arrays: list[Any] = []
    broken: NoJSON | None = None
    at = 0
    while opening := _OPENS.search(text, at):
        start = opening.start()
        try:
            value, at = _decoded(text, start)
        except NoJSON as error:
            if text[start] == "{":
                broken = error
            closed = _closing(text, start)
            if closed is None:  # it is cut: what follows is inside of it
                break
            at = closed
            continue
        if isinstance(value, Mapping) or _holds_objects(value):
            objects.append(value)
            broken = None
        else:
            arrays.append(value)
    if broken is not None:  # the last object is the one that counts
        raise broken
    if objects or arrays:
        return (objects or arrays)[-1]
    raise NoJSON("it holds no JSON value")


_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def _closing(text: str, start: int) -> int | None:
    """Return where the bracket at `start` closes, brackets in strings aside."""
    depth = 0
    for token in _BRACKETS.finditer(text, start):
        if token.group() in "[{":
            depth += 1
        elif token.group() in "]}":
            depth -= 1
            if depth == 0:
                return token.end()
    return None


def _holds_objects(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(item, Mapping) for item in value)


def _repaired(text: str) -> Any:
    opening = _OPENS.search(text)
    try:
        value = require("json_repair", "verify").loads(text[opening.start() :] if opening else text)
    except (ValueError, RecursionError, IndexError):
        raise NoJSON("it cannot be repaired") from None
    if value == "" or value is None:
        raise NoJSON("it holds no JSON value")
    return value
