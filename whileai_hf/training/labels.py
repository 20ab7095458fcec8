"""to_sft: `input_ids` and `labels` that train exactly the turns the loss mask names.

`SFTTrainer` uses a `labels` column as it is, through packing, truncation and streaming, and no other
column it reads is as safe: it ignores a per-message mask, and a `completion_mask` without its flag. So
the mask becomes token labels here. `turns` finds the characters of a turn; where a template rewrites
the history, each trained turn becomes a row of its own; where nothing is right, the row is refused
with the message at which it fails.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from datasets import Dataset, Features, IterableDataset
from datasets.fingerprint import (
    generate_random_fingerprint,
    get_temporary_cache_files_directory,
)

from whileai_hf import columns
from whileai_hf.errors import InputError
from whileai_hf.rollouts import Rollouts
from whileai_hf.training.sequences import MASKS, NOTES, READS, SftLabels
from whileai_hf.training.turns import training_template


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
    logprobs: bool = False,
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
        logprobs: Whether to lay the column `token_logprobs` beside the tokens, as `logprobs`; a
            rollout whose tokens are others now is left out and counted.
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
    if logprobs:
        columns.check_columns(rows, ["token_logprobs"], "to_sft(logprobs=True)")
        unroll = _whole_only(unroll)
    template = training_template(tokenizer, chat_template)
    labels = SftLabels(tokenizer, template, mask, unroll, max_length, logprobs)
    if isinstance(rows, IterableDataset):
        return _stream(rows, labels)
    return _labelled(rows.with_format(None), labels, num_proc)


def _stream(rows: IterableDataset, labels: SftLabels) -> IterableDataset:
    names = rows.column_names or list(next(iter(rows), {}))  # a stream may not know its columns
    return rows.map(_Warned(labels), batched=True, remove_columns=names, features=labels.features)


def _whole_only(unroll: bool) -> bool:
    if unroll:
        raise InputError(
            "logprobs=True needs whole rollouts, because the scores run over all turns; got "
            "unroll=True. Drop one of them."
        )
    return False


def _labelled(rows: Dataset, labels: SftLabels, num_proc: int | None) -> Rollouts:
    if not len(rows):
        empty = Dataset.from_dict({n: [] for n in labels.features}, features=labels.features)
        return Rollouts.of(empty, LabelReport(0, 0, 0, 0, {}, {}))
    names = [name for name in READS if name in rows.column_names]
    kept = Dataset.select_columns(rows, names)
    path = None if rows.cache_files else _temporary_file()
    made = Dataset.map(
        kept, labels, batched=True, batch_size=200, remove_columns=names, num_proc=num_proc,
        features=Features({**labels.features, **NOTES}), cache_file_name=path, desc="Labels",
    )  # fmt: skip
    report = _report(len(rows), made)
    table = made.data.table
    empty = pc.equal(table.column("n_tokens"), 0)
    made = made.remove_columns(list(NOTES))
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


class _Warned:
    """`SftLabels` for a stream: no notes, and a warning the first time something is left out."""

    def __init__(self, labels: SftLabels) -> None:
        self.labels, self.told = labels, set[str]()

    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
        names = [name for name in READS if name in batch]
        made = self.labels({name: batch[name] for name in names})
        for why in sorted({w for reasons in made["refused"] for w in reasons} - self.told):
            self.told.add(why)
            warnings.warn(f"to_sft leaves rows of the stream out: {why}", stacklevel=2)
        keep = [i for i, n in enumerate(made["n_tokens"]) if n]
        return {name: [made[name][i] for i in keep] for name in self.labels.features}
