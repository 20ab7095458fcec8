"""rollouts_from_traces: what `vf-eval` wrote, as rollouts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from whileai_hf import messages as chat
from whileai_hf.environment.environment import Environment
from whileai_hf.errors import InputError
from whileai_hf.rollouts import Rollouts

#: Files of the two interfaces of verifiers.
_FILES = ("traces.jsonl", "results.jsonl")

#: How verifiers names the ends that a limit made.
_CUT = {
    "max_turns", "max_turns_reached", "max_input_tokens", "max_output_tokens", "max_total_tokens",
    "context_length", "prompt_too_long", "max_total_completion_tokens_reached",
}  # fmt: skip


def rollouts_from_traces(path: str | Path, *, env: Environment | None = None) -> Rollouts:
    """Read the traces of a `vf-eval` run as rollouts, for `pass_at`, `compare` and the guards.

    Args:
        path: A `traces.jsonl` (verifiers 0.4) or `results.jsonl` (verifiers 0.3 and before), or the
            folder of a run. A line that a killed run left half written is skipped.
        env: The environment that was evaluated; gives each row its situation, world and references.

    Returns:
        One row a rollout. A rollout with an error has a null reward, whatever the file says. Every other
        row has the sum of its weighted rewards, and its metrics as markers' numbers in `judge_meta`.

    Raises:
        InputError: There is no such file, or it holds no traces.
    """
    file = _file(Path(path))
    records: list[dict[str, Any]] = []
    attempts: Counter[str] = Counter()
    for line in _lines(file):
        for made in _v1(line) if "traces" in line or "nodes" in line else [_v0(line)]:
            record = _with_task(made, env)
            task = record["task_id"]
            record |= {"repeat": attempts[task], "run": file.parent.name}
            record["rollout_id"] = f"{task}-{file.parent.name}-{attempts[task]}"
            attempts[task] += 1
            records.append(record)
    if not records:
        raise InputError(
            f"{file.name} must hold traces of a run; {str(file)!r} holds none. Pass the folder of a "
            "finished vf-eval run."
        )
    return Rollouts.from_records(records)


def _file(path: Path) -> Path:
    found = [path] if path.is_file() else sorted(p for n in _FILES for p in path.rglob(n))
    if len(found) != 1:
        raise InputError(
            f"rollouts_from_traces takes one file of traces; {str(path)!r} has {len(found)}. "
            f"Pass the {' or '.join(_FILES)} of one run."
        )
    return found[0]


def _lines(file: Path) -> Iterator[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            try:
                value = json.loads(line)
            except ValueError:
                continue  # the line that was being written when the run died
            if isinstance(value, dict):
                yield value


def _v1(episode: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Read an episode of verifiers 0.4, or a bare trace of 0.3.1."""
    for trace in episode.get("traces") or [episode]:
        task = trace.get("task") or {}
        data = task.get("data") or task
        kept = (trace.get("info") or {}).get("whileai") or {}
        messages = kept.get("messages") or _branch(trace.get("nodes") or [])
        scores = [r for r in (trace.get("rewards") or {}).values() if r is not None]
        errors = trace.get("errors") or []
        broken = not trace.get("ok", not errors) or not scores
        stop = trace.get("stop_condition")
        yield {
            "task_id": str(kept.get("task_id") or data.get("id") or data.get("name") or task.get("key") or data.get("idx")),
            "messages": messages,
            "tools": [_tool(t) for t in trace.get("tools") or []] or None,
            "finish_reason": kept.get("finish_reason") or ("length" if stop in _CUT else "stop"),
            "error": _error(errors[-1]) if errors else None,
            "agent": _model(trace),
            "reward": None if broken else sum(map(_value, scores)),
            "judge_status": "error" if broken else "ok",
            "judge": "verifiers",
            "judge_meta": {**(trace.get("metrics") or {})} or None,
        }  # fmt: skip


def _value(reward: Any) -> float:
    if isinstance(reward, Mapping):
        return float(reward["score"]) * float(reward.get("weight", 1.0))
    return float(reward)


def _model(trace: Mapping[str, Any]) -> str | None:
    agent = trace.get("agent") or {}
    return (agent.get("config") or {}).get("model") or agent.get("model")


def _branch(nodes: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Walk from the last node to the root."""
    path: list[Any] = []
    at: int | None = len(nodes) - 1 if nodes else None
    while at is not None and at >= 0:
        path.append(nodes[at]["message"])
        at = nodes[at].get("parent")
    return chat.normal_messages([_flat(m) for m in reversed(path)])


def _flat(message: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in message.items() if v is not None and k != "provider_state"}


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    inner = {k: tool[k] for k in ("name", "description", "parameters") if tool.get(k) is not None}
    return {"type": "function", "function": inner}


def _error(error: Any) -> str:
    if isinstance(error, Mapping):
        return f"{error.get('type', 'error')}: {error.get('message', '')}"[:500]
    return str(error)[:500]


def _v0(line: Mapping[str, Any]) -> dict[str, Any]:
    """Read a rollout of verifiers 0.3 and before."""
    info = line.get("info")
    info = json.loads(info) if isinstance(info, str) and info.startswith("{") else info or {}
    said = [*_listed(line.get("prompt")), *_listed(line.get("completion"))]
    error, stop = line.get("error"), line.get("stop_condition")
    metrics = line.get("metrics") or {
        k: line[k] for k in ("n_calls", "judge_ok", "truncated") if k in line
    }
    unjudged = bool(error) or metrics.get("judge_ok") == 0
    return {
        "task_id": str(info.get("task_id") or line.get("example_id")),
        "messages": chat.normal_messages([_flat(m) for m in said]),
        "finish_reason": "length" if stop in _CUT or line.get("is_truncated") else "stop",
        "error": _error(error) if error else None,
        "reward": None if unjudged else line.get("reward"),
        "judge_status": "error" if unjudged else "ok",
        "judge": "verifiers",
        "judge_meta": metrics or None,
    }  # fmt: skip


def _listed(messages: Any) -> list[dict[str, Any]]:
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    return [dict(m) for m in messages or []]


def _with_task(record: dict[str, Any], env: Environment | None) -> dict[str, Any]:
    messages = record["messages"]
    record |= {
        "ask": chat.first_ask(messages), "final_text": chat.final_text(messages),
        "loss_mask": chat.loss_mask(messages),
    }  # fmt: skip
    if env is None:
        return record
    task = env.task(record["task_id"])
    return record | {
        "tools": list(task.tools) or None, "situation": task.situation, "world": task.world,
        "privileged": dict(task.privileged),
    }  # fmt: skip
