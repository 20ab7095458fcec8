r"""Where a text commits itself to an answer: the box, the marked line, or the last thing it says.

The last commitment counts: `\boxed{41} ... wait: \boxed{42}` answers 42. Boxes that are only listed one
after the other ("\boxed{3} and \boxed{5}") are one answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

#: Text beyond this many characters from the end is not read: an answer stands at the end.
MAX_CHARS = 100_000
#: Characters of one sentence, from its end, or of what follows a cue, from its start.
MAX_SAID = 2_000

_BOX = re.compile(r"\\(?:boxed|fbox)\b")
#: A box without braces holds a number, or nothing that could be told from prose.
_BARE_BOX = re.compile(r"\s*(-?\d[\d.,]*\d|-?\d)")
#: What may stand between boxes of one answer.
_GLUE = re.compile(
    r"(?:[\s,;&$.~]|\\[,;:! ]|\\\(|\\\)|\\q?quad|and|or|und|et|y|\\text\{\s*(?:and|or)\s*\})*"
)

_CUES = (
    r"####",
    r"\bfinal\s+(?:answer|result)\b",
    r"\banswers?\s*(?:\**\s*)?(?=[:：=]|is\b|are\b|was\b|would\b|should\b|must\b)",
    r"\b(?:correct|right|best)\s+(?:option|choice|letter)\s*(?=[:：=]|is\b|would\b|must\b)",
    r"^\W*(?:final|answer|solution)\s*\**\s*[:：]",
    r"\bfinal\s*\**\s*[:：]",
    r"\b(?:Antwort|Ergebnis)\s*(?=[:：=]|ist\b|lautet\b)",
    r"\brespuesta(?:\s+(?:final|correcta))?\s*(?=[:：=]|es\b)",
    r"\bréponse(?:\s+(?:finale|correcte))?\s*(?=[:：=]|est\b)",
    r"\b(?:resposta|risposta)\s*(?=[:：=]|é\b|è\b)",
    r"(?:最终)?答案\s*(?=[:：是为])",
)
_CUE = re.compile("|".join(f"(?:{cue})" for cue in _CUES), re.IGNORECASE | re.MULTILINE)
_VERB = re.compile(
    r"[\s*_]*(?:(?:is|are|was|would\s+be|should\s+be|must\s+be|ist|lautet|es|est|é|è)(?![A-Za-z])|[:：=是为])?"
    r"(?:[\s*_]*[:：=])?[ \t*_]*",
    re.IGNORECASE,
)
#: A writer who takes back what he said.
_RETRACTION = re.compile(
    r"\b(?:wait|actually|correction|scratch that|oops|I made (?:a|an) (?:mistake|error)|"
    r"let me (?:re\w+|correct))\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?。！？](?=[\s)\"'*]|$)|\n")


@dataclass(frozen=True, slots=True)
class Commitment:
    """A piece of text that states an answer."""

    text: str
    kind: str  #: `"box"`, `"cue"`, or `"last"` for the last sentence that says something
    parts: tuple[str, ...] = ()  #: contents of the boxes of one answer


def commitments(text: str) -> Iterator[Commitment]:
    """Yield what the text may commit to, the most binding first.

    Args:
        text: The answer, reasoning removed.
    """
    text = text[-MAX_CHARS:]
    strong = sorted([*_boxes(text), *_cued(text)], key=lambda found: found[0])
    if strong:
        last = strong[-1]
        rest = text[last[1] :]
        retraction = _RETRACTION.search(rest)
        if retraction:
            yield from _sentences(rest[retraction.end() :], limit=3)
        yield last[2]
        return
    yield from _sentences(text, limit=50)


def _sentences(text: str, limit: int) -> Iterator[Commitment]:
    """Sentences, the last first; the caller takes the first that holds what it looks for."""
    ends = [m.end() for m in _SENTENCE_END.finditer(text)]
    cuts = [0, *ends, len(text)]
    found = 0
    for start, end in zip(cuts[-2::-1], cuts[:0:-1], strict=True):
        sentence = text[start:end].strip()
        if sentence:
            yield Commitment(sentence[-MAX_SAID:], "last")
            found += 1
            if found == limit:
                return


def boxes(text: str) -> list[tuple[int, int, str]]:
    """Return the boxes of a text, inner ones unwrapped: start, end, content."""
    closes = _closing_braces(text)
    out: list[tuple[int, int, str]] = []
    for match in _BOX.finditer(text):
        if out and match.start() < out[-1][1]:
            continue  # inside of the one before
        brace = _BRACE.match(text, match.end())
        if brace:
            end = closes.get(brace.end() - 1)
            if end is not None:
                out.append((match.start(), end + 1, _unwrapped(text[brace.end() : end])))
        elif bare := _BARE_BOX.match(text, match.end()):
            out.append((match.start(), bare.end(), bare.group(1)))
    return out


_BRACE = re.compile(r"\s*\{")
_BRACES = re.compile(r"(?<!\\)[{}]")
_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{(.*)\}", re.DOTALL)


def _closing_braces(text: str) -> dict[int, int]:
    """Where each brace that opens closes."""
    opened: list[int] = []
    out: dict[int, int] = {}
    for brace in _BRACES.finditer(text):
        if brace.group() == "{":
            opened.append(brace.start())
        elif opened:
            out[opened.pop()] = brace.start()
    return out


def _unwrapped(content: str) -> str:
    content = content.strip()
    for _ in range(10):
        inner = _BOXED.fullmatch(content)
        if inner is None:
            return content
        content = inner[1].strip()
    return content


def _boxes(text: str) -> list[tuple[int, int, Commitment]]:
    out: list[tuple[int, int, list[str]]] = []
    for start, end, content in boxes(text):
        if out and _GLUE.fullmatch(text[out[-1][1] : start]):
            first, _, parts = out[-1]
            out[-1] = (first, end, [*parts, content])
        else:
            out.append((start, end, [content]))
    return [
        (start, end, Commitment(", ".join(parts), "box", tuple(parts))) for start, end, parts in out
    ]


def _cued(text: str) -> list[tuple[int, int, Commitment]]:
    out = []
    for cue in _CUE.finditer(text):
        verb = _VERB.match(text, cue.end())
        start = verb.end() if verb else cue.end()
        if not text[start:].split("\n", 1)[0].strip(" \t*_$"):  # the answer is on the next line
            start += len(text[start:]) - len(text[start:].lstrip(" \t*_$\n"))
        end = start + len(text[start:].split("\n", 1)[0])
        said = text[start:end].strip()
        if said:
            out.append((cue.start(), start, Commitment(said[:MAX_SAID], "cue")))
    return out
