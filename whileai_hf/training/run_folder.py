"""The folder of a training run: metrics, completions and held-out results as plain files.

    metrics.jsonl              one line a log, with `step` and `time`
    completions.jsonl          one line a completion, as it was generated, with its step and reward
    holdout/step-*.parquet     the held-out rollouts of one evaluation; `load_dataset` reads them
    run.json                   versions, machine, arguments
    README.md                  the card, written at the end

Nothing here ends a run: a full disk, a dead tracker or an odd completion is warned of and survived.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import math
import platform
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from whileai_hf import messages as chat
from whileai_hf import schema
from whileai_hf.measure.pass_at import pass_at
from whileai_hf.rollouts import Rollouts

#: Packages whose version decides what a run did.
_PACKAGES = ("whileai-hf", "torch", "transformers", "trl", "peft", "accelerate", "datasets")


class RunFolder:
    """Where a run reports to; `wai.training_run(path)` opens one for a loop of your own.

    Args:
        path: The folder, made if it does not exist.
        config: Arguments of the run, kept in `run.json`.
        project: Name of the trackio project that metrics also go to; null for none.

    Example:
        >>> import tempfile
        >>> with RunFolder(tempfile.mkdtemp()) as run:
        ...     run.log({"loss": 0.5}, step=1)
        >>> print([row["loss"] for row in run.metrics()])
        [0.5]
    """

    def __init__(
        self,
        path: str | Path,
        *,
        config: Mapping[str, Any] | None = None,
        project: str | None = None,
    ) -> None:
        self.path = Path(path)
        self.project, self._tracker, self._closed = project, None, False
        self.problems: list[str] = []
        with self.survive("the run folder"):
            self.path.mkdir(parents=True, exist_ok=True)
            about = {"config": _jsonable(config or {}), **_environment()}
            (self.path / "run.json").write_text(json.dumps(about, indent=1), encoding="utf-8")

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextlib.contextmanager
    def survive(self, what: str) -> Iterator[None]:
        """Warn of a failure instead of raising it: reporting must never end a run."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever it is, training goes on
            problem = f"{what}: {type(error).__name__}: {error}"
            if problem not in self.problems:
                warnings.warn(f"the run goes on without {problem}", stacklevel=3)
            self.problems.append(problem)

    def log(self, values: Mapping[str, Any], step: int) -> None:
        """Append one line of metrics; what is no number is left out."""
        numbers = {k: float(v) for k, v in values.items() if _is_number(v)}
        if not numbers:
            return
        with self.survive("metrics"), (self.path / "metrics.jsonl").open("a") as out:
            row = {"step": int(step), "time": time.time(), **numbers}
            out.write(json.dumps(row) + "\n")
        if self.project is not None and not self._closed:
            with self.survive("the tracker"):
                self._track(numbers, step)

    def _track(self, numbers: Mapping[str, float], step: int) -> None:
        trackio = importlib.import_module("trackio")
        if self._tracker is None:
            self._tracker = trackio.init(
                project=self.project, name=self.path.name, embed=False, auto_log_gpu=False
            )
        trackio.log(dict(numbers), step=int(step))

    def completions(self, rows: Iterable[Mapping[str, Any]], step: int) -> None:
        """Append what was generated at a step, as cheaply as can be: a training step waits for it."""
        with self.survive("completions"), (self.path / "completions.jsonl").open("ab") as out:
            lines = [
                json.dumps({"step": int(step), **row}, default=str, ensure_ascii=False)
                for row in rows
            ]
            out.write("".join(line + "\n" for line in lines).encode("utf-8", "replace"))

    def rollouts(self) -> Rollouts:
        """Read the completions back as rollouts, the step in `run`."""
        path = self.path / "completions.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        rows = [json.loads(line) for line in lines]
        return Rollouts.from_records(
            _record({k: v for k, v in row.items() if k != "step"}, row["step"], i)
            for i, row in enumerate(rows)
        )

    def holdout(self, rows: Iterable[Mapping[str, Any]], step: int) -> None:
        """Write the held-out rollouts of an evaluation, and log their pass@k with intervals."""
        made = self._write("holdout", rows, step)
        with self.survive("pass@k of the held-out tasks"):
            if made is not None and len(made):
                self.log(_pass_metrics(made), step)

    def _write(self, folder: str, rows: Iterable[Mapping[str, Any]], step: int) -> Rollouts | None:
        with self.survive(folder):
            table = schema.to_table([_record(row, step, i) for i, row in enumerate(rows)])
            (self.path / folder).mkdir(exist_ok=True)
            made = Rollouts.of(schema.from_table(table))
            pq.write_table(made.data.table, self.path / folder / f"step-{int(step):07d}.parquet")
            return made
        return None

    def metrics(self) -> list[dict[str, Any]]:
        """Read the metrics back."""
        path = self.path / "metrics.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    def evaluations(self) -> dict[int, Rollouts]:
        """Read the held-out rollouts back, by step."""
        files = sorted((self.path / "holdout").glob("step-*.parquet"))
        return {
            int(file.stem.removeprefix("step-")): Rollouts.of(
                schema.from_table(pq.read_table(file))
            )
            for file in files
        }

    def close(self) -> None:
        """Finish the tracker's run; what is logged later goes to the files alone."""
        self._closed = True
        if self._tracker is not None:
            with self.survive("the tracker"):
                importlib.import_module("trackio").finish()
            self._tracker = None


def training_run(
    path: str | Path, *, config: Mapping[str, Any] | None = None, project: str | None = None
) -> RunFolder:
    """Open the folder of a run for a training loop of your own; a context manager.

    Args:
        path: The folder, made if it does not exist.
        config: Arguments of the run, kept in `run.json`.
        project: Name of the trackio project that metrics also go to; null for none.
    """
    return RunFolder(path, config=config, project=project)


def _is_number(value: Any) -> bool:
    try:
        return not isinstance(value, str) and math.isfinite(float(value))
    except (TypeError, ValueError, OverflowError):
        return False


def _jsonable(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str))


def _environment() -> dict[str, Any]:
    versions = {}
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return {
        "versions": versions,
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "started": time.time(),
    }


def _record(row: Mapping[str, Any], step: int, i: int) -> dict[str, Any]:
    """Make a rollout of whatever a trainer generated; odd messages are kept as text."""
    prompt, completion = row.get("prompt"), row.get("completion")
    conversation = [*_messages(prompt, "user"), *_messages(completion, "assistant")]
    extra = {k: v for k, v in row.items() if k not in ("prompt", "completion")}
    return {
        "rollout_id": f"step-{step}-{i}",
        "messages": conversation,
        "loss_mask": chat.loss_mask(conversation),
        "ask": chat.first_ask(conversation),
        "final_text": chat.final_text(conversation),
        "run": f"step-{step}",
        **extra,
    }


def _messages(value: Any, role: str) -> list[dict[str, Any]]:
    if isinstance(value, (list, tuple)):
        try:
            return chat.normal_messages(value)
        except ValueError:
            return [{"role": role, "content": json.dumps(value, default=str)}]
    return [{"role": role, "content": chat.text_of(value)}]


def _pass_metrics(rows: Rollouts) -> dict[str, float]:
    found = pass_at(rows)
    shown = found.pass_at_1 or found.mean_reward
    if shown is None:
        return {}
    name = "pass@1" if found.pass_at_1 else "mean_reward"
    return {
        f"holdout/{name}": shown.value,
        f"holdout/{name}_low": shown.interval.low,
        f"holdout/{name}_high": shown.interval.high,
    }
