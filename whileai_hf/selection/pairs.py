"""Preference pairs out of graded rollouts, for DPO and reward models; labelled replies, for KTO.

Two replies are compared only where they answer the same words of the same task and earned rewards
that differ by a margin. The reply that lies nearest in length is preferred as a partner, because a
pair of a long and a short reply teaches length first.

References:
    Rafailov et al. 2023, arXiv:2305.18290 (DPO); Ethayarajh et al. 2024, arXiv:2402.01306 (KTO); Singhal
    et al. 2023, arXiv:2310.03716 (length in preference data).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset, DatasetInfo, Features, Json, List, Value
from datasets.fingerprint import Hasher

from whileai_hf import columns, defaults, schema
from whileai_hf.errors import InputError
from whileai_hf.rollouts import Rollouts
from whileai_hf.selection.group_stats import TOLERANCE
from whileai_hf.selection.pair_report import UnpairedReport, pair_report
from whileai_hf.selection.replies import Messages, Reply, branch, one_turn, replies

_MESSAGES = List(Json())

#: Columns of a pair.
PAIR = Features({
    "prompt": _MESSAGES, "chosen": _MESSAGES, "rejected": _MESSAGES, "tools": _MESSAGES, "task_id": Value("string"),
    "chosen_reward": Value("float64"), "rejected_reward": Value("float64"), "chosen_id": Value("string"),
    "rejected_id": Value("string"), "first_turn_identical": Value("bool"),
})  # fmt: skip

#: Columns of a labelled reply.
UNPAIRED = Features({
    "prompt": _MESSAGES, "completion": _MESSAGES, "label": Value("bool"), "tools": _MESSAGES, "task_id": Value("string"),
    "reward": Value("float64"), "rollout_id": Value("string"),
})  # fmt: skip

_NO_CONTRAST = "no contrast"
_TWO_REWARDS = "same reply, two rewards"
_TOO_LONG = "longer than max_tokens"
_UNUSED = "unjudged, or no reply"


def build_preference_pairs(
    dataset: Dataset,
    *,
    min_margin: float = defaults.PREFERENCE_MARGIN,
    max_pairs: int = 1,
    length_match: bool = True,
    first_turn: bool = False,
    max_tokens: int | None = None,
) -> Rollouts:
    """Pair better with worse replies to the same prompt, for `DPOTrainer` and `RewardTrainer`.

    What both replies share belongs to the prompt: a pair branches at the first agent turn that
    differs. Pass the pairs to `to_dpo` or `to_reward` for the rows of a trainer.

    Args:
        dataset: Graded rollouts.
        min_margin: Difference in reward that a pair has at least, above 0.
        max_pairs: Pairs of one prompt at most; no reply is chosen twice or rejected twice.
        length_match: Whether partners are taken nearest in length (characters the agent wrote, in
            logarithms); else by the largest margin.
        first_turn: Whether a reply ends with the turn that differs and the results of its calls, so
            that a pair differs in one agent turn. The reward is still that of the whole rollout.
        max_tokens: Leave out replies with more `n_tokens`.

    Returns:
        Pairs with `prompt`, `chosen`, `rejected` (messages), `tools`, `task_id`, `chosen_reward`,
        `rejected_reward`, `chosen_id`, `rejected_id` and `first_turn_identical`; `.report` says which
        prompts gave none and why, and what length alone would get right.

    Raises:
        InputError: An option is out of range.
        SchemaError: A column is missing.
    """
    step = "build_preference_pairs"
    _check_options(min_margin, max_pairs)
    usable, left_out = _usable(dataset, max_tokens, step)
    made: list[dict[str, Any]] = []
    lengths: list[tuple[str, int, int]] = []
    without: Counter[str] = Counter()
    groups: dict[tuple[str, bytes], list[Reply]] = {}
    for reply in usable:
        groups.setdefault(reply.prompt_key, []).append(reply)
    for group in groups.values():
        group, doubtful = _agreed(group)
        found = _partners(group, min_margin, max_pairs, length_match)
        if doubtful:
            left_out[_TWO_REWARDS] += doubtful
        if not found:
            without[_TWO_REWARDS if doubtful else _NO_CONTRAST] += 1
        for better, worse in found:
            made.append(_pair(better, worse, first_turn))
            lengths.append((better.task, better.length, worse.length))
    report = pair_report(len(dataset), len(groups), lengths, made, without, left_out)
    return Rollouts.of(_dataset(made, PAIR), report, report.warnings)


def build_unpaired(
    dataset: Dataset,
    *,
    desirable: float = defaults.KTO_THRESHOLD,
    undesirable: float | None = None,
    max_tokens: int | None = None,
) -> Rollouts:
    """Label replies as desirable or not, for `KTOTrainer`.

    Args:
        dataset: Graded rollouts.
        desirable: Reward from which a reply is desirable.
        undesirable: Reward up to which a reply is undesirable; those between the two are left out.
            Null takes all below `desirable`.
        max_tokens: Leave out replies with more `n_tokens`.

    Returns:
        Rows with `prompt`, `completion` (messages), `label`, `tools`, `task_id`, `reward` and
        `rollout_id`; `.report` counts both labels and gives the weights that balance them.

    Raises:
        InputError: `undesirable` is not below `desirable`.
        SchemaError: A column is missing.
    """
    if undesirable is not None and not undesirable < desirable:
        raise InputError(
            f"undesirable must lie below desirable, {desirable!r}; got {undesirable!r}. "
            "Leave it out to call everything below desirable undesirable."
        )
    usable, left_out = _usable(dataset, max_tokens, "build_unpaired")
    groups: dict[tuple[str, bytes], list[Reply]] = {}
    for reply in usable:
        groups.setdefault(reply.prompt_key, []).append(reply)
    agreed = []
    for group in groups.values():
        kept, doubtful = _agreed(group)
        agreed += kept
        left_out[_TWO_REWARDS] += doubtful
    made = []
    for reply in sorted(agreed, key=lambda r: r.row):
        good = reply.reward >= desirable - TOLERANCE
        if not good and undesirable is not None and reply.reward > undesirable + TOLERANCE:
            left_out["between the two thresholds"] += 1
            continue
        made.append({
            "prompt": reply.prompt, "completion": reply.turns, "label": good, "tools": reply.tools,
            "task_id": reply.task, "reward": reply.reward, "rollout_id": reply.name,
        })  # fmt: skip
    n_good = sum(row["label"] for row in made)
    report = UnpairedReport(len(dataset), n_good, len(made) - n_good, dict(+left_out))
    return Rollouts.of(_dataset(made, UNPAIRED), report)


def _check_options(min_margin: Any, max_pairs: Any) -> None:
    if not isinstance(min_margin, (int, float)) or not min_margin > 0:
        raise InputError(
            f"min_margin must be above 0, or no reply is the better one; got {min_margin!r}. "
            f"The default is {defaults.PREFERENCE_MARGIN}."
        )
    if isinstance(max_pairs, bool) or not isinstance(max_pairs, int) or max_pairs < 1:
        raise InputError(
            f"max_pairs must be a whole number of at least 1; got {max_pairs!r}. Use 1."
        )


def _usable(
    dataset: Dataset, max_tokens: int | None, step: str
) -> tuple[list[Reply], Counter[str]]:
    """Return the replies that can be compared, and how many rows fall out why."""
    if max_tokens is not None:
        columns.check_dataset(dataset, step)
        columns.check_columns(dataset, ["n_tokens"], f"{step}(max_tokens=…)")
    found = list(replies(dataset, step))
    left_out: Counter[str] = Counter({_UNUSED: len(dataset) - len(found)})
    short = [r for r in found if max_tokens is None or r.tokens is None or r.tokens <= max_tokens]
    left_out[_TOO_LONG] = len(found) - len(short)
    return short, left_out


def _agreed(group: Sequence[Reply]) -> tuple[list[Reply], int]:
    """Return one reply of each wording, and how many rows have a wording with two rewards."""
    by: dict[bytes, list[Reply]] = {}
    for reply in group:
        by.setdefault(reply.said, []).append(reply)
    kept, doubtful = [], 0
    for same in by.values():
        rewards = [r.reward for r in same]
        if max(rewards) - min(rewards) > TOLERANCE:
            doubtful += len(same)
        else:
            kept.append(same[0])
    return kept, doubtful


def _partners(
    group: Sequence[Reply], min_margin: float, max_pairs: int, length_match: bool
) -> list[tuple[Reply, Reply]]:
    """Pick pairs greedily, each reply once on a side: nearest in length, then the largest margin."""
    reward = np.array([r.reward for r in group])
    size = np.log1p(np.array([r.length for r in group], dtype=np.float64))
    better, worse = np.nonzero(reward[:, None] - reward[None] >= min_margin - TOLERANCE)
    margin = -(reward[better] - reward[worse])
    away = np.abs(size[better] - size[worse])
    keys = (margin, away) if length_match else (away, margin)
    chosen: set[int] = set()
    rejected: set[int] = set()
    found = []
    for at in np.lexsort((worse, better, *keys)):
        a, b = int(better[at]), int(worse[at])
        if a not in chosen and b not in rejected:
            found.append((group[a], group[b]))
            chosen.add(a)
            rejected.add(b)
        if len(found) == max_pairs:
            break
    return found


def _pair(better: Reply, worse: Reply, first_turn: bool) -> dict[str, Any]:
    at = branch(better.turns, worse.turns)
    sides: list[Messages] = [better.turns[at:], worse.turns[at:]]
    if first_turn:
        sides = [one_turn(side) for side in sides]
    return {
        "prompt": better.prompt + better.turns[:at], "chosen": sides[0], "rejected": sides[1], "tools": better.tools,
        "task_id": better.task, "chosen_reward": better.reward, "rejected_reward": worse.reward,
        "chosen_id": better.name, "rejected_id": worse.name, "first_turn_identical": at > 0,
    }  # fmt: skip


def _dataset(rows: Sequence[dict[str, Any]], features: Features) -> Dataset:
    """Write rows with their features; messages exactly, as `datasets` itself does not."""
    if not rows:
        return Dataset.from_dict({name: [] for name in features}, features=features)
    arrays = {}
    for name, field in zip(features, features.arrow_schema, strict=True):
        values = [row[name] for row in rows]
        is_json = isinstance(features[name], List)
        arrays[name] = schema.message_array(values) if is_json else pa.array(values, field.type)
    table = pa.table(arrays)
    return Dataset(table, info=DatasetInfo(features=features), fingerprint=Hasher.hash(rows))
