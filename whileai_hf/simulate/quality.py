"""dataset_report: is a set of simulated tasks varied, grounded and covering, and where is it not?

Nothing here needs a model. The numbers are about asks and tasks, one each, whatever the number of attempts.

References:
    Li et al. 2016, arXiv:1510.03055 (distinct-n).
    Zhu et al. 2018, arXiv:1802.01886 (self-similarity of generated texts, there by BLEU, here by cosine).
"""

from __future__ import annotations

import hashlib
import html
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from datasets import Dataset
from numpy.typing import NDArray

from whileai_hf import columns, defaults, schema
from whileai_hf import messages as chat
from whileai_hf.errors import InputError
from whileai_hf.measure.interval import Interval, mean_interval
from whileai_hf.simulate.grid import Coverage, coverage
from whileai_hf.simulate.near import NearCopies
from whileai_hf.world.world import World

#: Buckets of the hashed embedding, and the calls after which a tool that never succeeds is dead.
_BUCKETS, _DEAD_CALLS = 4096, 5


@dataclass(frozen=True, slots=True)
class Share:
    """A share of tasks with its interval."""

    value: float
    interval: Interval
    n: int

    @classmethod
    def of(cls, hits: Sequence[bool]) -> Share | None:
        """Measure a share; null where there is nothing to measure."""
        if not hits:
            return None
        values = np.asarray(hits, dtype=np.float64)
        return cls(float(values.mean()), mean_interval(values), len(hits))

    def __str__(self) -> str:
        return f"{self.value:.2f} {self.interval} (n={self.n})"


@dataclass(frozen=True, slots=True)
class DatasetReport:
    """What a set of tasks is worth; `print(report)` is the text to quote."""

    n_rollouts: int
    n_tasks: int
    n_asks: int  #: distinct ones
    distinct: tuple[float, float, float]  #: distinct-1, -2, -3, over `n_sampled` asks
    self_similarity: float | None  #: mean cosine of two asks; null for fewer than two
    nearest: float | None  #: mean cosine of an ask with the one most like it
    n_sampled: int  #: asks behind the two lines above
    near_copies: Share | None  #: asks that are near copies of another one
    coverage: Coverage | None  #: null where the rows name no cell
    resolved: Share | None  #: tasks with a goal whose values the world knows and the user states
    do_nothing: (
        Share | None
    )  #: tasks that end right when nothing is called; null where no end is known
    stances: dict[str, int]
    languages: dict[str, int]
    dead_tools: tuple[str, ...]  #: called five times or more, and never once a success
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        one, two, three = self.distinct
        lines = [
            f"{self.n_rollouts} rollouts of {self.n_tasks} tasks, {self.n_asks} distinct asks",
            f"  distinct-1/2/3    {one:.2f} / {two:.2f} / {three:.2f} ({self.n_sampled} asks)",
            f"  self-similarity   {_number(self.self_similarity)}, nearest {_number(self.nearest)} "
            f"(cosine, {self.n_sampled} asks)",
            f"  near copies       {self.near_copies or 'not measured'}",
            f"  pairs             {self.coverage or 'not measured: no cells on the rows'}",
            f"  values resolve    {self.resolved or 'not measured: no goals on the rows'}",
            f"  do-nothing agent  {self.do_nothing or 'not measured: no ends on the rows'} end right",
            f"  stances           {_counts(self.stances) or 'not measured'}",
            f"  languages         {_counts(self.languages) or 'not measured'}",
        ]
        if self.dead_tools:
            lines.append(f"  dead tools        {', '.join(self.dead_tools)}")
        return "\n".join([*lines, *(f"  ! {warning}" for warning in self.warnings)])

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        out = {name: getattr(self, name) for name in self.__slots__}
        for name in ("near_copies", "resolved", "do_nothing"):
            out[name] = out[name] and {"value": out[name].value, **out[name].interval.to_dict()}
        return {**out, "coverage": self.coverage.to_dict() if self.coverage else None}


def dataset_report(
    dataset: Dataset,
    *,
    embed: Callable[[Sequence[str]], Any] | None = None,
    sample: int = defaults.REPORT_SAMPLE,
    seed: int = 0,
) -> DatasetReport:
    """Measure how varied, grounded and covering a set of rollouts or tasks is.

    Args:
        dataset: Rollouts.
        embed: A function of texts that returns one vector a text; null counts words and pairs of words.
        sample: Asks on which the quadratic measures are taken, drawn at random.
        seed: Of that draw.

    Raises:
        InputError: There is no row, or `sample` is below 2.
    """
    columns.check_dataset(dataset, "dataset_report")
    columns.check_columns(dataset, ["task_id", "messages"], "dataset_report")
    if len(dataset) == 0 or sample < 2:
        raise InputError(
            f"dataset_report needs rows and a sample of at least 2; got {len(dataset)} rows, sample "
            f"{sample!r}. Pass rollouts."
        )
    tasks: dict[str, dict[str, Any]] = {}
    calls: Counter[str] = Counter()
    good: Counter[str] = Counter()
    for row in _rows(dataset):
        tasks.setdefault(row["task_id"], row)
        for call in chat.tool_calls(row["messages"]):
            calls[call.name] += 1
            good[call.name] += call.status == "ok" and not _says_error(call.result)
    rows = list(tasks.values())
    asks = list(dict.fromkeys(ask_of(row) for row in rows))
    drawn = drawn_asks(asks, sample, seed)
    mean, nearest = similarity(drawn, embed)
    situations = [row.get("situation") or {} for row in rows]
    stances = Counter(str(s["stance"]) for s in situations if s.get("stance"))
    dead = tuple(sorted(n for n, count in calls.items() if count >= _DEAD_CALLS and good[n] == 0))
    found = DatasetReport(
        len(dataset), len(rows), len(asks), distinct(drawn), mean, nearest, len(drawn),
        Share.of(near_copies(asks)), _covered(rows, situations),
        Share.of([resolves(row) for row in rows if _goal(row)]), Share.of(list(_idle(rows))),
        dict(stances.most_common()),
        dict(Counter(str(s["language"]) for s in situations if s.get("language")).most_common()),
        dead, (),
    )  # fmt: skip
    return _warned(found, sum(calls.values()), any(row.get("tools") for row in rows))


def _rows(dataset: Dataset) -> Iterator[dict[str, Any]]:
    for batch in columns.batches(dataset):
        for values in zip(*batch.values(), strict=True):
            yield schema.to_record(dict(zip(batch, values, strict=True)))


def ask_of(row: Mapping[str, Any]) -> str:
    """Return what the user asks first."""
    return str(row.get("ask") or chat.first_ask(row["messages"]))


def drawn_asks(asks: Sequence[str], n: int, seed: int) -> list[str]:
    """Draw asks without replacement, in their order."""
    if len(asks) <= n:
        return list(asks)
    return [asks[i] for i in sorted(np.random.default_rng(seed).permutation(len(asks))[:n])]


def words(text: str) -> list[str]:
    """Split a text into words; a Chinese or Japanese sign is one."""
    return re.findall(r"[\u3040-\u30ff\u3400-\u9fff]|\w+", text.lower())


def distinct(asks: Sequence[str]) -> tuple[float, float, float]:
    """Return the share of distinct n-grams among all, for n of 1, 2 and 3."""
    out = []
    for n in (1, 2, 3):
        grams = [tuple(w[i : i + n]) for w in map(words, asks) for i in range(len(w) - n + 1)]
        out.append(len(set(grams)) / len(grams) if grams else 0.0)
    return (out[0], out[1], out[2])


def hashed(asks: Sequence[str]) -> NDArray[np.float64]:
    """Embed texts by counts of their words and pairs of words, on 4,096 signed buckets."""
    out = np.zeros((len(asks), _BUCKETS))
    for i, ask in enumerate(asks):
        own = words(ask)
        for gram, count in Counter([*own, *map(" ".join, itertools.pairwise(own))]).items():
            mark = int.from_bytes(hashlib.blake2b(gram.encode(), digest_size=8).digest(), "big")
            out[i, mark % _BUCKETS] += (1 + math.log(count)) * (1 if mark >> 63 else -1)
    return out


def similarity(
    asks: Sequence[str], embed: Callable[[Sequence[str]], Any] | None = None
) -> tuple[float | None, float | None]:
    """Return the mean cosine of two asks and of an ask with its nearest, or nulls for fewer than two."""
    if len(asks) < 2:
        return None, None
    vectors = np.asarray((embed or hashed)(list(asks)), dtype=np.float64)
    if vectors.ndim != 2 or len(vectors) != len(asks):
        raise InputError(
            f"embed must return one vector for each of {len(asks)} texts; got shape {vectors.shape}. "
            "Return an array of shape (texts, dimensions)."
        )
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors / np.where(norms == 0, 1, norms)
    cosine = vectors @ vectors.T
    n = len(asks)
    mean = float((cosine.sum() - np.trace(cosine)) / (n * (n - 1)))
    np.fill_diagonal(cosine, -1)
    return mean, float(cosine.max(axis=1).mean())


def near_copies(asks: Sequence[str]) -> list[bool]:
    """Tell of each ask whether it is a near copy of one before it."""
    seen = NearCopies(defaults.TRACE_COPY)
    return [seen.add(ask) for ask in asks]


def _goal(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    return (row.get("world") or {}).get("goal")


def resolves(row: Mapping[str, Any]) -> bool:
    """Tell whether the values of a task's goal are stated by the user and known to the world.

    The world is asked without its faults and in the state in which the entity exists; what the user says
    when asked back counts as stated, and an id that a search of the task finds need not be.
    """
    goal = _goal(row)
    if goal is None:
        return False
    spec = {**row["world"], "faults": [], "state": "exists"}
    world = World.from_row({**row, "world": spec})
    found = ""
    for step in goal.get("after") or ():
        found += str(world.call(step["tool"], step["arguments"]))
    world.call(goal["tool"], goal["arguments"])
    if world.log[-1]["status"] != "ok":
        return False
    text = f"{ask_of(row)} {(row.get('privileged') or {}).get('follow_up') or ''} {found}"
    return all(_stated(value, text) for value in goal["arguments"].values())


def _stated(value: Any, text: str) -> bool:
    if isinstance(value, (bool, Mapping)) or value is None:
        return True  # said in words of the language
    if isinstance(value, list):
        return all(_stated(one, text) for one in value)
    return str(value) in text


def _idle(rows: Sequence[Mapping[str, Any]]) -> Iterator[bool]:
    for row in rows:
        expected = (row.get("privileged") or {}).get("expected")
        if expected is not None and expected != "unknown":
            yield expected in ("refuse", "no_call")


def _covered(
    rows: Sequence[Mapping[str, Any]], situations: Sequence[Mapping[str, Any]]
) -> Coverage | None:
    placed = [s for s in situations if s.get("stance")]
    if not placed:
        return None
    first = rows[0]["messages"][0] if rows[0]["messages"] else {}
    prompt = chat.text_of(first.get("content")) if first.get("role") == "system" else None
    return coverage(placed, rows[0].get("tools") or [], prompt)


def _says_error(result: str | None) -> bool:
    return bool(re.match(r'\s*\{\s*"error"\s*:\s*[^n\s]', result or ""))


def _warned(found: DatasetReport, n_calls: int, has_tools: bool) -> DatasetReport:
    notes = []
    if has_tools and n_calls == 0:
        notes.append("no tool calls: nothing about the tools was measured")
    if found.dead_tools:
        notes.append(
            f"no call of {', '.join(found.dead_tools)} ever succeeded: repair the tool, or its world"
        )
    if found.near_copies and found.near_copies.value > defaults.COPIES_WARNED:
        notes.append(f"{found.near_copies.value:.0%} of the asks are near copies of another one")
    if found.do_nothing and found.do_nothing.value > defaults.IDLE_WARNED:
        notes.append(
            f"an agent that does nothing ends {found.do_nothing.value:.0%} of the tasks right"
        )
    hard = sum(n for stance, n in found.stances.items() if stance in HARD)
    total = sum(found.stances.values())
    if total >= defaults.HARD_SEEN and hard < defaults.HARD_WARNED * total:
        notes.append(
            f"only {hard / total:.0%} of the asks are ambiguous, adversarial or at a boundary"
        )
    fields = {name: getattr(found, name) for name in found.__slots__}
    return DatasetReport(**{**fields, "warnings": tuple(notes)})


#: Stances that test judgement and not only skill.
HARD = ("ambiguous", "adversarial", "boundary", "conflicting", "mistaken")


def _number(value: float | None) -> str:
    return "not measured" if value is None else f"{value:.2f}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in counts.items())
