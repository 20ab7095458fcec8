"""Scoring: what a finished rollout of an environment earned, whichever library drove it."""

from __future__ import annotations

import asyncio
import inspect
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from whileai_hf import messages as chat
from whileai_hf.errors import InputError
from whileai_hf.grade.contract import read_verdict

#: What to do with a rollout that a limit cut: no reward, no judgment, or a judgment of what is there.
CUTS = ("zero", "null", "score")

#: Metrics of every rollout; they are logged and never summed.
METRICS = ("n_calls", "judge_ok", "truncated", "trace_clean")

#: Tool calls that a parser left in the text: one door drops them and another keeps them, so that no
#: reward may read them.
_MARKUP = re.compile(
    r"<tool_call>.*?(?:</tool_call>|\Z)|<\|tool_call\|>.*|<function=[^>]*>.*?(?:</function>|\Z)",
    re.DOTALL,
)

#: Ends that a limit made.
_CUT = ("length", "max_turns", "context_length")


@dataclass(frozen=True, slots=True)
class Score:
    """What a rollout earned; `reward` is null where nothing could be judged, which is no zero."""

    reward: float | None
    status: str  #: one of `schema.JUDGE_STATUSES`
    reason: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)  #: logged, never summed
    markers: Mapping[str, float] = field(default_factory=dict)
    failure_class: str | None = None


def score(
    row: Mapping[str, Any], reward: Callable[..., Any], on_cut: str, tools: Sequence[str]
) -> Score:
    """Score a rollout.

    Args:
        row: The rollout as a record.
        reward: A judge.
        on_cut: One of `CUTS`.
        tools: Names of the tools there are.
    """
    row = without_markup(row)
    cut = is_cut(row)
    metrics = {
        "n_calls": float(len(chat.tool_calls(row["messages"]))), "judge_ok": 0.0,
        "truncated": float(cut), "trace_clean": float(_clean(row, tools)),
    }  # fmt: skip
    if row.get("error"):
        return Score(None, "error", f"the rollout broke off: {row['error']}"[:500], metrics)
    if cut and on_cut != "score":
        metrics["judge_ok"] = 1.0
        why = "a limit cut the rollout"
        if on_cut == "null":
            return Score(None, "missing_reward", why, metrics)
        return Score(0.0, "ok", why, metrics, failure_class="cut")
    try:
        answer = reward(row)
        verdict = read_verdict(_waited(answer) if inspect.isawaitable(answer) else answer)
    except Exception as error:  # noqa: BLE001 - a judge that fails is a status, and stops no rollout
        return Score(None, "error", f"{type(error).__name__}: {error}"[:500], metrics)
    metrics["judge_ok"] = float(verdict.status == "ok")
    return Score(
        verdict.reward, verdict.status, verdict.reason, metrics, verdict.markers, verdict.failure_class
    )  # fmt: skip


def check_cut(on_cut: str) -> str:
    """Refuse a policy that there is none of."""
    if on_cut not in CUTS:
        raise InputError(f"on_cut must be one of {', '.join(CUTS)}; got {on_cut!r}. Pick one.")
    return on_cut


def without_markup(row: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a row without the raw tool-call markup that a parser left in an agent's text."""
    messages = [_plain(m) for m in row.get("messages") or []]
    return {**row, "messages": messages, "final_text": chat.final_text(messages)}


def _plain(message: Mapping[str, Any]) -> dict[str, Any]:
    text = chat.text_of(message.get("content"))
    if message.get("role") != "assistant" or "<" not in text:
        return dict(message)
    return {**message, "content": _MARKUP.sub("", text).strip()}


def is_cut(row: Mapping[str, Any]) -> bool:
    """Tell whether a limit ended a rollout: it says so, or its last calls have no last word."""
    if row.get("finish_reason") in _CUT:
        return True
    last = (row.get("messages") or [{}])[-1]
    return bool(last.get("role") == "tool" or last.get("tool_calls"))


def _clean(row: Mapping[str, Any], tools: Sequence[str]) -> bool:
    """Tell whether every call is readable, names a tool, and has its answer."""
    calls = chat.tool_calls(row["messages"])
    return not chat.issues(row["messages"]) and all(
        c.name in tools and not c.malformed and c.result is not None for c in calls
    )


def _waited(answer: Any) -> Any:
    """Wait for a judge in a loop of its own: the caller may be inside one already."""
    out: list[Any] = []

    async def wait() -> Any:
        return await answer

    def work() -> None:
        try:
            out.append(asyncio.run(wait()))
        except Exception as error:  # noqa: BLE001 - raised again by the caller
            out.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join()
    if isinstance(out[0], Exception):
        raise out[0]
    return out[0]
