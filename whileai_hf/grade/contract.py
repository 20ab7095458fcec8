"""The judge contract: what a judge may return, and what becomes of everything else.

    judge(row) -> 0, 1, 0.7, True            a number in [0, 1], or on the scale that was named
    judge(row) -> {"reward": 0.7,            the same with
                   "reason": "…",            why, kept on the row
                   "markers": {"kept": 1.0}, named facts, 1.0 is the good outcome
                   "failure_class": "…",     what kind of failure it is
                   …}                        anything else, kept as judge_meta

A judge may be asynchronous. A missing reward, a value of another kind, an exception and a timeout
are a status on the row, with a null reward: a broken judge is never a zero, and never stops its
neighbours.
"""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from datasets import Dataset

from whileai_hf import schema
from whileai_hf.errors import InputError

#: Keys of a verdict that have a column of their own.
_OWN = ("reward", "reason", "markers", "failure_class")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one judgment: the judgment columns of one row."""

    reward: float | None
    status: str  #: one of `whileai_hf.schema.JUDGE_STATUSES`
    reason: str | None = None
    failure_class: str | None = None
    markers: dict[str, float] = field(default_factory=dict)
    meta: dict[str, Any] | None = None


def read_verdict(answer: Any, scale: tuple[float, float] | None = None) -> Verdict:
    """Read what a judge returned.

    Args:
        answer: The return value.
        scale: Lowest and highest rating of the judge, mapped to 0 and 1.
    """
    if not isinstance(answer, Mapping):
        return _of_reward(answer, scale, {})
    if "reward" not in answer or answer["reward"] is None:
        keys = ", ".join(map(repr, answer)) or "nothing"
        reason = answer.get("reason") or f"the judge returned no reward; it returned {keys}"
        return Verdict(None, "missing_reward", str(reason), **_rest(answer))
    return _of_reward(answer["reward"], scale, answer)


def _of_reward(value: Any, scale: tuple[float, float] | None, answer: Mapping[str, Any]) -> Verdict:
    reason = None if answer.get("reason") is None else str(answer["reason"])
    number = as_number(value)
    if number is None:
        return Verdict(None, "missing_reward" if value is None else "invalid_result",
                       reason or f"the judge returned {type(value).__name__}, which is no reward", **_rest(answer))  # fmt: skip
    if scale is not None:
        number = (number - scale[0]) / (scale[1] - scale[0])
    if not -1e-9 <= number <= 1 + 1e-9:
        shown = "NaN" if math.isnan(number) else f"{value!s}"
        limits = "[0, 1]" if scale is None else f"[{scale[0]:g}, {scale[1]:g}]"
        return Verdict(
            None, "invalid_result", f"the judge returned {shown}, outside {limits}", **_rest(answer)
        )
    return Verdict(min(max(number, 0.0), 1.0), "ok", reason, **_rest(answer))


def as_number(value: Any) -> float | None:
    """Read a reward: any real number, of NumPy, `decimal` and `fractions` too; text is none."""
    if isinstance(value, (str, bytes, bytearray, complex)) or value is None:
        return None
    if isinstance(value, (bool, int, float)):
        return float(value)
    if getattr(value, "ndim", 0) not in (0, None) or isinstance(value, (list, tuple, dict, set)):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _rest(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Read the optional parts; a marker that is no number is kept as metadata and said so."""
    meta = {str(k): _storable(v) for k, v in answer.items() if k not in _OWN}
    markers: dict[str, float] = {}
    given = answer.get("markers")
    for name, value in given.items() if isinstance(given, Mapping) else ():
        number = as_number(value)
        if number is not None and math.isfinite(number):
            markers[str(name)] = number
        else:
            meta.setdefault("invalid_markers", {})[str(name)] = repr(value)[:200]
    kind = answer.get("failure_class")
    return {
        "markers": markers, "meta": meta or None, "failure_class": None if kind is None else str(kind),
    }  # fmt: skip


def _storable(value: Any) -> Any:
    try:
        return schema.plain(value, "judge_meta")
    except InputError:
        return repr(value)[:1000]


#: Rows of one column that are decoded at once.
_CHUNK = 512


class Reader:
    """Columns of a dataset, decoded by chunks when a row asks for them, and no column else."""

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.names = tuple(dataset.column_names)
        self._columns: dict[str, Dataset] = {}
        self._chunks: dict[tuple[str, int], list[Any]] = {}
        self._decoding = threading.Lock()  # so that threads which miss together decode once

    def read(self, name: str, at: int) -> Any:
        """Return one value, as a record has it; the caller owns it."""
        chunk, offset = divmod(at, _CHUNK)
        values = self._chunks.get((name, chunk)) or self._decode(name, chunk)
        value = values[offset]
        if isinstance(value, (dict, list)):
            value = copy.deepcopy(value)
        return schema.to_record({name: value})[name]

    def _decode(self, name: str, chunk: int) -> list[Any]:
        with self._decoding:
            values = self._chunks.get((name, chunk))
            if values is None:
                if name not in self._columns:
                    self._columns[name] = self.dataset.select_columns([name])
                start = chunk * _CHUNK
                values = self._columns[name][start : start + _CHUNK][name]
                if len(self._chunks) > 64:  # rows come nearly in order: old chunks are done with
                    self._chunks.clear()
                self._chunks[name, chunk] = values
            return values


class Row(Mapping[str, Any]):
    """What a judge sees of a row: a copy, decoded column by column when it is read.

    Values are those of a record: arguments as objects, markers as a mapping. Changing one changes
    nothing but the copy.
    """

    __slots__ = ("_at", "_reader", "_seen")

    def __init__(self, reader: Reader, at: int) -> None:
        self._reader, self._at = reader, at
        self._seen: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._seen:
            if name not in self._reader.names:
                raise KeyError(name)
            self._seen[name] = self._reader.read(name, self._at)
        return self._seen[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._seen[name] = value

    def __iter__(self) -> Iterator[str]:
        return iter(self._reader.names)

    def __len__(self) -> int:
        return len(self._reader.names)
