"""to_dpo, to_reward, to_kto: preference rows as TRL's trainers read them.

A pair is branched where the two replies first differ, at the start of an agent turn, so that what they
share is prompt. Messages go out as a template reads them: arguments as objects, no nulls, no keys of
ours. What only a judge may read never leaves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from datasets import Dataset, Features, Value

from whileai_hf import columns, defaults
from whileai_hf.errors import SchemaError
from whileai_hf.rollouts import Rollouts
from whileai_hf.training.mapped import mapped, reasons
from whileai_hf.training.preference_rows import PAIR, SINGLE, FormatRows, KtoRows, PairRows


@dataclass(frozen=True, slots=True)
class FormatReport:
    """What became of the rows; `print(report)` is the line to quote."""

    format: str
    n_in: int
    n_rows: int
    refused: dict[str, int]  #: rows that were left out, by reason

    def __str__(self) -> str:
        said = f"{self.n_rows} rows for {self.format} of {self.n_in}"
        if self.refused:
            said += "; left out: " + "; ".join(f"{n} ({why})" for why, n in self.refused.items())
        return said

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        return {name: getattr(self, name) for name in self.__slots__}


def to_dpo(
    pairs: Dataset,
    tokenizer: Any = None,
    *,
    max_length: int | None = None,
    num_proc: int | None = None,
) -> Rollouts:
    """Turn preference pairs into the rows of `DPOTrainer`.

    Train with `PreferenceCollator`: TRL's own puts tool results into the loss.

    Args:
        pairs: Columns `chosen` and `rejected`, as messages or text, and perhaps `prompt`, `tools`,
            `task_id`, `chosen_reward` and `rejected_reward`. Without `prompt` the two are whole
            conversations.
        tokenizer: The tokenizer that is trained with: it measures `max_length`, and says whether
            its template wants arguments as JSON text.
        max_length: Tokens that prompt and reply may have together; a pair with more on either side
            is left out and counted, because a trainer would cut it.
        num_proc: Processes that share the work.

    Returns:
        Rows with `prompt`, `chosen`, `rejected`, `tools` (null where there are none) and `task_id`;
        `.report` says what was left out, such as one reply with two rewards.

    Raises:
        SchemaError: There are no pairs.
        InputError: `max_length` without a tokenizer, or one that cannot measure it.
    """
    columns.check_dataset(pairs, "to_dpo")
    _check_pairs(pairs, "to_dpo")
    transform = PairRows(tokenizer, max_length)
    return _made(pairs, transform, Features(PAIR), "DPO", num_proc)


def to_reward(
    pairs: Dataset,
    tokenizer: Any = None,
    *,
    max_length: int | None = None,
    margin: bool = False,
    num_proc: int | None = None,
) -> Rollouts:
    """Turn preference pairs into the rows of `RewardTrainer`.

    Args:
        pairs: As in `to_dpo`.
        tokenizer: As in `to_dpo`.
        max_length: As in `to_dpo`; `RewardTrainer` drops what is longer than its own, uncounted.
        margin: Whether to add the difference of the rewards as the column `margin`, which the loss
            then demands (Llama 2, arXiv:2307.09288, equation 2).
        num_proc: Processes that share the work.

    Returns:
        As `to_dpo`, perhaps with `margin`.

    Raises:
        SchemaError: There are no pairs, or a margin is asked for without rewards.
    """
    columns.check_dataset(pairs, "to_reward")
    _check_pairs(pairs, "to_reward")
    features = dict(PAIR)
    if margin:
        columns.check_columns(pairs, ["chosen_reward", "rejected_reward"], "to_reward(margin=True)")
        features["margin"] = Value("float64")
    transform = PairRows(tokenizer, max_length, margin)
    return _made(pairs, transform, Features(features), "reward modelling", num_proc)


def to_kto(
    rows: Dataset,
    tokenizer: Any = None,
    *,
    threshold: float = defaults.KTO_THRESHOLD,
    max_length: int | None = None,
    num_proc: int | None = None,
) -> Rollouts:
    """Turn labelled replies, pairs or graded rollouts into the rows of `KTOTrainer`.

    Train with `PreferenceCollator`: TRL's own puts tool results into the loss.

    Args:
        rows: Columns `prompt`, `completion` and `label`; or pairs, as in `to_dpo`, of which each
            gives two rows; or rollouts with `messages` and `reward`.
        tokenizer: As in `to_dpo`.
        threshold: Reward from which a rollout is desirable.
        max_length: As in `to_dpo`.
        num_proc: Processes that share the work.

    Returns:
        Rows with `prompt`, `completion`, `label`, `tools` (null where there are none) and `task_id`.

    Raises:
        SchemaError: The rows are none of the three.
    """
    columns.check_dataset(rows, "to_kto")
    kinds = {"pairs": ("chosen", "rejected"), "labelled": ("prompt", "completion", "label"), "rollouts": ("messages", "reward")}  # fmt: skip
    present = set(rows.column_names)
    kind = next((k for k, names in kinds.items() if present.issuperset(names)), None)
    if kind is None:
        raise SchemaError(
            "to_kto needs prompt, completion and label, or chosen and rejected, or messages and "
            f"reward; the dataset has {', '.join(rows.column_names)}. Grade the rollouts, or make pairs."
        )
    transform = KtoRows(tokenizer, max_length, kind, threshold)
    return _made(rows, transform, Features(SINGLE), "KTO", num_proc)


def _check_pairs(pairs: Dataset, step: str) -> None:
    missing = [n for n in ("chosen", "rejected") if n not in pairs.column_names]
    if missing:
        raise SchemaError(
            f"{step} needs preference pairs with the columns 'chosen' and 'rejected'; {missing[0]!r} is "
            f"missing from {', '.join(pairs.column_names)}. Make pairs with build_preference_pairs(graded) first."
        )


def _made(
    rows: Dataset, transform: FormatRows, features: Features, name: str, num_proc: int | None
) -> Rollouts:
    transform.check()
    reads = [n for n in transform.reads if n in rows.column_names]
    made, kept = mapped(
        rows, transform, reads, features, num_proc=num_proc, desc=f"Rows for {name}"
    )
    return Rollouts.of(kept, FormatReport(name, len(rows), len(kept), reasons(made)))
