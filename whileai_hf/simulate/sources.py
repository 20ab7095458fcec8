"""Where situations come from beside the grid: a user's asks, tasks to run again, a folder, traces.

Everything is read into one form before the run begins, so that a wrong file is an error at once and
not a lost run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from datasets import Dataset

import whileai_hf as wai
from whileai_hf import columns, schema
from whileai_hf import messages as chat
from whileai_hf.errors import InputError
from whileai_hf.rollouts import Rollouts
from whileai_hf.simulate.grid import Cell
from whileai_hf.simulate.situations import Situation
from whileai_hf.world.tools import Tool, read_tools

#: What a row of the world says where a task has none.
_NO_WORLD = {"seed": 0, "state": "exists", "goal": None, "faults": []}


def read_rows(given: Any, step: str) -> Dataset | list[str]:
    """Read rollouts in any form: a dataset, rows, a path, a Hub id; or plain asks.

    Args:
        given: What the user passed.
        step: Its name in an error.

    Raises:
        InputError: It is none of these, or holds nothing.
    """
    if isinstance(given, (str, Path)):
        given = _loaded(given)
    if isinstance(given, Mapping):
        given = [given]
    if isinstance(given, Sequence) and not isinstance(given, Dataset):
        given = _listed(list(given), step)
    if isinstance(given, list):
        return given
    columns.check_dataset(given, step)
    columns.check_columns(given, ["task_id", "messages"], step)
    if len(given) == 0:
        raise InputError(f"{step} must hold at least one row; it is empty. Pass rollouts.")
    return given


def _loaded(source: str | Path) -> Any:
    folder = Path(source) / "data"
    if (Path(source) / "run.json").exists() and folder.is_dir():
        return wai.load(folder)  # the folder of `simulate(output=…)`
    return wai.load(source)


def _listed(given: list[Any], step: str) -> list[str] | Dataset:
    if given and all(isinstance(ask, str) for ask in given):
        return _checked_asks(given, step)
    if not given or not all(isinstance(row, Mapping) for row in given):
        odd = next((g for g in given if not isinstance(g, (str, Mapping))), given)
        raise InputError(
            f"{step} must be rollouts, rows, a path, a Hub id or texts; got list with {odd!r:.80}. "
            "Pass what `simulate` returned, or a list of asks."
        )
    if all("task_id" in row and "messages" in row for row in given):
        return Rollouts.from_records(given)
    return wai.from_chats(given)


def _checked_asks(asks: Sequence[Any], step: str) -> list[str]:
    for i, ask in enumerate(asks):
        if not isinstance(ask, str) or not ask.strip():
            raise InputError(f"{step} must be texts; seed {i} is {ask!r:.60}. Leave it out.")
    return list(asks)


def read_asks(given: Any, step: str = "seeds") -> list[str]:
    """Read asks: a list of texts, or a file with one a line (text, or JSON lines with `ask`)."""
    if given is None:
        return []
    if isinstance(given, Path) or (isinstance(given, str) and Path(given).is_file()):
        given = _ask_lines(Path(given))
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InputError(
            f"{step} must be a list of texts or a file with one a line; got {given!r:.60}. "
            "Put a single ask into a list."
        )
    return _checked_asks(given, step)


def _ask_lines(path: Path) -> list[Any]:
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if path.suffix != ".jsonl":
        return lines
    found = []
    for line in lines:
        entry = json.loads(line)
        found.append(entry.get("ask") or entry.get("prompt") if isinstance(entry, dict) else entry)
    return found


def own_asks(asks: Sequence[str], seed: int) -> Iterator[Situation]:
    """Make a situation of each ask; nothing is known of its cell, so that the world has no goal."""
    for i, ask in enumerate(asks):
        cell = Cell.of({"ask": ask})
        spec = {**_NO_WORLD, "seed": seed * 1_000_003 + i}
        yield Situation(
            cell.id.replace("cell", "task"), Cell(cell.id, {}), ask, spec, "unknown", "und"
        )


def replayed(tasks: Dataset) -> Iterator[Situation]:
    """Make the situation of each distinct task again: same ask, world and faults."""
    seen: set[str] = set()
    for batch in columns.batches(tasks):
        for values in zip(*batch.values(), strict=True):
            row = schema.to_record(dict(zip(batch, values, strict=True)))
            if row["task_id"] in seen:
                continue
            seen.add(row["task_id"])
            yield _again(row)


def _again(row: Mapping[str, Any]) -> Situation:
    where = dict(row.get("situation") or {})
    language, texture = where.pop("language", "und"), where.pop("texture", "plain")
    kept = row.get("privileged") or {}
    return Situation(
        row["task_id"], Cell(where.pop("cell", "none"), where),
        row.get("ask") or chat.first_ask(row["messages"]), row.get("world") or dict(_NO_WORLD),
        kept.get("expected", "unknown"), language, kept.get("follow_up"), kept, texture,
    )  # fmt: skip


def context(
    rows: Dataset, system_prompt: str | None, tools: list[Tool]
) -> tuple[str | None, list[Tool]]:
    """Take system prompt and tools from rows, where the call names none."""
    row = schema.to_record(rows[0])
    first = row["messages"][0] if row["messages"] else {}
    if system_prompt is None and first.get("role") == "system":
        system_prompt = chat.text_of(first["content"])
    return system_prompt, tools or read_tools(row.get("tools") or [])


@dataclass(frozen=True, slots=True)
class Spec:
    """What a folder says of an agent."""

    tools: list[Tool]
    system_prompt: str | None
    asks: list[str]
    rubric: str | None

    @classmethod
    def read(cls, path: str | Path) -> Spec:
        """Read a specification: a JSON or YAML file, or a folder with `spec.json` or `spec.yaml`.

        It holds `tools` (schemas, or the name of a file with them), `system_prompt` or `policy` (text, or
        the name of a file), perhaps `situations` (asks) and `rubric`; in a folder `rubric.md`,
        `policy.md` and `tools.json` are read where the file does not hold them.

        Raises:
            InputError: It does not exist, or holds neither tools nor a system prompt.
        """
        path = Path(path)
        folder = path if path.is_dir() else path.parent
        names = ("spec.json", "spec.yaml", "spec.yml")
        file = (
            next((path / n for n in names if (path / n).exists()), None) if path.is_dir() else path
        )
        held = _held(file) if file is not None and file.exists() else {}
        if not path.exists():
            raise InputError(
                f"spec must be a folder or a JSON or YAML file; {str(path)!r} does not exist. Check the path."
            )
        tools = held.get("tools")
        if tools is None and (folder / "tools.json").exists():
            tools = folder / "tools.json"
        elif isinstance(tools, str):
            tools = folder / tools
        prompt = _text(held.get("system_prompt") or held.get("policy"), folder, "policy.md")
        if tools is None and prompt is None:
            raise InputError(
                f"a spec needs tools or a system prompt; {str(path)!r} holds {sorted(held) or 'neither'}. "
                "Add the keys tools and system_prompt to spec.json."
            )
        asks = read_asks(held.get("situations") or [], "situations of a spec")
        return cls(read_tools(tools), prompt, asks, _text(held.get("rubric"), folder, "rubric.md"))


def _held(file: Path) -> dict[str, Any]:
    text = file.read_text(encoding="utf-8")
    try:
        held = json.loads(text) if file.suffix == ".json" else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError) as error:
        raise InputError(
            f"{file.name} must be JSON or YAML; it is not: {error}. Repair it."
        ) from error
    if not isinstance(held, dict):
        raise InputError(
            f"{file.name} must be an object with tools and system_prompt; got {type(held).__name__}. "
            "Write keys."
        )
    return held


def _text(value: Any, folder: Path, usual: str) -> str | None:
    if (
        isinstance(value, str)
        and "\n" not in value
        and len(value) < 200
        and (folder / value).is_file()
    ):
        return (folder / value).read_text(encoding="utf-8")
    if value is not None:
        return str(value)
    return (folder / usual).read_text(encoding="utf-8") if (folder / usual).exists() else None


def check_scaffold(scaffold: str | None) -> None:
    """Refuse a wrapper that has no place for the ask."""
    if scaffold is not None and (not isinstance(scaffold, str) or "{ask}" not in scaffold):
        raise InputError(
            f"scaffold must be a text with {{ask}} where the ask goes; got {scaffold!r:.80}. "
            'Write, for example, "Message of a customer: {ask}".'
        )


def wrapped(
    situations: Iterator[Situation], scaffold: str, rubric: str | None
) -> Iterator[Situation]:
    """Put each ask into the wrapper, and the rubric beside what a judge may read."""
    for situation in situations:
        kept = {**situation.privileged, **({"rubric": rubric} if rubric else {})}
        yield replace(situation, ask=scaffold.replace("{ask}", situation.ask), privileged=kept)
