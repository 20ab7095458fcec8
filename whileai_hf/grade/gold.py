"""Labels of people: attach them to rows, and see how far the people agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset, Json, Value

from whileai_hf import columns, defaults, schema
from whileai_hf.errors import InputError, SchemaError
from whileai_hf.grade.contract import as_number
from whileai_hf.measure.agreement import Agreement, agreement
from whileai_hf.rollouts import Rollouts

#: Who a label can come from.
KINDS = ("human", "program", "model")

#: The columns that a label adds beside `gold_reward`.
_LABELS, _KIND = "gold_labels", "gold_kind"


def attach_labels(
    dataset: Dataset,
    labels: Mapping[str, Any] | Dataset | Iterable[Mapping[str, Any]],
    *,
    annotator: str = "human",
    kind: str = "human",
    key: str = "rollout_id",
    value: str = "gold_reward",
) -> Rollouts:
    """Put labels beside the rows that they belong to.

    Called once for each annotator: `gold_labels` keeps who said what, and `gold_reward` is the mean where
    all agree or most do (above one half 1, below 0), null where they tie.

    Args:
        dataset: Rows with the column `key`, one row an id.
        labels: By id a number in [0, 1] (null for "not labelled"), or rows with `key` and `value` (and
            perhaps `annotator`).
        annotator: Who gave them, where the labels do not say.
        kind: `"human"`, `"program"` (a verifier) or `"model"`; only the first two are gold for
            `judge_trust`.
        key: Column that names a row.
        value: Key of the label in rows of labels.

    Raises:
        SchemaError: The column `key` is missing.
        InputError: An id is unknown or stands on two rows, or a label is no number in [0, 1].
    """
    if kind not in KINDS:
        raise InputError(
            f"kind must be one of {', '.join(KINDS)}; got {kind!r}. A person is 'human'."
        )
    columns.check_dataset(dataset, "attach_labels")
    columns.check_columns(dataset, [key], "attach_labels")
    ids = columns.read(dataset, [key], "attach_labels").column(0).to_pylist()
    where = {one: i for i, one in enumerate(ids)}
    if len(where) < len(ids):
        twice = next(one for one in ids if ids.count(one) > 1)
        raise InputError(
            f"{key} must name each row once; {twice!r} stands on several. Name another key."
        )
    said = _said_before(dataset)
    kinds = _kinds_before(dataset)
    unknown = []
    for one, who, label in _entries(labels, annotator, key, value):
        if one not in where:
            unknown.append(one)
        elif label is not None:
            said[where[one]][who] = label
            kinds[where[one]] = _weaker(kinds[where[one]], kind)
    if unknown:
        raise InputError(
            f"every label must belong to a row; {len(unknown)} do not, first {unknown[0]!r}. "
            f"Look at the column {key!r}, or name another key."
        )
    return Rollouts.of(
        columns.with_columns(
            dataset,
            {
                "gold_reward": (
                    pa.array([_majority(s) for s in said], pa.float64()),
                    schema.FEATURES["gold_reward"],
                ),
                _LABELS: (
                    schema._json_array([schema.dumps(s) if s else None for s in said]),
                    Json(),
                ),
                _KIND: (pa.array(kinds, pa.string()), Value("string")),
            },
        )
    )


def _entries(
    labels: Any, annotator: str, key: str, value: str
) -> Iterable[tuple[Any, str, float | None]]:
    if isinstance(labels, Mapping):
        rows: Iterable[Any] = ({key: one, value: label} for one, label in labels.items())
    else:
        rows = labels
    for row in rows:
        if key not in row or value not in row:
            raise InputError(
                f"a row of labels needs {key!r} and {value!r}; got {', '.join(map(repr, row))}. Name the keys with key= and value=."
            )
        yield row[key], str(row.get("annotator") or annotator), _label(row[value], row[key])


def _label(label: Any, one: Any) -> float | None:
    number = None if label is None else as_number(label)
    if label is None or (number is not None and 0 <= number <= 1):
        return number
    raise InputError(
        f"a label must be a number in [0, 1]; {one!r} has {label!r}. Write 1 for a pass and 0 for a fail."
    )


def _said_before(dataset: Dataset) -> list[dict[str, float]]:
    if _LABELS in dataset.column_names:
        found = dataset.with_format(None)[_LABELS][:]
        return [dict(schema.restore(labels) or {}) for labels in found]
    return [{} for _ in range(len(dataset))]


def _kinds_before(dataset: Dataset) -> list[str | None]:
    if _KIND in dataset.column_names:
        return list(dataset[_KIND][:])
    return [None] * len(dataset)


def _weaker(old: str | None, new: str) -> str:
    """The kind of a row is that of its weakest label."""
    return max((kind for kind in (old, new) if kind), key=KINDS.index)


def _majority(labels: Mapping[str, float]) -> float | None:
    if not labels:
        return None
    mean = float(np.mean(list(labels.values())))
    if len(set(labels.values())) == 1:
        return mean
    return None if mean == 0.5 else float(mean > 0.5)


def annotator_agreement(
    dataset: Dataset, *, threshold: float | None = None, confidence: float = defaults.CONFIDENCE
) -> Agreement:
    """Say how far the annotators of `attach_labels` agree among themselves: the bound of any judge.

    Args:
        dataset: Rows with `task_id` and `gold_labels`.
        threshold: Numbers at or above it are a pass.
        confidence: Coverage of the intervals.

    Raises:
        SchemaError: Nobody attached labels.
        InputError: There is only one annotator, or no row that two of them labelled.
    """
    if _LABELS not in dataset.column_names:
        raise SchemaError("annotator_agreement needs the column 'gold_labels'; there is none. Run attach_labels(dataset, labels, annotator=...) for each annotator first.")  # fmt: skip
    said = _said_before(dataset)
    names = sorted({name for labels in said for name in labels})
    if len(names) < 2:
        raise InputError(
            f"annotator_agreement needs two annotators; got {names!r}. Attach the labels of another one with attach_labels(..., annotator=...)."
        )
    table = {"task_id": columns.read(dataset, ["task_id"], "annotator_agreement").column(0)}
    sides = {f"{name}": pa.array([s.get(name) for s in said], pa.float64()) for name in names}
    return agreement(
        Dataset(pa.table({**table, **sides})),
        tuple(sides),
        threshold=threshold,
        confidence=confidence,
    )
