"""judge_pairs: which of two rollouts is better, asked in both orders, so that order cannot decide."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset, Value

from whileai_hf import columns, defaults, schema
from whileai_hf import messages as chat
from whileai_hf.errors import InputError
from whileai_hf.grade.runner import _in_loop
from whileai_hf.grade.shares import share
from whileai_hf.measure.interval import check_confidence
from whileai_hf.measure.pass_at import Estimate
from whileai_hf.rollouts import Rollouts


@dataclass(frozen=True, slots=True)
class PairsReport:
    """What a comparison of pairs found; `print(report)` is the line to quote."""

    n_pairs: int
    n_judged: int  #: pairs with an answer in both orders
    agreement: (
        Estimate | None
    )  #: share of judged pairs in which the chosen one is better, ties half
    flips: Estimate | None  #: share of judged pairs in which the order decided
    n_flips: int  #: each of them a tie
    length_only: Estimate | None  #: share of pairs in which the longer one is the chosen one
    flags: tuple[
        str, ...
    ]  #: "length": length alone tells the chosen one; "position": the order decides too often

    def __str__(self) -> str:
        said = f"{self.n_judged} of {self.n_pairs} pairs judged: chosen better {self.agreement or 'unmeasured'} | order decides {self.flips or 'unmeasured'}"
        said += f" | longer is chosen {self.length_only or 'unmeasured'}"
        return said + (f"; flags: {', '.join(self.flags)}" if self.flags else "")

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        kept = {n: getattr(self, n) for n in self.__slots__}
        return {k: v.to_dict() if isinstance(v, Estimate) else v for k, v in kept.items()}


def judge_pairs(
    pairs: Dataset, judge: Any, *, by: str | None = None, concurrency: int = defaults.JUDGE_CONCURRENCY,
    confidence: float = defaults.CONFIDENCE,
) -> Rollouts:  # fmt: skip
    """Ask a judge about each pair in both orders.

    Args:
        pairs: Rows with `prompt`, `chosen` and `rejected`, each text or messages.
        judge: A `Judge`, or a function of two rows (synchronous or not) that returns `"first"`, `"second"` or
            `"tie"`.
        by: Column of the task; null takes `task_id` where there is one, else each pair is a task.
        concurrency: Pairs in flight at once.
        confidence: Coverage of the intervals.

    Returns:
        The pairs with `preference` (`"chosen"`, `"rejected"`, `"tie"`, or null where an order has no answer) and
        `order_decides`; a pair in which the order decides is a tie. `.report` is a `PairsReport`.

    Raises:
        SchemaError: `chosen` or `rejected` is missing.
        InputError: The judge compares nothing.
    """
    check_confidence(confidence)
    columns.check_dataset(pairs, "judge_pairs")
    columns.check_columns(pairs, ["chosen", "rejected"], "judge_pairs")
    ask = getattr(judge, "compare", judge)
    if not callable(ask):
        raise InputError(
            f"judge_pairs needs a Judge or a function of two rows; got {type(judge).__name__}. Pass wai.Judge(rubric, model)."
        )
    view = pairs.with_format(None)
    sides = [(_side(row, "chosen"), _side(row, "rejected")) for row in view]
    answers: list[tuple[Any, Any]] = [(None, None)] * len(sides)
    _in_loop(_ask_all(ask, sides, answers, concurrency))
    found = [_preference(*answer) for answer in answers]
    by = by or ("task_id" if "task_id" in pairs.column_names else None)
    tasks = columns.task_codes(pairs, "judge_pairs", by)[0] if by else np.arange(len(sides))
    report = _report(found, sides, tasks, confidence)
    return Rollouts.of(
        columns.with_columns(
            pairs,
            {
                "preference": (pa.array([p for p, _ in found], pa.string()), Value("string")),
                "order_decides": (pa.array([f for _, f in found], pa.bool_()), Value("bool")),
            },
        ),
        report,
    )


def _side(row: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A row that a judge can read, of one side of a pair."""
    prompt, reply = row.get("prompt") or [], row[name]
    asked = (
        [{"role": "user", "content": prompt}]
        if isinstance(prompt, str)
        else [schema.restore(m) for m in prompt]
    )
    said = (
        [{"role": "assistant", "content": reply}]
        if isinstance(reply, str)
        else [schema.restore(m) for m in reply]
    )
    return {
        "messages": [*asked, *said],
        "final_text": chat.final_text(said),
        "tools": row.get("tools"),
    }


async def _ask_all(ask: Any, sides: list[Any], answers: list[Any], concurrency: int) -> None:
    gate = asyncio.Semaphore(concurrency)

    async def one(first: Any, second: Any) -> Any:
        try:
            answer = ask(first, second)
            return await answer if inspect.isawaitable(answer) else answer
        except Exception:  # noqa: BLE001 - a broken judge is a pair without an answer
            return None

    async def both(i: int) -> None:
        async with gate:
            chosen, rejected = sides[i]
            answers[i] = (await one(chosen, rejected), await one(rejected, chosen))

    await asyncio.gather(*(both(i) for i in range(len(sides))))


def _preference(there: Any, back: Any) -> tuple[str | None, bool | None]:
    """Read both answers: the chosen one stands first in the one, second in the other."""
    forward = {"first": "chosen", "second": "rejected", "tie": "tie"}.get(there)
    backward = {"first": "rejected", "second": "chosen", "tie": "tie"}.get(back)
    if forward is None or backward is None:
        return None, None
    flipped = {forward, backward} == {"chosen", "rejected"}
    return (forward if forward == backward else "tie"), flipped


def _report(found: list[Any], sides: list[Any], tasks: Any, confidence: float) -> PairsReport:
    judged = np.array([p is not None for p, _ in found], dtype=bool)
    worth = {"chosen": 1.0, "tie": 0.5, "rejected": 0.0}
    values = np.array([worth[p] for p, _ in found if p is not None])
    flips = np.array([float(f) for p, f in found if p is not None])
    gaps = np.array([len(c["final_text"]) - len(r["final_text"]) for c, r in sides])
    longer = share(np.where(gaps == 0, 0.5, gaps > 0), tasks, confidence) if len(sides) else None
    agreement = share(values, tasks[judged], confidence) if values.size else None
    flip = share(flips, tasks[judged], confidence) if flips.size else None
    flags = []
    if longer is not None and longer.interval.low > defaults.PAIRS_LENGTH_ONLY:
        flags.append("length")
    if flip is not None and flip.value > defaults.PAIRS_MAX_FLIPS:
        flags.append("position")
    return PairsReport(
        len(sides), int(judged.sum()), agreement, flip, int(flips.sum()), longer, tuple(flags)
    )
