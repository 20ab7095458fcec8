"""Numeric: the number that an answer commits to, against a number."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from whileai_hf.errors import InputError
from whileai_hf.verify.base import Verifier
from whileai_hf.verify.committed import commitments
from whileai_hf.verify.quantities import Found, Quantity, plain_signs, quantities

#: How a percent sign on the reference alone is read.
PERCENT = ("strict", "lenient")

#: A remark in brackets that is not the answer itself.
_REMARK = re.compile(r"[(\[][^()\[\]]*[A-Za-z]{2}[^()\[\]]*[)\]]")
#: What a writer sets apart from his answer.
_DENIED = re.compile(
    r"\b(?:not|rather than|instead of|nicht|no|pas)\s+\$?-?[\d.,]*\d", re.IGNORECASE
)
_ALTERNATIVE = re.compile(r"(?:,\s*)?(?:\s*\b(?:or|oder|o|ou)\b\s*|\s*或\s*)")
_RANGE = re.compile(r"\s*(?:-|to\b|bis\b)\s*")
_DECIMAL_COMMA = re.compile(r"(?<![\d,.])(\d+),(\d{1,2}|\d{4,})(?![\d,])")
_DATE = re.compile(r"(?<!\d)\d{1,4}([/:-])\d{1,2}\1\d{1,4}(?!\d)|(?<![\d:])\d{1,2}:\d{2}(?![\d:])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Numeric(Verifier):
    """1 where the number that the answer commits to is the reference.

    The last commitment counts: a box, a line after `####`, what follows "the answer is", or else the
    last sentence with a number, and there what follows the last equals sign or the last number.
    Alternatives ("6 or 8") and ranges commit to nothing. A unit on one side alone is ignored; two
    different units are wrong.

    Attributes:
        rel_tol: Largest difference, as a share of the reference.
        abs_tol: Largest difference.
        rounding: Whether an answer with more digits may round to a reference with a decimal point.
        percent: `"strict"`: 35 is not 35 %, 0.35 is. `"lenient"`: both are. A percentage against a
            bare reference may be meant either way and passes either way.
    """

    rel_tol: float = 1e-9
    abs_tol: float = 0.0
    rounding: bool = True
    percent: str = "strict"

    def __post_init__(self) -> None:
        if self.percent not in PERCENT or not 0 <= self.rel_tol < 1 or self.abs_tol < 0:
            raise InputError(
                f"percent must be one of {', '.join(PERCENT)} and tolerances at least 0; got "
                f"{self.percent!r}, {self.rel_tol!r}, {self.abs_tol!r}. The defaults are exact."
            )

    def check(self, answer: str, reference: Any) -> tuple[float | None, str]:
        """Compare the committed number with each reference."""
        many = reference if isinstance(reference, (list, tuple)) else [reference]
        wanted = [quantity for one in many if (quantity := reference_quantity(one)) is not None]
        if not wanted:
            return None, "the reference is no number"
        found = committed_quantity(answer)
        if isinstance(found, str):
            return 0.0, found
        reasons = [self._compared(found, one) for one in wanted]
        return min(reasons, key=lambda verdict: -verdict[0])

    def _compared(self, found: Quantity, wanted: Quantity) -> tuple[float, str]:
        if found.unit and wanted.unit and found.unit != wanted.unit:
            return 0.0, "the units differ"
        pairs = [(found.plain, wanted.plain)]
        if found.percent and not wanted.percent:
            pairs.append((found.value, wanted.value))
        if wanted.percent and not found.percent and self.percent == "lenient":
            pairs.append((found.value, wanted.value))
        if any(self._close(a, b) for a, b in pairs):
            return 1.0, "the number is the reference"
        if self.rounding and found.percent == wanted.percent and rounds_to(found, wanted):
            return 1.0, "the number rounds to the reference"
        return 0.0, "the number differs"

    def _close(self, a: Fraction, b: Fraction) -> bool:
        return abs(a - b) <= max(Fraction(self.rel_tol) * abs(b), Fraction(self.abs_tol))


def rounds_to(found: Quantity, wanted: Quantity) -> bool:
    """Whether a decimal with more digits rounds, half up, to a reference with a point."""
    if not wanted.decimals or found.decimals is None or found.decimals <= wanted.decimals:
        return False
    step = Fraction(1, 10**wanted.decimals)
    return -step / 2 <= abs(found.value) - abs(wanted.value) < step / 2 and (
        found.value * wanted.value >= 0
    )


def reference_quantity(reference: Any) -> Quantity | None:
    """Read a reference: a number of any kind, or a text that commits to one."""
    if isinstance(reference, bool) or reference is None:
        return None
    if isinstance(reference, (int, float, Decimal, Fraction)):
        try:
            return Quantity(Fraction(str(reference)), decimals=_shown_decimals(reference))
        except (ValueError, OverflowError):
            return None
    found = committed_quantity(str(reference))
    return None if isinstance(found, str) else found


def _shown_decimals(reference: Any) -> int | None:
    text = str(reference)
    return len(text.partition(".")[2]) if "." in text and "e" not in text.lower() else 0


def committed_quantity(text: str) -> Quantity | str:
    """Return the number that a text commits to, or in words why there is none."""
    for commitment in commitments(text):
        said = plain_signs(commitment.text)
        found = _chosen(said, first=commitment.kind != "last")
        if found is not None:
            return found
    return "the answer holds no number"


def _chosen(said: str, *, first: bool) -> Quantity | str | None:
    said = _DATE.sub(" ", said)
    said = _DECIMAL_COMMA.sub(r"\1.\2", said)
    kept = _DENIED.sub(" ", _REMARK.sub(" ", said))
    numbers = quantities(kept) or quantities(said)
    if not numbers:
        return None
    text = kept if quantities(kept) else said
    equals = max(text.rfind("="), text.rfind("≈"))
    after = [n for n in numbers if n.start > equals]
    if first:
        at = _end_of_chain(text, numbers)
    else:
        at = numbers.index(after[0]) if equals >= 0 and after else len(numbers) - 1
    if _several(text, numbers, at):
        return "the answer names several numbers"
    return numbers[at].quantity


def _end_of_chain(text: str, numbers: list[Found]) -> int:
    """The first number, or the one that a calculation starting there ends in: 6 * 7 = 42."""
    at = 0
    for i in range(1, len(numbers)):
        between = text[numbers[i - 1].end : numbers[i].start]
        if re.search(r"[A-Za-z]{3}|[.;]", between) or not re.search(r"[-+*/=^≈]", between):
            break
        if "=" in between or "≈" in between:
            at = i
    return at


def _several(text: str, numbers: list[Found], at: int) -> bool:
    """Whether the chosen number is one of alternatives, a list or a range."""
    for left, right in ((at - 1, at), (at, at + 1)):
        if left < 0 or right >= len(numbers):
            continue
        between = text[numbers[left].end : numbers[right].start]
        if _ALTERNATIVE.fullmatch(between) or _RANGE.fullmatch(between):
            return True
        if (
            numbers[right].quantity.value < 0
            and between == ""
            and text[numbers[right].start] == "-"
        ):
            return True
    return False
