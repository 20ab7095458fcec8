"""What an agent did in answer to a prompt: the reply of a rollout, its length, and what it shares."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from datasets import Dataset

from whileai_hf import columns, schema
from whileai_hf import messages as chat

Messages = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Reply:
    """One judged rollout, split before its first agent turn."""

    row: int
    task: str
    name: str  #: id of the rollout
    reward: float
    prompt: Messages
    turns: Messages
    tools: Any
    length: int  #: characters that the agent wrote, its calls included
    tokens: int | None

    @property
    def prompt_key(self) -> tuple[str, bytes]:
        """What two replies must share to be compared: the task and every word of the prompt."""
        return self.task, _digest(self.prompt)

    @property
    def said(self) -> bytes:
        """What the agent did, the ids of its calls aside."""
        return _digest(self.turns)


def replies(dataset: Dataset, step: str) -> Iterator[Reply]:
    """Walk over the judged rollouts that have a prompt and an agent turn.

    Args:
        dataset: Rollouts with `task_id`, `messages` and `reward`.
        step: Name of the calling function, for errors.
    """
    columns.check_dataset(dataset, step)
    columns.check_columns(dataset, ["task_id", "messages", "reward"], step)
    rewards = columns.numbers(dataset, "reward", step)
    columns.task_codes(dataset, step)  # every row has a task
    wanted = [c for c in ("task_id", "messages", "tools", "rollout_id", "n_tokens") if c in dataset.column_names]  # fmt: skip
    row = -1
    for batch in columns.batches(dataset.select_columns(wanted)):
        for values in zip(*batch.values(), strict=True):
            row += 1
            made = None if rewards[row] != rewards[row] else _reply(row, float(rewards[row]), dict(zip(batch, values, strict=True)))  # fmt: skip
            if made is not None:
                yield made


def _reply(row: int, reward: float, of: Mapping[str, Any]) -> Reply | None:
    messages = of["messages"] or []
    at = next((i for i, m in enumerate(messages) if m.get("role") == "assistant"), 0)
    if at == 0:
        return None
    turns = messages[at:]
    length = sum(len(_written(m)) for m in turns if m.get("role") == "assistant")
    return Reply(
        row, of["task_id"], of.get("rollout_id") or str(row), reward, messages[:at], turns, of.get("tools") or None,
        length, of.get("n_tokens"),
    )  # fmt: skip


def branch(a: Sequence[Mapping[str, Any]], b: Sequence[Mapping[str, Any]]) -> int:
    """Return the agent turn from which two replies to one prompt differ, as a place in both."""
    at = 0
    while at < min(len(a), len(b)) and _said(a[at]) == _said(b[at]):
        at += 1
    both = range(min(at + 1, len(a), len(b)))
    return max((i for i in both if a[i]["role"] == b[i]["role"] == "assistant"), default=0)


def one_turn(turns: Messages) -> Messages:
    """Return the first agent turn with the results of its calls."""
    end = next((i for i, m in enumerate(turns[1:], 1) if m["role"] != "tool"), len(turns))
    return turns[:end]


def _written(message: Mapping[str, Any]) -> str:
    calls = message.get("tool_calls") or []
    return chat.text_of(message.get("content")) + "".join(map(schema.dumps, map(_call, calls)))


def _call(call: Mapping[str, Any]) -> list[Any]:
    function = call.get("function") or call
    return [function.get("name"), schema.restore(function.get("arguments"))]


def _said(message: Mapping[str, Any]) -> list[Any]:
    calls = [_call(c) for c in message.get("tool_calls") or []]
    return [message.get("role"), chat.text_of(message.get("content")), message.get("reasoning_content") or None, calls]  # fmt: skip


def _digest(messages: Sequence[Mapping[str, Any]]) -> bytes:
    said = schema.dumps([_said(m) for m in messages])
    return hashlib.blake2b(said.encode("utf-8", "replace"), digest_size=16).digest()
