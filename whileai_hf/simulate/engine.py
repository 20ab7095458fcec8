"""simulate: roll an agent through the situations it can meet.

Situations, worlds and draws depend on the seed alone, and rows are written in the order of their
tasks, so that the same call makes the same rows at any concurrency. A failing agent is a row with its
error; a killed run resumes from its folder.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import warnings
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset
from tqdm.auto import tqdm

from whileai_hf import columns, defaults, schema
from whileai_hf.errors import InputError
from whileai_hf.rollouts import Rollouts
from whileai_hf.simulate import sources
from whileai_hf.simulate.agents import Agent, Attempt, as_agent
from whileai_hf.simulate.aim import Aim, aim_at
from whileai_hf.simulate.grid import Cell, coverage, grid
from whileai_hf.simulate.journal import Journal
from whileai_hf.simulate.model_writer import ModelWriter, read_model
from whileai_hf.simulate.plan import Plan
from whileai_hf.simulate.report import SimulationReport
from whileai_hf.simulate.rollout import Rollout
from whileai_hf.simulate.seeded_agent import seeded_agent
from whileai_hf.simulate.situations import Situation, Writer
from whileai_hf.simulate.store import Store
from whileai_hf.world.tools import Tool, read_tools
from whileai_hf.world.world import World

#: Rollouts that must all fail before the run stops with the reason.
_DEAD_AFTER = 16


def simulate(  # noqa: PLR0913 - every knob of a run, each with a default
    agent: Any = None,
    *,
    tools: Any = None,
    system_prompt: str | None = None,
    spec: str | Path | None = None,
    simulator: Any = False,
    mode: str = "explore",
    budget: int | None = None,
    repeats: int | None = None,
    repeat_policy: str | None = None,
    tasks: Any = None,
    seeds: Sequence[str] | str | Path | None = None,
    traces: Any = None,
    scaffold: str | None = None,
    runs: int = 1,
    languages: Sequence[str] = ("en",),
    strength: int = 2,
    axes: Mapping[str, Sequence[str]] | None = None,
    fault_rate: float | None = None,
    execute: Callable[[str, dict[str, Any]], Any] | None = None,
    sampling: Mapping[str, Any] | None = None,
    logprobs: bool = False,
    max_turns: int = defaults.MAX_TURNS,
    timeout: float | None = defaults.TIMEOUT,
    concurrency: int = defaults.CONCURRENCY,
    seed: int = 0,
    output: str | Path | None = None,
    progress: bool = True,
) -> Rollouts:
    """Roll an agent through simulated situations.

    Args:
        agent: A function of the user's message, a chat function `(messages, tools) -> message`
            (synchronous or not), or an object with an asynchronous `complete`; null is an honest
            stand-in.
        tools: The agent's tools: functions, schemas, or the path of a JSON file.
        system_prompt: The agent's system prompt; its clauses are an axis of the grid.
        spec: A folder or a JSON or YAML file with `tools` and `system_prompt` (or `policy`), perhaps
            `situations` and a `rubric`; what the call gives itself counts instead.
        simulator: Who writes the asks: False is the template writer, without a model; a model, or a string
            such as `"openai:<model>"`, rewrites each ask and is checked against its cell.
        mode: Preset of repeats, policy and faults: `"explore"`, `"sft"`, `"rl"`, `"eval"` or
            `"adaptive"`.
        budget: Rollouts at most; null is the whole of `tasks`, else the default.
        repeats: Attempts at each task.
        repeat_policy: `"fixed"` always makes `repeats` attempts; `"successive"` makes two and fills
            up only where they differ, because a unanimous group has no advantage (DAPO,
            arXiv:2503.14476, equation 11).
        tasks: Tasks to run again, with the same asks, worlds and faults: a run, its rows, a path, a Hub
            id; or plain texts, which are all that runs then.
        seeds: Asks of your own, or a file with one a line; all of them run first.
        traces: Graded rollouts of the deployed agent, in any form that `tasks` takes: the grid goes more
            often to where they failed. What they asked never comes back as a row.
        scaffold: A text with `{ask}` that every ask is put into.
        runs: How often the whole set of tasks is run; the column `run` numbers them.
        languages: Languages of the asks: en, es, de, fr, zh.
        strength: Combinations of so many axes are covered, 2 or 3.
        axes: Axes of your own, by name.
        fault_rate: Share of fault cells that keep their fault, in [0, 1].
        execute: A function `(tool, arguments) -> result` that answers instead of the mock world.
        sampling: How the agent samples; passed to a model, recorded on every row.
        logprobs: Whether a model is asked for log-probabilities.
        max_turns: Agent turns after which a rollout is cut.
        timeout: Seconds one answer of the agent may take; null for no limit.
        concurrency: Rollouts in flight at once; it never changes the rows.
        seed: Everything that is drawn follows from it.
        output: Folder to stream the rows to; the same call with the same folder resumes.
        progress: Whether to show a progress bar.

    Returns:
        One row a rollout; `.report` says what was made, `.warnings` what to know.

    Raises:
        InputError: An option is out of range or unknown, or there is neither a tool nor a prompt.
    """
    sources.check_scaffold(scaffold)
    writer_model = None if simulator is False else read_model(simulator)
    about = sources.Spec.read(spec) if spec is not None else None
    own = sources.read_asks(seeds) + (about.asks if about else [])
    rows = None if tasks is None else sources.read_rows(tasks, "simulate(tasks=…)")
    given = read_tools(tools) or (about.tools if about else [])
    if system_prompt is None and about is not None:
        system_prompt = about.system_prompt
    if isinstance(rows, Dataset):
        system_prompt, given = sources.context(rows, system_prompt, given)
    aim = None
    if traces is not None:
        shown = sources.read_rows(traces, "simulate(traces=…)")
        if not isinstance(shown, Dataset):
            raise InputError(
                "traces must be graded rollouts; got texts. Pass texts as seeds or tasks."
            )
        aim = aim_at(shown)
        system_prompt, given = sources.context(shown, system_prompt, given)
    plan = Plan.of(
        mode,
        budget,
        repeats,
        repeat_policy,
        fault_rate,
        runs,
        concurrency,
        max_turns,
        tasks is not None,
        len(own),
    )
    if not given and not (system_prompt or "").strip() and tasks is None and not own:
        raise InputError(
            "a simulation needs tools, a system prompt, or tasks to run again; got none of them. "
            "Pass tools=[...] and system_prompt=..."
        )
    player = as_agent(
        agent if agent is not None else seeded_agent(given, rate=0.0), sampling, logprobs
    )
    cells = grid(given, system_prompt, strength=strength, extra=axes) if tasks is None else []
    model_writer = ModelWriter(writer_model, {t.name: t for t in given}) if writer_model else None
    source: Iterable[Situation]
    if rows is not None:
        source = (
            sources.replayed(rows) if isinstance(rows, Dataset) else sources.own_asks(rows, seed)
        )
    else:
        writer = Writer(
            cells, given, seed=seed, fault_rate=plan.fault_rate, languages=languages,
            weights=aim.weights(cells) if aim else None, refused=aim.sources() if aim else (),
        )  # fmt: skip
        written = writer(plan.budget)
        source = itertools.chain(
            sources.own_asks(own, seed), model_writer(written) if model_writer else written
        )
    if rows is None and runs > 1:
        source = itertools.islice(source, max(1, plan.budget // (runs * plan.repeats)))
    if scaffold is not None or (about is not None and about.rubric):
        source = sources.wrapped(iter(source), scaffold or "{ask}", about.rubric if about else None)
    identity = {
        "tools": [t.schema for t in given], "system_prompt": system_prompt, "mode": mode, "seed": seed,
        "budget": plan.budget, "repeats": plan.repeats, "policy": plan.policy, "runs": runs,
        "languages": list(languages), "strength": strength, "fault_rate": plan.fault_rate,
        "agent": player.name, "max_turns": max_turns, "sampling": sampling,
        "asks": own, "axes": axes, "scaffold": scaffold,
        "simulator": getattr(writer_model, "name", None) if writer_model else False,
        "traces": aim.to_dict() if aim else None,
        "tasks": sorted(set(rows["task_id"][:])) if isinstance(rows, Dataset) else rows,
    }  # fmt: skip
    engine = _Engine(player, given, system_prompt, plan, seed, execute, sampling, timeout)
    store = Store(Journal(Path(output), identity) if output is not None else None)
    bar = tqdm(total=plan.budget, unit=" rollouts", disable=not progress, desc="simulate")
    stopped = engine.run(source, store, bar)
    bar.close()
    notes = [note] if model_writer and (note := model_writer.note()) else []
    return _finished(
        engine, store, stopped, plan, seed, mode, cells, given, system_prompt, axes, aim, notes
    )


class _Stop(Exception):
    """The run ends here, for a reason."""


class _Engine:
    """Plays units (a task of a run, all its attempts) and emits them in order."""

    def __init__(
        self, agent: Agent, tools: Sequence[Tool], system_prompt: str | None, plan: Plan, seed: int,
        execute: Any, sampling: Any, timeout: float | None,
    ) -> None:  # fmt: skip
        self.agent, self.tools, self.plan, self.seed = agent, list(tools), plan, seed
        self.system_prompt, self.execute, self.timeout = system_prompt, execute, timeout
        self.sampling = dict(sampling) if sampling else None
        self.schemas = [t.schema for t in tools] or None
        self.n_rows = self.n_errors = self.n_saved = self.n_calls = 0
        self.n_tasks = 0
        self.n_lost = 0  # rollouts in a row that ended with an error
        self.first_error: str | None = None
        self.last_error: str | None = None

    def run(self, source: Iterable[Situation], store: Store, bar: Any) -> str:
        """Play until the budget is spent or the situations end; return why it stopped."""
        units = self._units(source)
        try:
            if self.agent.inline:
                self._run_inline(units, store, bar)
            else:
                self._run_threaded(units, store, bar)
        except _Stop as stop:
            return str(stop)
        except KeyboardInterrupt:
            return "interrupted"
        if self.n_rows >= self.plan.budget:
            return "budget"
        return "tasks" if self.plan.replay else "no new situations"

    def _units(self, source: Iterable[Situation]) -> Iterator[tuple[int, str, Situation]]:
        tasks: Iterable[Situation] = list(source) if self.plan.runs > 1 else source
        numbered = ((str(run), task) for run in range(self.plan.runs) for task in tasks)
        for unit, (run, task) in enumerate(numbered):
            yield unit, run, task

    def _attempt(self, situation: Situation, repeat: int, run: str) -> Rollout:
        spec = situation.world
        world = World(
            self.tools, seed=spec["seed"], state=spec["state"], goal=spec["goal"],
            faults=spec["faults"], execute=self.execute,
        )  # fmt: skip
        number = repeat + int(run) * 100_003
        attempt = Attempt(situation, number, self.seed, world, self.schemas or [])
        return Rollout(self.agent, attempt, self.system_prompt, self.plan.max_turns)

    def _record(self, rollout: Rollout, repeat: int, run: str) -> dict[str, Any]:
        return {**rollout.record(run, self.sampling, self.schemas), "repeat": repeat,
                "rollout_id": f"{rollout.attempt.situation.task_id}-{run}-{repeat}"}  # fmt: skip

    def _wanted(self) -> int:
        """Attempts of the next unit: all of them, or what is left of the budget."""
        return max(0, min(self.plan.repeats, self.plan.budget - self.n_rows))

    def _account(
        self, unit: int, records: Sequence[dict[str, Any]], store: Store, bar: Any
    ) -> None:
        records = records[: self._wanted()]
        store.emit(unit, records)
        self.n_rows += len(records)
        self.n_tasks += 1
        self.n_saved += self.plan.repeats - len(records) if self.plan.policy == "successive" else 0
        failed = [r["error"] for r in records if r["error"]]
        self.n_errors += len(failed)
        self.first_error = self.first_error or (failed[0] if failed else None)
        self.n_calls += sum(any(m.get("tool_calls") for m in r["messages"]) for r in records)
        bar.update(len(records))
        self.n_lost = self.n_lost + len(failed) if len(failed) == len(records) else 0
        if self.n_errors == self.n_rows >= _DEAD_AFTER or self.n_lost >= 2 * _DEAD_AFTER:
            self.last_error = failed[-1]
            raise _Stop("agent failed")

    def _skip(self, unit: int, store: Store, bar: Any) -> bool:
        if unit >= len(store.unit_rows):
            return False
        self.n_rows += store.unit_rows[unit]
        self.n_tasks += 1
        bar.update(store.unit_rows[unit])
        return True

    # An agent that answers at once is played here, without a thread.

    def _run_inline(
        self, units: Iterable[tuple[int, str, Situation]], store: Store, bar: Any
    ) -> None:
        for unit, run, situation in units:
            if self._wanted() == 0:
                return
            if not self._skip(unit, store, bar):
                self._account(unit, self._play_unit(unit, run, situation, store), store, bar)

    def _play_unit(
        self, unit: int, run: str, situation: Situation, store: Store
    ) -> list[dict[str, Any]]:
        def play(repeat: int) -> dict[str, Any]:
            known: dict[str, Any] | None = store.kept.get((unit, repeat))
            if known is not None:
                return known
            rollout = self._attempt(situation, repeat, run)
            rollout.play()
            record = self._record(rollout, repeat, run)
            store.done(unit, repeat, record)
            return record

        probe = [play(i) for i in range(self._probe())]
        return probe + [play(i) for i in range(len(probe), self._fill(probe))]

    def _probe(self) -> int:
        return min(2, self.plan.repeats) if self.plan.policy == "successive" else self.plan.repeats

    def _fill(self, probe: Sequence[dict[str, Any]]) -> int:
        """Attempts in all: no more than the probe where its rollouts behaved alike."""
        if self.plan.policy != "successive" or len({_behaviour(r) for r in probe}) > 1:
            return self.plan.repeats
        return len(probe)

    # Any other agent is waited for, many rollouts at once.

    def _run_threaded(
        self, units: Iterator[tuple[int, str, Situation]], store: Store, bar: Any
    ) -> None:
        failure: list[BaseException] = []
        stop = threading.Event()

        def work() -> None:
            try:
                asyncio.run(self._run_async(units, store, bar, stop))
            except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
                failure.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(0.1)
        except KeyboardInterrupt:
            stop.set()
            thread.join(5)
            raise
        if failure:
            raise failure[0]

    async def _run_async(
        self,
        units: Iterator[tuple[int, str, Situation]],
        store: Store,
        bar: Any,
        stop: threading.Event,
    ) -> None:
        """Keep a window of units in flight, and account for them in order."""
        gate = asyncio.Semaphore(self.plan.concurrency)
        window: deque[tuple[int, asyncio.Task[list[dict[str, Any]]]]] = deque()
        try:
            while self._wanted():
                taken = list(itertools.islice(units, self._room(window)))
                for unit, run, situation in taken:
                    if not self._skip(unit, store, bar):
                        play = self._play_unit_async(unit, run, situation, store, gate)
                        window.append((unit, asyncio.create_task(play)))
                if not window:
                    if not taken:
                        return  # no situation is left
                    continue  # all of them were finished by an earlier process
                unit, playing = window.popleft()
                await _finish(playing, stop)
                self._account(unit, playing.result(), store, bar)
        finally:
            for _, playing in window:
                playing.cancel()

    def _room(self, window: Sequence[Any]) -> int:
        """Units to start: enough to keep all slots busy, no more than the budget can pay."""
        slots = 2 * self.plan.concurrency - len(window)
        left = self.plan.budget - self.n_rows - len(window) * self._probe()
        return max(0, min(slots, -(-left // self._probe())), int(not window))

    async def _play_unit_async(
        self, unit: int, run: str, situation: Situation, store: Store, gate: asyncio.Semaphore
    ) -> list[dict[str, Any]]:
        async def play(repeat: int) -> dict[str, Any]:
            known: dict[str, Any] | None = store.kept.get((unit, repeat))
            if known is not None:
                return known
            async with gate:
                rollout = self._attempt(situation, repeat, run)
                await rollout.play_async(self.timeout)
            record = self._record(rollout, repeat, run)
            store.done(unit, repeat, record)
            return record

        probe = list(await _gather([play(i) for i in range(self._probe())]))
        return probe + list(await _gather([play(i) for i in range(len(probe), self._fill(probe))]))


async def _finish(playing: asyncio.Task[Any], stop: threading.Event) -> None:
    """Wait for a unit, and look up now and then whether the user wants to stop."""
    while not playing.done():
        await asyncio.wait([playing], timeout=0.1)
        if stop.is_set():
            raise KeyboardInterrupt


async def _gather(waiting: Sequence[Awaitable[dict[str, Any]]]) -> Sequence[dict[str, Any]]:
    return await asyncio.gather(*waiting)


def _behaviour(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a rollout did: its calls, how they ended, and how it ended; not its wording."""
    calls = [
        (c["function"]["name"], str(c["function"].get("arguments")))
        for m in record["messages"]
        for c in m.get("tool_calls") or []
    ]
    return (tuple(calls), record["finish_reason"], tuple(record["seeded"] or ()))


def _finished(
    engine: _Engine, store: Store, stopped: str, plan: Plan, seed: int, mode: str,
    cells: Sequence[Cell], tools: Sequence[Tool], system_prompt: str | None, axes: Any,
    aim: Aim | None, notes: list[str],
) -> Rollouts:  # fmt: skip
    data = schema.from_table(store.table())
    met = None
    if cells:
        met = coverage(_situations(data), list(tools), system_prompt, axes)
    report = SimulationReport(
        len(data), engine.n_tasks, plan.budget, plan.repeats, plan.policy, seed, mode,
        engine.n_errors, engine.n_saved, stopped, met, aim,
        degraded=_degraded(engine, stopped, len(data), bool(tools)),
    )  # fmt: skip
    notes = notes + _warnings(engine, plan, stopped, len(data), bool(tools))
    for note in notes:
        warnings.warn(note, stacklevel=3)
    return Rollouts.of(data, report, notes)


def _situations(data: Dataset) -> Iterator[dict[str, Any]]:
    """Walk over the cells of the rows, one a task, without holding them all."""
    last = None
    for batch in columns.batches(data.select_columns(["task_id", "situation"])):
        for task, situation in zip(batch["task_id"], batch["situation"], strict=True):
            if task != last and situation:
                yield schema.restore(situation)
            last = task


def _warnings(engine: _Engine, plan: Plan, stopped: str, n_rows: int, has_tools: bool) -> list[str]:
    notes = []
    if stopped == "no new situations":
        notes.append(
            f"the budget of {plan.budget} rollouts was not filled: the grid and the writer have no "
            f"new ask after {n_rows}. Add tools, clauses, languages or axes, or raise repeats."
        )
    if stopped == "agent failed":
        notes.append(
            f"the run stopped after {n_rows} rollouts because the last {max(engine.n_lost, _DEAD_AFTER)} "
            f"failed; the last: {engine.last_error}. Repair the agent and call again; the rows are kept."
        )
    elif engine.n_errors:
        notes.append(f"{engine.n_errors} rollouts ended with an error; first: {engine.first_error}")
    if stopped == "interrupted":
        notes.append(f"the run was interrupted after {n_rows} rollouts; what was finished is here")
    if has_tools and n_rows and engine.n_calls == 0 and stopped != "agent failed":
        notes.append(
            "no tool calls: the agent never called a tool, so nothing about its tools was measured"
        )
    return notes


def _degraded(engine: _Engine, stopped: str, n_rows: int, has_tools: bool) -> bool:
    """Tell whether the rows do not show what was to be measured: no calls, mostly errors, cut short."""
    silent = has_tools and n_rows > 0 and engine.n_calls == 0
    return silent or stopped in ("agent failed", "interrupted") or engine.n_errors > n_rows / 2
