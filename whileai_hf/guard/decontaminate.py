"""decontaminate: leave out training rows that hold what an evaluation asks.

Five rules, each a value of the column `contamination`: the same task, the same words, most of the
words in shared runs (of the row, or of the held-out text inside a longer row), the same meaning by
an embedder, and the same template with other numbers, which is reported and dropped by no default.

References:
    Brown et al. 2020, arXiv:2005.14165, appendix C; Touvron et al. 2023 (Llama 2), arXiv:2307.09288,
    appendix A.6; Lambert et al. 2024 (Tulu 3), arXiv:2411.15124, section 3.2. They ask how much of a
    training or test text is shared; here both are asked, and words of a template count on neither side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from datasets import Dataset, Features, IterableDataset

from whileai_hf import columns, defaults
from whileai_hf.errors import InputError
from whileai_hf.guard.contamination import CONTAMINATION, RULES, Contamination, Embedder
from whileai_hf.guard.embedder import as_embedder
from whileai_hf.guard.held_out import prompt_columns, read_held_out
from whileai_hf.rollouts import Rollouts

D = TypeVar("D", Dataset, IterableDataset)

_WHY = {
    "same_task": "the task is held out",
    "exact": "a prompt has the words of a held-out one",
    "near": "it shares most of its words, in runs, with a held-out text",
    "semantic": "a prompt means what a held-out one means",
    "template": "other numbers in the template of a held-out text",
}


@dataclass(frozen=True, slots=True)
class Uncontaminated:
    """Keep rows in which no rule found held-out text; a row predicate for `Dataset.filter`.

    Attributes:
        drop: Rules that drop a row; all but `"template"` by default.
    """

    drop: tuple[str, ...] = RULES[:-1]
    version: int = 1  #: part of the fingerprint, so that a changed rule is no cache hit

    name: ClassVar[str] = "contaminated"
    why: ClassVar[str] = "it holds what an evaluation asks"
    reads: ClassVar[tuple[str, ...]] = ("contamination",)

    def __post_init__(self) -> None:
        unknown = [rule for rule in self.drop if rule not in RULES]
        if unknown:
            raise InputError(
                f"drop must name rules, of {', '.join(RULES)}; got {unknown[0]!r}. Pick among them."
            )

    def __call__(self, row: Mapping[str, Any]) -> bool:
        """Keep a row that no dropping rule names."""
        return row["contamination"]["rule"] not in self.drop


@dataclass(frozen=True, slots=True)
class ContaminationReport:
    """What was compared and what was found; `print(report)` is what to read."""

    n_in: int
    n_kept: int
    n_held_out: int  #: distinct held-out texts
    drop: tuple[str, ...]  #: rules that drop a row
    rules: dict[str, int]  #: rows by rule
    rules_skipped: dict[str, str]  #: rules that could not run, and why
    examples: dict[str, tuple[tuple[str, str, float], ...]]  #: row, held-out id and score, by rule
    dropped: Dataset = field(repr=False)  #: the dropped rows; `contamination` holds the reason

    def __str__(self) -> str:
        lines = [
            f"decontamination: kept {self.n_kept} of {self.n_in} rows against {self.n_held_out} held-out texts"
        ]
        for rule in RULES:
            if rule in self.rules_skipped:
                lines.append(f"  {rule:<9}  not run: {self.rules_skipped[rule]}")
                continue
            n = self.rules.get(rule, 0)
            verb = "dropped" if rule in self.drop else "reported, not dropped"
            lines.append(f"  {rule:<9}  {n:>5} {verb}" + (f": {_WHY[rule]}" if n else ""))
            lines += [f"             row {a} ~ {b} ({s:.2f})" for a, b, s in self.examples.get(rule, ())]  # fmt: skip
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the counts, for a log."""
        return {
            "n_in": self.n_in, "n_kept": self.n_kept, "n_held_out": self.n_held_out,
            "rules": dict(self.rules), "rules_skipped": dict(self.rules_skipped),
        }  # fmt: skip


def with_contamination(
    dataset: D,
    against: Any,
    *,
    fields: Sequence[str] | None = None,
    against_fields: Sequence[str] | None = None,
    n: int = defaults.DECONTAMINATION_NGRAM,
    overlap: float = defaults.DECONTAMINATION_OVERLAP,
    embedder: str | Embedder | None = None,
    similarity: float = defaults.DECONTAMINATION_SIMILARITY,
    common: int = defaults.TEMPLATE_TEXTS,
    contained: int = defaults.CONTAINED_WORDS,
    num_proc: int | None = None,
) -> D:
    """Add what each row shares with held-out texts, as the column `contamination`.

    The column holds `rule` (null for a clean row), `score` (for words the share that is covered, for
    meaning the cosine; in [0, 1]) and `matched`, the id of the held-out row. Words are those of any
    script, case, Unicode forms and punctuation folded; messages are searched turn by turn, the turns
    of users and of the agent.

    Args:
        dataset: Rows to train on, or a stream of them.
        against: What must not be in them: a dataset, a Hub id (`"me/evals"`, `"me/evals:test"`; every
            split but train), a path, a list of texts, of rows, or of any of these.
        fields: Columns to search. Default: the messages or the prompt, and the replies of pairs.
        against_fields: Columns to read of `against`. Default: what is asked.
        n: Words of a run.
        overlap: Share of a row's text, or of a held-out text, under shared runs from which it is a
            near copy, in (0, 1]. A tiny number makes any shared run one, which with `n=13` is GPT-3's rule.
        embedder: Texts to vectors (texts, dimensions), a callable or the path or Hub id of a sentence
            embedder; null skips the rule `semantic`.
        similarity: Cosine from which two texts say the same, in (0, 1].
        common: Held-out texts in which a run may stand before it counts as their template.
        contained: Words of a held-out text, too short for a run, that count inside a longer text.
        num_proc: Processes.

    Raises:
        InputError: An option is out of range, or `against` holds no text.
        SchemaError: No column with text is there.
    """
    columns.check_dataset(dataset, "with_contamination", stream=True)
    _check(n, overlap, similarity, common, contained)
    held_out = read_held_out(against, against_fields, n)
    transform = Contamination(
        _searched(dataset, fields), held_out, n, overlap, common, contained, as_embedder(embedder), similarity,
    )  # fmt: skip
    return _stated(dataset, transform, num_proc)


def decontaminate(
    dataset: Dataset,
    against: Any,
    *,
    drop: Sequence[str] = RULES[:-1],
    embedder: str | Embedder | None = None,
    **options: Any,
) -> Rollouts:
    """Leave out rows that hold what an evaluation asks.

    By hand: `with_contamination(dataset, against).filter(Uncontaminated())`.

    Args:
        dataset: Rows to train on.
        against: What must not be in them; see `with_contamination`.
        drop: Rules that drop a row: `same_task`, `exact`, `near`, `semantic`, `template`.
        embedder: See `with_contamination`.
        options: Those of `with_contamination`.

    Returns:
        The clean rows with the column `contamination`; `.report` says how many rows each rule named,
        which rules could not run, and holds the dropped rows.

    Raises:
        InputError: An option names nothing, or is out of range.
        SchemaError: No column with text is there.
    """
    columns.check_dataset(dataset, "decontaminate")
    gate = Uncontaminated(tuple(drop))
    n = options.get("n", defaults.DECONTAMINATION_NGRAM)
    held_out = read_held_out(against, options.get("against_fields"), n)
    stated = with_contamination(dataset, held_out, embedder=embedder, **options)
    found = stated["contamination"][:]
    kept = np.array([gate({"contamination": c}) for c in found], dtype=bool)
    skipped = {}
    if "task_id" not in dataset.column_names or not held_out.task_ids:
        skipped["same_task"] = "no task ids"
    if embedder is None:
        skipped["semantic"] = "no embedder"
    by_rule = {rule: [i for i, c in enumerate(found) if c["rule"] == rule] for rule in RULES}
    report = ContaminationReport(
        len(found), int(kept.sum()), len(held_out.texts), gate.drop,
        {rule: len(at) for rule, at in by_rule.items()}, skipped,
        {rule: tuple(_example(stated, i) for i in at[:3]) for rule, at in by_rule.items()},
        stated.select(np.flatnonzero(~kept)),
    )  # fmt: skip
    return Rollouts.of(stated.select(np.flatnonzero(kept)), report)


def _example(stated: Dataset, i: int) -> tuple[str, str, float]:
    row = stated.select_columns([c for c in ("rollout_id", "contamination") if c in stated.column_names])[i]  # fmt: skip
    found = row["contamination"]
    return str(row.get("rollout_id") or i), found["matched"], found["score"]


def _searched(dataset: Dataset | IterableDataset, fields: Sequence[str] | None) -> tuple[str, ...]:
    names = list(dataset.column_names or next(iter(dataset), {}))
    return tuple(prompt_columns(names, fields, "with_contamination"))


def _stated(dataset: D, transform: Contamination, num_proc: int | None) -> D:
    """Map the transform over the columns that it reads, and put what it found beside the others."""
    if isinstance(dataset, IterableDataset):
        return cast("D", dataset.map(transform, batched=True))
    wanted = [c for c in dataset.column_names if c in (*transform.fields, "task_id")]
    if not len(dataset):
        return columns.with_columns(dataset, {"contamination": ([], CONTAMINATION)})
    with columns.quiet():
        made = dataset.select_columns(wanted).map(
            transform, batched=True, num_proc=num_proc, remove_columns=wanted,
            features=Features({"contamination": CONTAMINATION}),
        )  # fmt: skip
    found = columns.read(made, ["contamination"], "with_contamination").column(0)
    return columns.with_columns(dataset, {"contamination": (found, CONTAMINATION)})


def _check(n: Any, overlap: Any, similarity: Any, common: Any, contained: Any) -> None:
    for name, value in (("n", n), ("common", common), ("contained", contained)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(
                f"{name} must be a whole number of at least 1; got {value!r}. "
                "Leave it out for the default."
            )
    for name, value in (("overlap", overlap), ("similarity", similarity)):
        if not isinstance(value, (int, float)) or not 0 < value <= 1:
            raise InputError(
                f"{name} must lie in (0, 1]; got {value!r}. Leave it out for the default."
            )
