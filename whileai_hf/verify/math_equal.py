r"""MathEqual: whether an answer is mathematically the reference, in any way of writing it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from whileai_hf.errors import InputError
from whileai_hf.verify.base import Verifier
from whileai_hf.verify.committed import boxes, commitments
from whileai_hf.verify.math_pool import Budget, Slow, pool
from whileai_hf.verify.math_shapes import Shape, expression_in, plain_math, shape
from whileai_hf.verify.numeric import PERCENT, rounds_to
from whileai_hf.verify.quantities import Quantity, plain_signs, read_quantity

#: Characters of one expression; longer ones are no answers.
_MAX_CHARS = 2_000
#: Members of a list that are matched in any order.
_MAX_ITEMS = 40


class _Unread(Exception):
    """The reference cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MathEqual(Verifier):
    r"""1 where the committed answer equals the reference, whatever the notation.

    Numbers compare exactly: fractions, mixed numbers, scientific notation, repeating decimals. Lists
    match in any order, points in theirs, intervals with their brackets, inequalities as the set that
    they describe, equations up to a factor; everything else is parsed by math-verify and compared to
    twenty digits. The last commitment counts. A unit on one side alone is ignored; two different units
    are wrong. An answer that cannot be computed in time earns nothing; a reference that cannot be
    read gives null.

    Attributes:
        percent: `"strict"`: 35 is not 35 %, 0.35 is. `"lenient"`: both are.
        rounding: Whether a decimal with more digits may round to a reference with a decimal point.
        timeout: Seconds of computation that one answer may take.
    """

    percent: str = "strict"
    rounding: bool = True
    timeout: float = 5.0

    def __post_init__(self) -> None:
        if self.percent not in PERCENT or not self.timeout > 0:
            raise InputError(
                f"percent must be one of {', '.join(PERCENT)} and timeout positive; got "
                f"{self.percent!r} and {self.timeout!r}. The defaults are 'strict' and 5 seconds."
            )

    def check(self, answer: str, reference: Any) -> tuple[float | None, str]:
        """Compare the committed answer with each reference."""
        many = reference if isinstance(reference, (list, tuple)) else [reference]
        if any(_says(answer, one) for one in many):
            return 1.0, "the answer is the reference"
        found = next((text for text in _committed(answer) if text.strip(" $")), None)
        if found is None:
            return (0.0, "the answer holds no mathematics") if _readable(many) else (None, _UNREAD)
        budget = Budget(self.timeout)
        unread = 0
        for one in many:
            try:
                if self._same(_reference(one), found, budget):
                    return 1.0, "the answer is the reference"
            except _Unread:
                unread += 1
            except Slow:
                return 0.0, "comparing the answer took too long"
        return (None, _UNREAD) if unread == len(many) else (0.0, "the answer differs")

    def _same(self, wanted: str, found: str, budget: Budget) -> bool:
        if plain_math(wanted) == plain_math(found):
            return True
        if max(len(wanted), len(found)) > _MAX_CHARS:
            return False
        a, b = read_quantity(wanted), read_quantity(found)
        if a is not None and b is not None:
            return self._same_quantity(a, b)
        first, second = shape(wanted), shape(found)
        if first.kind == "text" or second.kind == "text":
            return _same_text(first, second)
        return self._same_shape(first, second, budget)

    def _same_quantity(self, wanted: Quantity, found: Quantity) -> bool:
        if wanted.unit and found.unit and wanted.unit != found.unit:
            return False
        if wanted.plain == found.plain:
            return True
        loose = found.percent and not wanted.percent
        loose |= wanted.percent and not found.percent and self.percent == "lenient"
        if loose and wanted.value == found.value:
            return True
        return self.rounding and wanted.percent == found.percent and rounds_to(found, wanted)

    def _same_shape(self, a: Shape, b: Shape, budget: Budget) -> bool:
        if a.kind == "equation" and b.kind == "equation":
            sides = [f"({left}) - ({right})" for left, right in (a.items, b.items)]
            return self._ask(sides[0], sides[1], "equation", budget)
        if "equation" in (a.kind, b.kind):
            return False
        if "intervals" in (a.kind, b.kind):
            return self._same_intervals(_bounds(a), _bounds(b), budget)
        if len(a.items) != len(b.items):
            return False
        if "tuple" in (a.kind, b.kind):
            if a.kind == b.kind and a.brackets != b.brackets:
                return False
            return all(
                self._same_scalar(x, y, budget) for x, y in zip(a.items, b.items, strict=True)
            )
        return self._matched(list(a.items), list(b.items), budget)

    def _matched(self, wanted: list[str], found: list[str], budget: Budget) -> bool:
        if len(wanted) > _MAX_ITEMS:
            return wanted == found
        for one in wanted:
            at = next((i for i, x in enumerate(found) if self._same_scalar(one, x, budget)), None)
            if at is None:
                return False
            found.pop(at)
        return True

    def _same_intervals(
        self, a: Sequence[tuple[str, ...]], b: Sequence[tuple[str, ...]], budget: Budget
    ) -> bool:
        if len(a) != len(b) or len(a) > 6 or not a:
            return False
        return any(
            all(self._same_interval(x, y, budget) for x, y in zip(a, order, strict=True))
            for order in itertools.permutations(b)
        )

    def _same_interval(self, x: tuple[str, ...], y: tuple[str, ...], budget: Budget) -> bool:
        if (x[0], x[3]) != (y[0], y[3]):
            return False
        return self._same_scalar(x[1], y[1], budget) and self._same_scalar(x[2], y[2], budget)

    def _same_scalar(self, wanted: str, found: str, budget: Budget) -> bool:
        if _bare(wanted) == _bare(found):
            return True
        a, b = read_quantity(wanted), read_quantity(found)
        if a is not None and b is not None:
            return self._same_quantity(a, b)
        first, second = shape(wanted), shape(found)
        if (first.kind, second.kind) != ("scalar", "scalar"):
            nested = len(wanted) + len(found) < 400 and (first.items, second.items) != (
                (wanted,),
                (found,),
            )
            if first.kind == "text" or second.kind == "text":
                return _same_text(first, second)
            return nested and self._same_shape(first, second, budget)
        left, right = _measured(wanted), _measured(found)
        if left[1] and right[1] and left[1] != right[1]:
            return False
        return self._ask(left[0], right[0], "expression", budget)

    def _ask(self, wanted: str, found: str, kind: str, budget: Budget) -> bool:
        if budget.left <= 0:
            raise Slow
        verdict = pool().ask([wanted, found, kind], budget)
        if verdict is None:
            raise _Unread
        return verdict


_UNREAD = "the reference is no mathematics"
_MEASURE = re.compile(
    r"\s*\\(?:text|mathrm|mbox)\s*\{\s*([^{}]*?)\s*\}\s*(?:\^\s*\{?\s*(\d)\s*\}?)?\s*$"
)


def _measured(text: str) -> tuple[str, str]:
    r"""Take the unit in a closing \text off an expression."""
    match = _MEASURE.search(text)
    if match is None or match.start() == 0:
        return text, ""
    unit = read_quantity(f"1 {match[1]}{match[2] or ''}")
    return text[: match.start()], (unit.unit or "") if unit else ""


def _bare(text: str) -> str:
    return re.sub(r"[\s{}]|\\(?:text|mathrm)", "", plain_math(text)).rstrip(".")


def _same_text(a: Shape, b: Shape) -> bool:
    def words(one: Shape) -> str:
        return _bare(one.items[0]).casefold().strip("().") if len(one.items) == 1 else ""

    return bool(words(a)) and words(a) == words(b)


def _bounds(one: Shape) -> list[tuple[str, ...]]:
    if one.kind == "intervals":
        return list(one.bounds)
    if one.kind == "tuple" and len(one.items) == 2:
        return [(one.brackets[0], *one.items, one.brackets[1])]
    return []


def _committed(answer: str) -> Any:
    """The mathematics of an answer, the most binding first."""
    for commitment in commitments(answer):
        if commitment.kind == "box":
            yield commitment.text
            continue
        said = plain_signs(commitment.text) if "$" not in commitment.text else commitment.text
        said = re.sub(r"[.!]+(?:\s|$)", " ", said) if commitment.kind == "cue" else said
        if _words_only(said):
            yield said.strip(" .*")
            continue
        found = expression_in(said, first=commitment.kind == "cue")
        if found is not None:
            yield found


def _says(answer: str, reference: Any) -> bool:
    """Whether a reference that is words is what the answer commits to, or begins or ends it."""
    try:
        wanted = shape(_reference(reference))
    except _Unread:
        return False
    if wanted.kind != "text" or len(wanted.items[0]) < 2:
        return False
    phrase = wanted.items[0]
    for commitment in commitments(answer):
        said = " ".join(re.sub(r"[*$\\{}().]|\\text\w*", " ", commitment.text).casefold().split())
        if commitment.kind == "box":
            return said == phrase
        return bool(re.match(rf"{re.escape(phrase)}(?!\w)", said)) or bool(
            re.search(rf"(?<!\w){re.escape(phrase)}$", said)
        )
    return False


def _words_only(said: str) -> bool:
    """Whether a short commitment is words, such as a name or "no solution"."""
    return bool(re.fullmatch(r"[*(\s]*[A-Za-z][A-Za-z'’-]*(?:\s[A-Za-z'’-]+){0,2}[*)\s.]*", said))


def _reference(reference: Any) -> str:
    """The expression that a reference is.

    Raises:
        _Unread: It is empty, or prose.
    """
    if isinstance(reference, bool) or reference is None:
        raise _Unread
    text = str(reference).strip()
    inside = boxes(text)
    if inside:
        text = ", ".join(content for _, _, content in inside)
    elif "####" in text:
        text = text.rsplit("####", 1)[1].strip()
    text = text.strip("$").strip() if text.count("$") <= 2 else text
    if not text or _is_prose(text):
        raise _Unread
    if text.count("$") > 2:
        return expression_in(text, first=False) or text
    return text


def _is_prose(text: str) -> bool:
    """Three or more bare words, of which no phrase is made that answers a question."""
    bare = re.sub(r"\\[A-Za-z]+|\{[^{}]*\}", " ", text)
    words = re.findall(r"(?<![\\A-Za-z])[A-Za-z]{2,}", bare)
    return len(words) >= 3 and shape(text).kind != "text" and not re.search(r"\d|\\[A-Za-z]", text)


def _readable(many: Sequence[Any]) -> bool:
    try:
        return bool([_reference(one) for one in many])
    except _Unread:
        return False
