"""Near duplicates in linear time: MinHash proposes, the words decide.

A reply is a set of runs of words. Signatures of equal minima put replies that share most runs into
one bucket (Broder 1997, Compression and Complexity of Sequences, section 3; banding: Leskovec, Rajaraman and Ullman 2014,
Mining of Massive Datasets, section 3.4). A reply is compared with the first of each of its buckets only, on its
words themselves, so that no number of copies makes a pair of everything. Replies with other numbers
are two answers, however alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from datasets import Dataset, Value
from numpy.typing import NDArray

from whileai_hf import columns, defaults, text
from whileai_hf import messages as chat
from whileai_hf.errors import InputError
from whileai_hf.selection.gate import Gate
from whileai_hf.shingles import HashedWords, Hashes

D = TypeVar("D", bound=Dataset)

#: Words of a run, and the bands of a signature: at a similarity of 0.8, 16 bands of 4 minima miss
#: (1 - 0.8^4)^16 = 0.0002 of the pairs.
_RUN, _BANDS, _ROWS = 3, 16, 4
_BATCH = 2_000


@dataclass(frozen=True, slots=True)
class Distinct(Gate):
    """Drop near repetitions: rows whose agent says nearly what an earlier row of the task said."""

    name: ClassVar[str] = "near duplicate"
    why: ClassVar[str] = "an earlier attempt at the task is nearly the same"
    reads: ClassVar[tuple[str, ...]] = ("near_duplicate_of",)

    def __call__(self, row: Mapping[str, Any]) -> bool:
        """Keep the first of rows that are nearly alike."""
        return row["near_duplicate_of"] is None


def with_near_duplicates(
    dataset: D,
    *,
    similarity: float = defaults.NEAR_DUPLICATE,
    within: str = "task",
    of: str = "reply",
) -> D:
    """Add the column `near_duplicate_of`: the earlier row that a row nearly repeats, or null.

    Args:
        dataset: Rollouts with `task_id` and `messages`.
        similarity: Jaccard similarity of the runs of three words from which two texts are nearly the
            same, in (0, 1].
        within: `"task"` compares attempts at one task, `"all"` all rows.
        of: `"reply"` compares what the agent wrote, `"prompt"` what the user wrote.

    Raises:
        InputError: An option names nothing, or is out of range.
        SchemaError: A column is missing.
    """
    step = "with_near_duplicates"
    columns.check_dataset(dataset, step)
    _check(similarity, within, of)
    columns.check_columns(dataset, ["messages"], step)
    codes, _ = columns.task_codes(dataset, step)
    groups = codes if within == "task" else np.zeros(len(codes), dtype=np.int64)
    role = "assistant" if of == "reply" else "user"
    names = dataset["rollout_id"][:] if "rollout_id" in dataset.column_names else None
    earlier: list[str | None] = []
    finder = _Finder(similarity)
    for batch in columns.batches(dataset.select_columns(["messages"]), _BATCH):
        texts = [_text(messages, role) for messages in batch["messages"]]
        part = groups[len(earlier) : len(earlier) + len(texts)]
        found = finder.earlier(texts, part.tolist())
        earlier += [None if i is None else str(names[i] if names else i) for i in found]
    return columns.with_columns(dataset, {"near_duplicate_of": (earlier, Value("string"))})


class _Finder:
    """The first text of every bucket, and the runs of those that are kept."""

    def __init__(self, similarity: float) -> None:
        self.similarity = similarity
        self.first: dict[tuple[int, int, int], int] = {}
        self.runs: dict[int, tuple[frozenset[int], list[str]]] = {}
        self.n = 0

    def earlier(self, texts: list[str], groups: list[int]) -> list[int | None]:
        """Return for each text the earlier one that it nearly repeats."""
        runs, owner = _shingles(texts)
        keys = _bands(runs, owner, len(texts))
        starts = np.searchsorted(owner, np.arange(len(texts) + 1))
        out: list[int | None] = []
        for i, group in enumerate(groups):
            buckets = [(group, band, key) for band, key in enumerate(keys[i].tolist())]
            known = dict.fromkeys(self.first[b] for b in buckets if b in self.first)
            mine = (frozenset(runs[starts[i] : starts[i + 1]].tolist()), text.numbers(texts[i]))
            same = next((at for at in known if self._alike(mine, self.runs[at])), None)
            if same is None:
                self.runs[self.n] = mine
                for bucket in buckets:
                    self.first.setdefault(bucket, self.n)
            out.append(same)
            self.n += 1
        return out

    def _alike(
        self, a: tuple[frozenset[int], list[str]], b: tuple[frozenset[int], list[str]]
    ) -> bool:
        if a[1] != b[1]:
            return False
        union = len(a[0] | b[0])
        return not union or len(a[0] & b[0]) / union >= self.similarity - 1e-12


def _shingles(texts: list[str]) -> tuple[Hashes, NDArray[np.int64]]:
    """Return the runs of words of each text; a text shorter than a run is one run as a whole."""
    hashed = HashedWords.of(texts)
    runs, at = hashed.grams(_RUN)
    owner = np.searchsorted(hashed.starts, at, "right") - 1
    short = np.flatnonzero(hashed.lengths < _RUN)
    runs = np.concatenate([runs, hashed.whole()[short]])
    owner = np.concatenate([owner, short])
    order = np.argsort(owner, kind="stable")
    return runs[order], owner[order]


def _bands(runs: Hashes, owner: NDArray[np.int64], n: int) -> Hashes:
    """Return the bucket of each text in each band, shape (texts, bands)."""
    rng = np.random.default_rng(0)
    starts = np.searchsorted(owner, np.arange(n))
    keys = np.zeros((n, _BANDS), dtype=np.uint64)
    for band in range(_BANDS):
        for _ in range(_ROWS):
            a, b = rng.integers(1, 2**63, size=2, dtype=np.uint64)
            values = runs * (a | np.uint64(1)) + b
            values ^= values >> np.uint64(29)
            least = np.minimum.reduceat(values, starts) if n else values
            keys[:, band] = keys[:, band] * np.uint64(0x9E3779B97F4A7C15) + least
    return keys


def _text(messages: Any, role: str) -> str:
    turns = [m for m in messages or [] if m.get("role") == role]
    calls = [f"{c}" for m in turns for c in m.get("tool_calls") or []]
    return "\n".join([*(chat.text_of(m.get("content")) for m in turns), *calls])


def _check(similarity: Any, within: Any, of: Any) -> None:
    if not isinstance(similarity, (int, float)) or not 0 < similarity <= 1:
        raise InputError(
            f"similarity must lie in (0, 1]; got {similarity!r}. The default is {defaults.NEAR_DUPLICATE}."
        )
    for name, value, known in (("within", within, ("task", "all")), ("of", of, ("reply", "prompt"))):  # fmt: skip
        if value not in known:
            raise InputError(f"{name} must be one of {', '.join(known)}; got {value!r}. Pick one.")
