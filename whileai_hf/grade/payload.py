"""What a model judge is shown of a rollout: data, framed so that nothing in it can pass for instructions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from whileai_hf import messages as chat
from whileai_hf.errors import InputError
from whileai_hf.grade.trace import tools_of

#: Characters of one text below which cutting it further says nothing.
_SHORTEST = 40


def payload_of(row: Mapping[str, Any], max_chars: int, *, privileged: bool = False) -> str:
    """Write a rollout as one JSON object of at most `max_chars` characters.

    Long texts are cut in their middle, and say so; the object stays whole.

    Args:
        row: A record, or what `grade` shows a judge.
        max_chars: Length of the JSON text.
        privileged: Whether the judge may read the reference and what else is hidden.

    Raises:
        InputError: Not even the shortest form fits.
    """
    messages = [_shown(m) for m in row.get("messages") or ()]
    found: dict[str, Any] = {
        "conversation": messages,
        "final_reply": row.get("final_text") or chat.final_text(row.get("messages") or []),
    }
    if row.get("tools"):
        called = {call.name for call in chat.tool_calls(row.get("messages") or [])}
        names = list(tools_of(row["tools"]))
        found["tools"] = names
        found["tools_not_called"] = [name for name in names if name not in called]
    if privileged and row.get("privileged"):
        found["for_the_judge_only"] = row["privileged"]
    longest = max_chars
    while longest >= _SHORTEST:
        text = json.dumps(_cut(found, longest), ensure_ascii=False, default=str)
        if len(text) <= max_chars:
            return text
        longest //= 2
    found["conversation"] = [
        *messages[:1],
        {"left_out": f"{max(len(messages) - 2, 0)} messages"},
        *messages[1:][-1:],
    ]
    text = json.dumps(_cut(found, _SHORTEST), ensure_ascii=False, default=str)
    if len(text) > max_chars:
        raise InputError(f"a rollout must fit into max_chars; its shortest form has {len(text)} characters, the limit is {max_chars!r}. Raise it.")  # fmt: skip
    return text


def _shown(message: Mapping[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = {
        "role": message.get("role"),
        "content": chat.text_of(message.get("content")),
    }
    if message.get("tool_calls"):
        out["calls"] = [
            {"tool": c.name, "arguments": c.raw if c.malformed else c.arguments}
            for c in chat.tool_calls([message])
        ]
    return out


def _cut(value: Any, longest: int) -> Any:
    if isinstance(value, str) and len(value) > longest:
        kept = max(longest // 2 - 16, 8)
        return f"{value[:kept]} [… {len(value) - 2 * kept} characters left out …] {value[-kept:]}"
    if isinstance(value, Mapping):
        return {k: _cut(v, longest) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_cut(v, longest) for v in value]
    return value


def framed(payload: str, label: str = "ROLLOUT") -> str:
    """Put a payload between marks that it cannot contain, because they depend on all of it."""
    mark = hashlib.sha256(payload.encode("utf-8", "replace")).hexdigest()[:12]
    return f"<{label} {mark}>\n{payload}\n</{label} {mark}>"
