"""Replies that are too long: dropped by a gate, or made to cost by a soft penalty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from datasets import Dataset, Value

from whileai_hf import columns
from whileai_hf.errors import InputError
from whileai_hf.selection.gate import Gate

D = TypeVar("D", bound=Dataset)


@dataclass(frozen=True, slots=True)
class Fits(Gate):
    """Drop rollouts of more than `max_tokens` agent tokens; one without a count stays."""

    max_tokens: int = 4096

    name: ClassVar[str] = "overlong"
    why: ClassVar[str] = "it has more tokens than allowed"
    reads: ClassVar[tuple[str, ...]] = ("n_tokens",)

    def __call__(self, row: Mapping[str, Any]) -> bool:
        """Keep a row of at most `max_tokens` tokens."""
        return row["n_tokens"] is None or row["n_tokens"] <= self.max_tokens


def with_overlong_penalty(dataset: D, *, max_tokens: int, buffer: int) -> D:
    """Add the column `overlong_penalty`, in [-1, 0], to be added to a reward.

    Nothing up to `max_tokens - buffer` tokens, then linear down to -1 at `max_tokens`; -1 as well
    for a rollout that the length limit cut. Null where the length is not known.

    Args:
        dataset: Rollouts with `n_tokens`, and perhaps `finish_reason`.
        max_tokens: Tokens from which the penalty is whole.
        buffer: Tokens over which it grows, in [1, max_tokens].

    Raises:
        InputError: An option is out of range.
        SchemaError: There is no column `n_tokens`.

    References:
        DAPO, arXiv:2503.14476, equation 13 (soft overlong punishment).
    """
    step = "with_overlong_penalty"
    columns.check_dataset(dataset, step)
    for name, value, top in (("max_tokens", max_tokens, None), ("buffer", buffer, max_tokens)):
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or value < 1 or (top is not None and value > top):
            raise InputError(
                f"{name} must be a whole number of at least 1, buffer no more than max_tokens; "
                f"got {value!r}. DAPO takes 20480 and 4096."
            )
    tokens = columns.numbers(dataset, "n_tokens", step)
    penalty = np.clip((max_tokens - buffer - tokens) / buffer, -1.0, 0.0)
    if "finish_reason" in dataset.column_names:
        cut = np.array([reason == "length" for reason in dataset["finish_reason"][:]], dtype=bool)
        penalty = np.where(cut, -1.0, penalty)
    return columns.with_columns(dataset, {"overlong_penalty": (penalty + 0.0, Value("float64"))})
