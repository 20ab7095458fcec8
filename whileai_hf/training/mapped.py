"""One way to turn rows into a trainer's rows: a `map` to disk that says what it left out.

A transform returns, beside its own columns, `refused`: for each row the reasons for which something
was left out, and `kept`: whether the row is one. Both leave again. So the work runs in any number of
processes, is cached for rows that have a file, and takes no memory for rows that have none.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from datasets import Dataset, Features, IterableDataset, List, Value
from datasets.fingerprint import (
    generate_random_fingerprint,
    get_temporary_cache_files_directory,
)

#: What every transform says of a row.
NOTES = Features({"refused": List(Value("string")), "kept": Value("bool")})

Transform = Callable[[Mapping[str, Sequence[Any]]], dict[str, list[Any]]]


def mapped(
    rows: Dataset,
    transform: Transform,
    names: Sequence[str],
    features: Features,
    *,
    num_proc: int | None = None,
    desc: str = "Rows",
) -> tuple[Dataset, Dataset]:
    """Run a transform over some columns of a dataset.

    Args:
        rows: The dataset; it is not changed.
        transform: A batched transform; see the module.
        names: Columns that it reads.
        features: Columns that it makes, `NOTES` not among them.
        num_proc: Processes that share the work.
        desc: What the progress bar says.

    Returns:
        Every row that was made with all its columns, and the kept rows with theirs.
    """
    if not len(rows):
        nothing = Features({**features, **NOTES})
        empty = Dataset.from_dict({name: [] for name in nothing}, features=nothing)
        return empty, empty.remove_columns(list(NOTES))
    _warn_of_filled(rows, names)
    source = Dataset.select_columns(rows.with_format(None), list(names))
    made = Dataset.map(
        source, transform, batched=True, batch_size=200, remove_columns=list(names), num_proc=num_proc,
        features=Features({**features, **NOTES}), desc=desc,
        cache_file_name=None if rows.cache_files else _temporary_file(),
    )  # fmt: skip
    keep = made.data.table.column("kept")
    kept = made.remove_columns(list(NOTES))
    if not pc.all(keep).as_py():
        kept = kept.select(pc.indices_nonzero(keep).to_pylist())
    return made, kept


def _warn_of_filled(rows: Dataset, names: Sequence[str]) -> None:
    """Warn where Arrow has given every call the arguments of all others, as null."""
    filled = [n for n in names if _keys_of_arguments(rows.features[n]) > 1]
    if filled:
        warnings.warn(
            f"the column {filled[0]!r} holds tool arguments as a struct, in which a call has the "
            "arguments of every other call as null, and so will the text that is trained. Build the "
            "rows with wai.from_chats(...), or with Dataset.from_list(..., on_mixed_types='use_json').",
            stacklevel=4,
        )


def _keys_of_arguments(feature: Any) -> int:
    """Count the keys of the struct under `arguments`; 0 where there is no such struct."""
    if isinstance(feature, List):
        return _keys_of_arguments(feature.feature)
    if not isinstance(feature, dict):
        return 0
    inner = feature.get("arguments")
    if isinstance(inner, dict):
        return len(inner)
    return max((_keys_of_arguments(f) for f in feature.values()), default=0)


def _temporary_file() -> str:
    """Name a file for rows that have none: in memory they would be held twice over."""
    folder = Path(get_temporary_cache_files_directory())
    return str(folder / f"rows-{generate_random_fingerprint()}.arrow")


def streamed(
    rows: IterableDataset, transform: Transform, features: Features, step: str
) -> IterableDataset:
    """Run a transform over a stream, with a warning the first time a reason is met."""
    names = rows.column_names or list(next(iter(rows), {}))  # a stream may not know its columns
    return rows.map(
        _Warned(transform, tuple(features), step),
        batched=True, remove_columns=names, features=features,
    )  # fmt: skip


class _Warned:
    def __init__(self, transform: Transform, names: Sequence[str], step: str) -> None:
        self.transform, self.names, self.step, self.told = transform, names, step, set[str]()

    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
        made = self.transform(batch)
        for why in sorted({w for reasons in made["refused"] for w in reasons} - self.told):
            self.told.add(why)
            warnings.warn(f"{self.step} leaves rows of the stream out: {why}", stacklevel=2)
        keep = [i for i, kept in enumerate(made["kept"]) if kept]
        return {name: [made[name][i] for i in keep] for name in self.names}


def reasons(made: Dataset) -> dict[str, int]:
    """Count the reasons for which something was left out."""
    return counted(made, "refused")


def counted(made: Dataset, name: str) -> dict[str, int]:
    """Count the values of a column of texts, or of lists of texts; null is none."""
    column = made.data.table.column(name)
    if isinstance(made.features[name], List):
        column = pc.list_flatten(column)
    return dict(Counter(v for v in column.to_pylist() if v is not None))
