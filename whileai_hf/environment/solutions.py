"""Solutions: how a task can be solved, found once at export and played by every check after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from whileai_hf import messages as chat
from whileai_hf.environment import playing
from whileai_hf.environment.environment import Environment
from whileai_hf.environment.tasks import EnvironmentTask
from whileai_hf.errors import InputError
from whileai_hf.simulate.seeded_agent import seeded_agent

#: Keys of a message that say what an agent did; the others are of the run.
_SAID = ("content", "tool_calls")


def prompt_of(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the messages before the first agent turn."""
    out = []
    for message in record["messages"] or []:
        if message["role"] not in ("system", "user", "developer"):
            break
        role = "user" if message["role"] == "user" else "system"
        out.append({"role": role, "content": chat.text_of(message.get("content"))})
    if not any(m["role"] == "user" for m in out):
        raise InputError(
            f"every task needs a user message before the first agent turn; task {record['task_id']!r} has "
            "none. Drop it, or add what was asked."
        )
    return out


def with_solution(
    task: EnvironmentTask, rows: Sequence[Mapping[str, Any]], env: Environment,
    solve: Callable[[Mapping[str, Any]], Any] | None,
) -> EnvironmentTask:  # fmt: skip
    """Give a task the first of its known solutions that earns 1, or else the first there is."""
    known = [t for t in _candidates(task, rows, env, solve) if t is not None]
    for turns in known:
        solved = replace(task, solution=tuple(turns))
        if env.check(solved).gold == 1.0:
            return solved
    return replace(task, solution=tuple(known[0])) if known else task


def _candidates(
    task: EnvironmentTask, rows: Sequence[Mapping[str, Any]], env: Environment,
    solve: Callable[[Mapping[str, Any]], Any] | None,
) -> Any:  # fmt: skip
    if solve is not None:
        yield _turns(solve(rows[0]), task.id)
        return
    yield _turns(task.privileged.get("solution"), task.id)
    if env.card["world"] is None and task.world is not None and task.tools:
        yield _honest(task, env)
    for row in rows:
        if row.get("reward") == 1 and not row.get("error"):
            yield [_kept(m) for m in row["messages"] if m["role"] == "assistant"]
    reference = task.privileged.get("reference")
    if isinstance(reference, (str, int, float)) and not isinstance(reference, bool):
        yield [{"content": str(reference)}]


def _honest(task: EnvironmentTask, env: Environment) -> list[dict[str, Any]] | None:
    """Let the honest stand-in, which knows the goal, play the task."""
    rollout = playing.start(
        task, env.world(task), seeded_agent(list(task.tools), rate=0.0), env.max_turns
    )
    rollout.play()
    if rollout.error:
        return None
    return [_kept(m) for m in rollout.messages if m["role"] == "assistant"]


def _kept(message: Mapping[str, Any]) -> dict[str, Any]:
    return {k: message[k] for k in _SAID if message.get(k) is not None}


def _turns(given: Any, task_id: str) -> list[dict[str, Any]] | None:
    """Read a solution: agent turns, or calls and a final text."""
    if given is None:
        return None
    if isinstance(given, Mapping):
        calls = [
            {"content": "", "tool_calls": [chat.normal_call(_call(c))]}
            for c in given.get("calls") or ()
        ]
        return [*calls, {"content": chat.text_of(given.get("final_text"))}]
    if isinstance(given, (list, tuple)) and all(isinstance(t, Mapping) for t in given):
        return [dict(turn) for turn in given]
    raise InputError(
        f"a solution must be agent turns, or calls and a final text; that of {task_id!r} is "
        f'{given!r:.80}. Return {{"calls": [[name, arguments]], "final_text": "…"}}.'
    )


def _call(given: Any) -> Mapping[str, Any]:
    if isinstance(given, Mapping):
        return given
    return {"name": given[0], "arguments": given[1]}
