"""The transform behind `with_contamination`: what each row of a batch shares with held-out texts."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from datasets import Value
from numpy.typing import NDArray

from whileai_hf import text
from whileai_hf.errors import InputError
from whileai_hf.guard.held_out import HeldOut, turns
from whileai_hf.guard.ngram_index import NgramIndex
from whileai_hf.shingles import HashedWords, Hashes

#: The rules in the order in which they are tried; the last is reported and drops nothing.
RULES = ("same_task", "exact", "near", "semantic", "template")

#: The column that `with_contamination` adds.
CONTAMINATION = {"rule": Value("string"), "score": Value("float64"), "matched": Value("string")}

Embedder = Callable[[list[str]], Any]


class Finding(NamedTuple):
    """What one rule found: the rule, how much is shared, and the held-out text."""

    rule: str | None
    score: float
    item: int


_CLEAN = Finding(None, 0.0, -1)


@dataclass(frozen=True, slots=True)
class Lookup:
    """Hashes of whole held-out texts, and the text of each."""

    hashes: Hashes  #: sorted
    items: NDArray[np.int64]

    @classmethod
    def of(cls, hashes: Hashes, items: Sequence[int] | NDArray[np.int64]) -> Lookup:
        """Sort hashes of the held-out texts `items`."""
        order = np.argsort(hashes, kind="stable")
        return cls(hashes[order], np.asarray(items, dtype=np.int64)[order])

    def find(self, hashes: Hashes) -> list[tuple[int, list[int]]]:
        """Return for each hash that is known its place among `hashes` and the held-out texts."""
        low = np.searchsorted(self.hashes, hashes)
        high = np.searchsorted(self.hashes, hashes, "right")
        return [(int(i), self.items[low[i] : high[i]].tolist()) for i in np.flatnonzero(high > low)]


@dataclass(frozen=True, eq=False)
class Contamination:
    """Say of each row by which rule it is contaminated, how much it shares, and with what.

    Attributes:
        fields: Columns that are searched.
        held_out: What must not be there.
        n: Words of a run.
        overlap: Share of a text under shared runs that makes it a near copy.
        common: Held-out texts in which a run may stand and still tell them apart.
        contained: Words of a held-out text too short for a run that count inside a longer text.
        embedder: Texts to vectors, for paraphrases; null skips the rule.
        similarity: Cosine from which two texts say the same.
    """

    version: ClassVar[str] = "1"

    fields: tuple[str, ...]
    held_out: HeldOut
    n: int
    overlap: float
    common: int
    contained: int
    embedder: Embedder | None = None
    similarity: float = 1.0

    _index: NgramIndex = field(init=False, repr=False)
    _exact: Lookup = field(init=False, repr=False)
    _masked: Lookup = field(init=False, repr=False)
    _contained: dict[int, Lookup] = field(init=False, repr=False)  #: by number of words
    _vectors: NDArray[np.float32] | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        texts = self.held_out.texts
        index = NgramIndex.of(texts, self.n, self.common)
        hashed = HashedWords.of(texts)
        everything = np.arange(len(texts))
        lengths, weight = hashed.lengths, np.array(self.held_out.weights)
        alone = index.unanchored & (weight >= self.contained)
        by_length = {
            int(size): Lookup.of(hashed.whole()[at], at)
            for size in np.unique(lengths[alone])
            for at in [np.flatnonzero(alone & (lengths == size))]
        }
        made = {
            "_index": index,
            "_exact": Lookup.of(hashed.whole(), everything),
            "_masked": Lookup.of(hashed.whole(mask_numbers=True), everything),
            "_contained": by_length,
            "_vectors": _unit(self.embedder(list(texts)), len(texts))
            if self.embedder and texts
            else None,
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)

    def __getstate__(self) -> dict[str, Any]:
        """Add the version, which makes a changed rule no cache hit."""
        return {**self.__dict__, "version": self.version}

    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, list[dict[str, Any]]]:
        """Transform a batch."""
        rows, roles, texts = [], [], []
        size = len(next(iter(batch.values()), []))
        for name in self.fields:
            for row, value in enumerate(batch[name]):
                for role, written in turns(value):
                    if role in ("user", "assistant"):
                        rows.append(row)
                        roles.append(role)
                        texts.append(written)
        best = [_CLEAN] * size
        for at, found in self._findings(texts, roles):
            best[rows[at]] = _worse(best[rows[at]], found)
        if self.embedder is not None:
            self._semantic(rows, roles, texts, best)
        tasks = batch.get("task_id") or [None] * size
        return {"contamination": [self._column(t, f) for t, f in zip(tasks, best, strict=True)]}

    def _column(self, task: Any, found: Finding) -> dict[str, Any]:
        if task is not None and str(task) in self.held_out.task_ids:
            return {"rule": "same_task", "score": 1.0, "matched": str(task)}
        matched = self.held_out.ids[found.item] if found.item >= 0 else None
        return {"rule": found.rule, "score": found.score, "matched": matched}

    def _findings(self, texts: list[str], roles: list[str]) -> list[tuple[int, Finding]]:
        """List what the rules on words find, as places among the texts and findings."""
        hashed = HashedWords.of(texts)
        found: list[tuple[int, Finding]] = []
        asked = np.array([role == "user" for role in roles], dtype=bool) & (hashed.lengths > 0)
        numbers = _Memo(lambda at: Counter(text.numbers(texts[at])))
        for at, items in self._exact.find(hashed.whole()):
            if asked[at]:
                found += [(at, self._whole(texts[at], i, numbers(at))) for i in items]
        settled = {(at, f.item) for at, f in found}
        copies = {at for at, f in found if f.rule == "exact"}
        for at, items in self._masked.find(hashed.whole(mask_numbers=True)):
            if asked[at] and at not in copies:
                found.append((at, Finding("template", 1.0, items[0])))
        parts = self._inside(texts, hashed, numbers) + self._near(texts, hashed, numbers)
        return found + [(at, f) for at, f in parts if (at, f.item) not in settled]

    def _whole(self, written: str, item: int, numbers: Counter[str]) -> Finding:
        """Tell a copy from a text of the same words and other numbers, signs or operators."""
        if text.words(written) != text.words(self.held_out.texts[item]):
            return _CLEAN  # two texts of one hash
        same = numbers == Counter(self.held_out.numbers[item])
        return Finding("exact" if same else "template", 1.0, item)

    def _inside(
        self, texts: list[str], hashed: HashedWords, numbers: Callable[[int], Counter[str]]
    ) -> list[tuple[int, Finding]]:
        """Find held-out texts without a run of their own inside longer texts."""
        found = []
        for size, lookup in self._contained.items():
            h, place = hashed.grams(size)
            of = np.searchsorted(hashed.starts, place, "right") - 1
            for i, items in lookup.find(h):
                at = int(of[i])
                found += [(at, self._shared(texts[at], k, 0.0, 1.0, numbers(at))) for k in items]
        return found

    def _near(
        self, texts: list[str], hashed: HashedWords, numbers: Callable[[int], Counter[str]]
    ) -> list[tuple[int, Finding]]:
        """Find texts and held-out texts of which the shared runs cover enough."""
        pairs = self._index.pairs(hashed)
        found = []
        for at, item, of_text, of_item in zip(
            pairs.text.tolist(), pairs.item.tolist(), pairs.of_text.tolist(), pairs.of_item.tolist(), strict=True
        ):  # fmt: skip
            if max(of_text, of_item) < self.overlap:
                found.append((at, Finding(None, max(of_text, of_item), item)))
            else:
                found.append((at, self._shared(texts[at], item, of_text, of_item, numbers(at))))
        return found

    def _shared(
        self, written: str, item: int, of_text: float, of_item: float, numbers: Counter[str]
    ) -> Finding:
        """Tell a near copy from another problem of its template: all numbers of the copied side are there."""
        if not _share_run(written, self.held_out.texts[item], self.n):
            return _CLEAN  # two runs of one hash
        theirs = Counter(self.held_out.numbers[item])
        copied = of_item >= self.overlap and theirs <= numbers
        copied |= of_text >= self.overlap and numbers <= theirs
        return Finding("near" if copied else "template", max(of_text, of_item), item)

    def _semantic(
        self, rows: list[int], roles: list[str], texts: list[str], best: list[Finding]
    ) -> None:
        """Find paraphrases among the texts of users that no other rule names."""
        left = [
            at for at, row in enumerate(rows)
            if roles[at] == "user" and best[row].rule in (None, "template") and text.words(texts[at])
        ]  # fmt: skip
        if not left or self.embedder is None or self._vectors is None:
            return
        cosine = _unit(self.embedder([texts[at] for at in left]), len(left)) @ self._vectors.T
        for at, item, score in zip(left, cosine.argmax(1).tolist(), cosine.max(1), strict=True):
            if score >= self.similarity:
                same = Counter(text.numbers(texts[at])) == Counter(self.held_out.numbers[item])
                found = Finding("semantic" if same else "template", float(score), item)
                best[rows[at]] = _worse(best[rows[at]], found)


class _Memo(dict[int, Counter[str]]):
    """Numbers of a text, read once."""

    def __init__(self, read: Callable[[int], Counter[str]]) -> None:
        super().__init__()
        self._read = read

    def __call__(self, at: int) -> Counter[str]:
        if at not in self:
            self[at] = self._read(at)
        return self[at]


def _worse(a: Finding, b: Finding) -> Finding:
    def rank(f: Finding) -> tuple[int, float]:
        return (-RULES.index(f.rule) if f.rule else -len(RULES), f.score)

    return b if rank(b) > rank(a) else a


def _share_run(a: str, b: str, n: int) -> bool:
    """Tell exactly whether two texts share a run of `n` words, or one holds the whole other."""
    ours, theirs = text.words(a), text.words(b)
    n = min(n, len(ours), len(theirs))
    runs = set(zip(*(itertools.islice(theirs, i, None) for i in range(n)), strict=False))
    return any(run in runs for run in zip(*(itertools.islice(ours, i, None) for i in range(n)), strict=False))  # fmt: skip


def _unit(vectors: Any, n: int) -> NDArray[np.float32]:
    """Return vectors of length 1, shape (texts, dimensions)."""
    found = np.asarray(vectors, dtype=np.float32)
    if found.ndim != 2 or len(found) != n:
        raise InputError(
            f"an embedder must return one vector a text, shape ({n}, dimensions); got shape {found.shape}. "
            "Return an array of rows."
        )
    norms = np.linalg.norm(found, axis=1, keepdims=True)
    return np.asarray(found / np.maximum(norms, 1e-12), dtype=np.float32)
