"""Where each agent turn stands in the text that a chat template makes.

A turn is what the model has to write: it begins where the generation prompt ends and ends with the
stop token. Its characters come from the template's own `{% generation %}` marks where there is one
for each agent turn, from the marks of the variant that TRL ships where that renders the same text,
and else from rendering what comes before each turn, which is right only where every such text is a
prefix of the next. Marks often hold more than the turn (a header, the prefilled `<think>`, a newline
after the stop token); what is more is learned from small probes and left out.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from whileai_hf import messages as chat
from whileai_hf import schema
from whileai_hf.errors import InputError
from whileai_hf.extras import require

#: The tag that opens a generation block.
_MARK = re.compile(r"\{%-?\s*generation\b")

#: Keys of a message that are ours alone and that no template may see.
_OURS = ("status", "malformed")

_ANSWER = "An answer."
_THOUGHT = "A thought."
_USER: dict[str, Any] = {"role": "user", "content": "A question?"}
_CALL: dict[str, Any] = {"id": "call00001", "type": "function", "function": {"name": "look_up", "arguments": {"key": "value"}}}  # fmt: skip
_CALLED = {"role": "assistant", "content": "", "tool_calls": [_CALL]}
_RESULT = {"role": "tool", "name": "look_up", "tool_call_id": "call00001", "content": "A result."}
_TOOL = {
    "type": "function",
    "function": {
        "name": "look_up", "description": "Look something up.",
        "parameters": {"type": "object", "properties": {"key": {"type": "string", "description": "The key."}}},
    },
}  # fmt: skip

Span = tuple[int, int]


class TemplateError(ValueError):
    """A chat template does not say where a turn begins and ends, or cannot render a conversation."""


@dataclass(frozen=True, slots=True)
class Turns:
    """A rendered conversation and the characters of the turns that were asked for."""

    text: str
    spans: dict[int, Span]  #: `[start, end)` of each turn, by message index
    method: str  #: "generation" or "prefix"


def training_template(tokenizer: Any, chat_template: str | None = None) -> str:
    """Return the template to train with: the given one, TRL's training variant, or the tokenizer's.

    A chat template that rewrites the history, such as Qwen3's, trains a model on text that it never
    sees; the variant that TRL ships does not. Give it to the tokenizer for DPO and KTO, whose
    trainers render by themselves, and take it off before the tokenizer is saved.

    Args:
        tokenizer: A fast tokenizer.
        chat_template: The template to use whatever the tokenizer has.

    Raises:
        InputError: The tokenizer is not fast, or has no template.
    """
    check_fast(tokenizer)
    if chat_template is not None:
        return chat_template
    own = own_template(tokenizer)
    return _variant(tokenizer, own) or own


def check_fast(tokenizer: Any) -> None:
    """Refuse a tokenizer that does not know where its tokens stand in the text."""
    if not getattr(tokenizer, "is_fast", False):
        raise InputError(
            "labels need a fast tokenizer, which knows where each token stands in the text; "
            f"got {type(tokenizer).__name__}. Load it with AutoTokenizer(use_fast=True)."
        )


def own_template(tokenizer: Any) -> str:
    """Return the tokenizer's own template, the one for tools where it has several."""
    own = tokenizer.chat_template
    if isinstance(own, Mapping):
        own = own.get("tool_use") or own.get("default")
    if not isinstance(own, str):
        raise InputError(
            "labels need a chat template; the tokenizer has none. Pass chat_template=…, or use the "
            "tokenizer of an instruct model."
        )
    return own


def _variant(tokenizer: Any, template: str) -> str | None:
    """Return the variant with generation marks that TRL ships for a template, or null."""
    twin = copy.copy(tokenizer)
    twin.chat_template = template
    try:
        found: str | None = require("trl.chat_template_utils", "train").get_training_chat_template(
            twin
        )
    except (ImportError, ValueError, AttributeError):
        return None  # no TRL, or a template that TRL does not know: prefixes will tell
    return found


class TurnFinder:
    """Renders conversations with one chat template and finds their agent turns.

    Args:
        tokenizer: A `transformers` tokenizer; its special tokens go into the template.
        template: The chat template.
    """

    def __init__(self, tokenizer: Any, template: str) -> None:
        self.tokenizer, self.template = tokenizer, template
        self.jinja = require(
            "transformers.utils.chat_template_utils", "train"
        ).render_jinja_template
        self.marked = template if _MARK.search(template) else _variant(tokenizer, template)
        self.parts = self.text_arguments = False
        self._learn_shape()
        self._extra: dict[tuple[bool, bool, bool, bool], str] = {}
        self.stop = self._learn_stop()

    def prepare(self, messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Shape messages as the template wants them: no nulls, no keys of ours, text beside calls."""
        return [self._shaped(rendered(m)) for m in messages]

    def find(
        self, messages: list[dict[str, Any]], tools: Any, wanted: Sequence[int]
    ) -> Turns | None:
        """Find some turns of a conversation, or return null where its template rewrites the history.

        Args:
            messages: A conversation, prepared.
            tools: Its tool schemas, or null.
            wanted: Indices of agent turns.

        Raises:
            TemplateError: The template cannot render the conversation.
        """
        text, marks = self._marks(messages, tools)
        if marks is not None:
            own = {i: self._own(text, marks[i], messages, i) for i in wanted}
            return Turns(text, own, "generation")
        spans = self._prefixes(messages, tools, text, wanted)
        if spans is None:
            return None
        return Turns(text, {i: self._without_end(text, s) for i, s in spans.items()}, "prefix")

    def render(self, messages: list[dict[str, Any]], tools: Any, prompt: bool = False) -> str:
        """Render prepared messages, with the generation prompt after them if `prompt`."""
        try:
            texts, _ = self.jinja(
                conversations=[messages], tools=tools, chat_template=self.template,
                add_generation_prompt=prompt, **self.tokenizer.special_tokens_map,
            )  # fmt: skip
        except Exception as error:
            raise _cannot_render(error) from error
        return str(texts[0])

    # Reading a conversation.

    def _marks(
        self, messages: list[dict[str, Any]], tools: Any
    ) -> tuple[str, dict[int, Span] | None]:
        """Render, and read the marks where there is one for each agent turn."""
        if self.marked is None:
            return self.render(messages, tools), None
        try:
            (text,), (found,) = self.jinja(
                conversations=[messages], tools=tools, chat_template=self.marked,
                return_assistant_tokens_mask=True, **self.tokenizer.special_tokens_map,
            )  # fmt: skip
        except Exception as error:
            if self.marked == self.template:
                raise _cannot_render(error) from error
            return self.render(messages, tools), None
        if self.marked != self.template and (own := self.render(messages, tools)) != text:
            return own, None
        agent = [i for i, m in enumerate(messages) if m["role"] == "assistant"]
        if len(found) != len(agent):
            return text, None
        return text, {i: (int(a), int(b)) for i, (a, b) in zip(agent, found, strict=True)}

    def _prefixes(
        self, messages: list[dict[str, Any]], tools: Any, text: str, wanted: Sequence[int]
    ) -> dict[int, Span] | None:
        """Find turns by rendering what comes before each: right only where all are prefixes."""
        spans = {}
        for at in wanted:
            head = self.render(messages[:at], tools, prompt=True)
            last = at == len(messages) - 1
            body = text if last else self.render(messages[: at + 1], tools)
            if not (body.startswith(head) and text.startswith(body)):
                return None
            spans[at] = (len(head), len(body))
        return spans

    def _own(self, text: str, span: Span, messages: Sequence[Mapping[str, Any]], at: int) -> Span:
        """Take what the generation prompt already says off a marked span."""
        start, end = span
        message = messages[at]
        key = (
            at > 0 and messages[at - 1]["role"] == "tool", bool(chat.text_of(message.get("content"))),
            bool(message.get("tool_calls")), bool(message.get("reasoning_content")),
        )  # fmt: skip
        if key not in self._extra:
            self._extra[key] = self._learn_extra(*key)
        extra = self._extra[key]
        if extra and text.startswith(extra, start, end):
            start += len(extra)
        return self._without_end(text, (start, end))

    def _without_end(self, text: str, span: Span) -> Span:
        """Take the white space after the stop token off a span."""
        start, end = span
        kept = text[start:end].rstrip()
        if self.stop and kept.endswith(self.stop):
            end = start + len(kept)
        return start, end

    # Learning a template from small conversations.

    def _learn_shape(self) -> None:
        """Find out whether content must be parts, and arguments JSON text; two templates want that."""
        if not self._renders([_USER, _answer()]):
            self.parts = True
            self.parts = self._renders([_USER, _answer()])
        called = [_USER, _CALLED, _RESULT, _answer()]
        if not self._renders(called, [_TOOL]):
            self.text_arguments = True
            self.text_arguments = self._renders(called, [_TOOL])

    def _renders(self, messages: Sequence[Any], tools: Any = None) -> bool:
        """Tell whether a probe renders, and with its texts: some templates drop what they cannot read."""
        try:
            text = self.render(self.prepare(messages), tools)
        except TemplateError:
            return False
        return all(m["content"] in text for m in messages)

    def _learn_stop(self) -> str:
        """Return what ends a turn, without the white space after it; empty where nothing does."""
        try:
            text = self.render(self.prepare([_USER, _answer()]), None)
        except TemplateError:
            return ""
        return text.rpartition(_ANSWER)[2].strip() if _ANSWER in text else ""

    def _learn_extra(self, after_tool: bool, content: bool, calls: bool, reasoning: bool) -> str:
        """Return what marks hold of the generation prompt for turns of one kind."""
        turn: dict[str, Any] = {"role": "assistant", "content": _ANSWER if content else ""}
        if calls:
            turn["tool_calls"] = [_CALL]
        if reasoning:
            turn["reasoning_content"] = _THOUGHT
        before = [_USER, _CALLED, _RESULT] if after_tool else [_USER]
        messages = self.prepare([*before, turn])
        tools = [_TOOL] if after_tool or calls else None
        try:
            text, marks = self._marks(messages, tools)
            head = self.render(messages[:-1], tools, prompt=True)
        except TemplateError:
            return ""
        if marks is None:
            return ""
        start, end = marks[len(messages) - 1]
        same = zip(text[:end], head, strict=False)
        said = next((i for i, (a, b) in enumerate(same) if a != b), min(end, len(head)))
        if said < len(head):  # the prompt opens a thought that this turn lacks: keep whole markers
            said = max(text.rfind(mark, start, said) + len(mark) for mark in (">", "]", "\n"))
        return text[start:said] if said > start else ""

    def _shaped(self, message: dict[str, Any]) -> dict[str, Any]:
        if self.text_arguments and message.get("tool_calls"):
            message["tool_calls"] = [_with_text(c) for c in message["tool_calls"]]
        if self.parts:
            message["content"] = [{"type": "text", "text": message["content"]}]
        return message


def rendered(message: Mapping[str, Any]) -> dict[str, Any]:
    """Prepare a message for any template: no nulls, no keys of ours, text beside tool calls."""
    kept = {k: v for k, v in message.items() if v is not None and k not in _OURS}
    kept["content"] = chat.text_of(kept.get("content"))
    if kept.get("tool_calls"):
        kept["tool_calls"] = [_call(c) for c in kept["tool_calls"]]
    return kept


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in call.items() if k not in _OURS and v is not None}
    function = kept.get("function")
    if isinstance(function, Mapping) and isinstance(function.get("arguments"), str):
        arguments, problem = chat.normal_arguments(function["arguments"])
        if problem is None:
            kept["function"] = {**function, "arguments": arguments}
    return kept


def _with_text(call: dict[str, Any]) -> dict[str, Any]:
    function = call["function"]
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else schema.dumps(arguments)
    return {**call, "function": {**function, "arguments": text}}


def _answer() -> dict[str, Any]:
    return {"role": "assistant", "content": _ANSWER}


def _cannot_render(error: Exception) -> TemplateError:
    return TemplateError(f"the chat template cannot render the conversation: {error}")


def lost_parts(message: Mapping[str, Any], span: str) -> list[str]:
    """Name the parts of a turn that its rendered text does not hold."""
    lost = []
    content = chat.text_of(message.get("content")).strip()
    if content and content not in span:
        lost.append("content")
    reasoning = message.get("reasoning_content")
    if isinstance(reasoning, str) and reasoning.strip() and reasoning.strip() not in span:
        lost.append("reasoning")
    calls = [c["function"] for c in message.get("tool_calls") or []]
    if any(call["name"] not in span for call in calls):
        lost.append("tool calls")
    elif any(not _holds(span, chat.normal_arguments(c.get("arguments"))[0]) for c in calls):
        lost.append("arguments")
    if content and not calls and span.rstrip().endswith(content):
        lost.append("stop token")
    return lost


def _holds(span: str, value: Any) -> bool:
    """Tell whether the texts inside arguments stand in a span, as they are or as JSON writes them."""
    if isinstance(value, Mapping):
        return all(_holds(span, v) for v in value.values())
    if isinstance(value, (list, tuple)):
        return all(_holds(span, v) for v in value)
    if not isinstance(value, str) or value in span:
        return True
    return any(
        json.dumps(value, ensure_ascii=escaped)[1:-1] in span or repr(value)[1:-1] in span
        for escaped in (False, True)
    )
