"""The texts that training must not have seen: read from datasets, files, the Hub, rows or strings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict, IterableDataset, load_dataset, load_from_disk

from whileai_hf import columns, text
from whileai_hf import messages as chat
from whileai_hf.errors import InputError, SchemaError

#: Columns that hold what is asked, in the order in which they are looked for.
PROMPT_COLUMNS = ("messages", "prompt", "question", "problem", "instruction", "query", "ask", "input", "text")  # fmt: skip

#: Columns that hold what a row answers; a question quoted in an answer leaks as well.
REPLY_COLUMNS = ("completion", "chosen", "rejected")

#: What a word of a script without spaces counts, where words are counted as a measure of content.
_SPACELESS_WEIGHT = 0.5

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+(?::\w+)?")
_BUILDERS = {".jsonl": "json", ".json": "json", ".parquet": "parquet", ".csv": "csv", ".txt": "text"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class HeldOut:
    """The held-out texts, each of them once, and the ids of their tasks."""

    texts: tuple[str, ...]
    ids: tuple[str, ...]  #: of the first row with that text
    numbers: tuple[tuple[str, ...], ...]  #: numbers in each text
    weights: tuple[float, ...]  #: words of each text, a character without spaces counting half
    task_ids: frozenset[str]  #: of all rows; empty where they have none
    n_rows: int


def read_held_out(against: Any, fields: Sequence[str] | None, n: int) -> HeldOut:
    """Read what a dataset must not contain.

    Of a conversation the first user turn counts, and each later one of at least `n` words.

    Args:
        against: See `with_contamination`.
        fields: Columns to read; null takes what is asked.
        n: Words from which a later turn is text of its own.
    """
    if isinstance(against, HeldOut):
        return against
    texts: dict[tuple[Any, ...], tuple[str, str, float]] = {}
    task_ids: set[str] = set()
    n_rows = 0
    for name, row in _rows(against):
        n_rows += 1
        if row.get("task_id") is not None:
            task_ids.add(str(row["task_id"]))
        for written in _asked(row, fields, n):
            split = text.words(written)
            if not split:
                continue
            weight = sum(_SPACELESS_WEIGHT if text.is_spaceless(w) else 1.0 for w in split)
            key = (tuple(split), tuple(text.numbers(written)))
            texts.setdefault(key, (written, str(row.get("task_id") or row.get("id") or name), weight))  # fmt: skip
    if not texts and not task_ids:
        raise InputError(
            f"against must hold text to look for; got {n_rows} rows without any. "
            "Pass the evaluation set, or name its columns with against_fields."
        )
    found = texts.values()
    return HeldOut(
        tuple(t for t, _, _ in found), tuple(i for _, i, _ in found), tuple(k[1] for k in texts),
        tuple(w for _, _, w in found), frozenset(task_ids), n_rows,
    )  # fmt: skip


def prompt_columns(names: Sequence[str], fields: Sequence[str] | None, step: str) -> list[str]:
    """Return the columns to search: those that were named, or the prompt and the replies.

    Raises:
        SchemaError: A named column is missing, or none is known to hold text.
    """
    if fields is not None:
        missing = [f for f in fields if f not in names]
        if missing or not fields:
            raise SchemaError(
                f"fields must name columns of the dataset; {missing!r} of {list(fields)!r} are not in "
                f"{', '.join(names) or 'it'}. Correct the names."
            )
        return list(fields)
    asked = [name for name in PROMPT_COLUMNS if name in names][:1]
    asked += [name for name in REPLY_COLUMNS if name in names]
    if not asked:
        raise SchemaError(
            f"{step} needs a column with text, such as {', '.join(map(repr, PROMPT_COLUMNS[:3]))}; the "
            f"dataset has {', '.join(names) or 'none'}. Name yours: fields=[...]."
        )
    return asked


def turns(value: Any) -> Iterator[tuple[str, str]]:
    """List the texts of a value with their roles: a string is a user's, a conversation by turns."""
    if value is None:
        return
    if isinstance(value, str):
        yield "user", value
        return
    if isinstance(value, Mapping):
        value = [value]
    if not isinstance(value, (list, tuple)):
        raise SchemaError(
            f"a column that is searched must hold text or messages; got {value!r:.60}. "
            "Name other columns: fields=[...]."
        )
    for part in value:
        if isinstance(part, str):
            yield "user", part
        elif isinstance(part, Mapping):
            content = chat.text_of(part.get("content"))
            if content:
                yield str(part.get("role") or "user"), content


def _asked(row: Mapping[str, Any], fields: Sequence[str] | None, n: int) -> Iterator[str]:
    present = [name for name, value in row.items() if value is not None]
    if fields is None and "task_id" in present and not set(present) & set(PROMPT_COLUMNS):
        return  # a task that is named and not written down
    names = prompt_columns(present, fields, "against")
    for name in names if fields is not None else names[:1]:
        said = [t for role, t in turns(row[name]) if role == "user"]
        yield from said[:1]
        yield from (t for t in said[1:] if len(text.words(t)) >= n)


def _rows(against: Any, name: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Walk over everything that was given, each row with a name for the report."""
    whole = not name  # one string alone is a source; in a list it may be a text
    if isinstance(against, Path) or (isinstance(against, str) and (whole or _is_source(against))):
        against = _loaded(against)
    if isinstance(against, str):
        yield name, {"text": against}
    elif isinstance(against, DatasetDict):
        for split in [s for s in against if s != "train"] or list(against):
            yield from _rows(against[split], str(split))
    elif isinstance(against, (Dataset, IterableDataset)):
        yield from _dataset_rows(against, name)
    elif isinstance(against, Mapping):
        yield name, against
    elif isinstance(against, (list, tuple, set, frozenset)):
        for i, part in enumerate(against):
            yield from _rows(part, f"{name}#{i}")
    else:
        raise InputError(
            f"against must be a dataset, a Hub id, a path, texts, rows or a list of these; got "
            f"{type(against).__name__}. Pass the evaluation set."
        )


def _dataset_rows(
    dataset: Dataset | IterableDataset, name: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    heavy = [c for c in dataset.column_names or [] if c in ("world", "privileged", "tools", "situation")]  # fmt: skip
    at = 0
    for batch in columns.batches(dataset.remove_columns(heavy)):
        for values in zip(*batch.values(), strict=True):
            yield f"{name}#{at}", dict(zip(batch, values, strict=True))
            at += 1


def _is_source(name: str) -> bool:
    if "\n" in name or len(name) > 1000:
        return False
    return bool(_HUB_ID.fullmatch(name)) or (Path(name).suffix in _BUILDERS and Path(name).exists())


def _loaded(source: str | Path) -> Any:
    path = Path(source)
    if len(str(source)) < 1000 and path.is_dir():
        saved = (path / "state.json").exists() or (path / "dataset_dict.json").exists()
        return load_from_disk(str(path)) if saved else load_dataset(str(path))
    if len(str(source)) < 1000 and path.is_file() and path.suffix in _BUILDERS:
        return load_dataset(_BUILDERS[path.suffix], data_files=str(path), split="train")
    if not _HUB_ID.fullmatch(str(source)):
        raise InputError(
            f"against must be a path or a Hub id where it is one string; {str(source)!r:.80} is "
            "neither. Pass a list for texts: [text]."
        )
    name, _, split = str(source).partition(":")
    try:
        return load_dataset(name, split=split or None)
    except (OSError, ValueError) as error:
        raise InputError(
            f"against must name a dataset that can be loaded; {str(source)!r} cannot: {error}. Load it "
            'yourself and pass it; a text that looks like a Hub id goes in as {"text": …}.'
        ) from error
