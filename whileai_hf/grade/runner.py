"""grade: judge every rollout of a dataset under the one contract."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
import math
import threading
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset
from tqdm.auto import tqdm

from whileai_hf import columns, defaults, schema
from whileai_hf import messages as chat
from whileai_hf.errors import InputError
from whileai_hf.grade.contract import Reader, Row, Verdict, read_verdict
from whileai_hf.rollouts import Rollouts

#: Seconds between two looks at the threads of a synchronous judge.
_POLL_S = 0.002


@dataclass(frozen=True, slots=True)
class GradeReport:
    """How the judging went; `print(report)` is the line to quote."""

    judge: str
    n_rows: int
    statuses: dict[str, int]
    mean_reward: float | None  #: over judged rows; null where none is
    n_resumed: int  #: judgments that a checkpoint held

    def __str__(self) -> str:
        ok = self.statuses.get("ok", 0)
        others = ", ".join(f"{n} {s}" for s, n in self.statuses.items() if s != "ok")
        said = f"{self.judge}: {ok} of {self.n_rows} rollouts judged"
        return f"{said} ({others})" if others else said

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        return {name: getattr(self, name) for name in self.__slots__}


def grade(
    dataset: Dataset,
    judge: Any,
    *,
    name: str | None = None,
    timeout: float | None = defaults.JUDGE_TIMEOUT,
    concurrency: int = defaults.JUDGE_CONCURRENCY,
    retries: int = 0,
    scale: tuple[float, float] | None = None,
    checkpoint: str | Path | None = None,
    progress: bool = True,
) -> Rollouts:
    """Judge every rollout; see `whileai_hf.grade.contract` for what a judge may return.

    Only the columns that the judge reads are decoded, and the judgment columns are put beside the
    others without copying them.

    Args:
        dataset: Any dataset; rows need no particular column but those that the judge reads.
        judge: A function of a row, synchronous or not, or a verifier.
        name: Name in the column `judge`; null takes the judge's own.
        timeout: Seconds one judgment may take, its retries included; null for no limit.
        concurrency: Judgments in flight at once; the order of the rows never changes.
        retries: Further attempts at a judgment that raised.
        scale: Lowest and highest rating of the judge, mapped to 0 and 1.
        checkpoint: File that keeps finished judgments; the same call with it judges only the rest.
            They are found by the judge's name and the content of the row, so give a judge that you
            changed another `name`.
        progress: Whether to show a progress bar.

    Returns:
        The rows with `reward`, `judge_status`, `judge`, `reason`, `failure_class`, `judge_meta` and
        `markers`; `.report` counts, `.warnings` says what looks wrong.

    Raises:
        InputError: The judge is not callable, or an option is out of range.
    """
    columns.check_dataset(dataset, "grade")
    _check(judge, timeout, concurrency, retries, scale)
    label = name or str(
        getattr(judge, "name", None) or getattr(judge, "__name__", type(judge).__name__)
    )
    view = dataset.with_format(None)
    saved = _Checkpoint(checkpoint, label, view)
    runner = _Runner(judge, view, timeout, retries, scale, saved)
    bar = tqdm(total=len(view), unit=" rows", disable=not progress, desc=f"grade: {label}")
    try:
        verdicts = runner.run(concurrency, bar)
    finally:
        saved.close()
        bar.close()
    graded = columns.with_columns(dataset, _columns(verdicts, label, dataset))
    report = _report(verdicts, label, saved.n_known)
    notes = _warnings(view, verdicts)
    for note in notes:
        warnings.warn(note, stacklevel=2)
    return Rollouts.of(graded, report, notes)


def _check(judge: Any, timeout: Any, concurrency: Any, retries: Any, scale: Any) -> None:
    if not callable(judge):
        raise InputError(
            f"a judge must be a function of a row or a verifier; got {type(judge).__name__}. "
            'Pass judge=lambda row: {"reward": ...}.'
        )
    if timeout is not None and not timeout > 0:
        raise InputError(f"timeout must be positive or None; got {timeout!r}. It is in seconds.")
    if (
        not isinstance(concurrency, int)
        or concurrency < 1
        or not isinstance(retries, int)
        or retries < 0
    ):
        raise InputError(
            f"concurrency must be at least 1 and retries at least 0; got {concurrency!r} and "
            f"{retries!r}. Use whole numbers."
        )
    if scale is not None and not (len(scale) == 2 and scale[0] < scale[1]):
        raise InputError(f"scale must be (lowest, highest); got {scale!r}. Write scale=(1, 10).")


class _Runner:
    """Asks the judge for every row, in order or many at once."""

    def __init__(
        self, judge: Callable[[Any], Any], view: Dataset, timeout: float | None, retries: int,
        scale: tuple[float, float] | None, saved: _Checkpoint,
    ) -> None:  # fmt: skip
        self.judge, self.view, self.timeout = judge, view, timeout
        self.retries, self.scale, self.saved = retries, scale, saved
        self.reader = Reader(view)
        call = getattr(judge, "__call__", None)  # noqa: B004 - an object may have an async __call__
        self.is_async = inspect.iscoroutinefunction(judge) or inspect.iscoroutinefunction(call)

    def run(self, concurrency: int, bar: Any) -> list[Verdict]:
        """Return one verdict a row."""
        verdicts: list[Verdict | None] = [self.saved.get(i) for i in range(len(self.view))]
        todo = deque(i for i, v in enumerate(verdicts) if v is None)
        bar.update(len(verdicts) - len(todo))
        if self.is_async:
            _in_loop(self._async(verdicts, todo, concurrency, bar))
        else:
            self._threads(verdicts, todo, concurrency, bar)
        return [v if v is not None else Verdict(None, "error", "not judged") for v in verdicts]

    def _keep(self, verdicts: list[Any], i: int, verdict: Verdict, bar: Any) -> None:
        verdicts[i] = verdict
        self.saved.add(i, verdict)
        bar.update(1)

    # A synchronous judge runs in daemon threads, so that one that hangs holds nothing up.

    def _threads(self, verdicts: list[Any], todo: deque[int], concurrency: int, bar: Any) -> None:
        if not todo or (self.timeout is None and concurrency == 1):
            while todo:
                i = todo.popleft()
                self._keep(verdicts, i, self._ask(i), bar)
            return
        pool = _Pool(self._ask, min(concurrency, len(todo)))
        for i, verdict in pool.run(todo, math.inf if self.timeout is None else self.timeout):
            self._keep(verdicts, i, verdict, bar)

    def _ask(self, i: int) -> Verdict:
        verdict = Verdict(None, "error")
        for _ in range(self.retries + 1):
            try:
                answer = self.judge(Row(self.reader, i))
                if inspect.isawaitable(answer):
                    answer = asyncio.run(_await(answer))
            except Exception as error:  # noqa: BLE001 - a broken judge is a status on its row
                verdict = _failure(error)
                continue
            return read_verdict(answer, self.scale)
        return verdict

    # An asynchronous judge runs in one loop.

    async def _async(
        self, verdicts: list[Any], todo: deque[int], concurrency: int, bar: Any
    ) -> None:
        async def worker() -> None:
            while todo:
                i = todo.popleft()
                self._keep(verdicts, i, await self._ask_async(i), bar)

        await asyncio.gather(*(worker() for _ in range(min(concurrency, max(len(todo), 1)))))

    async def _ask_async(self, i: int) -> Verdict:
        try:
            return await asyncio.wait_for(self._attempts(i), self.timeout)
        except TimeoutError:
            return Verdict(None, "timeout", f"no verdict in {self.timeout:g} s")

    async def _attempts(self, i: int) -> Verdict:
        verdict = Verdict(None, "error")
        for _ in range(self.retries + 1):
            try:
                answer = await self.judge(Row(self.reader, i))
            except Exception as error:  # noqa: BLE001 - a broken judge is a status on its row
                verdict = _failure(error)
            else:
                return read_verdict(answer, self.scale)
        return verdict


def _failure(error: Exception) -> Verdict:
    """What an exception of a judge says: its own clock ran out, or it broke."""
    status = "timeout" if isinstance(error, TimeoutError) else "error"
    return Verdict(None, status, f"{type(error).__name__}: {error}"[:2000])


async def _await(answer: Any) -> Any:
    return await answer


def _in_loop(work: Any) -> None:
    """Run a coroutine to its end in a thread of its own: a notebook has a loop already."""
    failure: list[BaseException] = []

    def target() -> None:
        try:
            asyncio.run(work)
        except BaseException as error:  # noqa: BLE001 - raised again below
            failure.append(error)

    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.1)
    if failure:
        raise failure[0]


class _Pool:
    """Daemon threads that are given up, and replaced, when a call outlasts its time.

    Deques and dictionary items are atomic, so that a fast judge pays for no lock.
    """

    def __init__(self, function: Callable[[int], Verdict], size: int) -> None:
        self.function, self.size = function, size
        self.results: deque[tuple[int, Verdict | BaseException]] = deque()
        self.running: dict[object, tuple[int, float]] = {}  # by worker
        self.todo: deque[int] = deque()

    def run(self, todo: deque[int], timeout: float) -> Iterator[tuple[int, Verdict]]:
        """Yield (row, verdict) as they come; every row comes once."""
        self.todo, left = todo, len(todo)
        given_up: set[int] = set()
        for _ in range(self.size):
            self._start()
        while left:
            if not self.results:
                time.sleep(min(timeout / 4, _POLL_S))
            while self.results:
                i, verdict = self.results.popleft()
                if isinstance(verdict, BaseException):
                    raise verdict  # an interrupt of the user, which no row may swallow
                if i not in given_up:
                    left -= 1
                    yield i, verdict
            for worker, (i, start) in list(self.running.items()):
                if time.monotonic() - start > timeout and worker in self.running:
                    del self.running[worker]
                    given_up.add(i)
                    left -= 1
                    self._start()
                    yield i, Verdict(None, "timeout", f"no verdict in {timeout:g} s")

    def _start(self) -> None:
        threading.Thread(target=self._work, args=(object(),), daemon=True).start()

    def _work(self, me: object) -> None:
        while True:
            try:
                i = self.todo.popleft()
            except IndexError:
                return
            self.running[me] = (i, time.monotonic())
            verdict: Verdict | BaseException
            try:
                verdict = self.function(i)
            except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
                verdict = error
            if self.running.pop(me, None) is None:
                return  # too late: the row has its timeout, and this thread its successor
            self.results.append((i, verdict))


class _Checkpoint:
    """Finished judgments in a file, by the content of the row that was judged."""

    def __init__(self, path: str | Path | None, judge: str, view: Dataset) -> None:
        self.path = Path(path) if path is not None else None
        self.known: dict[str, Verdict] = {}
        self.keys: list[str] = []
        self.n_known = 0
        self._out = None
        if self.path is None:
            return
        self.keys = _row_keys(view, judge)
        self._read()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._out = self.path.open("a", encoding="utf-8")

    def _read(self) -> None:
        if self.path is None or not self.path.exists():
            return
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                key, values = json.loads(line)
                self.known[key] = Verdict(**values)
            except (ValueError, TypeError):
                continue  # the line that was being written when the process died

    def get(self, i: int) -> Verdict | None:
        """Return the finished judgment of a row; failures are judged anew."""
        found = self.known.get(self.keys[i]) if self.path is not None else None
        if found is None or found.status in ("error", "timeout"):
            return None
        self.n_known += 1
        return found

    def add(self, i: int, verdict: Verdict) -> None:
        """Keep a judgment; it survives a kill from here on."""
        if self._out is not None:
            values = {n: getattr(verdict, n) for n in Verdict.__slots__}
            self._out.write(schema.dumps([self.keys[i], values]) + "\n")
            self._out.flush()

    def close(self) -> None:
        """Close the file."""
        if self._out is not None:
            self._out.close()


def _row_keys(view: Dataset, judge: str) -> list[str]:
    """Name each row by the judge and by what it holds apart from judgments."""
    kept = [c for c in view.column_names if c not in (*schema.GROUPS["judgment"], "markers")]
    keys, seen = [], Counter[str]()
    for batch in columns.batches(view.select_columns(kept)):
        for values in zip(*batch.values(), strict=True):
            text = json.dumps([judge, values], default=str, ensure_ascii=False)
            key = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()
            seen[key] += 1
            keys.append(f"{key}-{seen[key]}")
    return keys


def _columns(
    verdicts: Sequence[Verdict], judge: str, dataset: Dataset
) -> dict[str, tuple[Any, Any]]:
    values: dict[str, list[Any]] = {
        "reward": [v.reward for v in verdicts],
        "judge_status": [v.status for v in verdicts],
        "judge": [judge] * len(verdicts),
        "reason": [v.reason for v in verdicts],
        "failure_class": [v.failure_class for v in verdicts],
        "judge_meta": [v.meta for v in verdicts],
        "markers": _merged_markers(verdicts, dataset),
    }
    return {
        name: (schema._array(name, column), schema.FEATURES[name])
        for name, column in values.items()
    }


def _merged_markers(verdicts: Sequence[Verdict], dataset: Dataset) -> list[Any]:
    """Keep the markers that rows had; a judge's marker of the same name wins."""
    new = [v.markers or None for v in verdicts]
    if "markers" not in dataset.column_names:
        return list(new)
    old = columns.read(dataset, ["markers"], "grade").column(0)
    if old.null_count == len(old):
        return list(new)
    return [
        {**schema.marker_dict(before), **(after or {})} or None
        for before, after in zip(old.to_pylist(), new, strict=True)
    ]


def _report(verdicts: Sequence[Verdict], judge: str, n_resumed: int) -> GradeReport:
    rewards = [v.reward for v in verdicts if v.reward is not None]
    statuses = dict(Counter(v.status for v in verdicts))
    return GradeReport(
        judge, len(verdicts), statuses, float(np.mean(rewards)) if rewards else None, n_resumed
    )


def _warnings(view: Dataset, verdicts: Sequence[Verdict]) -> list[str]:
    notes = []
    rewards = [v.reward for v in verdicts if v.reward is not None]
    if len(rewards) > 1 and len(set(rewards)) == 1:
        notes.append(f"every reward is {rewards[0]:g}: the judge tells nothing apart")
    statuses = Counter(v.status for v in verdicts if v.status != "ok")
    if statuses:
        worst, count = statuses.most_common(1)[0]
        first = next(v.reason for v in verdicts if v.status == worst)
        notes.append(
            f"{count} of {len(verdicts)} rollouts are not judged ({worst}); first: {first}"
        )
    fired: dict[str, bool] = {}
    for verdict in verdicts:
        for marker, value in verdict.markers.items():
            fired[marker] = fired.get(marker, False) or value != 1.0
    if len(verdicts) > 1 and (silent := sorted(m for m, any_bad in fired.items() if not any_bad)):
        notes.append(f"the markers {', '.join(silent)} are 1.0 on every row: they may never fire")
    return notes + _trace_warnings(view)


def _trace_warnings(view: Dataset) -> list[str]:
    """Say what the traces themselves show: an agent that says nothing, a tool that never works."""
    notes = []
    if "final_text" in view.column_names and len(view) > 1:
        silent = sum(not (text or "").strip() for text in view["final_text"][:])
        if silent >= 2 and silent >= 0.1 * len(view):
            notes.append(f"{silent} of {len(view)} rollouts end without a word of the agent")
    if "messages" in view.column_names and 0 < len(view) <= 20_000:
        notes += _dead_tools(view)
    return notes


def _dead_tools(view: Dataset) -> list[str]:
    calls: Counter[str] = Counter()
    good: Counter[str] = Counter()
    for batch in columns.batches(view.select_columns(["messages"])):
        for messages in batch["messages"]:
            for call in chat.tool_calls(messages or []):
                calls[call.name] += 1
                good[call.name] += call.status == "ok" and not _failed(call.result)
    dead = sorted(tool for tool, n in calls.items() if n >= 10 and good[tool] == 0)
    return [f"the tool {tool} failed in all of its {calls[tool]} calls" for tool in dead]


def _failed(result: str | None) -> bool:
    try:
        value = json.loads(result or "")
    except ValueError:
        return False
    return isinstance(value, Mapping) and "error" in value
