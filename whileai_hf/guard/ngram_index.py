"""Which held-out texts share runs of words with a text, and how much of each the runs cover.

Runs of `n` words are looked up as hashes: a bitmap lets pass what may be there, a sorted array says
what is. A run that stands in many held-out texts belongs to their template; it proposes no pair and
the words under it count on neither side, so the work per text is bounded whatever the texts share.

References:
    Brown et al. 2020, arXiv:2005.14165, appendix C (13-grams); Touvron et al. 2023 (Llama 2),
    arXiv:2307.09288, appendix A.6 (share of a text's words inside shared runs).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from whileai_hf.shingles import HashedWords, Hashes

Ints = NDArray[np.int64]

#: Held-out texts that one text is compared with at most: those that share most rare runs.
_CANDIDATES = 4


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pairs of a text and a held-out text that share runs; arrays of shape (pairs,)."""

    text: Ints
    item: Ints
    of_text: NDArray[np.float64]  #: share of the text's words under shared runs
    of_item: NDArray[np.float64]  #: share of the held-out text's words under shared runs


_NONE = Pairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


@dataclass(slots=True, eq=False)
class NgramIndex:
    """Runs of `n` words of the held-out texts."""

    n: int
    common: int  #: a run in more held-out texts than this is a template's
    grams: Hashes  #: distinct runs, sorted, shape (G,)
    first: Ints  #: where the postings of each run begin, shape (G + 1,)
    items: Ints  #: held-out texts of the runs, run after run
    item_grams: Ints  #: run at each place, held-out text after held-out text
    item_places: Ints  #: place of these runs within all words
    item_first: Ints  #: where the runs of each held-out text begin, shape (items + 1,)
    item_starts: Ints  #: first word of each held-out text, shape (items + 1,)
    item_weights: Ints  #: prefix sums of words that count, shape (words + 1,)
    _bitmap: NDArray[np.bool_] | None = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, object]:
        """Leave the bitmap behind: it is made again faster than it is read, and hashes no cache."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "_bitmap"}

    def __setstate__(self, state: dict[str, object]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._bitmap = None

    @classmethod
    def of(cls, texts: Sequence[str], n: int, common: int) -> NgramIndex:
        """Index the held-out texts.

        Args:
            texts: Held-out texts, each of them once.
            n: Words of a run, at least 1.
            common: Held-out texts in which a run may stand and still tell them apart.
        """
        hashed = HashedWords.of(texts)
        h, at = hashed.grams(n)
        item = np.searchsorted(hashed.starts, at, "right") - 1
        grams, gid = np.unique(h, return_inverse=True)
        keys = np.unique(gid * max(len(texts), 1) + item)
        count = np.bincount(keys // max(len(texts), 1), minlength=len(grams))
        first = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
        weights = _weights(hashed, at[(count > common)[gid]], n)
        item_first = np.searchsorted(item, np.arange(len(texts) + 1))
        return cls(
            n, common, grams, first, keys % max(len(texts), 1), gid, at, item_first, hashed.starts, weights,
        )  # fmt: skip

    @property
    def unanchored(self) -> NDArray[np.bool_]:
        """Whether a held-out text has no run of its own: it is short, or all template."""
        rare = np.diff(self.first)[self.item_grams] <= self.common
        kept = np.concatenate([[0], np.cumsum(rare)])
        return np.asarray(kept[self.item_first[1:]] == kept[self.item_first[:-1]])

    def pairs(self, texts: HashedWords) -> Pairs:
        """Find what each text shares with the held-out texts it shares most with."""
        gid, at = self._hits(texts)
        if not len(gid):
            return _NONE
        text = np.searchsorted(texts.starts, at, "right") - 1
        df = np.diff(self.first)[gid]
        pair_text, pair_item = self._candidates(text, gid, df <= self.common)
        if not len(pair_text):
            return _NONE
        weights = _weights(texts, at[df > self.common], self.n)
        of_text = self._cover_text(pair_text, pair_item, text, gid, at, texts, weights)
        of_item = self._cover_item(pair_text, pair_item, text, gid)
        return Pairs(pair_text, pair_item, of_text, of_item)

    def _hits(self, texts: HashedWords) -> tuple[Ints, Ints]:
        h, at = texts.grams(self.n)
        if not len(self.grams) or not len(h):
            return np.zeros(0, np.int64), at[:0]
        bits = int(np.clip(np.ceil(np.log2(len(self.grams))) + 5, 16, 24))
        shift = np.uint64(64 - bits)
        if self._bitmap is None:
            self._bitmap = np.zeros(1 << bits, dtype=bool)
            self._bitmap[self.grams >> shift] = True
        may = self._bitmap[h >> shift]
        h, at = h[may], at[may]
        place = np.minimum(np.searchsorted(self.grams, h), len(self.grams) - 1)
        found = self.grams[place] == h
        return place[found], at[found]

    def _candidates(self, text: Ints, gid: Ints, rare: NDArray[np.bool_]) -> tuple[Ints, Ints]:
        """Name for each text the held-out texts that share most of its rare runs."""
        n_items = len(self.item_starts) - 1
        owner, where = _expand(self.first[gid[rare]], self.first[gid[rare] + 1])
        keys, votes = np.unique(text[rare][owner] * n_items + self.items[where], return_counts=True)
        order = np.lexsort((keys, -votes, keys // n_items))
        keys = keys[order]
        of = keys // n_items
        rank = np.arange(len(of)) - np.searchsorted(of, of)
        keys = keys[rank < _CANDIDATES]
        return keys // n_items, keys % n_items

    def _cover_text(
        self, pair_text: Ints, pair_item: Ints, text: Ints, gid: Ints, at: Ints, texts: HashedWords, weights: Ints
    ) -> NDArray[np.float64]:  # fmt: skip
        n_items = len(self.item_starts) - 1
        posted = np.repeat(np.arange(len(self.grams)), np.diff(self.first)) * n_items + self.items
        low, high = np.searchsorted(text, pair_text), np.searchsorted(text, pair_text, "right")
        pair, hit = _expand(low, high)
        shared = _is_in(gid[hit] * n_items + pair_item[pair], posted)
        begin, end = texts.starts[pair_text], texts.starts[pair_text + 1]
        return _covered(pair[shared], at[hit][shared], self.n, weights, begin, end)

    def _cover_item(
        self, pair_text: Ints, pair_item: Ints, text: Ints, gid: Ints
    ) -> NDArray[np.float64]:
        met = np.unique(text * len(self.grams) + gid)
        pair, run = _expand(self.item_first[pair_item], self.item_first[pair_item + 1])
        shared = _is_in(pair_text[pair] * len(self.grams) + self.item_grams[run], met)
        begin, end = self.item_starts[pair_item], self.item_starts[pair_item + 1]
        places = self.item_places[run][shared]
        return _covered(pair[shared], places, self.n, self.item_weights, begin, end)


def _weights(texts: HashedWords, template: Ints, n: int) -> Ints:
    """Return prefix sums of the words that no template's run covers, shape (words + 1,).

    A text that is all template keeps its words: there is nothing else to compare it by.
    """
    size = len(texts.words)
    edge = np.bincount(template, minlength=size + 1) - np.bincount(template + n, minlength=size + 1)
    own = np.cumsum(edge[:size]) == 0
    sums = np.concatenate([[0], np.cumsum(own)])
    bare = sums[texts.starts[1:]] == sums[texts.starts[:-1]]
    if bare.any():
        own = own | np.repeat(bare, texts.lengths)
        sums = np.concatenate([[0], np.cumsum(own)])
    return sums.astype(np.int64)


def _covered(
    pair: Ints, at: Ints, n: int, weights: Ints, begin: Ints, end: Ints
) -> NDArray[np.float64]:
    """Return the share of counting words of [begin, end) under the runs of each pair."""
    last = np.ones(len(pair), dtype=bool)
    last[:-1] = pair[1:] != pair[:-1]
    step = np.full(len(pair), n)
    step[:-1] = np.where(last[:-1], n, np.minimum(n, at[1:] - at[:-1]))
    under = np.bincount(pair, weights=weights[at + step] - weights[at], minlength=len(begin))
    return np.asarray(under / np.maximum(weights[end] - weights[begin], 1), dtype=np.float64)


def _expand(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """List the integers of each range [low, high), and the range that each belongs to."""
    size = high - low
    owner = np.repeat(np.arange(len(low)), size)
    return owner, np.arange(len(owner)) - np.repeat(np.cumsum(size) - size, size) + low[owner]


def _is_in(keys: Ints, those: Ints) -> NDArray[np.bool_]:
    place = np.minimum(np.searchsorted(those, keys), len(those) - 1)
    return np.asarray(those[place] == keys)
