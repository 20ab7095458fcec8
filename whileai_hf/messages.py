"""Messages, tool calls and their results: reading every wire format into one normal form.

The normal form is that of the OpenAI chat format with arguments as objects: a message has a role
and text, an assistant message may have `tool_calls`, and a tool message answers one of them by
`tool_call_id`. What cannot be read is kept as it came and marked `malformed`, never dropped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from whileai_hf.errors import InputError
from whileai_hf.schema import restore

#: Reasoning that a model writes before its answer; an unclosed block runs to the end of the text.
_REASONING = re.compile(
    r"<(think|thinking|reasoning|thought)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE
)
#: A closing tag whose opening tag was part of the prompt: what stands before it is reasoning.
_PREFILLED = re.compile(r"\A.*?</(?:think|thinking|reasoning|thought)>", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool and what came back."""

    name: str
    arguments: dict[str, Any]  #: {} where none could be read
    id: str | None = None
    result: str | None = None  #: text of the tool message, null when nothing answered
    status: str | None = None  #: "ok", "error", or null when nothing answered or it is not known
    turn: int = 0  #: index of the assistant message that made the call
    malformed: str | None = None  #: why the call could not be read, null for a good one
    raw: Any = None  #: the arguments as they came, where they could not be read


def text_of(content: Any) -> str:
    """Return the text of a message content: a string, a list of parts, or null."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = [content]
    if isinstance(content, (list, tuple)):
        parts = (
            p if isinstance(p, str) else p.get("text")
            for p in content
            if isinstance(p, (str, Mapping))
        )
        return "".join(part for part in parts if isinstance(part, str))
    return str(content)


def without_reasoning(text: str) -> str:
    """Remove reasoning blocks, an unclosed one and one that the prompt opened included."""
    text = _REASONING.sub("", text)
    return _PREFILLED.sub("", text).strip()


def normal_arguments(arguments: Any) -> tuple[Any, str | None]:
    """Read the arguments of a tool call.

    Returns:
        The arguments as an object and null, or the value as it came and what is wrong with it.
    """
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        return {}, None
    if isinstance(arguments, Mapping):
        return dict(arguments), None
    if not isinstance(arguments, str):
        return arguments, f"arguments are {_kind(arguments)}, not an object"
    try:
        value = json.loads(arguments)
    except ValueError as error:
        return arguments, f"arguments are not JSON: {error}"
    except RecursionError:
        return arguments, "arguments are nested too deep"
    if isinstance(value, dict):
        return value, None
    if isinstance(value, str) and value.lstrip().startswith("{"):
        return arguments, "arguments were encoded twice"
    return arguments, f"arguments are {_kind(value)}, not an object"


def _kind(value: Any) -> str:
    names = {type(None): "null", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value)) or {"str": "a string", "list": "a list"}.get(
        type(value).__name__, type(value).__name__
    )


def normal_call(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool call of any wire format in the normal form; see the module docstring.

    A call that cannot be read keeps its arguments as they came and gets a key `malformed` with the
    reason.
    """
    function = call.get("function")
    inner = function if isinstance(function, Mapping) else call
    name = inner.get("name")
    raw = next((inner[k] for k in ("arguments", "input", "args") if k in inner), None)
    arguments, problem = normal_arguments(raw)
    if not isinstance(name, str) or not name:
        problem = problem or "the call has no tool name"
    out: dict[str, Any] = {
        "type": "function",
        "function": {"name": name if isinstance(name, str) else "", "arguments": arguments},
    }
    if call.get("id") is not None:
        out = {"id": str(call["id"]), **out}
    if problem:
        out["malformed"] = problem
    return out


def normal_messages(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a conversation of any wire format in the normal form.

    Anthropic's `tool_use` and `tool_result` blocks become tool calls and tool messages; content
    parts become text; JSON arguments become objects. Other keys of a message are kept.

    Raises:
        InputError: A message has no role, or a result without an id could belong to several calls.
    """
    out: list[dict[str, Any]] = []
    for i, message in enumerate(messages):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise InputError(
                f"a message must be an object with a role; message {i} is {message!r:.80}. "
                'Write {"role": "user", "content": …}.'
            )
        out.extend(_normal_message(message))
    _name_results(out)
    return out


def _normal_message(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    blocks = [b for b in content if isinstance(b, Mapping)] if isinstance(content, list) else []
    uses = [b for b in blocks if b.get("type") == "tool_use"]
    results = [b for b in blocks if b.get("type") == "tool_result"]
    role = {"human": "user", "ai": "assistant", "gpt": "assistant", "developer": "system"}.get(
        message["role"], message["role"]
    )
    kept = {
        k: v
        for k, v in message.items()
        if k not in ("role", "content", "tool_calls") and v is not None
    }
    out: list[dict[str, Any]] = [_result_message(b) for b in results]
    text = text_of(content)
    calls = [normal_call(c) for c in [*(message.get("tool_calls") or []), *uses]]
    if isinstance(legacy := kept.pop("function_call", None), Mapping):
        calls.append(normal_call(legacy))
    if calls or text or not results:
        main: dict[str, Any] = {"role": role, "content": text, **kept}
        if calls:
            main["tool_calls"] = calls
        out.append(main)
    return out


def _result_message(block: Mapping[str, Any]) -> dict[str, Any]:
    out = {
        "role": "tool",
        "tool_call_id": block.get("tool_use_id"),
        "content": text_of(block.get("content")),
    }
    if block.get("is_error"):
        out["status"] = "error"
    return out


def _name_results(messages: list[dict[str, Any]]) -> None:
    """Give each result without an id the id of its call, where there is only one it can be."""
    waiting: list[dict[str, Any]] = []
    for i, message in enumerate(messages):
        if message["role"] == "assistant":
            waiting = list(message.get("tool_calls") or [])
        elif message["role"] == "tool":
            call = _match(message, waiting, i)
            if call is not None:
                waiting.remove(call)
                if message.get("tool_call_id") is None and call.get("id") is not None:
                    message["tool_call_id"] = call["id"]
                message.setdefault("name", call["function"]["name"])


def _match(
    message: Mapping[str, Any], waiting: Sequence[dict[str, Any]], i: int
) -> dict[str, Any] | None:
    wanted = message.get("tool_call_id")
    if wanted is not None:
        return next((c for c in waiting if c.get("id") == wanted), None)
    named = [c for c in waiting if message.get("name") in (None, c["function"]["name"])]
    with_ids = any(c.get("id") is not None for c in named)
    if len(named) > 1 and with_ids:
        raise InputError(
            f"a tool result must say which call it answers; message {i} is an ambiguous tool result "
            f"for {len(named)} calls. Give it the tool_call_id of its call."
        )
    return named[0] if named else None


def tool_calls(row: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> list[ToolCall]:
    """List the tool calls of a rollout with their results, in the order in which they were made.

    Args:
        row: A row of a dataset, a record, or a list of messages.
    """
    messages = row["messages"] if isinstance(row, Mapping) else row
    found: list[ToolCall] = []
    answers = _answers(messages or [])
    for turn, message in enumerate(messages or []):
        for at, call in enumerate(message.get("tool_calls") or []):
            found.append(_read_call(restore(call), turn, answers.get((turn, at))))
    return found


def _answers(messages: Sequence[Mapping[str, Any]]) -> dict[tuple[int, int], Mapping[str, Any]]:
    """Pair each call, named by turn and place, with the tool message that answers it."""
    waiting: list[tuple[tuple[int, int], Mapping[str, Any]]] = []
    out: dict[tuple[int, int], Mapping[str, Any]] = {}
    for turn, message in enumerate(messages):
        if message.get("role") == "assistant":
            waiting = [((turn, at), c) for at, c in enumerate(message.get("tool_calls") or [])]
        elif message.get("role") == "tool":
            wanted = message.get("tool_call_id")
            key = next((k for k, c in waiting if wanted is None or c.get("id") == wanted), None)
            if key is not None:
                out[key] = message
                waiting = [(k, c) for k, c in waiting if k != key]
    return out


def _read_call(call: Mapping[str, Any], turn: int, answer: Mapping[str, Any] | None) -> ToolCall:
    function = call.get("function") or call
    arguments, problem = normal_arguments(function.get("arguments"))
    problem = call.get("malformed") or problem
    return ToolCall(
        name=function.get("name") or "",
        arguments=arguments if isinstance(arguments, dict) else {},
        id=call.get("id"),
        result=None if answer is None else text_of(answer.get("content")),
        status=None if answer is None else answer.get("status") or "ok",
        turn=turn,
        malformed=problem,
        raw=None if isinstance(arguments, dict) else arguments,
    )


def issues(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say what is wrong with a conversation: results without a call, calls without a result."""
    found: list[str] = []
    open_calls: list[str] = []
    for i, message in enumerate(messages):
        if message["role"] == "tool":
            wanted = message.get("tool_call_id")
            if wanted in open_calls:
                open_calls.remove(wanted)
            elif wanted is not None:
                found.append(f"result {wanted} has no call")
        else:
            found.extend(f"call {name} has no result" for name in open_calls)
            open_calls = [
                c["id"] for c in message.get("tool_calls") or [] if c.get("id") is not None
            ]
            found.extend(
                f"message {i}: {c['malformed']}"
                for c in message.get("tool_calls") or []
                if c.get("malformed")
            )
    found.extend(f"call {name} has no result" for name in open_calls)
    return found


def loss_mask(messages: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return 1 for each agent turn and 0 for every other message."""
    return [int(m["role"] == "assistant") for m in messages]


def first_ask(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of the first user message, or the empty string."""
    return next((text_of(m.get("content")) for m in messages if m["role"] == "user"), "")


def final_text(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the text of the last message if the agent wrote it, or the empty string."""
    last = messages[-1] if messages else {}
    return text_of(last.get("content")) if last.get("role") == "assistant" else ""
