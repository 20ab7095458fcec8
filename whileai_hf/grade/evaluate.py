"""evaluate: grade rollouts as those of a named policy."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from datasets import Dataset

from whileai_hf import columns, schema
from whileai_hf.errors import InputError
from whileai_hf.grade.runner import grade
from whileai_hf.rollouts import Rollouts


def evaluate(dataset: Dataset, judge: Any, *, model: str | None = None, **options: Any) -> Rollouts:
    """Grade the rollouts of a trained or served model, and write its name into the column `agent`.

    Args:
        dataset: Rollouts of one policy.
        judge: See `whileai_hf.grade`.
        model: Name of the policy; null leaves `agent` as it is.
        options: Those of `whileai_hf.grade`.

    Raises:
        InputError: `model` is an empty name.
    """
    if model is not None and not model.strip():
        raise InputError(
            f"model must name the policy; got {model!r}. Leave it out to keep the column agent."
        )
    columns.check_dataset(dataset, "evaluate")
    if model is not None:
        names = pa.array([model] * len(dataset), pa.string())
        dataset = columns.with_columns(dataset, {"agent": (names, schema.FEATURES["agent"])})
    return grade(dataset, judge, **options)


def run_judge(dataset: Dataset, judge: Any, *, judge_name: str, **options: Any) -> Rollouts:
    """Grade under a name of your own; see `whileai_hf.grade`.

    Args:
        dataset: Rollouts.
        judge: The judge.
        judge_name: Name and version, for the column `judge`, the checkpoint and the card.
        options: Those of `whileai_hf.grade`.
    """
    return grade(dataset, judge, name=judge_name, **options)
