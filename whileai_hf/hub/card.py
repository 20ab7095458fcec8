"""The dataset card: what the rows are, what was measured on them, and how to load them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datasets import Dataset
from huggingface_hub import DatasetCard

from whileai_hf import schema
from whileai_hf.measure.pass_at import pass_at

#: Tags by which the Hub finds such datasets.
TAGS = ("agents", "post-training", "tool-use", "whileai-hf")

_MEANING = {
    "task_id": "the task; every statistic groups by it",
    "tools": "tool schemas, verbatim, or null",
    "situation": "the grid cell that was asked",
    "world": "seed, state and fault schedule of the world",
    "privileged": "what only a judge may read: reference, tests, hidden state",
    "messages": "the conversation, system and user turn included",
    "loss_mask": "1 on the messages that are trained on",
    "reward": "what the judge paid, null where it could not",
    "judge_status": ", ".join(schema.JUDGE_STATUSES),
    "markers": "named facts, 1.0 is the good outcome",
}


def card_text(dataset: Dataset, repo_id: str, split: str, withheld: Sequence[str] = ()) -> str:
    """Write the text of a card, without its metadata.

    Args:
        dataset: The rows as they are published.
        repo_id: Where they are published.
        split: Name of the split.
        withheld: Columns that were taken out before publishing.
    """
    lines = [f"# {repo_id.rsplit('/', 1)[-1]}", "", _summary(dataset), ""]
    numbers = _numbers(dataset)
    if numbers:
        lines += ["## Measured", "", "```text", numbers, "```", ""]
    lines += ["## Load", "", "```python", "from datasets import load_dataset", ""]
    lines += [f'dataset = load_dataset("{repo_id}", split="{split}")', "```", ""]
    lines += ["## Columns", "", "| column | holds |", "|---|---|"]
    lines += [f"| `{c}` | {_MEANING.get(c, _kind(dataset, c))} |" for c in dataset.column_names]
    if withheld:
        names = ", ".join(f"`{name}`" for name in withheld)
        lines += ["", f"Withheld, because only a judge may read them: {names}."]
    return "\n".join(lines) + "\n"


def add_card(
    card: DatasetCard, text: str, license: str | None = None, language: Sequence[str] = ()
) -> DatasetCard:
    """Put our text and tags into the card that `push_to_hub` wrote, keeping its metadata."""
    card.text = text
    data: Any = card.data
    data.tags = sorted({*(getattr(data, "tags", None) or []), *TAGS})
    if license is not None:
        data.license = license
    if language:
        data.language = list(language)
    return card


def _summary(dataset: Dataset) -> str:
    tasks = len(set(dataset["task_id"][:])) if "task_id" in dataset.column_names else None
    of = f" of {tasks} tasks" if tasks is not None else ""
    return (
        f"{len(dataset)} rollouts{of} of a language-model agent that calls tools, one row a "
        "rollout, made with [whileai-hf](https://pypi.org/project/whileai-hf/)."
    )


def _numbers(dataset: Dataset) -> str:
    graded = {"task_id", "reward"} <= set(dataset.column_names)
    if not graded or all(reward is None for reward in dataset["reward"][:]):
        return ""
    return str(pass_at(dataset))


def _kind(dataset: Dataset, column: str) -> str:
    feature = dataset.features[column]
    return getattr(feature, "dtype", None) or type(feature).__name__.lower()
