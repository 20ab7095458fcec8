"""select: compose gates, and say what each one dropped and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from datasets import Dataset, Value
from numpy.typing import NDArray

from whileai_hf import columns, defaults
from whileai_hf.errors import InputError
from whileai_hf.rollouts import Rollouts
from whileai_hf.selection.curriculum import GroupSignal, group_signal
from whileai_hf.selection.gate import Gate
from whileai_hf.selection.gates import (
    Band,
    Finished,
    Judged,
    Rewarded,
    Spoken,
    Spread,
    Unique,
    with_duplicates,
)
from whileai_hf.selection.group_stats import STATS, ensure_group_stats
from whileai_hf.selection.lazy_rows import lazy_rows
from whileai_hf.selection.leaks import NoLeak
from whileai_hf.selection.near_duplicates import with_near_duplicates

#: What rows can be selected for.
MODES = ("rl", "sft")

#: What to do with rollouts that an error or a limit cut.
TRUNCATED = ("drop", "keep")

#: How the attempts of a task that passed are chosen for SFT.
PICKS = ("best", "random")


@dataclass(frozen=True, slots=True)
class Dropped:
    """What one gate dropped."""

    gate: str
    why: str
    n: int
    examples: tuple[str, ...]  #: ids of some dropped rollouts


@dataclass(frozen=True, slots=True)
class SelectionReport:
    """What a selection kept, and why it dropped the rest; `print(report)` is what to read."""

    mode: str
    n_in: int
    n_kept: int
    n_tasks_in: int
    n_tasks_kept: int
    gates: tuple[Dropped, ...]
    dropped: Dataset = field(repr=False)  #: the dropped rows, with `dropped_by` and `dropped_why`
    tasks: Dataset = field(
        repr=False
    )  #: one row a kept task, for online sampling, with its pass rate
    signal: GroupSignal | None  #: how many tasks carry a gradient, before any row was dropped

    def __str__(self) -> str:
        lines = [
            f"{self.mode} selection: kept {self.n_kept} of {self.n_in} rollouts, "
            f"{self.n_tasks_kept} of {self.n_tasks_in} tasks"
        ]
        width = max((len(d.gate) for d in self.gates), default=0)
        for d in self.gates:
            why = f": {d.why}, such as {d.examples[0]}" if d.n else ""
            lines.append(f"  {d.gate:<{width}}  {d.n:>5} dropped{why}")
        if self.mode == "rl" and not self.n_kept and self.signal is not None:
            lines.append(f"  {self.signal}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts, for a log."""
        return {
            "mode": self.mode, "n_in": self.n_in, "n_kept": self.n_kept,
            "n_tasks_in": self.n_tasks_in, "n_tasks_kept": self.n_tasks_kept,
            "dropped": {d.gate: d.n for d in self.gates},
        }  # fmt: skip


def select(
    dataset: Dataset,
    *,
    mode: str,
    gates: Sequence[Gate] | None = None,
    band: tuple[float, float] = defaults.DIFFICULTY_BAND,
    sure: bool = False,
    truncated: str = "drop",
    min_reward: float = 1.0,
    top: int | None = 1,
    pick: str = "best",
    seed: int = 0,
) -> Rollouts:
    """Select the rollouts that teach.

    For RL these are the rollouts of tasks that carry a gradient: judged, of middling difficulty,
    attempts that earned different rewards. For SFT they are the best attempts at each task
    (rejection sampling; Llama 3, arXiv:2407.21783, section 4.2.2). Difficulty is measured on all
    judged attempts, before anything is dropped.

    Args:
        dataset: Graded rollouts.
        mode: `"rl"` or `"sft"`.
        gates: The gates to apply, in order; null takes those of the mode.
        band: Pass rates that a task may have, for RL.
        sure: Whether the interval of a pass rate must lie outside the band before a task is dropped.
        truncated: `"drop"` or `"keep"` for rollouts that an error or a limit cut; to keep and
            penalise them, add `with_overlong_penalty` to the reward.
        min_reward: Reward that a rollout must have, for SFT.
        top: Rollouts kept of each task, for SFT; null keeps all.
        pick: `"best"` by reward, shorter first among equals; or `"random"`, the control.
        seed: Of the random pick.

    Returns:
        The kept rows, in their order; `.report` says what each gate dropped, `.report.dropped` holds
        the dropped rows with the reason, `.report.tasks` the tasks for online sampling.

    Raises:
        InputError: An option names nothing, or is out of range.
        SchemaError: A gate needs a column that is not there.
    """
    columns.check_dataset(dataset, "select")
    _check(mode, pick, top, gates)
    if truncated not in TRUNCATED:
        raise InputError(f"truncated must be drop or keep; got {truncated!r}. Pick one.")
    if gates is None:
        gates = _gates(mode, dataset, band, sure, min_reward)
        gates = [g for g in gates if truncated == "drop" or not isinstance(g, Finished)]
    stated = _with_facts(dataset, gates)
    by, why = _judge(stated, gates)
    if mode == "sft" and top is not None:
        _limit(stated, by, why, top, pick, seed)
    kept = np.flatnonzero(by == "")
    report = _report(dataset, stated, mode, gates, by, why, top if mode == "sft" else None, pick)
    return Rollouts.of(dataset.select(kept), report)


def _check(mode: Any, pick: Any, top: Any, gates: Any) -> None:
    if mode not in MODES:
        raise InputError(f"mode must be one of {', '.join(MODES)}; got {mode!r}. Pick one.")
    if pick not in PICKS:
        raise InputError(f"pick must be one of {', '.join(PICKS)}; got {pick!r}. Pick one.")
    if top is not None and (isinstance(top, bool) or not isinstance(top, int) or top < 1):
        raise InputError(f"top must be a whole number of at least 1, or None; got {top!r}. Use 1.")
    for gate in gates or ():
        if not callable(gate) or not hasattr(gate, "reads"):
            raise InputError(
                f"gates must be gates such as wai.Band(0.2, 0.8); got {gate!r}. "
                "Use dataset.filter for a function of yours."
            )


def _gates(
    mode: str, dataset: Dataset, band: tuple[float, float], sure: bool, min_reward: float
) -> list[Gate]:
    """Return the gates of a mode, less those whose column the rows never had."""
    common: list[Gate] = [Judged(), NoLeak(), Finished(), Spoken()]
    modal: list[Gate] = (
        [Spread(), Band(1, *band, sure=sure)]
        if mode == "rl"
        else [Rewarded(1, min_reward), Unique()]
    )
    has = set(dataset.column_names) | set(STATS) | {"duplicate", "reward"}
    return [
        g
        for g in [*common, *modal]
        if set(g.reads) <= has and (g.name != "duplicate" or "messages" in has)
    ]


def _with_facts(dataset: Dataset, gates: Sequence[Gate]) -> Dataset:
    needed = {name for gate in gates for name in gate.reads}
    if needed & set(STATS):
        dataset = ensure_group_stats(dataset, "select")
    if "near_duplicate_of" in needed and "near_duplicate_of" not in dataset.column_names:
        dataset = with_near_duplicates(dataset)
    if "duplicate" in needed and "duplicate" not in dataset.column_names:
        dataset = with_duplicates(dataset)
    return dataset


def _judge(
    dataset: Dataset, gates: Sequence[Gate]
) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Name for each row the first gate that drops it, or the empty string."""
    by = np.full(len(dataset), "", dtype=object)
    why = np.full(len(dataset), "", dtype=object)
    for gate in gates:
        left = np.flatnonzero(by == "")
        rows = lazy_rows(dataset.select(left), list(gate.reads), f"select({gate.name})")
        out = left[[not gate(row) for row in rows]] if len(left) else left
        by[out], why[out] = gate.name, gate.why
    return by, why


def _limit(
    dataset: Dataset,
    by: NDArray[np.object_],
    why: NDArray[np.object_],
    top: int,
    pick: str,
    seed: int,
) -> None:
    """Keep `top` rollouts of each task."""
    codes, _ = columns.task_codes(dataset, "select")
    left = np.flatnonzero(by == "")
    rng = np.random.default_rng(seed)
    if pick == "random":
        order = left[np.lexsort((rng.random(len(left)), codes[left]))]
    else:
        reward = columns.numbers(dataset, "reward", "select")[left]
        length = _lengths(dataset)[left]
        order = left[np.lexsort((left, length, -reward, codes[left]))]
    sorted_codes = codes[order]
    starts = (
        np.flatnonzero(np.r_[True, sorted_codes[1:] != sorted_codes[:-1]]) if len(order) else order
    )
    rank = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    out = order[rank >= top]
    by[out] = "top"
    why[out] = (
        f"{top} better attempt{'s' * (top != 1)} of the task are kept"
        if pick == "best"
        else "not drawn"
    )


def _lengths(dataset: Dataset) -> NDArray[np.int64]:
    if "final_text" not in dataset.column_names:
        return np.zeros(len(dataset), dtype=np.int64)
    return np.array([len(text or "") for text in dataset["final_text"][:]], dtype=np.int64)


def _report(
    dataset: Dataset, stated: Dataset, mode: str, gates: Sequence[Gate], by: NDArray[np.object_], why: NDArray[np.object_],
    top: int | None, pick: str,
) -> SelectionReport:  # fmt: skip
    codes, ids = columns.task_codes(dataset, "select")
    kept = by == ""
    names = dataset["rollout_id"][:] if "rollout_id" in dataset.column_names else None
    found = [(g.name, g.why) for g in gates] + (
        [("top", "better attempts are kept")] if top is not None else []
    )
    dropped = []
    for name, reason in found:
        at = np.flatnonzero(by == name)
        examples = tuple(str(names[i]) if names else str(i) for i in at[:3])
        dropped.append(Dropped(name, reason, len(at), examples))
    out = np.flatnonzero(~kept)
    reasons = {
        "dropped_by": (list(by), Value("string")),
        "dropped_why": (list(why), Value("string")),
    }
    rest = Dataset.select(columns.with_columns(dataset, reasons), out)
    return SelectionReport(
        mode, len(by), int(kept.sum()), len(ids), len(np.unique(codes[kept])), tuple(dropped),
        rest, _tasks(stated, codes, kept), group_signal(dataset) if "reward" in dataset.column_names else None,
    )  # fmt: skip


def _tasks(dataset: Dataset, codes: NDArray[np.int64], kept: NDArray[np.bool_]) -> Dataset:
    """One row a kept task: what online sampling needs, and nothing of an attempt."""
    at = np.flatnonzero(kept)
    first = at[np.unique(codes[at], return_index=True)[1]] if len(at) else at
    attempt = {
        "rollout_id", "run", "repeat", "messages", "loss_mask", "final_text", "finish_reason", "error", "agent",
        "sampling", "logprob", "n_tokens", "token_logprobs", "seeded", "reward", "judge_status", "judge", "reason",
        "failure_class", "judge_meta", "gold_reward", "markers", "duplicate", "near_duplicate_of",
    }  # fmt: skip
    names = [name for name in dataset.column_names if name not in attempt]
    return Dataset.select(dataset.select_columns(names), np.sort(first))


def optimize(dataset: Dataset, *, mode: str, **options: Any) -> Rollouts:
    """Select the rollouts that teach: another name of `select`."""
    return select(dataset, mode=mode, **options)
