"""to_grpo: one row a task, as `GRPOTrainer` and `RLOOTrainer` read them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from datasets import Dataset

from whileai_hf import columns, schema
from whileai_hf.errors import InputError
from whileai_hf.rollouts import Rollouts
from whileai_hf.training.preference_formats import FormatReport
from whileai_hf.training.preference_rows import (
    LeftOut,
    as_messages,
    split_prompt,
    tools_of,
)
from whileai_hf.training.turns import rendered

#: Columns of a task that go to the trainer with its prompt.
_KEPT = ("situation",)


def to_grpo(rows: Dataset, *, privileged: bool = False) -> Rollouts:
    """Turn rollouts, or rows with a prompt, into the tasks of `GRPOTrainer`.

    A reward function reads every column by its name, and an environment gets them in `reset`. The
    trainer renders no `tools` column: it takes tools as functions, or from the environment.

    Args:
        rows: Rollouts, of which each task gives one row, the messages before the first agent turn
            as its `prompt`; or rows that have a `prompt`: messages go through the chat template,
            text is completed as it is, as everywhere in TRL.
        privileged: Whether to keep `privileged` and `world`, which verifiers read as the reference
            and `world_environment` rebuilds the world from. They reach rewards and environments,
            and no prompt.

    Returns:
        Rows with `prompt`, `tools` (null where there are none), `task_id`, `situation`, the columns
        that are not a rollout's, and perhaps `privileged` and `world`.

    Raises:
        InputError: No row has anything to ask.
    """
    columns.check_dataset(rows, "to_grpo")
    asked = "prompt" in rows.column_names
    columns.check_columns(rows, ["prompt"] if asked else ["messages", "task_id"], "to_grpo")
    own = [n for n in rows.column_names if n not in schema.FEATURES and n != "prompt"]
    kept = [n for n in (*_KEPT, *(schema.PRIVATE if privileged else ())) if n in rows.column_names]
    reads = ["prompt" if asked else "messages", *own, *kept]
    reads += [n for n in ("tools", "task_id") if n in rows.column_names]
    records, refused = _tasks(rows.select_columns(reads), asked, [*own, *kept])
    if len(rows) and not records:
        raise InputError(
            f"to_grpo needs rows with something to ask; all {len(rows)} were left out: "
            f"{', '.join(refused)}. Look at rows[0]."
        )
    made = _dataset(records, ["prompt", "tools", "task_id", *kept])
    return Rollouts.of(made, FormatReport("GRPO", len(rows), len(made), dict(refused)))


def _tasks(
    rows: Dataset, asked: bool, more: list[str]
) -> tuple[list[dict[str, Any]], Counter[str]]:
    seen: set[Any] = set()
    records, refused = [], Counter[str]()
    for batch in columns.batches(rows):
        for values in zip(*batch.values(), strict=True):
            record = schema.to_record(dict(zip(batch, values, strict=True)))
            task = record.get("task_id")
            if not asked and task in seen:
                continue
            try:
                prompt = _prompt(record, asked)
            except (LeftOut, InputError) as why:
                refused[str(why)] += 1
                continue
            seen.add(task)
            made = {n: record[n] for n in more}
            records.append({"prompt": prompt, "tools": tools_of(record), "task_id": task, **made})
    return records, refused


def _prompt(record: dict[str, Any], asked: bool) -> str | list[dict[str, Any]]:
    given = schema.restore(record["prompt"]) if asked else None
    if isinstance(given, str):
        if not given.strip():
            raise LeftOut("an empty prompt")
        return given
    normal = as_messages(given if asked else record["messages"], "user")
    prompt = normal if asked else split_prompt(normal)[0]
    if not any(m["content"] for m in prompt):
        raise LeftOut("an empty prompt")
    return [rendered(m) for m in prompt]


def _dataset(records: list[dict[str, Any]], names: list[str]) -> Dataset:
    """Write tasks with the features of rollouts: a prompt in those of messages, or as text."""
    if records and all(isinstance(r["prompt"], str) for r in records):
        return _written(records, names)
    asked = [{"messages": as_messages(r.pop("prompt"), "user"), **r} for r in records]
    return _written(asked, ["messages", *names[1:]]).rename_column("messages", "prompt")


def _written(records: list[dict[str, Any]], names: list[str]) -> Dataset:
    table = schema.to_table(records)
    own = [n for n in table.column_names if n not in schema.FEATURES and n not in names]
    return schema.from_table(table.select([*names, *own]))
