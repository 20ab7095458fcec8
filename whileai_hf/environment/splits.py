"""Which tasks are trained on and which are held out: by situation, banded, and without near copies."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from whileai_hf import defaults, schema
from whileai_hf.environment.tasks import EnvironmentTask
from whileai_hf.errors import InputError
from whileai_hf.verify.base import reference_of

#: Keys of a situation that say how an ask is written, not what it is about.
_SURFACE = ("language", "texture")


@dataclass(slots=True)
class Split:
    """Tasks by split, and why the others are in neither."""

    train: list[EnvironmentTask] = field(default_factory=list)
    holdout: list[EnvironmentTask] = field(default_factory=list)
    dropped: dict[str, str] = field(default_factory=dict)  #: task -> why


def split_tasks(
    tasks: Sequence[EnvironmentTask], keys: Mapping[str, str], rates: Mapping[str, float | None],
    holdout: float, band: tuple[float, float] | None, seed: int,
) -> Split:  # fmt: skip
    """Split tasks.

    Args:
        tasks: Tasks that are sound.
        keys: The situation of each task; tasks of one situation stay together.
        rates: Measured pass rate of each task, null where none was measured.
        holdout: Share of the tasks to hold out; it is not banded, so that it measures what comes.
        band: Lowest and highest pass rate of a task to train on; null keeps every task.
        seed: Of the draw.
    """
    out = Split()
    held = _held_out(tasks, keys, holdout, seed)
    kept = [t for t in tasks if keys[t.id] in held]
    marks = [_words(t.ask) for t in kept]
    exact = {frozenset(m) for m in marks}
    for task in tasks:
        if keys[task.id] in held:
            out.holdout.append(task)
        elif frozenset(words := _words(task.ask)) in exact or _near(words, marks):
            out.dropped[task.id] = "its ask is nearly one that is held out"
        elif band is not None and not _within(rates.get(task.id), band):
            out.dropped[task.id] = f"its pass rate lies outside {band[0]:g} to {band[1]:g}"
        else:
            out.train.append(task)
    return out


def _within(rate: float | None, band: tuple[float, float]) -> bool:
    return rate is not None and band[0] - 1e-9 <= rate <= band[1] + 1e-9


def _held_out(
    tasks: Sequence[EnvironmentTask], keys: Mapping[str, str], share: float, seed: int
) -> set[str]:
    """Draw whole situations until the share is reached; the draw depends on names alone."""
    wanted, found = round(share * len(tasks)), 0
    sizes: dict[str, int] = {}
    for task in tasks:
        sizes[keys[task.id]] = sizes.get(keys[task.id], 0) + 1
    held: set[str] = set()
    for key in sorted(sizes, key=lambda k: hashlib.sha256(f"{seed}:{k}".encode()).digest()):
        if found >= wanted or len(held) == len(sizes) - 1:
            break
        held.add(key)
        found += sizes[key]
    return held


def _words(text: str) -> set[str]:
    return set(unicodedata.normalize("NFKC", text).casefold().split())


def _near(words: set[str], marks: Sequence[set[str]]) -> bool:
    limit = defaults.ENVIRONMENT_NEAR
    return any(len(words & m) >= limit * len(words | m) for m in marks if words | m)


def situation_key(record: Mapping[str, Any], split_by: str) -> str:
    """Name the situation of a rollout: what `split_by` holds, without how the ask is written."""
    value = reference_of(record, split_by)
    if isinstance(value, Mapping):
        value = {k: v for k, v in value.items() if k not in _SURFACE}
    if value is None and split_by == "situation":
        value = record["task_id"]
    if value is None:
        raise InputError(
            f"split_by must name a column, or a key inside one, of every row; {split_by!r} is missing from "
            f"task {record['task_id']!r}. The default is 'situation'."
        )
    return schema.dumps(schema.plain(value, split_by))
