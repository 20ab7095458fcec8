"""Rows as mappings that decode a JSON column only when it is read.

A gate looks at a reward far more often than at a conversation. Decoding every conversation to find
out which ones matter costs more than all gates together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from datasets import Dataset
from datasets.utils.json import ujson_loads

from whileai_hf import columns
from whileai_hf.errors import SchemaError


class LazyRow(Mapping[str, Any]):
    """One row over columns of stored values; a JSON value is decoded when it is first asked for."""

    __slots__ = ("_at", "_columns")

    def __init__(self, of: Mapping[str, tuple[Sequence[Any], Callable[[Any], Any]]], at: int):
        self._columns, self._at = of, at

    def __getitem__(self, name: str) -> Any:
        values, decode = self._columns[name]
        value = values[self._at]
        return None if value is None else decode(value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def lazy_rows(dataset: Dataset, names: Sequence[str], step: str) -> list[LazyRow]:
    """List the rows of a dataset, holding only the named columns.

    Args:
        dataset: The dataset; its index, if it has one, is honoured.
        names: Columns to read.
        step: Name of the calling function, for errors.
    """
    if not names:
        return [LazyRow({}, i) for i in range(len(dataset))]
    table = columns.read(dataset, names, step)
    held = {name: _stored(table.column(name)) for name in names}
    return [LazyRow(held, i) for i in range(table.num_rows)]


def present(dataset: Dataset, names: Sequence[str]) -> list[str]:
    """Return those of the named columns that the dataset has."""
    return [name for name in names if name in dataset.column_names]


def require_any(dataset: Dataset, names: Sequence[str], step: str) -> None:
    """Raise where the dataset has none of the named columns."""
    if not present(dataset, names):
        raise SchemaError(
            f"{step} needs one of the columns {', '.join(map(repr, names))}; "
            f"the dataset has {', '.join(dataset.column_names) or 'none'}. "
            "Rename a column of yours, or make rollouts with wai.rows(...)."
        )


def _stored(column: pa.ChunkedArray) -> tuple[Sequence[Any], Callable[[Any], Any]]:
    kind = column.type
    if _is_json(kind):
        return [v for chunk in column.chunks for v in chunk.storage.to_pylist()], ujson_loads
    if pa.types.is_list(kind) and _is_json(kind.value_type):
        return [v for chunk in column.chunks for v in _json_list(chunk)], _decode_list
    return column.to_pylist(), _same


def _is_json(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.JsonType)


def _json_list(chunk: pa.ListArray) -> list[Any]:
    """List the texts of each row; a slice reads no more of its parent than its own part."""
    ends = chunk.offsets.to_pylist()
    first = ends[0] if ends else 0
    texts = chunk.values.storage.slice(first, (ends[-1] if ends else 0) - first).to_pylist()
    missing = chunk.is_null().to_pylist()
    return [
        None if null else texts[start - first : end - first]
        for null, start, end in zip(missing, ends, ends[1:], strict=False)
    ]


def _decode_list(texts: Sequence[str | None]) -> list[Any]:
    return [None if text is None else ujson_loads(text) for text in texts]


def _same(value: Any) -> Any:
    return value
