"""Rollouts out of OpenTelemetry spans that follow the conventions for generative AI.

Read are the attributes `gen_ai.input.messages` and `gen_ai.output.messages`, the older events
(`gen_ai.user.message`, …, `gen_ai.choice`) and the flat form `gen_ai.prompt.0.content`, from OTLP JSON or from a list
of spans. Spans of one conversation, or else of one trace, are one rollout.

References:
    OpenTelemetry semantic conventions for generative AI, 1.37 (names of attributes and parts).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from whileai_hf.errors import InputError
from whileai_hf.importers import from_chats
from whileai_hf.rollouts import Rollouts

#: Operations of a span that hold a conversation; tool spans are told apart by their attributes.
_TOOL = "execute_tool"


def from_spans(
    spans: Mapping[str, Any] | Iterable[Mapping[str, Any]] | str | Path,
    *,
    run: str | None = None,
    agent: str | None = None,
) -> Rollouts:
    """Make rollouts of OpenTelemetry spans.

    Args:
        spans: OTLP JSON (`{"resourceSpans": …}`), a list of spans with `attributes`, or the path of a JSON or
            JSON-lines file of either.
        run: Name of the run that the rows belong to.
        agent: Name of the agent; null takes the model of the spans.

    Raises:
        InputError: No span holds a message of a model.
    """
    found = [_flat(span) for span in _spans(_read(spans))]
    groups: dict[str, list[dict[str, Any]]] = {}
    for span in sorted(found, key=lambda s: s["start"]):
        groups.setdefault(span["group"], []).append(span)
    logs = [log for group in groups.values() if (log := _log(group, agent))]
    if not logs:
        raise InputError(
            f"spans must hold messages under gen_ai attributes or events; none of {len(found)} spans does. "
            "Switch the capture of message content on where the spans are made."
        )
    return from_chats(logs, run=run)


def _read(spans: Any) -> Any:
    if not isinstance(spans, (str, Path)):
        return spans
    path = Path(spans)
    if not path.exists():
        raise InputError(
            f"spans must be OTLP JSON, a list or a file; {str(path)!r} does not exist. Check the path."
        )
    text = path.read_text(encoding="utf-8")
    try:
        return json.loads(text)
    except ValueError:
        try:
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError as error:
            raise InputError(
                f"{path.name} must be JSON or JSON lines; it is not: {error}."
            ) from error


def _spans(given: Any) -> Iterator[Mapping[str, Any]]:
    """Walk down OTLP's resources and scopes to the spans."""
    if isinstance(given, Mapping):
        for key in ("resourceSpans", "resource_spans", "scopeSpans", "scope_spans", "spans"):
            if isinstance(given.get(key), Sequence):
                for inner in given[key]:
                    yield from _spans(inner)
                return
        yield given
    elif isinstance(given, Iterable) and not isinstance(given, (str, bytes)):
        for inner in given:
            yield from _spans(inner)
    else:
        raise InputError(f"a span must be an object; got {given!r:.60}. Pass OTLP JSON.")


def _flat(span: Mapping[str, Any]) -> dict[str, Any]:
    attributes = _attributes(span.get("attributes"))
    context = span.get("context") or {}
    trace = span.get("traceId") or span.get("trace_id") or context.get("trace_id") or ""
    start = (
        span.get("startTimeUnixNano")
        or span.get("start_time_unix_nano")
        or span.get("start_time")
        or 0
    )
    events = [
        (e.get("name", ""), _attributes(e.get("attributes"))) for e in span.get("events") or ()
    ]
    group = attributes.get("gen_ai.conversation.id") or trace
    return {
        "attributes": attributes,
        "events": events,
        "group": str(group),
        "start": str(start).zfill(24),
    }


def _attributes(given: Any) -> dict[str, Any]:
    """Read attributes: a mapping, or OTLP's list of keys and typed values."""
    if isinstance(given, Mapping):
        return dict(given)
    return {
        a["key"]: _value(a.get("value"))
        for a in given or ()
        if isinstance(a, Mapping) and "key" in a
    }


def _value(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    if "arrayValue" in value:
        return [_value(v) for v in value["arrayValue"].get("values", [])]
    if "kvlistValue" in value:
        return _attributes(value["kvlistValue"].get("values", []))
    if "intValue" in value:
        return int(value["intValue"])
    return next(iter(value.values()), None)


def _parsed(value: Any) -> Any:
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _log(group: Sequence[Mapping[str, Any]], agent: str | None) -> dict[str, Any] | None:
    """Join the spans of a conversation: histories overlap, answers and tool results follow one another."""
    messages: list[dict[str, Any]] = []
    model = tools = None
    for span in group:
        attributes = span["attributes"]
        model = (
            model
            or attributes.get("gen_ai.response.model")
            or attributes.get("gen_ai.request.model")
        )
        tools = tools or _parsed(attributes.get("gen_ai.tool.definitions"))
        if attributes.get("gen_ai.operation.name") == _TOOL:
            new = _tool_result(attributes)
        else:
            new = _messages(span)
        messages = _joined(messages, new)
    if not any(m["role"] == "assistant" for m in messages):
        return None
    log = {"messages": messages, "agent": agent or model}
    return {**log, "tools": tools} if isinstance(tools, list) else log


def _joined(before: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Append what is new: the longest end of the one that begins the other is the same messages."""
    if new[: len(before)] == before:
        return new
    known = {
        json.dumps(m, sort_keys=True, default=str)
        for m in before
        if m["role"] in ("tool", "system")
    }
    overlap = max(
        (k for k in range(len(new) + 1) if before[len(before) - k :] == new[:k]), default=0
    )
    rest = [m for m in new[overlap:] if json.dumps(m, sort_keys=True, default=str) not in known]
    return before + rest


def _messages(span: Mapping[str, Any]) -> list[dict[str, Any]]:
    attributes = span["attributes"]
    system = _parsed(attributes.get("gen_ai.system_instructions"))
    given = _parsed(attributes.get("gen_ai.input.messages")) or []
    answer = _parsed(attributes.get("gen_ai.output.messages")) or []
    out = [{"role": "system", "content": _text(system)}] if system else []
    for message in [*given, *answer]:
        if isinstance(message, Mapping):
            out += _parts(message)
    return out or _from_events(span["events"]) or _numbered(attributes)


def _text(parts: Any) -> str:
    if isinstance(parts, str):
        return parts
    texts = [p.get("content") or p.get("text") or "" for p in parts or () if isinstance(p, Mapping)]
    return "\n".join(str(t) for t in texts if t)


def _parts(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Read one message of parts: text, tool calls and tool results."""
    role, parts = str(message.get("role") or "user"), message.get("parts")
    if not isinstance(parts, list):
        return [{k: v for k, v in message.items() if k != "finish_reason" and v is not None}]
    calls = [p for p in parts if p.get("type") == "tool_call"]
    out: list[dict[str, Any]] = [
        {"role": "tool", "tool_call_id": p.get("id"), "content": _said(p.get("response", p.get("result")))}
        for p in parts if p.get("type") == "tool_call_response"
    ]  # fmt: skip
    text = _text([p for p in parts if p.get("type") == "text"])
    if text or calls or not out:
        main: dict[str, Any] = {"role": role, "content": text}
        if calls:
            main["tool_calls"] = [
                _call(p.get("id"), p.get("name"), p.get("arguments")) for p in calls
            ]
        out.append(main)
    return out


def _call(identifier: Any, name: Any, arguments: Any) -> dict[str, Any]:
    made = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return {"id": str(identifier), **made} if identifier is not None else made


def _said(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _tool_result(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    result = attributes.get("gen_ai.tool.call.result")
    if result is None:
        return []
    return [{"role": "tool", "tool_call_id": attributes.get("gen_ai.tool.call.id"), "content": _said(_parsed(result))
             if not isinstance(result, str) else result}]  # fmt: skip


def _from_events(events: Sequence[tuple[str, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Read the older events, one a message."""
    out: list[dict[str, Any]] = []
    for name, attributes in events:
        found = re.fullmatch(
            r"gen_ai\.(system|user|assistant|tool)\.message|gen_ai\.(choice)", name
        )
        if found is None:
            continue
        body = {k.removeprefix("gen_ai."): _parsed(v) for k, v in attributes.items()}
        held = body.get("message")
        inner: Mapping[str, Any] = held if isinstance(held, Mapping) else body
        message: dict[str, Any] = {
            "role": found[1] or "assistant",
            "content": _said(inner.get("content") or ""),
        }
        if inner.get("tool_calls"):
            message["tool_calls"] = inner["tool_calls"]
        if found[1] == "tool" and inner.get("id"):
            message["tool_call_id"] = inner["id"]
        out.append(message)
    return out


def _numbered(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Read the flat form `gen_ai.prompt.0.role`, `gen_ai.completion.0.content`."""
    found: dict[tuple[int, int], dict[str, Any]] = {}
    for key, value in attributes.items():
        match = re.fullmatch(
            r"gen_ai\.(prompt|completion)\.(\d+)\.(role|content|tool_call_id)", key
        )
        if match:
            at = (0 if match[1] == "prompt" else 1, int(match[2]))
            found.setdefault(at, {"role": "assistant" if at[0] else "user", "content": ""})[
                match[3]
            ] = value
    return [found[at] for at in sorted(found)]
