"""export: write rollouts for a trainer, exactly, and without what only a judge may read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from datasets import Dataset

from whileai_hf import columns, schema
from whileai_hf import messages as chat
from whileai_hf.errors import InputError, SchemaError
from whileai_hf.training.sequences import CUT, MASKS, NOTHING, mask_problem, trained_turns

#: What a file can hold.
FORMATS = ("messages", "trl", "openai", "parquet")


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What was written; `print(report)` is the line to quote."""

    path: str
    format: str
    n_rows: int
    n_trained_turns: int  #: agent turns whose loss mask is 1
    n_failed: int  #: rows with a reward below 1 that are written as targets
    refused: dict[str, int]  #: rows that were left out, by reason

    def __str__(self) -> str:
        said = (
            f"{self.n_rows} rows, {self.n_trained_turns} trained turns, to {Path(self.path).name}"
        )
        if self.refused:
            said += "; left out: " + ", ".join(f"{n} ({why})" for why, n in self.refused.items())
        if self.n_failed:
            said += (
                f"; {self.n_failed} rows did not earn the full reward and are written as targets"
            )
        return said

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        return {name: getattr(self, name) for name in self.__slots__}


def export(
    dataset: Dataset, path: str | Path, *, format: str = "messages", mask: str | None = None
) -> ExportReport:
    """Write rollouts to a file that a trainer, or another tool, reads.

    JSON lines are written with `json`, number for number. The columns that only a judge may read
    (`world`, `privileged`) never leave. A conversation with a call that cannot be read, or a result
    without its call, is left out and counted: a trainer would learn it.

    Args:
        dataset: Rollouts with `messages`.
        path: The file.
        format: `"messages"`: every column, one rollout a line, arguments as objects. `"trl"`:
            `messages` and `tools` as `SFTTrainer` reads them. `"openai"`: `messages` and `tools`
            with arguments as JSON text. `"parquet"`: every column with its features, for
            `load_dataset`.
        mask: For `"trl"`, where a trainer ignores a mask of messages: `"column"`, `"assistant"` or
            `"final"` writes one line a trained turn, as `prompt` and `completion`, which it trains
            exactly. Null writes whole conversations; `to_sft` makes token labels of those.

    Raises:
        InputError: An unknown format or mask, or a path whose folder does not exist.
        SchemaError: There are no `messages`.
    """
    columns.check_dataset(dataset, "export")
    if format not in FORMATS:
        raise InputError(f"format must be one of {', '.join(FORMATS)}; got {format!r}. Pick one.")
    if "messages" not in dataset.column_names:
        raise SchemaError(
            f"export needs the column 'messages'; the dataset has {', '.join(dataset.column_names)}. "
            "Make rollouts with simulate(...), wai.from_chats(...) or wai.rows(...)."
        )
    _check_mask(dataset, format, mask)
    target = Path(path)
    if not target.parent.exists():
        raise InputError(
            f"the folder of the file must exist; {str(target.parent)!r} does not. Make it first."
        )
    counts = Counter[str]()
    refused = Counter[str]()
    temporary = target.with_name(target.name + ".writing")
    rows = _rows(dataset, counts, refused, mask)
    if format == "parquet":
        _write_parquet(rows, temporary)
    else:
        _write_lines(rows, temporary, _SHAPES[format] if mask is None else _as_turn)
    temporary.replace(target)
    return ExportReport(
        str(target), format, counts["rows"], counts["turns"], counts["failed"], dict(refused)
    )


def _check_mask(dataset: Dataset, format: str, mask: str | None) -> None:
    if mask is None:
        return
    if format != "trl" or mask not in MASKS:
        raise InputError(
            f'mask must be one of {", ".join(MASKS)}, with format="trl"; got {mask!r} with '
            f"{format!r}. Other formats carry the column loss_mask, or train nothing."
        )
    if mask == "column":
        columns.check_columns(dataset, ["loss_mask"], "export(mask='column')")


def _rows(
    dataset: Dataset, counts: Counter[str], refused: Counter[str], mask: str | None
) -> Iterator[dict[str, Any]]:
    for batch in columns.batches(dataset):
        for values in zip(*batch.values(), strict=True):
            record = schema.to_record(dict(zip(batch, values, strict=True)))
            reason = _refusal(record["messages"] or [])
            if reason:
                refused[reason] += 1
                continue
            for name in schema.PRIVATE:
                record.pop(name, None)
            record["tools"] = record.get("tools") or None
            made = [record] if mask is None else list(_turns(record, mask, refused))
            given = record.get("loss_mask") or chat.loss_mask(record["messages"])
            failed = record.get("reward") is not None and record["reward"] < 1
            counts["rows"] += len(made)
            counts["turns"] += sum(given) if mask is None else len(made)
            counts["failed"] += failed * len(made)
            yield from made


def _turns(record: dict[str, Any], mask: str, refused: Counter[str]) -> Iterator[dict[str, Any]]:
    """Make a row of each trained turn, with the history that it had."""
    messages = record["messages"]
    problem = mask_problem(messages, record.get("loss_mask")) if mask == "column" else None
    if problem:
        refused[problem] += 1
        return
    turns = trained_turns(messages, mask, record.get("loss_mask"))
    if record.get("finish_reason") == "length" and len(messages) - 1 in turns:
        refused[CUT] += 1
        turns.remove(len(messages) - 1)
    elif not turns:
        refused[NOTHING] += 1
    for at in turns:
        yield {**record, "messages": messages[: at + 1]}


def _refusal(messages: list[Mapping[str, Any]]) -> str | None:
    """Say why a conversation must not be learned, or null."""
    if not any(m.get("role") == "assistant" for m in messages):
        return "no agent turn"
    if any(c.get("malformed") for m in messages for c in m.get("tool_calls") or []):
        return "a call that cannot be read"
    found = chat.issues(messages)
    if any("has no call" in issue for issue in found):
        return "a result without its call"
    return "a call without its result" if found else None


def _write_lines(
    rows: Iterator[dict[str, Any]], path: Path, shape: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    with path.open("w", encoding="utf-8") as out:
        for row in rows:
            out.write(schema.dumps(shape(row)) + "\n")


def _write_parquet(rows: Iterator[dict[str, Any]], path: Path) -> None:
    writer = None
    chunk: list[dict[str, Any]] = []
    kept = [name for name in schema.FEATURES if name not in schema.PRIVATE]

    def flush() -> None:
        nonlocal writer
        made = schema.from_table(schema.to_table(chunk))
        made = made.select_columns(
            [c for c in made.column_names if c in kept or c not in schema.FEATURES]
        )
        writer = writer or pq.ParquetWriter(path, made.data.table.schema)
        writer.write_table(made.data.table.cast(writer.schema))
        chunk.clear()

    for row in rows:
        chunk.append(row)
        if len(chunk) == 1000:
            flush()
    if chunk or writer is None:
        flush()
    if writer is not None:
        writer.close()


def _clean(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out keys that are ours alone, and write no null where a template expects text."""
    out = []
    for message in messages:
        kept = {k: v for k, v in message.items() if k != "status" and v is not None}
        kept["content"] = chat.text_of(kept.get("content"))
        out.append(kept)
    return out


def _as_messages(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "messages": _clean(row["messages"])}


def _as_trl(row: dict[str, Any]) -> dict[str, Any]:
    return {
        "messages": _clean(row["messages"]),
        "tools": row["tools"],
        "task_id": row.get("task_id"),
    }


def _as_turn(row: dict[str, Any]) -> dict[str, Any]:
    *prompt, completion = _clean(row["messages"])
    out = {"prompt": prompt, "completion": [completion], "tools": row["tools"]}
    return {**out, "task_id": row.get("task_id")}


def _as_openai(row: dict[str, Any]) -> dict[str, Any]:
    messages = _clean(row["messages"])
    for message in messages:
        for call in message.get("tool_calls") or []:
            arguments = call["function"]["arguments"]
            if not isinstance(arguments, str):
                call["function"]["arguments"] = json.dumps(arguments, ensure_ascii=False)
    out = {"messages": messages}
    return {**out, "tools": row["tools"]} if row["tools"] else out


_SHAPES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "messages": _as_messages, "trl": _as_trl, "openai": _as_openai,
}  # fmt: skip
