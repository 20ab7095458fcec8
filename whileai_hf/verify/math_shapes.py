r"""The shape of a mathematical answer, read off its TeX: what is listed, bounded, equated or only said.

A computer algebra system decides whether two expressions are equal. This module decides which
expressions there are to compare: the members of a list in any order, the ends of an interval with
their brackets, the sides of an equation, a text. It corrects what the parsers of answers get wrong
before they see it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from whileai_hf.verify.quantities import plain_signs

#: A bracket that opens or closes.
_OPEN, _CLOSE = "([{", ")]}"

_MATH = re.compile(r"\$\$(.+?)\$\$|\$([^$]+?)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)
_PROSE = re.compile(r"(?<![\\A-Za-z])(?!(?:and|or|sqrt|cos|sin|tan|log|ln|exp|pi)\b)[A-Za-z]{3,}")
_TEXT = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mbox|operatorname)\s*\{([^{}]*)\}")
_LIST_WORD = re.compile(
    r"\\(?:text|mathrm|mbox)\s*\{\s*(?:,\s*)?(and|or)\s*\}|(?<![\\A-Za-z])(?:and|or)(?![A-Za-z])"
)
_RELATION = re.compile(
    r"\\(?:leqslant|geqslant|leq|geq|le|ge|lt|gt|neq|ne)(?![A-Za-z])|<=|>=|≤|≥|≠|<|>"
)
_RELATIONS = {
    "leqslant": "<=", "leq": "<=", "le": "<=", "≤": "<=", "<=": "<=", "geqslant": ">=", "geq": ">=",
    "ge": ">=", "≥": ">=", ">=": ">=", "lt": "<", "<": "<", "gt": ">", ">": ">",
}  # fmt: skip
_NAMED = re.compile(
    r"^\s*(?:\\?[A-Za-z](?:_\{?\w+\}?|\([A-Za-z]\))?|(?:[A-Za-z]\s*,\s*)+[A-Za-z]|\([A-Za-z](?:\s*,\s*[A-Za-z])+\))\s*$"
)
_PHRASES = (
    "no solution",
    "no solutions",
    "no real solution",
    "no real solutions",
    "does not exist",
    "none of the above",
)


@dataclass(frozen=True, slots=True)
class Shape:
    """An answer taken apart."""

    kind: str  #: scalar, text, list, tuple, intervals, equation
    items: tuple[str, ...] = ()  #: scalars, members, or the sides of an equation
    bounds: tuple[tuple[str, str, str, str], ...] = ()  #: bracket, low, high, bracket of intervals
    brackets: str = ""  #: around a tuple, such as "()" or "[)"


def plain_math(text: str) -> str:
    """Write TeX as a parser reads it without guessing."""
    text = plain_signs(text)
    text = re.sub(r"\\(?:infty|infinity)(?![A-Za-z])|∞", r"\\infty ", text)
    text = re.sub(r"∪", r"\\cup ", text)
    text = re.sub(r"±", r"\\pm ", text)
    text = re.sub(r"π", r"\\pi ", text)
    text = re.sub(
        r"√\s*\(([^()]*)\)|√\s*(\d+|[A-Za-z])", lambda m: "\\sqrt{" + (m[1] or m[2]) + "}", text
    )
    text = re.sub(r"(?<![\\A-Za-z])sqrt\s*\(([^()]*)\)", r"\\sqrt{\1}", text)
    text = re.sub(r"(?<![\\A-Za-z])pi(?![A-Za-z])", r"\\pi ", text)
    text = re.sub(r"\\sqrt\s*(\d|[A-Za-z])(?![A-Za-z{])", r"\\sqrt{\1}", text)
    text = re.sub(r"\*\*(?=\S)", "^", text) if not text.endswith("**") else text
    text = re.sub(r"\\(?:mathbb|mathcal|bm|boldsymbol)\s*\{([A-Za-z])\}", r"\1", text)
    text = re.sub(
        r"\\(?:mathbf|mathrm|mathit|textbf|text|boldsymbol|bm)\s*\{([^{}A-Za-z]+)\}", r"\1", text
    )
    return _degrees(text).strip()


_TRIGONOMETRIC = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)(?![A-Za-z])")
_DEGREE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:\^\s*\{?\s*\\circ\s*\}?|°)")


def _degrees(text: str) -> str:
    """Write the degrees of an angle that a function is taken of in radians."""
    if not _TRIGONOMETRIC.search(text):
        return text
    return _DEGREE.sub(r"{(\\frac{\1\\pi}{180})}", text)


def expression_in(text: str, *, first: bool) -> str | None:
    """Return the mathematics that a sentence commits to, or null if it holds none.

    Args:
        text: A sentence, or what follows "the answer is".
        first: Whether the first mathematics of the text counts, or the last.
    """
    text = re.sub(r"\*\*|__", "", text).strip()
    spans = [
        (m.start(), m.end(), next(g for g in m.groups() if g is not None))
        for m in _MATH.finditer(text.replace("\\$", "  "))
        if not _PROSE.search(_TEXT.sub("", next(g for g in m.groups() if g is not None)))
    ]
    if spans:
        return _joined(text, spans, first=first)
    runs = [run for run in _runs(plain_math(text)) if re.search(r"\d|\\[A-Za-z]|[A-Za-z]", run)]
    return (runs[0] if first else runs[-1]) if runs else None


def _joined(text: str, spans: list[tuple[int, int, str]], *, first: bool) -> str:
    """The first or the last run of spans with nothing but list words between them."""
    runs: list[list[str]] = []
    end = -1
    for start, stop, inside in spans:
        between = text[end:start].strip() if end >= 0 else None
        word = None if between is None else re.fullmatch(r"(?:,|;)?\s*(and|or)?", between)
        if runs and word:
            runs[-1] += [f" {word[1]} " if word[1] else ", ", inside]
        else:
            runs.append([inside])
        end = stop
    after = text[end:].strip()
    unit = re.match(r"(%|percent\b)", after)
    return "".join(runs[0] if first else runs[-1]) + (unit[1] if unit and not first else "")


_TOKEN = re.compile(
    r"\\[A-Za-z]+|\\[{}|]|\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?%?|\.\d+|"
    r"(?<![A-Za-z])(?:sqrt|sin|cos|tan|log|ln|exp|and|or|percent)(?![A-Za-z])|"
    r"(?<![A-Za-z])[A-Za-z](?![A-Za-z'’])|[-+*/^=<>()\[\]{}|_!$€£%,≤≥]|\s+"
)


def _runs(text: str) -> list[str]:
    """Runs of tokens of which mathematics is written, from left to right."""
    out, at, start = [], 0, None
    while at <= len(text):
        token = _TOKEN.match(text, at) if at < len(text) else None
        if token:
            start = at if start is None else start
            at = token.end()
            continue
        if start is not None:
            out.append(text[start:at])
            start = None
        at += 1
    trimmed = (
        re.sub(r"^(?:[\s,]|(?:and|or|a|I)\b)+|(?:[\s,=]|\b(?:and|or|a|I))+$", "", run)
        for run in out
    )
    return [run for run in trimmed if run]


def shape(text: str) -> Shape:
    """Take an answer apart."""
    text = plain_math(text).strip().strip("$").strip().rstrip(".,;").strip()
    said = _said(text)
    if said is not None:
        return Shape("text", (said,))
    text = (
        re.sub(r"^.*?\\in(?![A-Za-z])", "", text) if re.search(r"\\in(?![A-Za-z])", text) else text
    )
    text = _LIST_WORD.sub(lambda m: f" {m[1] or m.group().strip()} ", text)
    intervals = _intervals(text)
    if intervals is not None:
        return Shape("intervals", bounds=intervals)
    sides = split(text, "=")
    if len(sides) >= 2 and not re.search(r"\\(?:begin|sum|prod|lim)", text):
        if (
            _NAMED.match(sides[0])
            or len(sides) > 2
            or not re.search(r"[A-Za-z]", re.sub(r"\\[A-Za-z]+", "", sides[0]))
        ):
            return shape(sides[-1]) if not _repeated(text) else _listed(text)
        if _NAMED.match(sides[-1]):
            return shape(sides[0])
        return Shape("equation", (sides[0].strip(), sides[1].strip()))
    return _listed(text)


def _repeated(text: str) -> bool:
    """Whether a list names each member: x = 1 or x = 2."""
    parts = split_list(text)
    return len(parts) > 1 and sum("=" in part for part in parts) > 1


def _listed(text: str) -> Shape:
    parts = split_list(text)
    if len(parts) > 1:
        members = [_unnamed(part) for part in parts]
        return Shape("list", tuple(m for part in members for m in plus_minus(part)))
    inner = text.strip()
    for left, right in (("\\{", "\\}"), ("{", "}")):
        if (
            inner.startswith(left)
            and inner.endswith(right)
            and len(split_list(inner[len(left) : -len(right)])) > 1
        ):
            return Shape(
                "list", tuple(p.strip() for p in split_list(inner[len(left) : -len(right)]))
            )
    if inner and inner[0] in "([" and inner[-1] in ")]" and _wraps(inner):
        parts = split_list(inner[1:-1])
        if len(parts) > 1:
            return Shape("tuple", tuple(p.strip() for p in parts), brackets=inner[0] + inner[-1])
        return shape(inner[1:-1])
    signs = plus_minus(_unnamed(inner))
    return Shape("list", signs) if len(signs) > 1 else Shape("scalar", signs)


def _unnamed(part: str) -> str:
    sides = split(part, "=")
    return sides[-1].strip() if len(sides) == 2 and _NAMED.match(sides[0]) else part.strip()


def plus_minus(part: str) -> tuple[str, ...]:
    r"""Both values of an expression with one \pm."""
    if len(re.findall(r"\\(?:pm|mp)(?![A-Za-z])", part)) != 1:
        return (part.strip(),)
    return tuple(re.sub(r"\\(?:pm|mp)(?![A-Za-z])", sign, part).strip() for sign in ("+", "-"))


def _said(text: str) -> str | None:
    r"""The words of an answer that is words: a \text, one or two bare words, a letter in brackets."""
    bare = " ".join(_TEXT.sub(r" \1 ", text).split()).strip(" .()")
    if bare.casefold() in _PHRASES:
        return bare.casefold()
    if re.fullmatch(r"[A-Za-z]", bare):
        return (
            bare.casefold()
            if "\\text" in text or text.strip().startswith("(") or bare.isupper()
            else None
        )
    if re.fullmatch(r"[A-Za-z][A-Za-z'’-]+(?:\s[A-Za-z'’-]+)?", bare) and not re.search(
        r"\\(?!text|math|mbox)", text
    ):
        return bare.casefold()
    return None


def split(text: str, mark: str) -> list[str]:
    """Split at a mark outside of brackets; relations with an equals sign in them are none."""
    out, depth, start = [], 0, 0
    for i, char in enumerate(text):
        if char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth -= 1
        elif char == mark and depth <= 0 and text[i - 1 : i] not in ("<", ">", "!", "\\"):
            out.append(text[start:i])
            start = i + 1
    return [*out, text[start:]]


def split_list(text: str) -> list[str]:
    """Split at commas, semicolons, "and" and "or" outside of brackets; 1,234 is one number."""
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    text = re.sub(r"\s*(?:,\s*)?(?<![A-Za-z\\])(?:and|or)(?![A-Za-z])\s*", ",", text).replace(
        ";", ","
    )
    parts = [part.strip() for part in split(text, ",")]
    return parts if all(parts) else [text]


def _wraps(text: str) -> bool:
    """Whether the first bracket closes at the end."""
    depth = 0
    for i, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        if depth == 0 and i < len(text) - 1:
            return False
    return depth == 0


_INTERVAL = re.compile(r"^\s*([\[(])(.+),(.+)([\])])\s*$", re.DOTALL)


def _intervals(text: str) -> tuple[tuple[str, str, str, str], ...] | None:
    """Read unions of intervals and inequalities in one variable as bounds; null for anything else."""
    if _RELATION.search(text):
        return _inequalities(text)
    parts = re.split(r"\\cup(?![A-Za-z])|(?<=[\])])\s*U\s*(?=[\[(])", text)
    unlike = (
        len(parts) > 1
        or "\\infty" in text
        or re.match(r"\s*(?:\[.*\)|\(.*\])\s*$", text, re.DOTALL)
    )
    if not unlike:
        return None
    out = []
    for part in parts:
        match = _INTERVAL.match(part)
        ends = split_list(part.strip()[1:-1]) if match else []
        if match is None or len(ends) != 2:
            return None
        out.append((match[1], ends[0], ends[1], match[4]))
    return tuple(out)


def _inequalities(text: str) -> tuple[tuple[str, str, str, str], ...] | None:
    out = []
    for part in re.split(r"(?<![A-Za-z\\])(?:or)(?![A-Za-z])|\\cup(?![A-Za-z])|,", text):
        marks = [_RELATIONS.get(m.group().lstrip("\\")) for m in _RELATION.finditer(part)]
        sides = [side.strip() for side in _RELATION.split(part)]
        bound = None if None in marks else _bound(sides, [m for m in marks if m])
        if bound is None:
            return None
        out.append(bound)
    return tuple(out)


def _bound(sides: list[str], marks: list[str]) -> tuple[str, str, str, str] | None:
    if len(marks) == 2 and marks[0][0] == marks[1][0] and _NAMED.match(sides[1]):
        low, high = (sides[0], sides[2]) if marks[0][0] == "<" else (sides[2], sides[0])
        first, second = marks if marks[0][0] == "<" else marks[::-1]
        return "[" if "=" in first else "(", low, high, "]" if "=" in second else ")"
    if len(marks) != 1:
        return None
    if _NAMED.match(sides[0]):
        value, below = sides[1], marks[0][0] == "<"
    elif _NAMED.match(sides[1]):
        value, below = sides[0], marks[0][0] == ">"
    else:
        return None
    closed = "=" in marks[0]
    if below:
        return "(", "-\\infty", value, "]" if closed else ")"
    return "[" if closed else "(", value, "\\infty", ")"
