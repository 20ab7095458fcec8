"""What a run has made, on disk: nothing that was finished is lost, whatever kills the process.

A folder holds `run.json` (what the run is), `data/part-*.parquet` (finished rollouts in order, which
`load_dataset` reads) and `journal.jsonl` (finished rollouts that are not in a part yet).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from whileai_hf import schema
from whileai_hf.errors import InputError

#: Rollouts of one Parquet file.
PART_ROWS = 1_000


class Journal:
    """The finished rollouts of a run, by unit (a task of a run) and repeat.

    Args:
        path: The folder; made if it does not exist.
        identity: What makes two runs the same run; the folder of another one is refused.
    """

    def __init__(self, path: Path, identity: Mapping[str, Any]) -> None:
        self.path = path
        self.data = path / "data"
        self.data.mkdir(parents=True, exist_ok=True)
        self._claim(identity)
        self.unit_rows = self._units()
        self.waiting: dict[tuple[int, int], dict[str, Any]] = dict(self._read())
        self._out = (path / "journal.jsonl").open("a", encoding="utf-8")

    def _units(self) -> list[int]:
        """Count the rollouts of each unit (a task of a run) that the parts hold, in order."""
        counts: list[int] = []
        last: tuple[Any, Any] | None = None
        for part in self.parts():
            table = pq.read_table(part, columns=["task_id", "run"])
            for key in zip(table["task_id"].to_pylist(), table["run"].to_pylist(), strict=True):
                if key == last:
                    counts[-1] += 1
                else:
                    counts.append(1)
                last = key
        return counts

    def _claim(self, identity: Mapping[str, Any]) -> None:
        text = json.dumps(identity, sort_keys=True, default=str)
        mark = hashlib.sha256(text.encode()).hexdigest()
        about = self.path / "run.json"
        if about.exists() and json.loads(about.read_text(encoding="utf-8")).get("mark") != mark:
            raise InputError(
                f"the folder of a run must be new or hold the same run; {str(self.path)!r} holds one "
                "with other options. Give this run a folder of its own, or repeat the old options."
            )
        _write(about, json.dumps({"mark": mark, **json.loads(text)}, indent=1))

    def parts(self) -> list[Path]:
        """The Parquet files, in order."""
        return sorted(self.data.glob("part-*.parquet"))

    def _read(self) -> Iterator[tuple[tuple[int, int], dict[str, Any]]]:
        path = self.path / "journal.jsonl"
        if not path.exists():
            return
        good = 0
        with path.open("rb") as lines:
            for line in lines:
                try:
                    entry = json.loads(line)
                except ValueError:
                    break  # the line that the process was writing when it died
                if not line.endswith(b"\n"):
                    break
                good += len(line)
                if entry["unit"] >= len(self.unit_rows):
                    yield (entry["unit"], entry["repeat"]), entry["record"]
        os.truncate(path, good)

    def add(self, unit: int, repeat: int, record: dict[str, Any]) -> None:
        """Keep one finished rollout; it survives a kill from here on."""
        self._out.write(_line(unit, repeat, record))
        self._out.flush()

    def part(self, records: list[dict[str, Any]]) -> None:
        """Write the rollouts of whole units, in order, as one Parquet file."""
        target = self.data / f"part-{len(self.parts()):06d}.parquet"
        temporary = target.with_suffix(".writing")
        pq.write_table(schema.from_table(schema.to_table(records)).data.table, temporary)
        temporary.replace(target)

    def shorten(self, waiting: Mapping[tuple[int, int], dict[str, Any]]) -> None:
        """Rewrite the journal with nothing but what no part holds yet."""
        self._out.close()
        lines = [_line(unit, repeat, record) for (unit, repeat), record in waiting.items()]
        _write(self.path / "journal.jsonl", "".join(lines))
        self._out = (self.path / "journal.jsonl").open("a", encoding="utf-8")

    def table(self) -> pa.Table:
        """Read every part."""
        tables = [pq.read_table(part, memory_map=True) for part in self.parts()]
        return (
            pa.concat_tables(tables, promote_options="permissive")
            if tables
            else schema.to_table([])
        )

    def close(self) -> None:
        """Close the journal file."""
        self._out.close()


def _line(unit: int, repeat: int, record: dict[str, Any]) -> str:
    entry = {"unit": unit, "repeat": repeat, "record": record}
    return schema.dumps(schema.plain(entry, "rollout")) + "\n"


def _write(path: Path, text: str) -> None:
    temporary = path.with_suffix(".writing")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
