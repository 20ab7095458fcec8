"""The transforms behind `to_dpo`, `to_reward` and `to_kto`: a batch of rows to a batch of a trainer's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from datasets import Json, List, Value

from whileai_hf import defaults, schema
from whileai_hf import messages as chat
from whileai_hf.errors import InputError
from whileai_hf.training.turns import (
    TemplateError,
    TurnFinder,
    check_fast,
    own_template,
    rendered,
)

_MESSAGES = List(Json())

#: Columns of a row for DPO.
PAIR = {
    "prompt": _MESSAGES, "chosen": _MESSAGES, "rejected": _MESSAGES, "tools": List(Json()), "task_id": Value("string"),
}  # fmt: skip

#: Columns of a row for KTO.
SINGLE = {
    "prompt": _MESSAGES, "completion": _MESSAGES, "label": Value("bool"), "tools": List(Json()), "task_id": Value("string"),
}  # fmt: skip

_TOO_LONG = "longer than max_length"
_ROUNDED = "a number that JSON columns would round"

Messages = list[dict[str, Any]]


class LeftOut(Exception):
    """Why a row is no row for the trainer."""


@dataclass(frozen=True)
class FormatRows:
    """What the transforms share: shaping messages, measuring, and noting what is left out."""

    version: ClassVar[str] = "1"
    reads: ClassVar[tuple[str, ...]] = ()

    tokenizer: Any = None
    max_length: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave what was learned behind: it would change the hash that names a cached result."""
        return {
            **{k: v for k, v in self.__dict__.items() if k != "_finder"},
            "version": self.version,
        }

    def check(self) -> None:
        """Refuse options that cannot work."""
        if self.max_length is not None and self.tokenizer is None:
            raise InputError(
                f"max_length counts tokens, which needs a tokenizer; got max_length={self.max_length!r} "
                "alone. Pass the tokenizer that you train with."
            )
        if self.tokenizer is not None:
            check_fast(self.tokenizer)
            own_template(self.tokenizer)

    @property
    def finder(self) -> TurnFinder | None:
        """What renders, where there is a tokenizer; made in the process that uses it."""
        if self.tokenizer is None:
            return None
        found: TurnFinder | None = self.__dict__.get("_finder")
        if found is None:
            found = TurnFinder(self.tokenizer, own_template(self.tokenizer))
            object.__setattr__(self, "_finder", found)
        return found

    def rows_of(self, record: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the rows that a record gives, or raise the reason for which there are none."""
        raise NotImplementedError

    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
        """Transform a batch."""
        names = [name for name in self.reads if name in batch]
        made: list[tuple[dict[str, Any], list[str]]] = []
        for values in zip(*(batch[name] for name in names), strict=True):
            record = {k: schema.restore(v) for k, v in zip(names, values, strict=True)}
            try:
                made += [(row, []) for row in self.rows_of(record)]
            except (LeftOut, InputError) as why:
                made.append(({}, [str(why)]))
        out = {name: [row.get(name) for row, _ in made] for name in self.makes}
        out["refused"] = [why for _, why in made]
        out["kept"] = [not why for _, why in made]
        return out

    @property
    def makes(self) -> tuple[str, ...]:
        """Columns of a row."""
        raise NotImplementedError

    def shaped(self, messages: Messages) -> Messages:
        """Shape messages as the trainer's template reads them."""
        finder = self.finder
        if finder is not None and finder.text_arguments:
            return finder.prepare(messages)
        return [rendered(m) for m in messages]

    def check_length(self, messages: Messages, tools: Any) -> None:
        """Leave out a conversation that a trainer would cut."""
        finder = self.finder
        if finder is None or self.max_length is None:
            return
        try:
            text = finder.render(finder.prepare(messages), tools)
        except TemplateError as error:
            raise LeftOut(str(error)) from error
        n = len(self.tokenizer(text, add_special_tokens=False)["input_ids"])
        if n > self.max_length:
            raise LeftOut(_TOO_LONG)


@dataclass(frozen=True)
class PairRows(FormatRows):
    """The transform of `to_dpo` and `to_reward`.

    Attributes:
        margin: Whether rows carry the difference of the rewards.
    """

    reads: ClassVar[tuple[str, ...]] = ("prompt", "chosen", "rejected", "tools", "task_id", "chosen_reward", "rejected_reward")  # fmt: skip

    margin: bool = False

    @property
    def makes(self) -> tuple[str, ...]:
        """Columns of a row."""
        return (*PAIR, "margin") if self.margin else tuple(PAIR)

    def rows_of(self, record: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the row of a pair."""
        rewards = record.get("chosen_reward"), record.get("rejected_reward")
        prompt, chosen, rejected = branched(record)
        if None not in rewards and not rewards[0] > rewards[1]:  # type: ignore[operator]
            raise LeftOut("the chosen reply did not earn more")
        tools = tools_of(record)
        row = {"tools": tools, "task_id": record.get("task_id")}
        for name, part in (("prompt", prompt), ("chosen", chosen), ("rejected", rejected)):
            row[name] = self.shaped(part)
        for side in (chosen, rejected):
            self.check_length(prompt + side, tools)
        if self.margin:
            row["margin"] = None if None in rewards else rewards[0] - rewards[1]  # type: ignore[operator]
        return [row]


@dataclass(frozen=True)
class KtoRows(FormatRows):
    """The transform of `to_kto`.

    Attributes:
        kind: What the rows are: `"pairs"`, `"labelled"` or `"rollouts"`.
        threshold: Reward from which a rollout is desirable.
    """

    reads: ClassVar[tuple[str, ...]] = (
        "prompt", "completion", "label", "chosen", "rejected", "messages", "reward", "tools", "task_id",
        "chosen_reward", "rejected_reward",
    )  # fmt: skip

    kind: str = "labelled"
    threshold: float = defaults.KTO_THRESHOLD

    @property
    def makes(self) -> tuple[str, ...]:
        """Columns of a row."""
        return tuple(SINGLE)

    def rows_of(self, record: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the rows of a pair, of a labelled reply or of a rollout."""
        shared = {"tools": tools_of(record), "task_id": record.get("task_id")}
        out = []
        for prompt, completion, label in self._replies(record):
            self.check_length(prompt + completion, shared["tools"])
            row = {
                "prompt": self.shaped(prompt),
                "completion": self.shaped(completion),
                "label": label,
            }
            out.append({**row, **shared})
        return out

    def _replies(self, record: Mapping[str, Any]) -> list[tuple[Messages, Messages, bool]]:
        if self.kind == "pairs":
            prompt, chosen, rejected = branched(record)
            return [(prompt, chosen, True), (prompt, rejected, False)]
        if self.kind == "labelled":
            if record["label"] is None:
                raise LeftOut("no label")
            prompt = as_messages(record["prompt"], "user")
            completion = as_messages(record["completion"], "assistant")
            label = bool(record["label"])
        else:
            if record["reward"] is None:
                raise LeftOut("no reward")
            prompt, completion = split_prompt(as_messages(record["messages"], "user"))
            label = record["reward"] >= self.threshold
        check_conversation(prompt + completion, target=label)
        return [(prompt, completion, label)]


def tools_of(record: Mapping[str, Any]) -> Any:
    """Return the tools of a row as a list, or null: some templates print boilerplate for `[]`."""
    tools = record.get("tools")
    return (json.loads(tools) if isinstance(tools, str) else tools) or None


def as_messages(value: Any, role: str) -> Messages:
    """Read messages, or text as one message of a role."""
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    return chat.normal_messages(value or [])


def split_prompt(messages: Messages) -> tuple[Messages, Messages]:
    """Split a conversation before the first agent turn."""
    at = next((i for i, m in enumerate(messages) if m["role"] == "assistant"), None)
    if at is None:
        raise LeftOut("no agent turn")
    if at == 0:
        raise LeftOut("no prompt")
    return messages[:at], messages[at:]


def branched(record: Mapping[str, Any]) -> tuple[Messages, Messages, Messages]:
    """Branch a pair where its replies first differ, at the start of an agent turn on both sides."""
    shared = as_messages(record.get("prompt"), "user")
    chosen = shared + as_messages(record["chosen"], "assistant")
    rejected = shared + as_messages(record["rejected"], "assistant")
    if [_said(m) for m in chosen] == [_said(m) for m in rejected]:
        raise LeftOut("same reply, two rewards")
    check_conversation(chosen, target=True)
    check_conversation(rejected, target=False)
    at = 0
    while at < min(len(chosen), len(rejected)) and _said(chosen[at]) == _said(rejected[at]):
        at += 1
    turns = [
        i
        for i in range(min(at + 1, len(chosen), len(rejected)))
        if chosen[i]["role"] == rejected[i]["role"] == "assistant"
    ]
    if not turns or turns[-1] == 0:
        raise LeftOut("the replies answer no common prompt")
    return chosen[: turns[-1]], chosen[turns[-1] :], rejected[turns[-1] :]


def _said(message: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a message says, the ids of its calls aside: two rollouts never share them."""
    calls = [
        (c["function"]["name"], schema.dumps(c["function"].get("arguments")))
        for c in message.get("tool_calls") or []
    ]
    thought = message.get("reasoning_content")
    return message["role"], chat.text_of(message.get("content")), thought or None, calls


def check_conversation(messages: Messages, *, target: bool) -> None:
    """Leave out what no template renders as it was written, and targets that teach a broken turn."""
    if any(c.get("malformed") for m in messages for c in m.get("tool_calls") or []):
        raise LeftOut("a call that cannot be read")
    found = chat.issues(messages)
    if any("has no call" in issue for issue in found):
        raise LeftOut("a result without its call")
    if target and found:
        raise LeftOut("a call without its result")
    if not all(map(schema.is_exact, messages)):
        raise LeftOut(_ROUNDED)
