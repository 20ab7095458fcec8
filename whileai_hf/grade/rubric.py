"""Rubrics: what a judge grades by, as prose or as criteria that are met or missed one by one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from whileai_hf.errors import InputError

#: What missing a criterion means: everything is lost, its share is lost, or its share is lost where the
#: reply falls into it.
KINDS = ("hard", "principle", "pitfall")

_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+(.*\S)\s*$")
_TAGGED = re.compile(r"^\W*(hard|principle|pitfall)s?\W+(.*)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Criterion:
    """One thing that a reply is held to.

    Attributes:
        text: A sentence that is true of a good reply; of a pitfall, what a good reply does not do.
        kind: `"hard"` (missed, the reward is 0), `"principle"` or `"pitfall"`.
        weight: Its share of the mean, positive.
    """

    text: str
    kind: str = "principle"
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(
                f"a criterion must be one of {', '.join(KINDS)}; got {self.kind!r}. Most are principles."
            )
        if not self.text.strip() or not self.weight > 0:
            raise InputError(
                f"a criterion needs a text and a positive weight; got {self.text!r} and {self.weight!r}. Write a sentence."
            )

    @property
    def statement(self) -> str:
        """The criterion as a sentence that is true of a good reply."""
        return f"The reply avoids this: {self.text}" if self.kind == "pitfall" else self.text


@dataclass(frozen=True, slots=True)
class Rubric:
    """Prose and criteria; without criteria the judge gives one score."""

    text: str
    criteria: tuple[Criterion, ...] = ()

    def __str__(self) -> str:
        return "\n".join(p for p in (self.text, *(f"- {c.statement}" for c in self.criteria)) if p)

    @classmethod
    def of(cls, given: Any) -> Rubric:
        """Take a rubric in any form.

        Args:
            given: A rubric, prose, criteria, a file, or a folder with a `rubric.md`. In a file, bullets below a
                heading Hard, Principles or Pitfalls, or with one of these words in front, are criteria.

        Raises:
            InputError: It is empty, or a folder without `rubric.md`.
        """
        if isinstance(given, Rubric):
            return given
        if isinstance(given, Criterion):
            return cls("", (given,))
        if isinstance(given, Path):
            return read_rubric(given)
        if isinstance(given, str) and given.strip():
            return _parsed(given)
        if isinstance(given, Sequence) and given and not isinstance(given, str):
            return cls(
                "", tuple(c if isinstance(c, Criterion) else Criterion(str(c)) for c in given)
            )
        raise InputError(f"a rubric must be prose, criteria, or the Path of a folder with rubric.md; got {given!r}. Say what a good reply does.")  # fmt: skip

    def reward(self, met: Sequence[bool]) -> float:
        """Mean of the criteria by weight; 0 where a hard one is missed."""
        if any(c.kind == "hard" and not ok for c, ok in zip(self.criteria, met, strict=True)):
            return 0.0
        total = sum(c.weight for c in self.criteria)
        return sum(c.weight for c, ok in zip(self.criteria, met, strict=True) if ok) / total


def read_rubric(path: str | Path) -> Rubric:
    """Read `rubric.md` of a specification folder, or a file."""
    path = Path(path)
    file = path / "rubric.md" if path.is_dir() else path
    if not file.is_file():
        raise InputError(
            f"a specification folder needs a rubric.md; {str(path)!r} has none. Write what doing the job means."
        )
    return Rubric.of(file.read_text(encoding="utf-8"))


def _parsed(text: str) -> Rubric:
    """Split prose from criteria."""
    prose, criteria, kind = [], [], None
    for line in text.splitlines():
        heading = re.match(r"^#+\s*(hard|principle|pitfall)", line, re.IGNORECASE)
        bullet = _BULLET.match(line)
        tagged = _TAGGED.match(bullet[1]) if bullet else None
        if heading:
            kind = heading[1].lower()
        elif line.startswith("#"):
            kind = None
            prose.append(line)
        elif tagged:
            criteria.append(Criterion(tagged[2].strip(), tagged[1].lower()))
        elif bullet and kind:
            criteria.append(Criterion(bullet[1], kind))
        else:
            prose.append(line)
    return Rubric("\n".join(prose).strip(), tuple(criteria))
