r"""A process that compares expressions, so that one that cannot be computed ends with the process.

It reads a line of JSON, `[reference, answer, kind]`, and writes one: true, false, or null where the
reference cannot be read. The parser is that of math-verify (latex2sympy2_extended).
"""

from __future__ import annotations

import contextlib
import json
import logging
import random
import sys
import warnings
from typing import Any

import sympy
from math_verify import LatexExtractionConfig, parse, verify

try:
    import resource
except ImportError:  # Windows has no such limits: the deadline still holds
    resource = None  # type: ignore[assignment]

#: Relative difference of two values that are one; values are computed to more digits than that.
_TOLERANCE = 1e-20
_DIGITS = 40
#: Points at which expressions with variables are compared.
_POINTS = 6
#: Bytes of address space: an expression must not take the machine with it.
_MEMORY = 4 << 30


class Unreadable(Exception):
    """The reference is no mathematics."""


def compare(reference: str, answer: str, kind: str) -> bool | None:
    """Compare two expressions, or two equations written as left minus right."""
    wanted = _parsed(reference)
    if wanted is None:
        return None
    found = _parsed(answer)
    if found is None:
        return False
    if kind == "equation":
        return _proportional(wanted, found)
    return _equal(wanted, found)


def _parsed(text: str) -> Any:
    """Parse TeX to an expression with exact numbers, or null."""
    found = parse(
        f"${text}$",
        extraction_config=[LatexExtractionConfig()],
        parsing_timeout=None,
        raise_on_error=False,
    )
    if not found or isinstance(found[0], str):
        return None
    value = found[0]
    if isinstance(value, sympy.Basic):
        floats = {f: sympy.Rational(str(f)) for f in value.atoms(sympy.Float)}
        return value.xreplace(floats)
    return value


def _equal(a: Any, b: Any) -> bool:
    if not (isinstance(a, sympy.Expr) and isinstance(b, sympy.Expr)):
        return _verified(a, b)
    if a == b:
        return True
    if {str(s) for s in a.free_symbols ^ b.free_symbols} == {"i"}:
        # The unit, and no variable: the other side has none of that name.
        unit = next(iter(a.free_symbols ^ b.free_symbols))
        a, b = (side.xreplace({unit: sympy.I}) for side in (a, b))
    symbols = sorted(a.free_symbols | b.free_symbols, key=str)
    if not symbols:
        return _near(a, b)
    points = _POINTS
    for point in _points(symbols):
        left, right = a.subs(point), b.subs(point)
        if not (_finite(left) and _finite(right)):
            continue
        if not _near(left, right):
            return False
        points -= 1
        if points == 0:
            return True
    return bool(sympy.simplify(a - b) == 0)


def _verified(a: Any, b: Any) -> bool:
    """Matrices, sets and what else the library knows."""
    return bool(verify([a], [b], timeout_seconds=None, raise_on_error=False))


def _finite(value: Any) -> bool:
    number = value.evalf(15)
    return bool(number.is_number and number.is_finite and number.is_real)


def _near(a: Any, b: Any) -> bool:
    if a.is_infinite or b.is_infinite:
        return bool(a == b)
    left, right = a.evalf(_DIGITS), b.evalf(_DIGITS)
    if not (left.is_number and right.is_number):
        return False
    scale = max(abs(left), abs(right))
    if scale == 0:
        return True
    return bool(abs(left - right) <= _TOLERANCE * scale)


def _points(symbols: list[Any]) -> Any:
    """Points with positive values, and every other time with one that is negative.

    One at a time: of two negative ones a product of roots is real although no root is.
    """
    rng = random.Random(0)
    for i in range(4 * _POINTS):
        point = {s: sympy.Rational(rng.randint(1, 300), rng.randint(1, 60)) for s in symbols}
        if i % 2:
            chosen = symbols[(i // 2) % len(symbols)]
            point[chosen] = -point[chosen]
        yield point


def _proportional(a: Any, b: Any) -> bool:
    """Whether two equations, brought to zero, differ by a factor that is no variable."""
    symbols = sorted(a.free_symbols | b.free_symbols, key=str)
    ratio = None
    seen = 0
    for point in _points(symbols):
        left, right = a.subs(point), b.subs(point)
        if not (_finite(left) and _finite(right)) or right.evalf(15) == 0:
            continue
        found = left / right
        if ratio is not None and not _near(found, ratio):
            return False
        ratio = found
        seen += 1
        if seen == _POINTS:
            return bool(ratio != 0)
    return bool(sympy.simplify(a - b) == 0)


def main() -> None:
    """Answer requests until the input ends."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    if resource is not None:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    out = sys.stdout
    sys.stdout = sys.stderr
    compare("\\frac{x}{2}+1", "0.5x+1", "expression")  # the first parse builds the grammar
    out.write("ready\n")
    out.flush()
    for line in sys.stdin:
        try:
            verdict = compare(*json.loads(line))
        except Exception:  # noqa: BLE001 - a parser raises what it likes; the answer is then wrong
            verdict = False
        out.write(json.dumps(verdict) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
