"""Rollouts out of what a user already has: prompts and completions, or chat logs."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from whileai_hf import messages as chat
from whileai_hf.errors import InputError
from whileai_hf.rollouts import Rollouts
from whileai_hf.schema import dumps, plain


def rows(
    prompts: Iterable[Any],
    completions: Iterable[Any],
    reward: Any = None,
    *,
    references: Iterable[Any] | None = None,
    task_ids: Iterable[str] | None = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    markers: Iterable[Mapping[str, float]] | None = None,
    run: str | None = None,
    agent: str | None = None,
) -> Rollouts:
    """Make rollouts of prompts and completions, such as those of a benchmark.

    Args:
        prompts: One prompt a rollout: text, or a list of messages. The same prompt given twice is
            one task with two attempts.
        completions: One answer a rollout: text, or a list of messages.
        reward: Null; or a judge, with which the rows are graded; or one number in [0, 1] a row,
            null for a row that was not judged.
        references: The right answer of each row, for a verifier. It is kept in
            `privileged["reference"]`, which no prompt and no export carries.
        task_ids: The task of each row. Default: a hash of the prompt.
        tools: Tool schemas that the agent had, for every row.
        markers: Named facts of each row, 1.0 being the good outcome.
        run: Name of the run that the rows belong to.
        agent: Name of the agent that answered.

    Raises:
        InputError: The columns differ in length, or a reward lies outside [0, 1].

    Example:
        >>> print(rows(["1 + 1 = ?"], ["2"], reward=[1.0])["final_text"][0])
        2
    """
    prompts, completions = list(prompts), list(completions)
    graded = reward is not None and not callable(reward)
    given = {
        "completions": completions,
        "reward": list(reward) if graded else None,
        "references": None if references is None else list(references),
        "task_ids": None if task_ids is None else list(task_ids),
        "markers": None if markers is None else list(markers),
    }
    for name, values in given.items():
        if values is not None and len(values) != len(prompts):
            raise InputError(
                f"{name} needs one value for each of the {len(prompts)} prompts; "
                f"got {len(values)}. Repeat or drop values until the lengths agree."
            )
    attempts: Counter[str] = Counter()
    records = []
    for i, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
        conversation = _messages(prompt, "user") + _messages(completion, "assistant")
        ids = given["task_ids"]
        record = _record(
            conversation, str(ids[i]) if ids else _task_id(_messages(prompt, "user")), attempts
        )
        record |= {"tools": list(tools) if tools else None, "run": run, "agent": agent}
        if given["references"] is not None:
            record["privileged"] = {"reference": given["references"][i]}
        if given["markers"] is not None:
            record["markers"] = given["markers"][i]
        if given["reward"] is not None:
            record |= _given_reward(given["reward"][i], i)
        records.append(record)
    made = Rollouts.from_records(records)
    return made.grade(reward) if callable(reward) else made


def from_chats(
    logs: Iterable[Mapping[str, Any] | Sequence[Mapping[str, Any]]] | str | Path,
    *,
    task_ids: Iterable[str] | None = None,
    run: str | None = None,
    agent: str | None = None,
) -> Rollouts:
    """Make rollouts of chat logs in the format of OpenAI, Anthropic or LangChain.

    Tool-call arguments in JSON text become objects; a call whose arguments are malformed is kept as
    it came, marked in the message and named in the column `error`.

    Args:
        logs: One log a rollout: a list of messages, or an object with `messages` and perhaps
            `tools`, `reward`, `task_id` and columns of its own; or the path of a JSON-lines file of
            those.
        task_ids: The task of each log. Default: the log's own, or a hash of what comes before the
            first assistant turn.
        run: Name of the run that the logs belong to.
        agent: Name of the agent that answered.

    Raises:
        InputError: A log holds no messages, or a message no role.
    """
    if isinstance(logs, (str, Path)):
        logs = _json_lines(Path(logs))
    ids = None if task_ids is None else list(task_ids)
    attempts: Counter[str] = Counter()
    records = []
    for i, log in enumerate(logs):
        given = dict(log) if isinstance(log, Mapping) else {"messages": log}
        if not given.get("messages"):
            raise InputError(
                f"a chat log needs a non-empty list of messages; log {i} has none. Leave it out."
            )
        conversation = chat.normal_messages(map(_from_chain, given.pop("messages")))
        task = ids[i] if ids else given.pop("task_id", None) or _task_id(_prefix(conversation))
        record = {**_record(conversation, str(task), attempts), "run": run, "agent": agent}
        problems = chat.issues(conversation)
        record["error"] = f"messages: {'; '.join(problems)}" if problems else None
        if given.get("reward") is not None:
            record |= _given_reward(given.pop("reward"), i)
        records.append({**record, **{k: v for k, v in given.items() if v is not None}})
    return Rollouts.from_records(records)


def _record(
    conversation: list[dict[str, Any]], task: str, attempts: Counter[str]
) -> dict[str, Any]:
    repeat = attempts[task]
    attempts[task] += 1
    return {
        "task_id": task,
        "rollout_id": f"{task}-{repeat}",
        "repeat": repeat,
        "messages": conversation,
        "loss_mask": chat.loss_mask(conversation),
        "ask": chat.first_ask(conversation),
        "final_text": chat.final_text(conversation),
    }


def _messages(value: Any, role: str) -> list[dict[str, Any]]:
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    if isinstance(value, Mapping):
        value = [value]
    if not isinstance(value, (list, tuple)):
        raise InputError(
            f"a prompt or completion must be text or a list of messages; got {value!r:.80}. "
            "Convert it to text first."
        )
    return chat.normal_messages(value)


#: Roles of LangChain's messages.
_CHAIN_ROLES = {
    "human": "user", "ai": "assistant", "system": "system", "tool": "tool", "function": "tool",
    "HumanMessage": "user", "AIMessage": "assistant", "SystemMessage": "system", "ToolMessage": "tool",
}  # fmt: skip

_CHAIN_KEYS = ("content", "tool_calls", "tool_call_id", "name", "status")


def _from_chain(message: Any) -> Any:
    """Read a message of LangChain: an object, `{"type", "data"}`, or its serialised constructor."""
    if hasattr(message, "type") and hasattr(message, "content"):
        message = {k: getattr(message, k, None) for k in ("type", *_CHAIN_KEYS)}
    if not isinstance(message, Mapping) or "role" in message:
        return message
    kind = message.get("type")
    if kind == "constructor" and isinstance(message.get("id"), list):
        kind, inner = message["id"][-1].removesuffix("Chunk"), message.get("kwargs")
    else:
        inner = message.get("data") or message
    if kind not in _CHAIN_ROLES or not isinstance(inner, Mapping):
        return message
    found = {k: inner[k] for k in _CHAIN_KEYS if inner.get(k)}
    if found.get("status") == "success":
        del found["status"]
    return {"content": "", **found, "role": _CHAIN_ROLES[kind]}


def _prefix(conversation: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
    first = next((i for i, m in enumerate(conversation) if m["role"] == "assistant"), None)
    return conversation[:first]


def _task_id(prompt: Sequence[Mapping[str, Any]]) -> str:
    text = dumps([[m["role"], plain(m.get("content"), "content")] for m in prompt])
    return f"task-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _given_reward(reward: Any, i: int) -> dict[str, Any]:
    if reward is None:
        return {"reward": None}
    try:
        number = float(reward)
    except (TypeError, ValueError):
        number = -1.0
    if not 0.0 <= number <= 1.0:
        raise InputError(
            f"a reward must be a number in [0, 1] or null; row {i} has {reward!r}. "
            "Scale it first, or pass a judge and grade(..., scale=(low, high))."
        )
    return {"reward": number, "judge_status": "ok", "judge": "given"}


def _json_lines(path: Path) -> Iterable[Mapping[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for i, line in enumerate(lines, 1):
            if line.strip():
                try:
                    yield json.loads(line)
                except ValueError as error:
                    raise InputError(
                        f"each line of {path.name} must be JSON; line {i} is not: {error}. "
                        "Repair or remove the line."
                    ) from error
