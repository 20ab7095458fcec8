"""Rollouts: a `datasets.Dataset` whose methods are the loop.

Every method is one call of a function of the front door, which takes a plain `Dataset` as well, and
every `Dataset` method that returns a dataset returns `Rollouts` again. Nothing else is added: no
state beside the columns, so that what was pushed, saved or pickled is what comes back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import datasets
import pyarrow.parquet as pq
from datasets import Dataset, DatasetDict

import whileai_hf as wai
from whileai_hf import columns, schema

T = TypeVar("T")

#: The methods of `Dataset` that return a dataset, or a `DatasetDict` of them.
_RETURN_DATASET = (
    "add_column", "add_item", "cast", "cast_column", "class_encode_column", "filter", "flatten",
    "flatten_indices", "map", "remove_columns", "rename_column", "rename_columns", "repeat",
    "select_columns", "shard", "shuffle", "skip", "sort", "take", "train_test_split",
    "with_format", "with_transform",
)  # fmt: skip

#: Those that return the same rows, so that what a step said of them still holds.
_SAME_ROWS = ("with_format", "with_transform")


class Rollouts(Dataset):
    """Rollouts as rows: a `datasets.Dataset` with the columns of `whileai_hf.schema`.

    It is what `simulate`, `grade` and `select` return. Use it like any dataset; its own methods
    (`grade`, `select(mode=…)`, `export`, `push`, …) call the function of the same name.

    Attributes:
        report: What the step that made these rows has to say, an object that prints itself; null
            on rows that no step of the loop made.
        warnings: The sentences that the step wants read.
    """

    report: Any = None
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, dataset: Dataset, report: Any = None, warnings: Iterable[str] = ()) -> Rollouts:
        """View a dataset as rollouts, without copying; the dataset keeps its type.

        Args:
            dataset: Any dataset.
            report: What the step that made the rows has to say.
            warnings: What the step wants read.
        """
        columns.check_dataset(dataset, "Rollouts.of")
        rollouts = cls.__new__(cls)
        rollouts.__dict__.update(dataset.__dict__)
        rollouts.report, rollouts.warnings = report, tuple(warnings)
        return rollouts

    @classmethod
    def from_records(cls, records: Iterable[Mapping[str, Any]]) -> Rollouts:
        """Write records, one mapping a rollout, with the features of a rollout.

        Unlike `Dataset.from_list` this keeps every argument as it is: no key is filled in, no
        column that the first record lacks is lost, no number is rounded.
        """
        return cls.of(schema.to_dataset(records))

    @classmethod
    def load_from_disk(cls, *args: Any, **kwargs: Any) -> Rollouts:
        """Load what `save_to_disk` wrote; see `datasets.Dataset.load_from_disk`."""
        return cls.of(Dataset.load_from_disk(*args, **kwargs))

    def to_parquet(self, path_or_buf: Any, *args: Any, **kwargs: Any) -> int:
        """Write a Parquet file; see `datasets.Dataset.to_parquet`.

        Rows that `filter` kept in their order are written in one pass over the table: gathering them
        one by one, as `datasets` does, takes minutes and gigabytes at a million rows.
        """
        plain = isinstance(path_or_buf, (str, Path)) and not args and not kwargs
        tables = columns.ordered_tables(self) if plain and self._indices is not None else None
        if tables is None or not len(self):
            return int(super().to_parquet(path_or_buf, *args, **kwargs))
        written = 0
        with pq.ParquetWriter(path_or_buf, self.features.arrow_schema) as writer:
            for table in tables:
                writer.write_table(table.cast(self.features.arrow_schema))
                written += table.nbytes
        return written

    def records(self) -> Iterable[dict[str, Any]]:
        """Walk over the rows as records: arguments as objects, markers as a mapping."""
        for batch in columns.batches(self):
            names = list(batch)
            for values in zip(*batch.values(), strict=True):
                yield schema.to_record(dict(zip(names, values, strict=True)))

    # The loop, one line a step.

    def grade(self, judge: Any, **options: Any) -> Rollouts:
        """Judge every rollout; see `whileai_hf.grade`."""
        return wai.grade(self, judge, **options)

    @property
    def pass_at(self) -> Any:
        """pass@1, pass^k, pass@k and headroom with intervals; see `whileai_hf.pass_at`."""
        return wai.pass_at(self)

    def select(
        self, indices: Any = None, *args: Any, mode: str | None = None, **options: Any
    ) -> Rollouts:
        """Select what teaches with `mode="rl"` or `"sft"`; with indices, `Dataset.select`.

        See `whileai_hf.select` for the gates and their options.
        """
        if mode is not None:
            return wai.select(self, mode=mode, **options)
        return cast("Rollouts", _keep(super().select(indices, *args, **options)))

    def export(self, path: Any, **options: Any) -> Any:
        """Write the rows for a trainer; see `whileai_hf.export`."""
        return wai.export(self, path, **options)

    def push(self, repo_id: str, **options: Any) -> Any:
        """Publish on the Hub with a card, gated; see `whileai_hf.push`."""
        return wai.push(self, repo_id, **options)

    # Views by verdict.

    def passes(self) -> Rollouts:
        """Keep the rollouts whose reward is 1."""
        return self._by_reward(lambda reward: reward == 1.0)

    def failures(self) -> Rollouts:
        """Keep the rollouts whose reward is 0."""
        return self._by_reward(lambda reward: reward == 0.0)

    def partials(self) -> Rollouts:
        """Keep the rollouts whose reward lies between 0 and 1."""
        return self._by_reward(lambda reward: (reward > 0.0) & (reward < 1.0))

    def failed_traces(self) -> Rollouts:
        """Keep the judged rollouts that earned less than the full reward, for `simulate(traces=)`."""
        return self._by_reward(lambda reward: reward < 1.0)

    def unjudged(self) -> Rollouts:
        """Keep the rollouts without a reward; `judge_status` says why."""
        return self._by_reward(lambda reward: reward != reward)

    def _by_reward(self, test: Callable[[Any], Any]) -> Rollouts:
        rewards = columns.numbers(self, "reward", "a view by reward")
        return self.select(test(rewards).nonzero()[0])


def _keep(result: T) -> T:
    """Make the datasets that a `Dataset` method returned rollouts again."""
    if isinstance(result, DatasetDict):
        return cast("T", DatasetDict({name: _keep(split) for name, split in result.items()}))
    if type(result) is Dataset:
        return cast("T", Rollouts.of(result))
    return result


def _kept(name: str) -> Callable[..., Any]:
    inherited = getattr(Dataset, name)

    @functools.wraps(inherited)
    def method(self: Rollouts, *args: Any, **kwargs: Any) -> Any:
        out = _keep(inherited(self, *args, **kwargs))
        if isinstance(out, Rollouts) and out is not self and name not in _SAME_ROWS:
            out.report, out.warnings = None, ()
        return out

    return method


for _name in _RETURN_DATASET:
    if hasattr(datasets.Dataset, _name):
        setattr(Rollouts, _name, _kept(_name))
