"""Scores of many features against a reward, and their law under shuffles within tasks."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from datasets import Dataset
from numpy.typing import NDArray
from scipy import sparse

from whileai_hf import columns

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Grouped(Protocol):
    """Rows sorted by task, as a test reads them."""

    codes: Ints  #: task of each row, (rows,)
    counts: Floats  #: rows of each task, (tasks,)
    groups: sparse.csr_matrix  #: (tasks, rows)
    n_tasks: int


class Graded:
    """Judged rows of tasks whose attempts differ in reward, sorted by task."""

    def __init__(self, dataset: Dataset) -> None:
        columns.check_dataset(dataset, "hack_scan")
        reward = columns.numbers(dataset, "reward", "hack_scan")
        codes, ids = columns.task_codes(dataset, "hack_scan")
        known = ~np.isnan(reward)
        low, high = np.full(len(ids), np.inf), np.full(len(ids), -np.inf)
        np.minimum.at(low, codes[known], reward[known])
        np.maximum.at(high, codes[known], reward[known])
        spread = high > low + 1e-9
        self.n_unanimous = int(np.sum(np.isfinite(low) & ~spread))
        rows = np.flatnonzero(known & spread[codes])
        self.rows = rows[np.argsort(codes[rows], kind="stable")]
        _, self.codes = np.unique(codes[self.rows], return_inverse=True)
        self.reward = reward[self.rows]
        self.n_rows, self.n_tasks = self.rows.size, int(spread.sum())
        self.counts = np.bincount(self.codes, minlength=self.n_tasks).astype(np.float64)
        self.dataset = dataset
        self.gold = np.full(self.n_rows, np.nan)
        if "gold_reward" in dataset.column_names:
            self.gold = columns.numbers(dataset, "gold_reward", "hack_scan")[self.rows]
        self.groups = sparse.csr_matrix(
            (np.ones(self.n_rows), (self.codes, np.arange(self.n_rows))),
            shape=(self.n_tasks, self.n_rows),
        )

    def centred(self, values: Floats) -> Floats:
        """Subtract the mean of each task."""
        means = np.bincount(self.codes, values, self.n_tasks) / np.maximum(self.counts, 1)
        return np.asarray(values - means[self.codes])

    def column(self, name: str) -> list[Any]:
        """Return a column at the rows of the scan."""
        return list(self.dataset.with_format(None).select(self.rows)[name][:])


class Labelled:
    """The rows of a scan that have gold, in the shape that `Shuffles` reads."""

    def __init__(self, data: Graded, at: Ints) -> None:
        _, self.codes = np.unique(data.codes[at], return_inverse=True)
        self.n_rows, self.n_tasks = at.size, int(self.codes.max()) + 1
        self.counts = np.bincount(self.codes, minlength=self.n_tasks).astype(np.float64)
        self.groups = sparse.csr_matrix(
            (np.ones(at.size), (self.codes, np.arange(at.size))), shape=(self.n_tasks, at.size)
        )

    def centred(self, values: Floats) -> Floats:
        """Subtract the mean of each task."""
        means = np.bincount(self.codes, values, self.n_tasks) / self.counts
        return np.asarray(values - means[self.codes])


class Shuffles:
    """Correlations of all features at once, and the largest of them under shuffles within tasks."""

    def __init__(self, data: Grouped, matrix: sparse.csc_matrix, draws: int, seed: int) -> None:
        self.data, self.draws, self.seed, self.matrix = data, draws, seed, matrix
        sums = data.groups @ matrix
        squares = data.groups @ matrix.power(2)
        scaled = sums.power(2).multiply(1 / data.counts[:, None])
        #: Sum of squares of each feature within each task, (tasks, features).
        self.within = (squares - scaled).tocsc()

    def statistic(self, reward: Floats) -> tuple[Floats, Floats]:
        """Standardized score and pooled correlation of each feature, (features,)."""
        dot = np.asarray(self.matrix.T @ reward).ravel()
        total = np.asarray(self.within.sum(axis=0)).ravel()
        correlation = dot / np.sqrt(np.maximum(total * float(reward @ reward), 1e-300))
        return self._z(dot, reward), np.clip(correlation, -1, 1)

    def spread(self, reward: Floats) -> Floats:
        """Standard deviation of the score under shuffles within tasks, (features,)."""
        data = self.data
        squares = np.bincount(data.codes, reward**2, data.n_tasks)
        weight = squares / np.maximum(data.counts - 1, 1)
        variance = np.asarray(self.within.T @ weight, dtype=np.float64).ravel()
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))

    def _z(self, dot: Floats, reward: Floats) -> Floats:
        spread = self.spread(reward)
        return np.where(spread > 1e-9, dot / np.maximum(spread, 1e-9), 0.0)

    def p_values(self, z: Floats, reward: Floats, tested: NDArray[np.bool_]) -> Floats:
        """Chance that the largest |z| of the tested features is as large on a shuffled reward."""
        largest = self.largest(reward, tested)
        above = (largest[None, :] >= np.abs(z)[:, None] - 1e-9).sum(axis=1)
        return np.asarray((above + 1) / (self.draws + 1))

    def largest(self, reward: Floats, tested: NDArray[np.bool_]) -> Floats:
        """Largest |z| of each shuffle, (draws,)."""
        rng = np.random.default_rng(self.seed)
        spread = self.spread(reward)
        tested = tested & (spread > 1e-9)
        matrix, spread = self.matrix[:, tested].T.tocsr(), spread[tested]
        if not spread.size:
            return np.zeros(self.draws)
        out = []
        for start in range(0, self.draws, 50):
            shuffled = np.stack(
                [self._shuffled(reward, rng) for _ in range(min(50, self.draws - start))], axis=1
            )
            out.append(np.abs(matrix @ shuffled / spread[:, None]).max(axis=0))
        return np.concatenate(out)

    def _shuffled(self, reward: Floats, rng: np.random.Generator) -> Floats:
        """Shuffle within tasks: rows are sorted by task, so a sort by (task, chance) shuffles them."""
        order = np.argsort(self.data.codes + rng.random(reward.size), kind="stable")
        return reward[order]
