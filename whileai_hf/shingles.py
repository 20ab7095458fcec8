"""Words, runs of words and whole texts as 64-bit hashes, computed for many texts at once.

The words are those of `whileai_hf.text.words`. A text in ASCII, which needs no folding but that of
case, is split and hashed as bytes in NumPy without one Python string a word. Hashes are sums
`h(x) = Σ x[i]·m^i mod 2^64`, so a run of words is a difference of two prefix sums, whatever its
length (Karp and Rabin 1987, IBM J. Res. Dev. 31(2), with prefix sums instead of a rolling window).

Equal words give equal hashes; two different ones give equal hashes with a chance of about 2^-64,
so whoever must be exact compares the texts of the few that match.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from whileai_hf import text as writing

Hashes = NDArray[np.uint64]

_BYTE = 0x9E3779B97F4A7C15  #: multiplier within a word; odd, so that it has an inverse
_WORD = 0xD6E8FEB86659FD93  #: multiplier within a run of words
_MIX = np.uint64(0xFF51AFD7ED558CCD)
_HALF = np.uint64(32)

#: What every number counts as where numbers are masked.
_ANY_NUMBER = np.uint64(0x8EBC6AF09C88C6E3)


def _byte_tables() -> tuple[NDArray[np.bool_], NDArray[np.bool_], Hashes]:
    """Tell for each byte whether it belongs to a word, whether it is a digit, and its value."""
    codes = np.arange(256)
    digit = (codes >= ord("0")) & (codes <= ord("9"))
    upper = (codes >= ord("A")) & (codes <= ord("Z"))
    lower = (codes >= ord("a")) & (codes <= ord("z"))
    values = np.random.default_rng(0).integers(1, 2**63, size=256, dtype=np.uint64)
    values[upper] = values[lower]
    return digit | upper | lower | (codes >= 0x80), digit, values


_IN_WORD, _DIGIT, _VALUE = _byte_tables()


@functools.lru_cache(maxsize=64)
def _powers(multiplier: int, size: int) -> tuple[Hashes, Hashes]:
    """Return the powers of a multiplier and of its inverse, modulo 2^64, shape (size,)."""
    out = []
    for base in (multiplier, pow(multiplier, -1, 1 << 64)):
        steps = np.full(size, base, dtype=np.uint64)
        steps[0] = 1
        powers = np.cumprod(steps, dtype=np.uint64)
        powers.flags.writeable = False
        out.append(powers)
    return out[0], out[1]


def _powers_for(multiplier: int, n: int) -> tuple[Hashes, Hashes]:
    return _powers(multiplier, 1 << max(16, int(n).bit_length()))


def _prefix(values: Hashes, multiplier: int) -> Hashes:
    """Return prefix sums of values weighted by powers, shape (n + 1,)."""
    out = np.zeros(len(values) + 1, dtype=np.uint64)
    np.cumsum(values * _powers_for(multiplier, len(values))[0][: len(values)], out=out[1:])
    return out


def _runs(prefix: Hashes, start: NDArray[np.int64], end: NDArray[np.int64], multiplier: int) -> Hashes:  # fmt: skip
    """Hash the runs [start, end) of what `prefix` was made of."""
    h = (prefix[end] - prefix[start]) * _powers_for(multiplier, len(prefix))[1][start]
    h ^= h >> _HALF
    h *= _MIX
    h ^= h >> _HALF
    return np.asarray(h, dtype=np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class HashedWords:
    """The words of many texts as hashes, text after text."""

    words: Hashes  #: shape (words,)
    numeric: NDArray[np.bool_]  #: whether a word holds a digit, shape (words,)
    starts: NDArray[
        np.int64
    ]  #: first word of each text, then the number of words, shape (texts + 1,)

    @classmethod
    def of(cls, texts: Sequence[str]) -> HashedWords:
        """Hash the words of some texts.

        Args:
            texts: Texts in any script.
        """
        plain = [t if t.isascii() else " ".join(writing.words(t)) for t in texts]
        joined = "\n".join([*plain, ""]).encode("utf-8", "replace")
        raw = np.frombuffer(joined, dtype=np.uint8)
        sizes = [len(t) if t.isascii() else len(t.encode("utf-8", "replace")) for t in plain]
        ends_of_text = np.cumsum(np.array(sizes, dtype=np.int64) + 1) - 1
        inside = _IN_WORD[raw]
        edges = np.flatnonzero(inside[1:] != inside[:-1]) + 1
        if len(inside) and inside[0]:
            edges = np.concatenate([[0], edges])
        start, end = edges[0::2], edges[1::2]
        words = _runs(_prefix(_VALUE[raw], _BYTE), start, end, _BYTE)
        numeric = np.zeros(len(words), dtype=bool)
        numeric[np.searchsorted(start, np.flatnonzero(_DIGIT[raw]), "right") - 1] = True
        starts = np.concatenate([[0], np.searchsorted(start, ends_of_text)])
        return cls(words, numeric, starts.astype(np.int64))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of words of each text, shape (texts,)."""
        return np.diff(self.starts)

    def grams(self, n: int) -> tuple[Hashes, NDArray[np.int64]]:
        """Hash every run of `n` words within a text.

        Returns:
            The hash of each run and the place of its first word, both of shape (runs,).
        """
        at = np.arange(max(len(self.words) - n + 1, 0))
        text_of = np.repeat(np.arange(len(self)), self.lengths)
        at = at[text_of[at] == text_of[at + n - 1]] if len(at) else at
        return _runs(_prefix(self.words, _WORD), at, at + n, _WORD), at

    def whole(self, *, mask_numbers: bool = False) -> Hashes:
        """Hash each text as one run of words, shape (texts,).

        Args:
            mask_numbers: Whether all words that hold a digit count as one and the same.
        """
        values = np.where(self.numeric, _ANY_NUMBER, self.words) if mask_numbers else self.words
        return _runs(_prefix(values, _WORD), self.starts[:-1], self.starts[1:], _WORD)
