"""to_sft: `input_ids` and `labels` that train exactly the turns the loss mask names.

`SFTTrainer` uses a `labels` column as it is, through packing, truncation and streaming, and no other
column it reads is as safe: it ignores a per-message mask, and a `completion_mask` without its flag. So
the mask becomes token labels here. `turns` finds the characters of a turn; where a template rewrites
the history, each trained turn becomes a row of its own; where nothing is right, the row is refused
with the message at which it fails.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pyarrow.compute as pc
from datasets import Dataset, Features, IterableDataset, List, Value
from datasets.fingerprint import (
    generate_random_fingerprint,
    get_temporary_cache_files_directory,
)

from whileai_hf import columns, schema
from whileai_hf.errors import InputError
from whileai_hf.rollouts import Rollouts
from whileai_hf.training.turns import (
    TemplateError,
    TurnFinder,
    Turns,
    lost_parts,
    training_template,
)

#: Which turns are trained: every agent turn, the last one, or those of the column `loss_mask`.
MASKS = ("column", "assistant", "final")

#: Label of a token that is not trained.
IGNORED = -100

#: Columns that labels are made of; the others are left behind.
_READS = ("messages", "tools", "loss_mask", "finish_reason", "task_id", "rollout_id")

_FEATURES = Features(
    {
        "input_ids": List(Value("int32")),
        "labels": List(Value("int32")),
        "task_id": Value("string"),
        "rollout_id": Value("string"),
    }
)

#: What the report is made of; the columns leave again.
_NOTES = Features(
    {
        "method": Value("string"),
        "refused": List(Value("string")),
        "lost": List(Value("string")),
        "n_tokens": Value("int64"),
        "n_trained": Value("int64"),
    }
)

_TOO_LONG = "a trained turn longer than max_length"
_CUT = "a last turn that the token limit cut"
_NOTHING = "no turn to train"


@dataclass(frozen=True, slots=True)
class LabelReport:
    """What became of the rows; `print(report)` is the line to quote."""

    n_in: int
    n_rows: int
    n_tokens: int
    n_trained: int
    methods: dict[str, int]  #: rollouts by how turns were found: generation, prefix, unrolled
    refused: dict[str, int]  #: rollouts, or turns of them, that were left out, by reason
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
    rows: Dataset | IterableDataset,
    tokenizer: Any,
    *,
    chat_template: str | None = None,
    mask: str = "column",
    unroll: bool = False,
    max_length: int | None = None,
    num_proc: int | None = None,
) -> Any:
    """Turn rollouts into `input_ids` and `labels` for `SFTTrainer`.

    The work is one batched `map`, written to disk as it goes, so memory stays flat.

    Args:
        rows: Rollouts with `messages`, and perhaps `tools` and `loss_mask`; a dataset or a stream.
        tokenizer: A fast `transformers` tokenizer with a chat template.
        chat_template: Template to use instead; null takes the training variant that TRL ships for
            the tokenizer's template where there is one, else the tokenizer's own.
        mask: `"column"`: the turns whose `loss_mask` is 1. `"assistant"`: every agent turn.
            `"final"`: the last agent turn.
        unroll: Whether every trained turn becomes a row of its own, with the history it had.
        max_length: Tokens that a sequence may have; a longer rollout is unrolled, and a turn that
            is still too long is left out and counted. Nothing is cut.
        num_proc: Processes that share the work.

    Returns:
        Rows with `input_ids` and `labels`; pass them to `SFTTrainer` as they are. `.report` says
        how turns were found and what was left out. A stream gives a stream, which warns of each
        reason for leaving rows out when it meets it.

    Raises:
        InputError: The tokenizer has no template or is not fast, or an option is unknown.
    """
    columns.check_dataset(rows, "to_sft", stream=True)
    columns.check_columns(rows, ["messages"], "to_sft")
    if mask not in MASKS:
        raise InputError(f"mask must be one of {', '.join(MASKS)}; got {mask!r}. Pick one.")
    if max_length is not None and max_length < 1:
        raise InputError(f"max_length must be at least 1; got {max_length!r}. Raise it.")
    if mask == "column":
        columns.check_columns(rows, ["loss_mask"], "to_sft(mask='column')")
    template = training_template(tokenizer, chat_template)
    labels = SftLabels(tokenizer, template, mask, unroll, max_length)
    if isinstance(rows, IterableDataset):
        stream = rows if rows.column_names is None else rows.select_columns(_present(rows))
        left = _READS if rows.column_names is None else _present(rows)
        return stream.map(
            _Warned(labels), batched=True, remove_columns=list(left), features=_FEATURES
        )
    return _labelled(rows.with_format(None), labels, num_proc)


def _present(rows: Dataset | IterableDataset) -> list[str]:
    return [name for name in _READS if name in rows.column_names]


def _labelled(rows: Dataset, labels: SftLabels, num_proc: int | None) -> Rollouts:
    if not len(rows):
        empty = Dataset.from_dict({name: [] for name in _FEATURES}, features=_FEATURES)
        return Rollouts.of(empty, LabelReport(0, 0, 0, 0, {}, {}))
    names = _present(rows)
    kept = Dataset.select_columns(rows, names)
    path = None if rows.cache_files else _temporary_file()
    made = Dataset.map(
        kept, labels, batched=True, batch_size=200, remove_columns=names, num_proc=num_proc,
        features=Features({**_FEATURES, **_NOTES}), cache_file_name=path, desc="Labels",
    )  # fmt: skip
    report = _report(len(rows), made)
    table = made.data.table
    empty = pc.equal(table.column("n_tokens"), 0)
    made = made.remove_columns(list(_NOTES))
    if pc.any(empty).as_py():
        made = made.select(pc.indices_nonzero(pc.invert(empty)).to_pylist())
    return Rollouts.of(made, report)


def _temporary_file() -> str:
    """Name a file for rows that have none: in memory they would be held twice over."""
    folder = Path(get_temporary_cache_files_directory())
    return str(folder / f"labels-{generate_random_fingerprint()}.arrow")


def _report(n_in: int, made: Dataset) -> LabelReport:
    table = made.data.table
    n_tokens = table.column("n_tokens")
    return LabelReport(
        n_in,
        int(pc.sum(pc.not_equal(n_tokens, 0)).as_py()),
        int(pc.sum(n_tokens).as_py()),
        int(pc.sum(table.column("n_trained")).as_py()),
        _counted(table.column("method")),
        _counted(pc.list_flatten(table.column("refused"))),
        _counted(pc.list_flatten(table.column("lost"))),
    )


def _counted(values: Any) -> dict[str, int]:
    return dict(Counter(v for v in values.to_pylist() if v is not None))


@dataclass(frozen=True)
class SftLabels:
    """The transform of `to_sft`: a batch of rollouts to a batch of labelled sequences.

    Use it with `Dataset.map(..., batched=True, remove_columns=…)`. A rollout that gives nothing
    leaves one row without tokens, which says why in `refused`.

    Attributes:
        tokenizer: A fast tokenizer.
        template: The chat template.
        mask: Which turns are trained, one of `MASKS`.
        unroll: Whether every trained turn is a sequence of its own.
        max_length: Tokens that a sequence may have; null for any number.
    """

    version: ClassVar[str] = "2"

    tokenizer: Any
    template: str
    mask: str = "column"
    unroll: bool = False
    max_length: int | None = None

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
        rollouts = [
            _Rollout(schema.to_record(dict(zip(batch, values, strict=True))), self)
            for values in zip(*batch.values(), strict=True)
        ]
        self._encode([s for r in rollouts for s in r.sequences])
        for rollout in rollouts:
            if any(not self._fits(s) for s in rollout.sequences) and rollout.method != "unrolled":
                rollout.split()
        self._encode([s for r in rollouts for s in r.sequences])
        out: dict[str, list[Any]] = {name: [] for name in (*_FEATURES, *_NOTES)}
        for rollout in rollouts:
            rollout.write(out, [s for s in rollout.sequences if self._fits(s)])
        return out

    def _fits(self, sequence: _Sequence) -> bool:
        return self.max_length is None or len(sequence.ids) <= self.max_length

    def _encode(self, sequences: Sequence[_Sequence]) -> None:
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


class _Warned:
    """`SftLabels` for a stream: no notes, and a warning the first time something is left out."""

    def __init__(self, labels: SftLabels) -> None:
        self.labels, self.told = labels, set[str]()

    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
        names = [name for name in _READS if name in batch]
        made = self.labels({name: batch[name] for name in names})
        for why in sorted({w for reasons in made["refused"] for w in reasons} - self.told):
            self.told.add(why)
            warnings.warn(f"to_sft leaves rows of the stream out: {why}", stacklevel=2)
        keep = [i for i, n in enumerate(made["n_tokens"]) if n]
        return {name: [made[name][i] for i in keep] for name in _FEATURES}


@dataclass(slots=True)
class _Sequence:
    text: str
    spans: list[tuple[int, int]]
    ids: Any = None
    labels: Any = None


class _Rollout:
    """One rollout on its way to sequences."""

    def __init__(self, record: Mapping[str, Any], labels: SftLabels) -> None:
        self.record, self.labels = record, labels
        self.sequences: list[_Sequence] = []
        self.method: str | None = None
        self.refused: list[str] = []
        self.lost: list[str] = []
        tools = record.get("tools")
        self.tools = (json.loads(tools) if isinstance(tools, str) else tools) or None
        self.messages = labels.finder.prepare(record["messages"] or [])
        self.trained = self._trained()
        if not self.trained:
            self.refused = self.refused or [_NOTHING]
        elif labels.unroll or not self._attempt(self._whole):
            self.split()

    def _trained(self) -> list[int]:
        agent = [i for i, m in enumerate(self.messages) if m["role"] == "assistant"]
        chosen = agent
        if self.labels.mask == "column":
            given = self.record.get("loss_mask") or []
            chosen = [i for i in agent if i < len(given) and given[i]]
        elif self.labels.mask == "final":
            chosen = agent[-1:]
        last = len(self.messages) - 1
        if self.record.get("finish_reason") == "length" and last in chosen:
            self.refused.append(_CUT)  # it has no end: the model would learn to stop there
            chosen = [i for i in chosen if i != last]
        return chosen

    def split(self) -> None:
        """Make every trained turn a sequence of its own, with the history that it had."""
        self._attempt(self._single)

    def _attempt(self, make: Callable[[], list[_Sequence] | None]) -> bool:
        """Make sequences; what a template cannot do refuses the rollout, and is no reason to go on."""
        try:
            made = make()
        except TemplateError as error:
            self.sequences, self.refused = [], [str(error)]
            return True
        if made is not None:
            self.sequences = made
        return made is not None

    def _whole(self) -> list[_Sequence] | None:
        """Take a conversation as one sequence, or return null where it must be unrolled."""
        found = self.labels.finder.find(self.messages, self.tools, self.trained)
        if found is None:
            return None
        lost = self._lost(found)
        if lost and len(self.trained) > 1:
            single = self._single()  # the last turn of a history may hold what an earlier one lost
            if len(self.lost) < len(lost):
                return single
        self.lost, self.method = lost, found.method
        return [_Sequence(found.text, [found.spans[i] for i in self.trained])]

    def _single(self) -> list[_Sequence]:
        self.lost, self.method = [], "unrolled"
        return [self._one_turn(at) for at in self.trained]

    def _one_turn(self, at: int) -> _Sequence:
        found = self.labels.finder.find(self.messages[: at + 1], self.tools, [at])
        if found is None:
            raise TemplateError(
                f"the chat template does not say where message {at} begins: neither generation marks "
                "nor prefixes find it"
            )
        self.lost += self._lost(found)
        return _Sequence(found.text, [found.spans[at]])

    def _lost(self, found: Turns) -> list[str]:
        """Name what the template drops of trained turns; a turn without its calls is no target."""
        lost = []
        for i, (start, end) in found.spans.items():
            lost += lost_parts(self.messages[i], found.text[start:end])
        if "tool calls" in lost:
            raise TemplateError("the chat template drops tool calls")
        return lost

    def write(self, out: dict[str, list[Any]], kept: Sequence[_Sequence]) -> None:
        """Append the sequences that fit, and on the first row what there is to say."""
        self.refused += [_TOO_LONG] * (len(self.sequences) - len(kept))
        rows = kept or [_Sequence("", [], [], [])]
        for i, sequence in enumerate(rows):
            out["input_ids"].append(sequence.ids)
            out["labels"].append(sequence.labels)
            out["task_id"].append(self.record.get("task_id"))
            out["rollout_id"].append(self.record.get("rollout_id"))
            out["method"].append(self.method if kept and not i else None)
            out["refused"].append([] if i else self.refused)
            out["lost"].append([] if i else self.lost)
            out["n_tokens"].append(len(sequence.ids))
            out["n_trained"].append(len(sequence.ids) - sequence.labels.count(IGNORED))


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
