"""Load rollouts from the Hub, a folder or a file, with the features of a rollout."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Dataset, load_dataset

from whileai_hf import schema
from whileai_hf.errors import InputError
from whileai_hf.rollouts import Rollouts

#: Lines of a JSON-lines file that become one Arrow batch.
_BATCH = 1_000


def load(
    source: str | Path,
    *,
    split: str = "train",
    config: str | None = None,
    revision: str | None = None,
    token: str | None = None,
) -> Rollouts:
    """Load rollouts that were pushed, saved or exported.

    Args:
        source: A dataset id on the Hub; a folder of Parquet files or of `save_to_disk`; a
            `.parquet` file; or a JSON-lines file, which is read exactly, number for number.
        split: Split to load.
        config: Configuration to load, where there are several.
        revision: Branch, tag or commit on the Hub.
        token: Hub token; null uses the one you are logged in with.

    Raises:
        InputError: The source is a path that does not exist or a file of another kind.
    """
    path = Path(source)
    if path.is_dir() and (path / "state.json").exists():
        return Rollouts.load_from_disk(str(path))
    if path.is_dir():
        return Rollouts.of(load_dataset(str(path), config, split=split))
    if path.is_file():
        return _load_file(path, split)
    if path.suffix or str(source).count("/") > 1 or path.is_absolute():
        raise InputError(
            f"source must be a dataset id, a folder or a file; {str(source)!r} does not exist. "
            "Check the path from the folder you run in."
        )
    return Rollouts.of(
        load_dataset(str(source), config, split=split, revision=revision, token=token)
    )


def _load_file(path: Path, split: str) -> Rollouts:
    if path.suffix == ".parquet" and pq.read_metadata(path).num_rows == 0:
        return Rollouts.of(schema.empty())  # `load_dataset` refuses a file without rows
    if path.suffix == ".parquet":
        return Rollouts.of(load_dataset("parquet", data_files={split: str(path)}, split=split))
    if path.suffix in (".jsonl", ".json"):
        return Rollouts.of(_from_lines(path))
    raise InputError(
        f"a file of rollouts must be .parquet or .jsonl; got {path.name!r}. "
        "Convert it, or load it with datasets.load_dataset."
    )


def _from_lines(path: Path) -> Dataset:
    with path.open(encoding="utf-8") as lines:
        records = _records(lines, path.name)
        tables = [schema.to_table(chunk) for chunk in _chunks(records)]
    if not tables:
        return schema.empty()
    return schema.from_table(pa.concat_tables(tables, promote_options="permissive"))


def _records(lines: Any, name: str) -> Iterator[dict[str, Any]]:
    for i, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise InputError(
                f"each line of {name} must be JSON; line {i} is not: {error}. Repair that line."
            ) from error
        if not isinstance(record, dict):
            raise InputError(
                f"each line of {name} must be an object; line {i} is {type(record).__name__}. "
                "Write one rollout a line."
            )
        yield record


def _chunks(records: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    while chunk := list(itertools.islice(records, _BATCH)):
        yield chunk
