"""Replies that know what only a judge may know."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from whileai_hf import messages as chat
from whileai_hf import schema
from whileai_hf.selection.gate import Gate

#: Privileged values that an answer may state, because they are what was asked for.
_ANSWERS = ("reference", "answer", "tests", "goal", "expected", "follow_up")

#: How a reply names the judge's side as its source, in the languages of the simulator.
_SOURCE = re.compile(
    r"\b(?:answer|solution|grading|scoring) (?:key|sheet)\b|\bthe key (?:says|states|gives|reads|is)\b"
    r"|\b(?:reference|gold|golden|expected|correct) (?:answer|solution|reply|output|label|value)s? (?:says?|states?|gives?|reads?)\b"
    r"|\bground truth\b|\bhidden (?:state|tests?|instructions?|answer|reference)\b|\bprivileged\b|\brubric\b"
    r"|\baccording to the (?:reference|key|grader|tests?)\b|\bthe reference (?:says|states|gives|reads)\b"
    r"|\b(?:lösungsschlüssel|musterlösung|corrigé|clave de respuestas|respuesta de referencia)\b|标准答案|参考答案|隐藏"
)
#: Characters between the named source and what it is quoted for.
_NEAR = 60


@dataclass(frozen=True, slots=True)
class NoLeak(Gate):
    """Drop replies that quote hidden state which nobody asked for.

    Hidden state, principles and outcomes may not be quoted where neither the user nor a tool had
    said them. What was asked for, the reference, may: a right answer equals it or quotes it, whatever
    its length or script. It is a leak only where the reply itself names the judge's side as its
    source ("the answer key says …").
    """

    min_chars: int = 12

    name: ClassVar[str] = "leak"
    why: ClassVar[str] = "the reply quotes hidden state"
    reads: ClassVar[tuple[str, ...]] = ("privileged", "messages")

    def __call__(self, row: Mapping[str, Any]) -> bool:
        """Keep a row whose agent says nothing that only a judge may know."""
        privileged = schema.restore(row["privileged"])
        secrets = [s for s in _values(privileged, answers=False) if len(s) >= self.min_chars]
        answers = list(_values(privileged, answers=True))
        if not secrets and not answers:
            return True
        said = fold_text(" ".join(texts_of(row["messages"], ("assistant",))))
        sources = list(_SOURCE.finditer(said))
        if not secrets and not sources:
            return True
        heard = fold_text(" ".join(texts_of(row["messages"], ("user", "tool", "system"))))
        if any(s in said and s not in heard for s in map(fold_text, secrets)):
            return False
        named = [said[m.start() : m.end() + _NEAR] for m in sources if m[0] not in heard]
        return not any(
            _quotes(part, answer) and answer not in heard
            for answer in map(fold_text, answers) if answer
            for part in named
        )  # fmt: skip


def _quotes(said: str, answer: str) -> bool:
    at = said.find(answer[:_NEAR])
    end = at + len(answer)
    return at >= 0 and not (said[end : end + 1].isalnum() and answer[-1].isdigit())


def fold_text(text: str) -> str:
    """Fold Unicode forms, white space and case; punctuation stays."""
    return re.sub(r"\s+", " ", unicodedata.normalize("NFKC", text)).strip().casefold()


def texts_of(messages: Any, roles: tuple[str, ...]) -> Iterator[str]:
    """Walk over the texts of the messages of some roles."""
    for message in messages or []:
        if message.get("role") in roles:
            yield chat.text_of(message.get("content"))


def _values(privileged: Any, *, answers: bool, inside: bool = False) -> Iterator[str]:
    """Walk over the privileged texts: those that answer what was asked, or all others."""
    if isinstance(privileged, Mapping):
        for name, value in privileged.items():
            yield from _values(value, answers=answers, inside=inside or name in _ANSWERS)
    elif isinstance(privileged, list):
        for value in privileged:
            yield from _values(value, answers=answers, inside=inside)
    elif inside == answers and isinstance(privileged, (str, int, float) if inside else str):
        yield str(privileged)
