"""Where finished rollouts go: memory by chunks of Arrow, or the folder of a journal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from whileai_hf import schema
from whileai_hf.simulate.journal import PART_ROWS, Journal


class Store:
    """Finished rollouts, in order: in memory by chunks of Arrow, or in the folder of a journal."""

    def __init__(self, journal: Journal | None) -> None:
        self.journal = journal
        self.tables: list[pa.Table] = []
        self.chunk: list[dict[str, Any]] = []
        self.unit_rows = journal.unit_rows if journal else []  # of units that a part holds
        self.kept = dict(journal.waiting) if journal else {}  # finished, in no part

    def done(self, unit: int, repeat: int, record: dict[str, Any]) -> None:
        """Keep a rollout the moment it is finished, whatever its place in the order."""
        if self.journal is not None:
            self.journal.add(unit, repeat, record)
            self.kept[unit, repeat] = record

    def emit(self, unit: int, records: Sequence[dict[str, Any]]) -> None:
        """Write the rollouts of the next unit in order."""
        self.chunk.extend(records)
        for repeat in range(len(records)):
            self.kept.pop((unit, repeat), None)
        if len(self.chunk) >= PART_ROWS:
            self.flush()

    def flush(self) -> None:
        """Turn the chunk into Arrow, or into a part of the folder."""
        if not self.chunk:
            return
        if self.journal is None:
            self.tables.append(schema.to_table(self.chunk))
        else:
            self.journal.part(self.chunk)
            self.journal.shorten(self.kept)
        self.chunk = []

    def table(self) -> pa.Table:
        """Return everything that was emitted."""
        self.flush()
        if self.journal is not None:
            self.journal.close()
            return self.journal.table()
        if not self.tables:
            return schema.to_table([])
        return pa.concat_tables(self.tables, promote_options="permissive")
