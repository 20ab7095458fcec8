"""to_sft: `input_ids` and `labels` that train exactly the turns the loss mask names.

`SFTTrainer` uses a `labels` column as it is, through packing, truncation and streaming, and no other
column it reads is as safe: it ignores a per-message mask, and a `completion_mask` without its flag. So
the mask becomes token labels here. `turns` finds the characters of a turn; where a template rewrites
the history, each trained turn becomes a row of its own; where nothing is right, the row is refused
with the message at which it fails.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow.compute as pc
from datasets import Dataset, Features, IterableDataset

from whileai_hf import columns
from whileai_hf.errors import InputError
from whileai_hf.rollouts import Rollouts
from whileai_hf.training.mapped import counted, mapped, reasons, streamed
from whileai_hf.training.sequences import COUNTS, MASKS, READS, SftLabels
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
        return streamed(rows, labels, labels.features, "to_sft")
    names = [name for name in READS if name in rows.column_names]
    features = Features({**labels.features, **COUNTS})
    made, kept = mapped(rows, labels, names, features, num_proc=num_proc, desc="Labels")
    return Rollouts.of(kept.remove_columns(list(COUNTS)), _report(len(rows), made))


def _whole_only(unroll: bool) -> bool:
    if unroll:
        raise InputError(
            "logprobs=True needs whole rollouts, because the scores run over all turns; got "
            "unroll=True. Drop one of them."
        )
    return False


def _report(n_in: int, made: Dataset) -> LabelReport:
    table = made.data.table
    kept, tokens, trained = (
        pc.sum(table.column(c)).as_py() for c in ("kept", "n_tokens", "n_trained")
    )
    return LabelReport(
        n_in, int(kept or 0), int(tokens or 0), int(trained or 0),
        counted(made, "method"), reasons(made), counted(made, "lost"),
    )  # fmt: skip
