"""The features of `completion_features` for many completions at once, as one sparse matrix.

Names and values are those of `completion_features`, row by row; only what occurs often enough to be
judged is kept, chosen by how often it occurs and never by what it earns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from whileai_hf.guard import completion_features as one

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Features:
    """Named columns over rows."""

    names: tuple[str, ...]
    matrix: sparse.csc_matrix  #: (rows, features)


def feature_matrix(
    completions: Sequence[Any], *, least: int = 1, most_words: int | None = None
) -> Features:
    """Describe completions.

    Args:
        completions: Texts, or messages of conversational completions, one a row.
        least: Rows in which a feature must differ from its absence, and from its presence.
        most_words: Words, phrases and signs kept of each kind, the most frequent ones.

    Returns:
        The features and a sparse matrix, (rows, features).
    """
    n = len(completions)
    texts = [one.completion_text(c)[: one._MAX_CHARS] for c in completions]
    words, word_rows, index = _numbered([one._words(text) for text in texts])
    parts = [_presence(words, word_rows, n, [one._word(w) for w in index], least, most_words)]
    same_row = word_rows[1:] == word_rows[:-1]
    pairs = words[:-1][same_row] * len(index) + words[1:][same_row]
    kinds, codes = np.unique(pairs, return_inverse=True)
    vocabulary = list(index)
    parts.append(
        _presence(codes, word_rows[1:][same_row], n, _Phrases(kinds, vocabulary), least, most_words)
    )
    signs, sign_rows, sign_index = _numbered([one._SIGN.findall(text) for text in texts])
    parts.append(
        _presence(signs, sign_rows, n, [one._sign(s) for s in sign_index], least, most_words)
    )
    parts.append(_edges(words, word_rows, n, vocabulary, least))
    parts.append(_sizes(texts, words, word_rows, codes, same_row))
    turns = [one._turns(c) for c in completions]
    if any(turns):
        parts.append(_calls(turns, least))
    names = tuple(name for part in parts for name in part.names)
    return Features(names, sparse.hstack([part.matrix for part in parts], format="csc"))


class _Phrases:
    """Names of pairs of words, made when they are asked for: most pairs are dropped unnamed."""

    def __init__(self, kinds: Ints, words: Sequence[str]) -> None:
        self.kinds, self.words = kinds, words

    def __len__(self) -> int:
        return len(self.kinds)

    def __getitem__(self, i: int) -> str:
        first, second = divmod(int(self.kinds[i]), len(self.words))
        return one._phrase((self.words[first], self.words[second]))


def _numbered(listed: Sequence[Sequence[str]]) -> tuple[Ints, Ints, dict[str, int]]:
    """Number the tokens of all rows; return the numbers, their rows, and the tokens."""
    index: dict[str, int] = {}
    number = index.setdefault
    codes = [number(token, len(index)) for tokens in listed for token in tokens]
    lengths = [len(tokens) for tokens in listed]
    rows = np.repeat(np.arange(len(listed)), lengths)
    return np.array(codes, dtype=np.int64), rows, index


def _distinct(values: Ints) -> Ints:
    """Sorted values without repetition; by sorting, which is faster here than NumPy's hashing."""
    ordered = np.sort(values)
    return ordered[np.r_[True, ordered[1:] != ordered[:-1]]] if ordered.size else ordered


def _presence(
    codes: Ints, rows: Ints, n: int, names: Any, least: int, most: int | None
) -> Features:
    """Which row holds which token, the tokens that are too rare or too common left out."""
    size = len(names)
    if not codes.size:
        return Features((), sparse.csc_matrix((n, 0)))
    pairs = _distinct(codes * n + rows)
    token, row = np.divmod(pairs, n)
    often = np.bincount(token, minlength=size)
    kept = np.flatnonzero((often >= least) & (often <= n - least if least > 1 else often > 0))
    if most is not None and kept.size > most:
        kept = np.sort(kept[np.argsort(-often[kept], kind="stable")[:most]])
    place = np.full(size, -1)
    place[kept] = np.arange(kept.size)
    inside = place[token] >= 0
    matrix = sparse.csc_matrix(
        (np.ones(int(inside.sum())), (row[inside], place[token[inside]])), shape=(n, kept.size)
    )
    return Features(tuple(names[int(i)] for i in kept), matrix)


def _edges(words: Ints, rows: Ints, n: int, vocabulary: Sequence[str], least: int) -> Features:
    """The first and the last word of each row."""
    if not words.size:
        return Features((), sparse.csc_matrix((n, 0)))
    starts = np.flatnonzero(np.r_[True, rows[1:] != rows[:-1]])
    ends = np.flatnonzero(np.r_[rows[1:] != rows[:-1], True])
    parts = [
        _presence(
            words[at], rows[at], n, [f"the {which} word {w!r}" for w in vocabulary], least, None
        )
        for which, at in (("first", starts), ("last", ends))
    ]
    names = tuple(name for part in parts for name in part.names)
    return Features(names, sparse.hstack([part.matrix for part in parts], format="csc"))


def _sizes(texts: Sequence[str], words: Ints, rows: Ints, pairs: Ints, same_row: Any) -> Features:
    n = len(texts)
    length = np.array([len(t) for t in texts], dtype=np.float64)
    n_words = np.bincount(rows, minlength=n)
    distinct = _distinct(pairs * n + rows[1:][same_row])
    n_pairs = np.bincount(distinct % n, minlength=n) if distinct.size else np.zeros(n)
    repeated = np.where(n_words > 1, 1.0 - n_pairs / np.maximum(n_words - 1, 1), 0.0)
    letters, capitals, digits = np.array(
        [[sum(map(test, t)) for test in (str.isalpha, str.isupper, str.isdigit)] for t in texts],
        dtype=np.float64,
    ).reshape(n, 3).T  # fmt: skip
    columns = {
        "the length in characters": length,
        "the number of lines": np.array([t.count("\n") + 1.0 for t in texts]),
        "the number of digits": digits,
        "repeated pairs of words": repeated,
        "the share of capitals": capitals / np.maximum(letters, 1),
    }
    return Features(tuple(columns), sparse.csc_matrix(np.stack(list(columns.values()), axis=1)))


def _calls(turns: Sequence[Any], least: int) -> Features:
    found = [one._call_features(t) if t else {} for t in turns]
    often: dict[str, int] = {}
    for values in found:
        for name, value in values.items():
            often[name] = often.get(name, 0) + (value != 0)
    names = [name for name, count in often.items() if count >= least]
    dense = np.array([[values.get(name, 0.0) for name in names] for values in found])
    return Features(tuple(names), sparse.csc_matrix(dense.reshape(len(turns), len(names))))
