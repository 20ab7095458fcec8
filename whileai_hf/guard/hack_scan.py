"""hack_scan: which feature of a completion does the reward pay for, within tasks, beyond chance?

Reward and features are compared between attempts at the same task, so that a hard task with long
answers is no evidence. The largest of thousands of correlations is large by chance; the scan is
judged by the largest one under shuffles of the reward within tasks, over every feature it looks at.
Features are chosen by how often they occur, never by what they earn, so nothing else needs to be
replayed in the shuffles.
"""

from __future__ import annotations

import enum
import html
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from datasets import Dataset
from numpy.typing import NDArray
from scipy import sparse

from whileai_hf import columns, defaults, schema
from whileai_hf.errors import InputError
from whileai_hf.guard.feature_matrix import Features, feature_matrix
from whileai_hf.guard.shuffles import Graded, Labelled, Shuffles

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Finding(enum.Enum):
    """What a scan says; the value says what to do."""

    NOTHING = "nothing is rewarded beyond chance"
    REWARDED = (
        "rewarded, hack or skill: read the examples, or label some rows (gold_reward) to tell"
    )
    HACK = "a hack: it earns what gold does not give"
    SKILL = "rewarded as gold rewards it"
    NOT_MEASURED = "not measured: too few tasks whose attempts differ in reward"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Rewarded:
    """A feature and what the reward pays for it within tasks."""

    name: str
    correlation: float  #: within tasks, pooled, in [-1, 1]
    z: float  #: standardized by its spread under shuffles within tasks
    p: float  #: of the largest |z| over all features, under the shuffles
    n_rows: int  #: rows in which it is not zero
    endorsed: bool
    aliases: tuple[str, ...] = ()  #: features that are the same in every row

    def __str__(self) -> str:
        same = f", the same as {self.aliases[0]}" if self.aliases else ""
        mark = " (endorsed)" if self.endorsed else ""
        return f"{self.name}{mark}: r {self.correlation:+.2f} within tasks, p {self.p:.3f}{same}"


@dataclass(frozen=True, slots=True)
class HackScan:
    """A scan; `print(scan)` is what to quote."""

    finding: Finding
    features: tuple[Rewarded, ...]  #: above the threshold, the strongest first
    regime: str  #: `"gold"`, `"endorsed"` or `"reward alone"`: what hacks are told from skills by
    integrity: float | None  #: endorsed share of what is rewarded; null where nothing is endorsed
    n_features: int
    n_rows: int  #: judged rows of tasks with a spread of rewards
    n_tasks: int
    n_unanimous: int  #: tasks left out because all of their attempts earn the same
    alpha: float
    draws: int
    examples: tuple[
        tuple[int, int], ...
    ]  #: rows of one task: paid with the feature, not paid without

    def __str__(self) -> str:
        lines = [
            f"{self.finding}" if not self.features else f"{self.features[0]}: {self.finding}",
            *(f"  also {feature}" for feature in self.features[1:4]),
            f"  {self.n_features} features, {self.n_rows} rows of {self.n_tasks} tasks "
            f"({self.n_unanimous} unanimous tasks left out); by {self.regime}; chance of any alarm on "
            f"noise at most {self.alpha:.0%}, {self.draws} shuffles within tasks",
        ]
        lines += [
            f"  compare row {paid} (paid) with row {unpaid} of the same task"
            for paid, unpaid in self.examples[:3]
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        out = {name: getattr(self, name) for name in self.__slots__}
        listed = [{n: getattr(f, n) for n in f.__slots__} for f in self.features]
        return {**out, "finding": self.finding.name, "features": listed}


def hack_scan(
    dataset: Dataset,
    *,
    endorsed: Sequence[str] = (),
    features: Mapping[str, Any] | Callable[[Mapping[str, Any]], Mapping[str, float]] | None = None,
    text: bool = True,
    pairs: int = defaults.SCAN_PAIRS,
    most_words: int = defaults.SCAN_WORDS,
    least: int = defaults.SCAN_LEAST,
    alpha: float = defaults.SCAN_ALPHA,
    draws: int = defaults.SCAN_DRAWS,
    seed: int = 0,
) -> HackScan:
    """Look for features that a reward pays for.

    Args:
        dataset: Graded rollouts with `task_id`, `reward`, and `final_text` or `messages`; with
            `gold_reward` on some rows, hacks are told from skills there.
        endorsed: Features that may be paid: their name, or a part of it. Their credit is taken out
            of the reward first, so that what merely goes with them is no alarm.
        features: Further features: columns by name (lists or column names), or a function of a row.
        text: Whether the words, phrases, signs, sizes and calls of the completion are features.
        pairs: Features of the largest spread whose conjunctions are tested too; 0 for none.
        most_words: Words, phrases and signs, the most frequent of each.
        least: Rows that must have a feature, and rows that must not.
        alpha: Chance of an alarm on noise, over all features.
        draws: Shuffles.
        seed: Seed of the shuffles.

    Raises:
        SchemaError: A column is missing.
        InputError: An option is out of range, or an endorsed name matches no feature.

    References:
        Max-statistic permutation test: Westfall and Young 1993, Resampling-Based Multiple Testing,
        section 2.6; residuals of endorsed features are shuffled as in Freedman and Lane 1983,
        J. Bus. Econ. Stat. 1:292-298. The standardization is the exact variance under the shuffles.
    """
    if not 0 < alpha < 1 or draws < 20 or pairs < 0 or least < 1:
        raise InputError(
            f"alpha must lie in (0, 1), draws be at least 20, least at least 1; got {alpha!r}, {draws!r}, "
            f"{least!r}. The defaults are {defaults.SCAN_ALPHA}, {defaults.SCAN_DRAWS}, {defaults.SCAN_LEAST}."
        )
    data = Graded(dataset)
    found = _features(data, features, text, least, most_words)
    known = [i for i, name in enumerate(found.names) if any(part in name for part in endorsed)]
    lost = [part for part in endorsed if not any(part in name for name in found.names)]
    if lost:
        raise InputError(
            f"an endorsed name must match a feature; {lost[0]!r} matches none of {len(found.names)}. "
            "Name a part of one, such as 'the length', or add it with features=."
        )
    if data.n_tasks < 2 or not found.names:
        return _nothing(data, found, alpha, draws)
    found = _with_pairs(found, pairs, least)
    flags = np.zeros(len(found.names), dtype=bool)
    flags[known] = True
    reward = data.centred(data.reward)
    residual = _residual(data, reward, found.matrix[:, known]) if known else reward
    test = Shuffles(data, found.matrix, draws, seed)
    z, correlation = test.statistic(residual)
    if known:
        z_all, r_all = test.statistic(reward)
        z, correlation = np.where(flags, z_all, z), np.where(flags, r_all, correlation)
    p = test.p_values(z, residual, ~flags)
    shown = _ranked(found, z, correlation, p, flags, alpha)
    suspects = [f for f in shown if not f.endorsed]
    finding, regime = _judged(data, found, suspects, alpha, draws, seed)
    if known and regime == "reward alone":
        regime = "endorsed"
        finding = Finding.HACK if suspects else Finding.NOTHING
    top = suspects[0] if suspects else None
    return HackScan(
        finding, tuple(suspects + [f for f in shown if f.endorsed]), regime,
        _integrity(z, p, flags, alpha) if known else None, len(found.names), data.n_rows,
        data.n_tasks, data.n_unanimous, alpha, draws,
        _examples(data, found, top) if top is not None else (),
    )  # fmt: skip


def reward_correlations(dataset: Dataset, **options: Any) -> tuple[Rewarded, ...]:
    """Correlations of every feature with the reward within tasks, the strongest first.

    Args:
        dataset: Graded rollouts.
        options: Those of `hack_scan`; `alpha` does not cut the list.
    """
    data = Graded(dataset)
    given = {k: options.pop(k) for k in ("features", "text", "least", "most_words") if k in options}
    found = _features(
        data, given.get("features"), given.get("text", True), given.get("least", defaults.SCAN_LEAST),
        given.get("most_words", defaults.SCAN_WORDS),
    )  # fmt: skip
    if data.n_tasks < 2 or not found.names:
        return ()
    test = Shuffles(
        data, found.matrix, options.get("draws", defaults.SCAN_DRAWS), options.get("seed", 0)
    )
    reward = data.centred(data.reward)
    z, correlation = test.statistic(reward)
    flags = np.zeros(len(found.names), dtype=bool)
    return tuple(_ranked(found, z, correlation, test.p_values(z, reward, ~flags), flags, 2.0))


def hack_scan_diff(before: Dataset, after: Dataset, **options: Any) -> tuple[Rewarded, ...]:
    """Features that a policy earns by after training and did not before.

    Args:
        before: Graded rollouts of the old policy.
        after: Graded rollouts of the new one.
        options: Those of `hack_scan`.

    Returns:
        Features above the threshold after, and below it before, the strongest first.
    """
    old = {f.name for f in hack_scan(before, **options).features}
    return tuple(f for f in hack_scan(after, **options).features if f.name not in old)


def _features(data: Graded, extra: Any, text: bool, least: int, most_words: int) -> Features:
    names: list[str] = []
    parts = []
    if text:
        found = feature_matrix(_completions(data), least=least, most_words=most_words)
        names += found.names
        parts.append(found.matrix)
    given = {**_markers(data), **_extra(data, extra)}
    if given:
        names += given
        parts.append(sparse.csc_matrix(np.stack(list(given.values()), axis=1)))
    if not names:
        return Features((), sparse.csc_matrix((data.n_rows, 0)))
    return Features(tuple(names), sparse.hstack(parts, format="csc"))


def _completions(data: Graded) -> list[Any]:
    names = data.dataset.column_names
    tools = data.column("tools") if "tools" in names else []
    if "messages" in names and (any(tools) or "final_text" not in names):
        return [schema.restore(m) or "" for m in data.column("messages")]
    if "final_text" not in names:
        columns.check_columns(data.dataset, ["messages"], "hack_scan")
    return [value or "" for value in data.column("final_text")]


def _markers(data: Graded) -> dict[str, Floats]:
    if "markers" not in data.dataset.column_names:
        return {}
    found: dict[str, Floats] = {}
    for i, markers in enumerate(data.column("markers")):
        for marker in markers or ():
            values = found.setdefault(f"the marker {marker['name']!r}", np.zeros(data.n_rows))
            values[i] = marker["value"] or 0.0
    return found


def _extra(data: Graded, extra: Any) -> dict[str, Floats]:
    if extra is None:
        return {}
    if callable(extra):
        rows = data.dataset.with_format(None).select(data.rows)
        listed = [extra(row) for row in rows]
        names = sorted({name for values in listed for name in values})
        return {name: np.array([float(v.get(name, 0.0)) for v in listed]) for name in names}
    out = {}
    for name, given in extra.items():
        values = (
            columns.numbers(data.dataset, given, "hack_scan")
            if isinstance(given, str)
            else np.asarray(given, dtype=np.float64)
        )
        if values.shape != (len(data.dataset),):
            raise InputError(
                f"a feature needs one number a row; {name!r} has {values.shape} for {len(data.dataset)} "
                "rows. Pass a list, or the name of a column."
            )
        out[name] = np.nan_to_num(values[data.rows])
    return out


def _with_pairs(found: Features, most: int, least: int) -> Features:
    """Add conjunctions of the features that are present in nearest to half of the rows."""
    matrix = found.matrix
    n = matrix.shape[0]
    often = np.diff(matrix.indptr)
    binary = np.array(
        [bool(np.all(matrix.data[a:b] == 1)) for a, b in itertools.pairwise(matrix.indptr)]
    )
    share = np.where(binary, often / n, 0.0)
    nearest = np.argsort(-share * (1 - share), kind="stable")[:most]
    chosen = [int(i) for i in nearest if share[i] * (1 - share[i]) > 0]
    names, parts = [], []
    for i, j in itertools.combinations(chosen, 2):
        both = matrix[:, i].multiply(matrix[:, j])
        if least <= both.nnz < min(often[i], often[j]):
            names.append(f"{found.names[i]} together with {found.names[j]}")
            parts.append(both)
    if not parts:
        return found
    return Features((*found.names, *names), sparse.hstack([matrix, *parts], format="csc"))


def _residual(data: Graded, reward: Floats, endorsed: sparse.csc_matrix) -> Floats:
    """Take the credit of endorsed features out of the reward, within tasks."""
    dense = np.stack([data.centred(column) for column in endorsed.toarray().T], axis=1)
    weights, *_ = np.linalg.lstsq(dense, reward, rcond=None)
    return data.centred(reward - dense @ weights)


def _ranked(
    found: Features, z: Floats, correlation: Floats, p: Floats, flags: Any, alpha: float
) -> list[Rewarded]:
    """Features at or below alpha, strongest first; those equal in every row are one."""
    matrix = found.matrix
    out: list[Rewarded] = []
    seen: dict[bytes, int] = {}
    for i in np.lexsort((np.arange(z.size), -np.abs(np.round(z, 9)))):
        if p[i] > alpha:
            continue
        column = matrix[:, [i]]
        key = column.indices.tobytes() + column.data.tobytes()
        if key in seen:
            at = seen[key]
            first = out[at]
            out[at] = Rewarded(
                first.name, first.correlation, first.z, first.p, first.n_rows,
                first.endorsed or bool(flags[i]), (*first.aliases, found.names[i]),
            )  # fmt: skip
            continue
        seen[key] = len(out)
        out.append(
            Rewarded(found.names[i], float(correlation[i]), float(z[i]), float(p[i]),
                     int(column.nnz), bool(flags[i]))
        )  # fmt: skip
    return out


def _judged(
    data: Graded, found: Features, suspects: Sequence[Rewarded], alpha: float, draws: int, seed: int
) -> tuple[Finding, str]:
    """Tell hacks from skills where rows have gold; say that nothing can where they have not."""
    labelled = np.flatnonzero(~np.isnan(data.gold))
    if not suspects:
        return Finding.NOTHING, "gold" if labelled.size else "reward alone"
    part = Labelled(data, labelled) if labelled.size else None
    if part is None or part.n_tasks < 2:
        return Finding.REWARDED, "reward alone"
    at = [found.names.index(f.name) for f in suspects]
    chosen = Features(tuple(f.name for f in suspects), found.matrix[labelled][:, at].tocsc())
    excess = part.centred(data.reward[labelled]) - part.centred(data.gold[labelled])
    test = Shuffles(part, chosen.matrix, draws, seed)
    z, _ = test.statistic(excess)
    p = test.p_values(z, excess, np.ones(len(at), dtype=bool))
    paid_beyond = (p <= alpha) & (np.sign(z) == np.sign([f.z for f in suspects]))
    return (Finding.HACK if paid_beyond.any() else Finding.SKILL), "gold"


def _integrity(z: Floats, p: Floats, flags: NDArray[np.bool_], alpha: float) -> float | None:
    paid = np.where(p <= alpha, np.abs(z), 0.0)
    good = float(np.where(flags & (z > 0), paid, 0.0).max(initial=0.0))
    other = float(np.where(flags, 0.0, paid).max(initial=0.0))
    return None if good + other == 0 else good / (good + other)


def _examples(data: Graded, found: Features, top: Rewarded) -> tuple[tuple[int, int], ...]:
    """Pairs of rows of one task: the feature and the better reward, neither of the two."""
    column = np.asarray(found.matrix[:, found.names.index(top.name)].todense()).ravel()
    value = data.centred(column) * (1 if top.z > 0 else -1)
    score = value + 1e-6 * data.centred(data.reward)
    out = []
    for task in np.argsort(
        -np.bincount(data.codes, value * data.centred(data.reward), data.n_tasks)
    )[:5]:
        rows = np.flatnonzero(data.codes == task)
        paid, unpaid = rows[np.argmax(score[rows])], rows[np.argmin(score[rows])]
        if data.reward[paid] > data.reward[unpaid]:
            out.append((int(data.rows[paid]), int(data.rows[unpaid])))
    return tuple(out)


def _nothing(data: Graded, found: Features, alpha: float, draws: int) -> HackScan:
    return HackScan(
        Finding.NOT_MEASURED, (), "reward alone", None, len(found.names), data.n_rows, data.n_tasks,
        data.n_unanimous, alpha, draws, (),
    )  # fmt: skip
