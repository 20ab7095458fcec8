"""Labels: people's verdicts as a judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datasets import Dataset

from whileai_hf import columns
from whileai_hf.errors import InputError
from whileai_hf.grade.contract import as_number


class Labels:
    """A judge that looks verdicts up: `grade(rows, Labels({"r1": 1, "r2": 0}))`.

    A row without a label has the status `missing_reward`.
    """

    def __init__(
        self, labels: Mapping[str, Any] | Dataset, *, key: str = "rollout_id",
        value: str = "gold_reward", name: str = "labels",
    ) -> None:  # fmt: skip
        """Take labels.

        Args:
            labels: Verdicts by id: numbers, or mappings with `reward`, `reason` and so on; or a
                dataset with the columns `key` and `value`.
            key: Column of the rows that names a rollout.
            value: Column of the dataset that holds the label.
            name: Name in the column `judge`.

        Raises:
            InputError: A label is no reward, or an id has two.
        """
        if isinstance(labels, Dataset):
            table = columns.read(labels, [key, value], "Labels")
            ids, values = (table[column].to_pylist() for column in (key, value))
            if len(set(ids)) < len(ids):
                twice = next(i for i in ids if ids.count(i) > 1)
                raise InputError(
                    f"each rollout must have one label; {twice!r} has several. Merge the annotators "
                    "first, or keep one."
                )
            labels = dict(zip(ids, values, strict=True))
        bad = [i for i, v in labels.items() if v is not None and not _is_label(v)]
        if bad:
            raise InputError(
                f"a label must be a reward or a mapping with one; {bad[0]!r} has {labels[bad[0]]!r}. "
                "Write 1 for a pass and 0 for a fail."
            )
        self.labels, self.key, self.name = dict(labels), key, name

    def __call__(self, row: Mapping[str, Any]) -> Any:
        """Look one row up."""
        label = self.labels.get(row[self.key])
        return label if label is not None else {"reward": None, "reason": "nobody labelled it"}


def _is_label(value: Any) -> bool:
    return isinstance(value, Mapping) or as_number(value) is not None
