"""to_sft: `input_ids` and `labels` that train exactly the turns the loss mask names.

`SFTTrainer` uses a `labels` column as it is, through packing, truncation and streaming, and no other
column it reads is as safe: it ignores a per-message mask, and a `completion_mask` without its flag. So
the mask becomes token labels here. The characters of a turn come from the template's own
`{% generation %}` spans where it has them, else from rendering prefixes, which is accepted only where
each prefix is one; where a template rewrites the history, each trained turn becomes a row of its own;
where nothing is right, the row is refused with the message at which it fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from datasets import Dataset, Features, List, Value

from whileai_hf import columns, schema
from whileai_hf import messages as chat
from whileai_hf.errors import InputError
from whileai_hf.extras import require
from whileai_hf.rollouts import Rollouts

#: Which turns are trained: every agent turn, the last one, or those of the column `loss_mask`.
MASKS = ("column", "assistant", "final")

#: Label of a token that is not trained.
IGNORED = -100

_FEATURES = Features(
    {
        "input_ids": List(Value("int32")),
        "labels": List(Value("int32")),
        "task_id": Value("string"),
        "rollout_id": Value("string"),
    }
)


class TemplateError(ValueError):
    """A chat template does not say where a turn begins and ends."""


@dataclass(frozen=True, slots=True)
class LabelReport:
    """What became of the rows; `print(report)` is the line to quote."""

    n_in: int
    n_rows: int
    n_tokens: int
    n_trained: int
    methods: dict[str, int]  #: rows by how turns were found: generation, prefix, unrolled
    refused: dict[str, int]  #: rows that were left out, by reason
    lost: dict[str, int] = field(default_factory=dict)  #: trained content that the template drops

    def __str__(self) -> str:
        share = self.n_trained / self.n_tokens if self.n_tokens else 0.0
        said = f"{self.n_rows} sequences of {self.n_in} rollouts, {self.n_tokens} tokens, {share:.0%} trained"
        if self.refused:
            said += "; left out: " + "; ".join(f"{n} ({why})" for why, n in self.refused.items())
        if self.lost:
            said += "; the template drops: " + ", ".join(
                f"{what} ({n})" for what, n in self.lost.items()
            )
        return said

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        return {name: getattr(self, name) for name in self.__slots__}


def to_sft(
    rows: Dataset,
    tokenizer: Any,
    *,
    chat_template: str | None = None,
    mask: str = "column",
    unroll: bool = False,
    max_length: int | None = None,
) -> Rollouts:
    """Turn rollouts into `input_ids` and `labels` for `SFTTrainer`.

    Args:
        rows: Rollouts with `messages`, and perhaps `tools` and `loss_mask`.
        tokenizer: A fast `transformers` tokenizer with a chat template.
        chat_template: Template to use instead; null takes the training variant that TRL ships for
            the tokenizer's template where there is one, else the tokenizer's own.
        mask: `"column"`: the turns whose `loss_mask` is 1. `"assistant"`: every agent turn.
            `"final"`: the last agent turn.
        unroll: Whether every trained turn becomes a row of its own, with the history it had.
        max_length: Tokens that a sequence may have; a longer rollout is unrolled, and a turn that
            is still too long is left out and counted. Nothing is cut.

    Returns:
        Rows with `input_ids` and `labels`; pass them to `SFTTrainer` as they are. `.report` says
        how turns were found and what was left out.

    Raises:
        InputError: The tokenizer has no template or is not fast, or an option is unknown.
    """
    columns.check_dataset(rows, "to_sft")
    columns.check_columns(rows, ["messages"], "to_sft")
    if mask not in MASKS:
        raise InputError(f"mask must be one of {', '.join(MASKS)}; got {mask!r}. Pick one.")
    if mask == "column":
        columns.check_columns(rows, ["loss_mask"], "to_sft(mask='column')")
    labeller = Labeller(
        tokenizer, training_template(tokenizer, chat_template), mask, unroll, max_length
    )
    names = [
        n
        for n in ("messages", "tools", "loss_mask", "task_id", "rollout_id")
        if n in rows.column_names
    ]
    made: dict[str, list[Any]] = {name: [] for name in _FEATURES}
    counts, refused, lost = Counter[str](), Counter[str](), Counter[str]()
    n_tokens = n_trained = 0
    for batch in columns.batches(rows.select_columns(names)):
        for values in zip(*batch.values(), strict=True):
            record = schema.to_record(dict(zip(batch, values, strict=True)))
            try:
                sequences, method = labeller(record)
            except TemplateError as error:
                refused[str(error)] += 1
                continue
            counts[method] += bool(sequences)
            refused.update(
                (labeller.too_long and {"a trained turn longer than max_length": labeller.too_long})
                or {}
            )
            lost.update(labeller.lost)
            for ids, labels in sequences:
                made["input_ids"].append(ids)
                made["labels"].append(labels)
                made["task_id"].append(record.get("task_id"))
                made["rollout_id"].append(record.get("rollout_id"))
                n_tokens += len(ids)
                n_trained += sum(label != IGNORED for label in labels)
    report = LabelReport(
        len(rows),
        len(made["input_ids"]),
        n_tokens,
        n_trained,
        dict(counts),
        dict(refused),
        dict(lost),
    )
    return Rollouts.of(Dataset.from_dict(made, features=_FEATURES), report)


def training_template(tokenizer: Any, chat_template: str | None) -> str:
    """Return the template to train with; see `to_sft`."""
    if not getattr(tokenizer, "is_fast", False):
        raise InputError(
            "to_sft needs a fast tokenizer, which knows where each token stands in the text; "
            f"got {type(tokenizer).__name__}. Load it with AutoTokenizer(use_fast=True)."
        )
    if chat_template is not None:
        return chat_template
    own = tokenizer.chat_template
    if not isinstance(own, str):
        raise InputError(
            "to_sft needs a chat template; the tokenizer has none. Pass chat_template=…, or use the "
            "tokenizer of an instruct model."
        )
    try:
        trl = require("trl.chat_template_utils", "train")
        known: str | None = trl.get_training_chat_template(tokenizer)
    except (ImportError, ValueError):
        known = None  # no TRL, or a template that TRL does not know: prefixes will tell
    return known or own


class Labeller:
    """Finds the characters of each agent turn, and labels the tokens of those that are trained."""

    def __init__(
        self, tokenizer: Any, template: str, mask: str, unroll: bool, max_length: int | None
    ) -> None:
        self.tokenizer, self.template, self.mask = tokenizer, template, mask
        self.unroll, self.max_length = unroll, max_length
        self.render_jinja = require(
            "transformers.utils.chat_template_utils", "train"
        ).render_jinja_template
        self.marked = "generation" in template
        self.wants_text: bool | None = (
            None  # whether the template takes arguments as JSON text alone
        )
        self.lost: Counter[str] = Counter()
        self.too_long = 0

    def __call__(self, record: Mapping[str, Any]) -> tuple[list[tuple[list[int], list[int]]], str]:
        """Label one rollout.

        Returns:
            Sequences of `(input_ids, labels)`, and how the turns were found.

        Raises:
            TemplateError: The template does not say where a trained turn stands.
        """
        messages = [_rendered(m) for m in record["messages"] or []]
        tools = record.get("tools") or None
        if self.wants_text is None and any(m.get("tool_calls") for m in messages):
            self.wants_text = not self._renders(messages, tools)
        if self.wants_text:
            messages = [_with_text_arguments(m) for m in messages]
        trained = self._trained(record, messages)
        self.lost, self.too_long = Counter(), 0
        if not trained:
            return [], "nothing to train"
        if not self.unroll:
            whole = self._whole(messages, tools, trained)
            if whole is not None and self._fits(whole[0]):
                return [whole[0]], whole[1]
        single = [self._one_turn(messages, tools, at) for at in trained]
        kept = [s for s in single if self._fits(s)]
        self.too_long = len(single) - len(kept)
        return kept, "unrolled"

    def _fits(self, sequence: tuple[list[int], list[int]]) -> bool:
        return self.max_length is None or len(sequence[0]) <= self.max_length

    def _trained(
        self, record: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]
    ) -> list[int]:
        agent = [i for i, m in enumerate(messages) if m["role"] == "assistant"]
        if self.mask == "column":
            given = record.get("loss_mask") or []
            return [i for i in agent if i < len(given) and given[i]]
        return agent[-1:] if self.mask == "final" else agent

    def _whole(
        self, messages: list[dict[str, Any]], tools: Any, trained: Sequence[int]
    ) -> tuple[tuple[list[int], list[int]], str] | None:
        """Label a conversation in one sequence, or return null where it must be unrolled."""
        text, spans = self._spans(messages, tools)
        if spans is not None:
            method = "generation"
        else:
            spans, method = self._prefix_spans(messages, tools, text, trained), "prefix"
            if spans is None:
                return None
        if (
            any(_lost_parts(messages[i], text[slice(*spans[i])]) for i in trained)
            and len(trained) > 1
        ):
            return None  # the last turn of a history may still hold what an earlier one lost
        self._note_lost(messages, text, spans, trained)
        return self._label(text, [spans[i] for i in trained]), method

    def _one_turn(
        self, messages: list[dict[str, Any]], tools: Any, at: int
    ) -> tuple[list[int], list[int]]:
        """Label one turn with the history that it had."""
        part = messages[: at + 1]
        text, spans = self._spans(part, tools)
        if spans is None:
            spans = self._prefix_spans(part, tools, text, [at])
        if spans is None:
            raise TemplateError(
                f"the chat template does not say where message {at} begins: neither generation marks "
                "nor prefixes find it"
            )
        self._note_lost(part, text, spans, [at])
        return self._label(text, [spans[at]])

    def _spans(
        self, messages: list[dict[str, Any]], tools: Any
    ) -> tuple[str, dict[int, tuple[int, int]] | None]:
        """Render, and read the template's own marks where there is one for each agent turn."""
        if not self.marked:
            return self._render(messages, tools), None
        try:
            (text,), (found,) = self.render_jinja(
                conversations=[messages], tools=tools, chat_template=self.template,
                return_assistant_tokens_mask=True, **self.tokenizer.special_tokens_map,
            )  # fmt: skip
        except Exception as error:
            raise TemplateError(
                f"the chat template cannot render the conversation: {error}"
            ) from error
        agent = [i for i, m in enumerate(messages) if m["role"] == "assistant"]
        if len(found) != len(agent):
            return text, None
        return text, {i: (int(a), int(b)) for i, (a, b) in zip(agent, found, strict=True)}

    def _render(self, messages: list[dict[str, Any]], tools: Any, prompt: bool = False) -> str:
        try:
            texts, _ = self.render_jinja(
                conversations=[messages], tools=tools, chat_template=self.template,
                add_generation_prompt=prompt, **self.tokenizer.special_tokens_map,
            )  # fmt: skip
        except Exception as error:
            raise TemplateError(
                f"the chat template cannot render the conversation: {error}"
            ) from error
        return str(texts[0])

    def _renders(self, messages: list[dict[str, Any]], tools: Any) -> bool:
        try:
            self._render(messages, tools)
        except TemplateError:
            return False
        return True

    def _prefix_spans(
        self, messages: list[dict[str, Any]], tools: Any, text: str, trained: Sequence[int]
    ) -> dict[int, tuple[int, int]] | None:
        """Find turns by rendering what comes before each: right only where all are prefixes."""
        spans = {}
        for at in trained:
            head = self._render(messages[:at], tools, prompt=True)
            body = self._render(messages[: at + 1], tools)
            if not (body.startswith(head) and text.startswith(body)):
                return None
            spans[at] = (len(head), len(body))
        return spans

    def _label(self, text: str, spans: Sequence[tuple[int, int]]) -> tuple[list[int], list[int]]:
        encoded = self.tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        ids = np.asarray(encoded["input_ids"], dtype=np.int64)
        offsets = np.asarray(encoded["offset_mapping"], dtype=np.int64).reshape(-1, 2)
        keep = np.zeros(len(ids), dtype=bool)
        for start, end in spans:
            keep |= (offsets[:, 0] < end) & (offsets[:, 1] > start)
        keep &= offsets[:, 1] > offsets[:, 0]
        return ids.tolist(), np.where(keep, ids, IGNORED).tolist()

    def _note_lost(
        self,
        messages: Sequence[Mapping[str, Any]],
        text: str,
        spans: Mapping[int, tuple[int, int]],
        trained: Sequence[int],
    ) -> None:
        """Count what the template drops of trained turns; a turn without its calls is no target."""
        for i in trained:
            lost = _lost_parts(messages[i], text[slice(*spans[i])])
            if "tool calls" in lost:
                raise TemplateError("the chat template drops tool calls")
            self.lost.update(lost)


def _lost_parts(message: Mapping[str, Any], span: str) -> list[str]:
    """Name the parts of a turn that its rendered text does not hold."""
    lost = []
    content = chat.text_of(message.get("content")).strip()
    if content and content not in span:
        lost.append("content")
    reasoning = message.get("reasoning_content")
    if isinstance(reasoning, str) and reasoning.strip() and reasoning.strip() not in span:
        lost.append("reasoning")
    names = [c["function"]["name"] for c in message.get("tool_calls") or []]
    if any(name not in span for name in names):
        lost.append("tool calls")
    return lost


def _rendered(message: Mapping[str, Any]) -> dict[str, Any]:
    """Prepare a message for a template: no nulls, no keys of ours, text beside tool calls."""
    kept = {k: v for k, v in message.items() if v is not None and k not in ("status", "malformed")}
    kept["content"] = chat.text_of(kept.get("content"))
    if kept.get("tool_calls"):
        kept["tool_calls"] = [
            {k: v for k, v in c.items() if k != "malformed"} for c in kept["tool_calls"]
        ]
    return kept


def _with_text_arguments(message: dict[str, Any]) -> dict[str, Any]:
    if not message.get("tool_calls"):
        return message
    calls = [
        {**c, "function": {**c["function"], "arguments": schema.dumps(c["function"]["arguments"])}}
        for c in message["tool_calls"]
    ]
    return {**message, "tool_calls": calls}
