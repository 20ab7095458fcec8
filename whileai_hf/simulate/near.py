"""Near copies of texts in linear time: MinHash signatures, banded so that only likely pairs are compared.

References:
    Broder 1997, "On the resemblance and containment of documents" (the estimator).
    Leskovec, Rajaraman, Ullman 2020, Mining of Massive Datasets, section 3.4 (banding).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

#: Hash functions of a signature, and how many of them make one band: two texts of similarity s share a
#: band with chance 1 - (1 - s**4)**32, which is 1.00 at 0.8 and 0.23 at 0.3.
_HASHES, _BAND = 128, 4

_PRIME = np.uint64((1 << 61) - 1)
_DRAW = np.random.default_rng(20)
_A = _DRAW.integers(1, 1 << 31, _HASHES, dtype=np.uint64)
_B = _DRAW.integers(0, 1 << 31, _HASHES, dtype=np.uint64)


def shingles(text: str, size: int = 3) -> set[str]:
    """Return the word n-grams of a text, in small letters; a sign of Chinese or Japanese is a word."""
    words = re.findall(r"[\u3040-\u30ff\u3400-\u9fff]|\w+", text.lower())
    if len(words) <= size:
        return {" ".join(words)}
    return {" ".join(words[i : i + size]) for i in range(len(words) - size + 1)}


def normal(text: str) -> str:
    """Return the letters and digits of a text, in small letters: what two copies have in common."""
    return "".join(re.findall(r"\w+", text.lower()))


class NearCopies:
    """Texts seen so far; `add` says whether a text is a near copy of one of them.

    Args:
        threshold: Jaccard similarity of the word n-grams at which two texts are copies, in (0, 1].
    """

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        self._bands: dict[tuple[int, bytes], list[int]] = {}
        self._grams: list[frozenset[int]] = []

    def add(self, text: str) -> bool:
        """Keep a text unless it is a near copy; tell whether it is one."""
        keys, own = self._read(text)
        if self._like(keys, own):
            return True
        for key in keys:
            self._bands.setdefault(key, []).append(len(self._grams))
        self._grams.append(own)
        return False

    def holds(self, text: str) -> bool:
        """Tell whether a text is a near copy of one that was kept."""
        return self._like(*self._read(text))

    def _read(self, text: str) -> tuple[list[tuple[int, bytes]], frozenset[int]]:
        grams = _hashed(shingles(text))
        signature = _signature(grams)
        keys = [(i, signature[i : i + _BAND].tobytes()) for i in range(0, _HASHES, _BAND)]
        return keys, frozenset(grams.tolist())

    def _like(self, keys: list[tuple[int, bytes]], own: frozenset[int]) -> bool:
        likely = {at for key in keys for at in self._bands.get(key, ())}
        return any(_jaccard(own, self._grams[at]) >= self.threshold for at in likely)

    def extend(self, texts: Iterable[str]) -> None:
        """Keep texts, whatever they resemble."""
        for text in texts:
            self.add(text)


def _jaccard(one: frozenset[int], other: frozenset[int]) -> float:
    return len(one & other) / len(one | other)


def _hashed(grams: set[str]) -> NDArray[np.uint64]:
    raw = [
        int.from_bytes(hashlib.blake2b(g.encode(), digest_size=4).digest(), "big")
        for g in sorted(grams)
    ]
    return np.array(raw, dtype=np.uint64)


def _signature(grams: NDArray[np.uint64]) -> NDArray[np.uint64]:
    mixed: NDArray[np.uint64] = ((_A[:, None] * grams[None, :] + _B[:, None]) % _PRIME).min(axis=1)
    return mixed
