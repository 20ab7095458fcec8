"""Publish rollouts on the Hub: gated, without what only a judge may read, and with a card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from datasets import Dataset
from huggingface_hub import DatasetCard

from whileai_hf import columns, schema
from whileai_hf.errors import InputError
from whileai_hf.hub.card import add_card, card_text
from whileai_hf.hub.gate import GateReport, publish_gate


@dataclass(frozen=True, slots=True)
class Pushed:
    """What was published; `print(result)` is the line to quote."""

    repo_id: str
    split: str
    url: str  #: of the commit
    n_rows: int
    withheld: tuple[str, ...]  #: columns that stayed here
    gate: GateReport | None  #: null with `gate=False`

    def __str__(self) -> str:
        kept = f", without {', '.join(self.withheld)}" if self.withheld else ""
        return f"{self.n_rows} rollouts in {self.repo_id} ({self.split}){kept}: {self.url}"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {**fields, "gate": self.gate.to_dict() if self.gate else None}


def push(
    dataset: Dataset,
    repo_id: str,
    *,
    split: str = "train",
    config: str = "default",
    mode: str | None = None,
    gate: bool = True,
    privileged: bool = False,
    private: bool = True,
    license: str | None = None,
    revision: str | None = None,
    token: str | None = None,
) -> Pushed:
    """Publish rollouts as a dataset on the Hub.

    The rows go as Parquet with explicit features, so that `load_dataset` and `whileai_hf.load` give
    them back as they are. The columns that only a judge may read (`world`, `privileged`) stay here
    unless they are asked for.

    Args:
        dataset: The rollouts.
        repo_id: `"user/name"`, made if it does not exist.
        split: Name of the split.
        config: Name of the configuration.
        mode: What the rows are for, `"rl"`, `"sft"` or `"eval"`; null takes it from the selection
            that made the rows.
        gate: Whether to refuse ungraded rows and, for RL, rows without a gradient.
        privileged: Whether `world` and `privileged` go along. An evaluation set that anybody can
            download is one that anybody can train on.
        private: Whether a new repository is private.
        license: License of the data, such as `"apache-2.0"`, for the card.
        revision: Branch to push to.
        token: Hub token; null uses the one you are logged in with.

    Raises:
        GuardError: The gate refused; `.report` says why.
        InputError: `repo_id` is no `user/name`.
    """
    columns.check_dataset(dataset, "push")
    if repo_id.count("/") != 1 or not all(repo_id.split("/")):
        raise InputError(
            f"repo_id must be 'user/name'; got {repo_id!r}. Put your user or organisation first."
        )
    mode = mode or getattr(getattr(dataset, "report", None), "mode", None)
    report = publish_gate(dataset, mode) if gate else None
    withheld = tuple(c for c in schema.PRIVATE if c in dataset.column_names and not privileged)
    rows = Dataset.remove_columns(dataset, list(withheld)) if withheld else dataset
    where = {"revision": revision, "token": token}
    Dataset.push_to_hub(rows, repo_id, config, split=split, private=private, **where)
    card = DatasetCard.load(repo_id, repo_type="dataset", token=token)
    add_card(card, card_text(rows, repo_id, split, withheld), license)
    url = card.push_to_hub(
        repo_id, repo_type="dataset", token=token, revision=revision,
        commit_message="Say what the rows are and what was measured on them",
    )  # fmt: skip
    return Pushed(repo_id, split, str(url), len(rows), withheld, report)
