"""MultipleChoice: the option, or options, that an answer picks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from whileai_hf.errors import InputError
from whileai_hf.verify.base import Verifier
from whileai_hf.verify.committed import commitments
from whileai_hf.verify.quantities import plain_signs
from whileai_hf.verify.text import normal_text

#: Letters that name options; beyond them, and where the reference is a number, options are numbered.
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

#: Markup around a label: brackets, emphasis, TeX.
_MARKUP = re.compile(r"\\(?:text|textbf|mathbf|mathrm|boxed)\b|[*_$`{}]|\\[()\[\]]")
#: A label that is marked as one: (B), B), "B." before a text, "option B".
_MARKED = re.compile(
    r"\(\s*(?P<a>[A-Za-z]|\d{1,3})\s*\)|\b(?:option|choice|letter|Option)\s+(?P<b>[A-Za-z]|\d{1,3})\b|"
    r"(?:^|(?<=\s))(?P<c>[A-Z]|\d{1,3})[.):](?=\s|$)"
)
_LETTER = re.compile(r"(?<![A-Za-z0-9_'’])(?P<l>[A-Z])(?![A-Za-z0-9_'’])")
_INTEGER = re.compile(r"(?<![\w.])(?P<l>\d{1,3})(?![\w]|\.\d)")
#: "A" and "I" followed by a small word are an article and a pronoun.
_WORD = re.compile(r"(?<![\w'’])(?:A|I)(?=\s+(?!(?:and|or|is|und|ist|y|et|est)\b)[a-zà-ÿ’'])")
_DENIED = re.compile(
    r"\b(?:not|neither|nor|isn't|isn’t|cannot be|can't be|rather than|instead of|nicht|no|pas)\s+"
    r"(?:option\s+|choice\s+)?\(?\s*[A-Z\d]{1,3}\b\s*\)?(?:\s*(?:,|or|nor)\s*\(?[A-Z]\)?(?=\W|$))*"
)
_SEPARATED = re.compile(
    r"\s*(?:,|&|/|;|\band\b|\bund\b|\by\b|\bet\b|和|、)\s*(?:and\b\s*)?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MultipleChoice(Verifier):
    """1 where the answer picks the reference's option, or exactly its options.

    A pick is a label after the last commitment ("the answer is (B)", a box, `ANSWER: B`), or else in
    the last sentence that has one, or the whole text of one option. Labels are letters; numbers where
    the reference is one. A label that there is no option for picks nothing.

    Attributes:
        choices: Texts of the options; null reads `privileged.choices`, or the column `choices`, and
            without them every letter is an option.
    """

    choices: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.choices is not None and (isinstance(self.choices, str) or len(self.choices) < 2):
            raise InputError(
                f"choices must list two or more options; got {self.choices!r}. "
                'Write choices=("red", "green").'
            )
        if self.choices is not None:
            object.__setattr__(self, "choices", tuple(map(str, self.choices)))

    def candidate(self, row: Mapping[str, Any]) -> Any:
        """Return the answer and the options of the row."""
        privileged = row.get("privileged")
        given: Any = self.choices
        if given is None and isinstance(privileged, Mapping):
            given = privileged.get("choices")
        if given is None:
            given = row.get("choices")
        if isinstance(
            given, Mapping
        ):  # as several public sets keep them: {"text": [...], "label": [...]}
            given = given.get("text")
        listed = isinstance(given, Sequence) and not isinstance(given, str)
        return Verifier.candidate(self, row), [str(choice) for choice in given] if listed else []

    def check(self, answer: Any, reference: Any) -> tuple[float | None, str]:
        """Compare the picks; a reference that names no option gives null."""
        text, choices = answer if isinstance(answer, tuple) else (answer, list(self.choices or ()))
        wanted, numbered = wanted_labels(reference, choices)
        if not wanted:
            return None, "the reference names no option"
        picked = picks(text, choices, numbered=numbered)
        if not picked:
            return 0.0, "no option picked"
        good = picked == wanted
        return float(good), "the option is the reference" if good else "another option is picked"


def wanted_labels(reference: Any, choices: Sequence[str]) -> tuple[frozenset[str], bool]:
    """Read a reference: its labels, and whether they are numbers."""
    if isinstance(reference, bool) or reference is None:
        return frozenset(), False
    if isinstance(reference, (list, tuple)):
        read = [wanted_labels(one, choices) for one in reference]
        return frozenset().union(*(labels for labels, _ in read)), any(n for _, n in read)
    text = _MARKUP.sub("", plain_signs(str(reference))).strip()
    if re.fullmatch(r"\d{1,3}", text):
        return frozenset([str(int(text))]), True
    by_text = _by_text(text, choices)
    if by_text:
        return by_text, False
    return picks(text, choices, numbered=False), False


def picks(text: str, choices: Sequence[str], *, numbered: bool) -> frozenset[str]:
    """Return the labels that a text picks; empty where it picks none."""
    labels = _labels(choices, numbered)
    for commitment in commitments(text):
        said = " ".join(_MARKUP.sub("", plain_signs(commitment.text)).split())
        found = _picked(said, labels, choices, numbered, first=commitment.kind != "last")
        if found is not None:
            return found
    return frozenset()


def _labels(choices: Sequence[str], numbered: bool) -> frozenset[str]:
    if numbered:
        return frozenset(str(i + 1) for i in range(len(choices) or 999))
    return frozenset(_LETTERS[: len(choices) or len(_LETTERS)])


def _picked(
    said: str, labels: frozenset[str], choices: Sequence[str], numbered: bool, *, first: bool
) -> frozenset[str] | None:
    """Read one sentence: its picks, an empty set for a label without option, null for nothing."""
    alone = said.strip(" .!()[]:\"'")
    if re.fullmatch(r"[A-Za-z]|\d{1,3}", alone):
        return frozenset([alone.upper()]) & labels
    listed = [part.strip(" .!()[]") for part in _SEPARATED.split(said.strip(" .!"))]
    if len(listed) > 1 and all(re.fullmatch(r"[A-Za-z]|\d{1,3}", part) for part in listed):
        return frozenset(part.upper() for part in listed) & labels
    by_text = _by_text(said, choices)
    if by_text:
        return by_text
    kept = _DENIED.sub(" ", said)
    marked = [m["a"] or m["b"] or m["c"] for m in _MARKED.finditer(kept)]
    found = [label.upper() for label in marked]
    if not found:
        pattern = _INTEGER if numbered else _LETTER
        found = [m["l"] for m in pattern.finditer(_WORD.sub(" ", kept))]
    if not found:
        inside = [_LETTERS[i] for i, c in enumerate(choices[:26]) if _holds(kept, c)]
        return frozenset(inside) if len(inside) == 1 and not numbered else None
    chosen = _run(kept, found, first=first)
    return chosen & labels


def _run(kept: str, found: list[str], *, first: bool) -> frozenset[str]:
    """The first label of a commitment, or the last of a sentence, with those joined to it by "and"."""
    at = 0 if first else len(found) - 1
    joined = {found[at]}
    step = 1 if first else -1
    spots = [m.start() for label in found for m in [re.search(rf"(?<!\w){label}(?!\w)", kept)] if m]
    for i in range(at + step, len(found) if first else -1, step):
        low, high = sorted((i, i - step))
        if high >= len(spots):
            break
        between = kept[spots[low] + len(found[low]) : spots[high]].strip(" ()")
        if re.fullmatch(r",?\s*(?:or|oder|o|ou)\s*\(?", between):
            return frozenset()  # alternatives pick nothing
        if not re.fullmatch(r",|,?\s*(?:and|&)\s*\(?|,\s*\(?", between.strip() or "x"):
            break
        joined.add(found[i])
    return frozenset(joined)


def _by_text(said: str, choices: Sequence[str]) -> frozenset[str]:
    """The option whose whole text this is, its label before it or not."""
    plain = normal_text(re.sub(r"^\s*\(?[A-Z\d]{1,3}[.):]\s+", "", said))
    same = [i for i, choice in enumerate(choices) if normal_text(choice) == plain]
    return frozenset([_LETTERS[same[0]]]) if len(same) == 1 and same[0] < 26 else frozenset()


def _holds(said: str, choice: str) -> bool:
    plain = normal_text(choice)
    return bool(plain) and bool(re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", normal_text(said)))
