"""Gates: which rollouts may be trained on, each a row predicate that says why it drops one.

A gate is a frozen, picklable callable from a row to "keep", so that `dataset.filter(gate)` does by
hand what `select` does. Facts about a row's task, or about other rows, are columns first:
`with_group_stats` and `with_duplicates` make them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from datasets import Dataset, Value

from whileai_hf import columns, defaults, schema
from whileai_hf import messages as chat
from whileai_hf.errors import InputError
from whileai_hf.selection.gate import Gate
from whileai_hf.selection.group_stats import TOLERANCE
from whileai_hf.selection.leaks import fold_text


@dataclass(frozen=True, slots=True)
class Judged(Gate):
    """Drop what no judge could judge: a null reward is no zero."""

    name: ClassVar[str] = "unjudged"
    why: ClassVar[str] = "no judge gave it a reward"
    reads: ClassVar[tuple[str, ...]] = ("reward",)

    def __call__(self, row: Mapping[str, Any]) -> bool:
        """Keep a row with a reward."""
        return row["reward"] is not None


@dataclass(frozen=True, slots=True)
class Finished(Gate):
    """Drop rollouts that an error or a limit cut, as `finish_reason` says; never by their wording."""

    name: ClassVar[str] = "cut"
    why: ClassVar[str] = "an error or a limit cut it"
    reads: ClassVar[tuple[str, ...]] = ("finish_reason",)

    def __call__(self, row: Mapping[str, Any]) -> bool:
        """Keep a row that ended by itself, or does not say how it ended."""
        return row["finish_reason"] not in ("length", "max_turns", "error")


@dataclass(frozen=True, slots=True)
class Spoken(Gate):
    """Drop rollouts in which the agent neither spoke nor called a tool."""

    name: ClassVar[str] = "empty"
    why: ClassVar[str] = "the agent neither spoke nor acted"
    reads: ClassVar[tuple[str, ...]] = ("messages",)

    def __call__(self, row: Mapping[str, Any]) -> bool:
        """Keep a row with a word or a call of the agent."""
        turns = [m for m in row["messages"] or [] if m.get("role") == "assistant"]
        return any(m.get("tool_calls") or chat.text_of(m.get("content")).strip() for m in turns)


@dataclass(frozen=True, slots=True)
class Spread(Gate):
    """Drop tasks whose attempts all earned the same: their advantage is zero.

    GRPO, arXiv:2402.03300, section 4.1.1; DAPO, arXiv:2503.14476, equation 11.
    """

    name: ClassVar[str] = "no spread"
    why: ClassVar[str] = "every attempt at the task earned the same"
    reads: ClassVar[tuple[str, ...]] = ("attempts", "reward_spread")

    def __call__(self, row: Mapping[str, Any]) -> bool:
        """Keep a row whose task has attempts with different rewards."""
        spread = row["reward_spread"]
        return spread is not None and spread > TOLERANCE


@dataclass(frozen=True, slots=True)
class Band(Gate):
    """Keep tasks of middling difficulty, by the pass rate before any row was dropped.

    With `sure` a task is dropped only where the interval of its rate lies outside the band: a rate
    of 1 in 4 is no proof that a task is easy.
    """

    low: float = defaults.DIFFICULTY_BAND[0]
    high: float = defaults.DIFFICULTY_BAND[1]
    sure: bool = False

    name: ClassVar[str] = "band"
    why: ClassVar[str] = "the task is too easy or too hard"
    reads: ClassVar[tuple[str, ...]] = ("pass_rate", "pass_rate_low", "pass_rate_high")

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high <= 1:
            raise InputError(
                f"a band must be (low, high) within [0, 1]; got ({self.low!r}, {self.high!r}). "
                f"The default is {defaults.DIFFICULTY_BAND}."
            )

    def __call__(self, row: Mapping[str, Any]) -> bool:
        """Keep a row whose task lies in the band."""
        if row["pass_rate"] is None:
            return False
        if self.sure:
            return bool(row["pass_rate_high"] >= self.low and row["pass_rate_low"] <= self.high)
        return bool(self.low - TOLERANCE <= row["pass_rate"] <= self.high + TOLERANCE)


@dataclass(frozen=True, slots=True)
class Rewarded(Gate):
    """Keep rollouts whose reward is high enough to imitate."""

    at_least: float = 1.0

    name: ClassVar[str] = "reward"
    why: ClassVar[str] = "its reward is too low to imitate"
    reads: ClassVar[tuple[str, ...]] = ("reward",)

    def __call__(self, row: Mapping[str, Any]) -> bool:
        """Keep a row with a reward of at least `at_least`."""
        return row["reward"] is not None and row["reward"] >= self.at_least - TOLERANCE


@dataclass(frozen=True, slots=True)
class Unique(Gate):
    """Drop repetitions: rows whose agent did and said what an earlier row of the task did."""

    name: ClassVar[str] = "duplicate"
    why: ClassVar[str] = "an earlier attempt at the task is the same"
    reads: ClassVar[tuple[str, ...]] = ("duplicate",)

    def __call__(self, row: Mapping[str, Any]) -> bool:
        """Keep the first of equal rows."""
        return not row["duplicate"]


def with_duplicates(dataset: Dataset) -> Dataset:
    """Add the column `duplicate`: whether an earlier row of the task has the same agent turns.

    Texts are compared after Unicode normalisation, white space folded; calls by name and arguments.

    Args:
        dataset: Rollouts with `task_id` and `messages`.
    """
    codes, _ = columns.task_codes(dataset, "with_duplicates")
    columns.check_columns(dataset, ["messages"], "with_duplicates")
    seen: set[tuple[int, bytes]] = set()
    flags = np.zeros(len(codes), dtype=bool)
    at = 0
    for batch in columns.batches(dataset.select_columns(["messages"])):
        for messages in batch["messages"]:
            key = (int(codes[at]), _turn_hash(messages or []))
            flags[at] = key in seen
            seen.add(key)
            at += 1
    return columns.with_columns(dataset, {"duplicate": (flags, Value("bool"))})


def _turn_hash(messages: list[Mapping[str, Any]]) -> bytes:
    turns = [
        (
            fold_text(chat.text_of(m.get("content"))),
            [
                schema.dumps(schema.restore(c.get("function") or c))
                for c in m.get("tool_calls") or []
            ],
        )
        for m in messages
        if m.get("role") == "assistant"
    ]
    return hashlib.blake2b(repr(turns).encode("utf-8", "replace"), digest_size=16).digest()
