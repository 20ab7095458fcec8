"""Columns in, columns out: what every step reads from a dataset and adds to it.

Reading takes only the named columns and never decodes another one; writing puts new columns beside
the old ones without copying them. Both honour the index that `filter`, `sort` and `select` leave on
a dataset, and both take an `IterableDataset` where one pass is enough.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, DatasetDict, Features, IterableDataset
from datasets.fingerprint import Hasher
from datasets.utils import (
    are_progress_bars_disabled,
    disable_progress_bars,
    enable_progress_bars,
)
from numpy.typing import NDArray

from whileai_hf.errors import InputError, SchemaError

D = TypeVar("D", bound=Dataset)

#: Bytes of rows that are gathered in memory where they lie on disk.
_IN_MEMORY = 1 << 29

#: The step that makes a column, for the error of the step that misses it.
MADE_BY = {
    "task_id": "wai.rows(...) or simulate(...)",
    "reward": "grade(dataset, judge)",
    "judge_status": "grade(dataset, judge)",
    "markers": "a judge that returns markers",
    "gold_reward": "attach_labels(dataset, labels)",
    "messages": "simulate(...) or wai.from_chats(...)",
    "pass_rate": "with_group_stats(dataset)",
}


def check_dataset(dataset: Any, step: str, *, stream: bool = False) -> None:
    """Refuse what is no dataset, and say how to make one of it.

    Args:
        dataset: What the caller was given.
        step: Name of the calling function, for the error.
        stream: Whether an `IterableDataset` will do.

    Raises:
        InputError: `dataset` is no `Dataset`, or a stream where the step needs all rows.
    """
    if isinstance(dataset, Dataset) or (stream and isinstance(dataset, IterableDataset)):
        return
    if isinstance(dataset, IterableDataset):
        raise InputError(
            f"{step} needs all rows at once; got a stream (IterableDataset). "
            "Make it a Dataset with Dataset.from_generator(lambda: iter(stream), "
            "features=stream.features)."
        )
    if isinstance(dataset, DatasetDict):
        raise InputError(
            f"{step} takes one split; got a DatasetDict of {sorted(dataset)}. "
            f"Pass one of them, such as dataset[{next(iter(dataset), 'train')!r}]."
        )
    raise InputError(
        f"{step} takes a datasets.Dataset; got {type(dataset).__name__}. "
        "Use wai.rows(prompts, completions) or wai.load(path) to make one."
    )


def check_columns(dataset: Dataset | IterableDataset, names: Sequence[str], step: str) -> None:
    """Raise a `SchemaError` that names the first missing column and the step that makes it."""
    present = dataset.column_names
    if present is None:  # a stream whose features nobody has resolved yet
        return
    missing = [name for name in names if name not in present]
    if missing:
        maker = MADE_BY.get(missing[0], "the step that makes it, or rename a column of yours")
        raise SchemaError(
            f"{step} needs the column {missing[0]!r}; the dataset has {', '.join(present) or 'none'}. "
            f"Run {maker} first."
        )


def read(dataset: Dataset | IterableDataset, names: Sequence[str], step: str) -> pa.Table:
    """Read some columns as an Arrow table, in row order, decoding nothing else.

    Args:
        dataset: A dataset, or a stream that is consumed once.
        names: Columns to read.
        step: Name of the calling function, for errors.
    """
    check_dataset(dataset, step, stream=True)
    check_columns(dataset, names, step)
    if isinstance(dataset, Dataset):
        view = dataset.select_columns(list(names)).with_format("arrow")
        if len(view) == 0:
            return view.data.table.slice(0, 0)
        return cast("pa.Table", view[:])
    picked = dataset.select_columns(list(names))
    batches = [
        pa.table({name: batch[name] for name in names}) for batch in picked.iter(batch_size=1000)
    ]
    if not batches:
        return pa.table({name: pa.array([], type=pa.null()) for name in names})
    return pa.concat_tables(batches, promote_options="permissive")


def numbers(dataset: Dataset | IterableDataset, name: str, step: str) -> NDArray[np.float64]:
    """Read a column of numbers or booleans; a null is NaN.

    Raises:
        SchemaError: The column is missing, or holds something that is no number.
    """
    return as_numbers(read(dataset, [name], step).column(0), name, step)


def as_numbers(column: pa.ChunkedArray, name: str, step: str) -> NDArray[np.float64]:
    """Turn an Arrow column of numbers or booleans into floats; a null is NaN."""
    kind = column.type
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if not (numeric or pa.types.is_null(kind) or pa.types.is_decimal(kind)):
        raise SchemaError(
            f"{step} needs numbers in the column {name!r}; it holds {kind}. "
            f"Cast it first: dataset.cast_column({name!r}, Value('float64'))."
        )
    return np.asarray(
        column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64
    )


def task_codes(
    dataset: Dataset | IterableDataset, step: str, by: str = "task_id"
) -> tuple[NDArray[np.int64], list[Any]]:
    """Number the tasks in the order in which they first appear.

    Returns:
        Code of each row, shape (rows,), and the id of each code, length n_tasks.

    Raises:
        SchemaError: `by` is missing, or some row has no task id.
    """
    return as_codes(read(dataset, [by], step).column(0), by, step)


def as_codes(column: pa.ChunkedArray, name: str, step: str) -> tuple[NDArray[np.int64], list[Any]]:
    """Number the values of an Arrow column in the order in which they first appear."""
    if column.null_count:
        raise SchemaError(
            f"{step} needs a value of {name!r} in every row; {column.null_count} of {len(column)} "
            "rows have none. Fill them, or filter those rows out."
        )
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # no chunk at all, or more text than one chunk holds
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], column.type)
    encoded = pc.dictionary_encode(array)
    codes = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
    return codes, encoded.dictionary.to_pylist()


def with_columns(dataset: D, new: Mapping[str, tuple[Any, Any]]) -> D:
    """Return the dataset with columns added or replaced; nothing else is read or copied.

    Args:
        dataset: The dataset; it is not changed.
        new: For each column its values (an Arrow array, a NumPy array or a list, one a row) and
            its `datasets` feature.
    """
    base, table = dataset, _gathered(dataset)
    if table is None:
        with quiet():
            base = dataset.flatten_indices()
        table = base.data.table
    features = dict(base.features)
    if table.num_rows == 0:
        table = _with_a_chunk(table)
    for name, (values, feature) in new.items():
        field = pa.field(name, Features({name: feature}).arrow_schema.field(0).type)
        array = values if isinstance(values, (pa.Array, pa.ChunkedArray)) else _array(values, field)
        if array.type != field.type:
            array = array.cast(field.type)
        at = table.schema.get_field_index(name)
        table = table.append_column(field, array) if at < 0 else table.set_column(at, field, array)
        features[name] = feature
    info = base.info.copy()
    info.features = Features(features)
    table = table.replace_schema_metadata(None)
    # Of the new columns alone: hashing the whole table anew would copy it.
    mark = Hasher.hash([base._fingerprint, list(new), _stored(table.select(list(new)))])
    out = type(dataset)(table, info=info, split=dataset.split, fingerprint=mark)
    return cast("D", out)


def _stored(table: pa.Table) -> bytes:
    """Return a table as bytes, whatever its chunks."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table.combine_chunks())
    return cast("bytes", sink.getvalue().to_pybytes())


def _gathered(dataset: Dataset) -> pa.Table | None:
    """Return the rows of a dataset as one table, or null where they are too many for memory.

    `flatten_indices` walks over single rows and casts each: a thousand times the time of a gather.
    """
    table = dataset.data.table
    if dataset._indices is None:
        return table
    if dataset.cache_files and table.nbytes * len(dataset) > _IN_MEMORY * max(table.num_rows, 1):
        return None
    if not len(dataset):
        return table.slice(0, 0)
    parts = ordered_tables(dataset)
    if parts is not None:
        return pa.concat_tables(parts)
    return cast("pa.Table", dataset.with_format("arrow")[:])


def _with_a_chunk(table: pa.Table) -> pa.Table:
    """Give an empty table one chunk a column: `datasets` cannot hash JSON columns without any."""
    arrays = [pa.chunked_array([_nothing(field.type)]) for field in table.schema]
    return pa.table(arrays, schema=table.schema)


def _nothing(kind: pa.DataType) -> pa.Array:
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.array([], type=kind.storage_type))
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(pa.array([0], pa.int32()), _nothing(kind.value_type))
    return pa.array([], type=kind)


def _array(values: Any, field: pa.Field) -> pa.Array:
    if (
        isinstance(values, np.ndarray)
        and values.dtype.kind == "f"
        and pa.types.is_floating(field.type)
    ):
        return pa.array(values, type=field.type, from_pandas=True)  # NaN is null
    return pa.array(values, type=field.type)


def batches(dataset: Dataset | IterableDataset, size: int = 1000) -> Iterator[dict[str, list[Any]]]:
    """Walk over a dataset in batches of decoded columns, without a format that touches JSON."""
    view = dataset.with_format(None) if isinstance(dataset, Dataset) else dataset
    yield from view.iter(batch_size=size)


def ordered_tables(dataset: Dataset, size: int = 10_000) -> Iterator[pa.Table] | None:
    """Walk over the rows that `filter` kept as Arrow tables, or return null where they are shuffled.

    Rows that stand in their old order are read range by range: one pass over the table, no gather of
    single rows, and no more memory than a range.

    Args:
        dataset: A dataset with an index.
        size: Rows of a table.
    """
    index = dataset._indices.column(0).to_numpy()
    if not np.all(index[1:] > index[:-1]):
        return None
    return _ranges(dataset.data.table, index.astype(np.int64), size)


def _ranges(table: pa.Table, index: NDArray[np.int64], size: int) -> Iterator[pa.Table]:
    for start in range(0, len(index), size):
        part = index[start : start + size]
        low, high = int(part[0]), int(part[-1])
        keep = np.zeros(high - low + 1, dtype=bool)
        keep[part - low] = True
        yield table.slice(low, high - low + 1).filter(pa.array(keep))


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence the progress bars of `datasets` while a step runs that has a bar of its own."""
    before = are_progress_bars_disabled()
    disable_progress_bars()
    try:
        yield
    finally:
        if not before:
            enable_progress_bars()
