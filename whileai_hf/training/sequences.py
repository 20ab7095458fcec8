"""The transform behind `to_sft`: a batch of rollouts to a batch of labelled sequences."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from datasets import Features, List, Value

from whileai_hf import schema
from whileai_hf.training.mapped import NOTES
from whileai_hf.training.turns import TemplateError, TurnFinder, Turns, lost_parts

#: Which turns are trained: every agent turn, the last one, or those of the column `loss_mask`.
MASKS = ("column", "assistant", "final")

#: Label of a token that is not trained.
IGNORED = -100

#: Columns that labels are made of; the others are left behind.
READS = (
    "messages", "tools", "loss_mask", "finish_reason", "task_id", "rollout_id", "token_logprobs",
)  # fmt: skip

#: The columns of a labelled sequence.
FEATURES = Features(
    {
        "input_ids": List(Value("int32")),
        "labels": List(Value("int32")),
        "task_id": Value("string"),
        "rollout_id": Value("string"),
    }
)

#: What the report of `to_sft` is made of; the columns leave again.
COUNTS = Features(
    {
        "method": Value("string"),
        "lost": List(Value("string")),
        "n_tokens": Value("int64"),
        "n_trained": Value("int64"),
    }
)

_TOO_LONG = "a trained turn longer than max_length"
CUT = "a last turn that the token limit cut"
NOTHING = "no turn to train"
_OTHER_TOKENS = "its tokens are not those whose logprobs were kept"


@dataclass(frozen=True)
class SftLabels:
    """The transform of `to_sft`: a batch of rollouts to a batch of labelled sequences.

    Use it with `Dataset.map(..., batched=True, remove_columns=…)`. A rollout that gives nothing
    leaves one row that is not `kept`, which says why in `refused`.

    Attributes:
        tokenizer: A fast tokenizer.
        template: The chat template.
        mask: Which turns are trained, one of `MASKS`.
        unroll: Whether every trained turn is a sequence of its own.
        max_length: Tokens that a sequence may have; null for any number.
        logprobs: Whether the column `token_logprobs` is laid beside the tokens.
    """

    version: ClassVar[str] = "2"

    tokenizer: Any
    template: str
    mask: str = "column"
    unroll: bool = False
    max_length: int | None = None
    logprobs: bool = False

    def __getstate__(self) -> dict[str, Any]:
        """Leave what was learned behind: it would change the hash that names a cached result."""
        state = {k: v for k, v in self.__dict__.items() if k != "_finder"}
        return {**state, "version": self.version}

    @property
    def finder(self) -> TurnFinder:
        """What finds turns, made in the process that uses it."""
        found: TurnFinder | None = self.__dict__.get("_finder")
        if found is None:
            found = TurnFinder(self.tokenizer, self.template)
            object.__setattr__(self, "_finder", found)
        return found

    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
        """Label a batch of rollouts."""
        names = [name for name in READS if name in batch]
        rollouts = [
            _Rollout(schema.to_record(dict(zip(names, values, strict=True))), self)
            for values in zip(*(batch[name] for name in names), strict=True)
        ]
        self._encode([s for r in rollouts for s in r.sequences])
        for rollout in rollouts:
            if any(not self._fits(s) for s in rollout.sequences) and rollout.method != "unrolled":
                rollout.split()
        self._encode([s for r in rollouts for s in r.sequences])
        out: dict[str, list[Any]] = {name: [] for name in (*self.features, *COUNTS, *NOTES)}
        for rollout in rollouts:
            rollout.keep(_TOO_LONG, self._fits)
            if self.logprobs:
                rollout.keep(_OTHER_TOKENS, lambda s: s.logprobs is not None)
            rollout.write(out)
        return out

    @property
    def features(self) -> Features:
        """The columns of a labelled sequence."""
        more = {"logprobs": List(Value("float32"))} if self.logprobs else {}
        return Features({**FEATURES, **more})

    def _fits(self, sequence: Labelled) -> bool:
        return self.max_length is None or len(sequence.ids) <= self.max_length

    def _encode(self, sequences: Sequence[Labelled]) -> None:
        """Tokenize what is not yet, all at once, and label the tokens that touch a trained turn."""
        new = [s for s in sequences if s.ids is None]
        if not new:
            return
        encoded = self.tokenizer([s.text for s in new], add_special_tokens=False)
        for sequence, ids, places in zip(new, encoded["input_ids"], encoded.encodings, strict=True):
            sequence.ids, sequence.labels = ids, [IGNORED] * len(ids)
            for start, end in sequence.spans:
                first, last = token_range(places, start, end)
                sequence.labels[first:last] = ids[first:last]
            if self.logprobs:
                sequence.lay_out_scores([token_range(places, *span) for span in sequence.agent])


@dataclass(slots=True)
class Labelled:
    """One sequence: its text, the characters that are trained, and the tokens once there are any."""

    text: str
    spans: list[tuple[int, int]]
    ids: Any = None
    labels: Any = None
    agent: Sequence[tuple[int, int]] = ()  #: characters of every agent turn
    scores: Sequence[float] | None = None  #: logprobs of the tokens that the agent wrote
    logprobs: list[float] | None = None  #: the same beside the tokens, 0 where nobody wrote

    def lay_out_scores(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Lay the scores beside the tokens, if there are as many tokens as were written."""
        at = [i for first, last in ranges for i in range(first, last)]
        if self.scores is None or len(at) != len(self.scores):
            return
        self.logprobs = [0.0] * len(self.ids)
        for i, score in zip(at, self.scores, strict=True):
            self.logprobs[i] = score


class _Rollout:
    """One rollout on its way to sequences."""

    def __init__(self, record: Mapping[str, Any], labels: SftLabels) -> None:
        self.record, self.labels = record, labels
        self.sequences: list[Labelled] = []
        self.method: str | None = None
        self.refused: list[str] = []
        self.lost: list[str] = []
        tools = record.get("tools")
        self.tools = (json.loads(tools) if isinstance(tools, str) else tools) or None
        self.messages = self._prepared(record["messages"] or [])
        self.agent = [i for i, m in enumerate(self.messages) if m["role"] == "assistant"]
        self.trained = self._trained()
        if not self.trained:
            self.refused = self.refused or [NOTHING]
        elif labels.unroll or not self._attempt(self._whole):
            self.split()

    def _prepared(self, messages: Sequence[Any]) -> list[dict[str, Any]]:
        for i, message in enumerate(messages):
            if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
                self.refused.append(f"message {i} has no role")
                return []
        return self.labels.finder.prepare(messages)

    def _trained(self) -> list[int]:
        column = self.record.get("loss_mask")
        problem = mask_problem(self.messages, column) if self.labels.mask == "column" else None
        if problem:
            self.refused.append(problem)
            return []
        chosen = trained_turns(self.messages, self.labels.mask, column)
        last = len(self.messages) - 1
        if self.record.get("finish_reason") == "length" and last in chosen:
            self.refused.append(CUT)  # it has no end: the model would learn to stop there
            chosen = [i for i in chosen if i != last]
        return chosen

    def split(self) -> None:
        """Make every trained turn a sequence of its own, with the history that it had."""
        self._attempt(self._single)

    def _attempt(self, make: Callable[[], list[Labelled] | None]) -> bool:
        """Make sequences; what a template cannot do refuses the rollout, and is no reason to go on."""
        try:
            made = make()
        except TemplateError as error:
            self.sequences, self.refused = [], [str(error)]
            return True
        if made is not None:
            self.sequences = made
        return made is not None

    def _whole(self) -> list[Labelled] | None:
        """Take a conversation as one sequence, or return null where it must be unrolled."""
        wanted = self.agent if self.labels.logprobs else self.trained
        found = self.labels.finder.find(self.messages, self.tools, wanted)
        if found is None:
            return None
        lost = self._lost(found)
        if lost and len(self.trained) > 1 and (single := self._richer(lost)) is not None:
            return single
        self.lost, self.method = lost, found.method
        spans = [found.spans[i] for i in self.trained]
        scores = self.record.get("token_logprobs")
        return [Labelled(found.text, spans, agent=list(found.spans.values()), scores=scores)]

    def _richer(self, lost: Sequence[str]) -> list[Labelled] | None:
        """Unroll if that loses less: the last turn of a history may hold what an earlier one lost."""
        try:
            single = self._single()
        except TemplateError:
            return None
        return single if len(self.lost) < len(lost) else None

    def _single(self) -> list[Labelled]:
        self.lost, self.method = [], "unrolled"
        return [self._one_turn(at) for at in self.trained]

    def _one_turn(self, at: int) -> Labelled:
        found = self.labels.finder.find(self.messages[: at + 1], self.tools, [at])
        if found is None:
            raise TemplateError(
                f"the chat template does not say where message {at} begins: neither generation marks "
                "nor prefixes find it"
            )
        self.lost += self._lost(found)
        return Labelled(found.text, [found.spans[at]])

    def _lost(self, found: Turns) -> list[str]:
        """Name what the template drops of trained turns; a turn without its calls is no target."""
        lost = []
        for i, (start, end) in found.spans.items():
            if i in self.trained:
                lost += lost_parts(self.messages[i], found.text[start:end])
        if "tool calls" in lost:
            raise TemplateError("the chat template drops tool calls")
        return lost

    def keep(self, why_not: str, test: Callable[[Labelled], bool]) -> None:
        """Leave out the sequences that fail a test, and note why."""
        kept = [s for s in self.sequences if test(s)]
        self.refused += [why_not] * (len(self.sequences) - len(kept))
        self.sequences = kept

    def write(self, out: dict[str, list[Any]]) -> None:
        """Append the sequences, and on the first row what there is to say."""
        method = self.method if self.sequences else None
        for i, sequence in enumerate(self.sequences or [Labelled("", [], [], [], logprobs=[])]):
            out["input_ids"].append(sequence.ids)
            out["labels"].append(sequence.labels)
            out["task_id"].append(self.record.get("task_id"))
            out["rollout_id"].append(self.record.get("rollout_id"))
            out["method"].append(None if i else method)
            out["refused"].append([] if i else self.refused)
            out["lost"].append([] if i else self.lost)
            out["kept"].append(bool(self.sequences))
            out["n_tokens"].append(len(sequence.ids))
            out["n_trained"].append(len(sequence.ids) - sequence.labels.count(IGNORED))
            if "logprobs" in out:
                out["logprobs"].append(sequence.logprobs)


def mask_problem(messages: Sequence[Mapping[str, Any]], column: Sequence[int] | None) -> str | None:
    """Say why a loss mask cannot be honoured, or null."""
    if column is None:
        return "no loss_mask" if messages else None
    if len(column) != len(messages):
        return "a loss_mask of another length than the messages"
    if any(on and m["role"] != "assistant" for on, m in zip(column, messages, strict=True)):
        return "a loss_mask on a turn that is not the agent's"
    return None


def trained_turns(
    messages: Sequence[Mapping[str, Any]], mask: str, column: Sequence[int] | None
) -> list[int]:
    """Return the indices of the agent turns that a mask names; see `MASKS`."""
    agent = [i for i, m in enumerate(messages) if m["role"] == "assistant"]
    if mask == "column":
        return [i for i in agent if column and column[i]]
    return agent[-1:] if mask == "final" else agent


def token_range(places: Any, start: int, end: int) -> tuple[int, int]:
    """Return the tokens `[first, last)` that touch the characters `[start, end)`.

    A token across an edge belongs to the turn, as in `transformers`.

    Args:
        places: The `tokenizers.Encoding` of the text.
        start: First character.
        end: One past the last character.
    """
    first = next((t for c in range(start, end) if (t := places.char_to_token(c)) is not None), None)
    if first is None:
        return 0, 0
    last = next(t for c in range(end - 1, -1, -1) if (t := places.char_to_token(c)) is not None)
    while last + 1 < len(places) and _starts_before(places.token_to_chars(last + 1), end):
        last += 1  # a character that several tokens share
    return first, last + 1


def _starts_before(span: tuple[int, int] | None, end: int) -> bool:
    return span is not None and span[0] < end and span[1] > span[0]
