r"""Numbers as people write them: exact values of 1,234.5, 2 1/4, 3.2e-4, \frac{3}{4}, 35 %, $12 million.

Values are fractions, so that equality is equality. What is no number stays none: a date, a version, a
range.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction

#: Digits beyond which a number is not computed.
_MAX_DIGITS = 400

_SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_POWER = re.compile(r"(?<=[\w)\]}])[⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_SIGNS = str.maketrans(
    {"−": "-", "–": "-", "﹣": "-", "-": "-", "×": "*", "⋅": "*", "·": "*", "÷": "/", "⁄": "/"}
)
#: TeX that only sets space or size.
_TEX = (
    (re.compile(r"\\[dtc]frac(?![A-Za-z])"), r"\\frac"),
    (re.compile(r"\\(?:left|right|big|Big|bigg|Bigg|displaystyle|textstyle)(?![A-Za-z])\.?"), ""),
    (re.compile(r"(?<=\d)(?:\{,\}|,\s*\\!|\\,|\\!|\\;)(?=\d{3})"), ","),
    (re.compile(r"\\[,;:!]|\\ |~|\\q?quad(?![A-Za-z])"), " "),
    (re.compile(r"\\%"), "%"),
    (re.compile(r"\\\$"), "$"),
    (re.compile(r"\\(?:times|cdot)(?![A-Za-z])"), "*"),
    (re.compile(r"\\frac\s*(\d)\s*(\d)"), r"\\frac{\1}{\2}"),
    (re.compile(r"\\sqrt\s*\(([^()]*)\)"), r"\\sqrt{\1}"),
    (re.compile(r"\\(?:text|mathrm|mbox|operatorname)\s*\{\s*(?:percent|per cent)\s*\}"), "%"),
)

_INTEGER = (
    r"(?:\d{1,3}(?:,\d{3})+(?![\d,])|\d{1,2}(?:,\d{2})+,\d{3}(?!\d)|"
    r"\d{1,3}(?:[\u00a0\u2009\u202f' ]\d{3})+(?!\d)|\d+(?:_\d+)*)"
)
_INTEGER = _INTEGER.replace("' ]", "']")  # a plain space separates a list
_DECIMAL = rf"(?:{_INTEGER}(?:\.\d+)?|\.\d+)"
_CURRENCY = r"(?:\$|€|£|¥|₹|USD|EUR|GBP|US\$)"
_NUMBER = re.compile(
    rf"""
    (?<![\w.^/\\]) (?<![\w)\]}}]-) (?<!\d[,:])
    (?P<sign>[-+]\s?)? (?:(?P<currency>{_CURRENCY})\s?)? (?P<sign2>-)?
    (?:
        (?P<whole>\d+)?\s*\\frac\s*\{{\s*(?P<top>-?{_DECIMAL})\s*\}}\s*\{{\s*(?P<bottom>-?{_DECIMAL})\s*\}}
      | (?P<mixed>\d+)\s+(?P<over>\d+)\s*/\s*(?P<under>\d+) (?![\d/])
      | (?P<above>{_DECIMAL})\s*/\s*(?P<below>{_DECIMAL}) (?!\s*/\s*\d|\d)
      | (?P<start>\d*)\.(?P<lead>\d*)(?:\\overline\s*\{{\s*(?P<repeat>\d+)\s*\}}|\((?P<repeat2>\d+)\))
      | (?P<european>\d{{1,3}}(?:\.\d{{3}})+,\d+)(?!\d)
      | (?P<decimal>{_DECIMAL})
        (?:\s*(?:\*|x)\s*10\s*(?:\^\s*\{{?\s*|\*\*\s*)(?P<ten>[-+]?\d+)\s*\}}?|[eE](?P<exponent>[-+]?\d+))?
    )
    (?![\d_]) (?!\.\d)
    (?:\s*(?P<percent>%|percent\b|per\s+cent\b|pct\b))?
    (?:\s*(?P<scale>thousand|million|billion|trillion)\b)?
    """,
    re.VERBOSE | re.IGNORECASE,
)
_SCALE = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}

_UNIT = re.compile(
    r"\s*(?:\\(?:text|mathrm|mbox)\s*\{\s*(?P<tex>[^{}]*)\}|(?P<degree>°|\^\s*\{?\s*\\circ\s*\}?|\\circ)\s*(?P<scale>[CF]\b)?|(?P<word>[A-Za-zµμ]+))"
    r"\s*(?P<power>\^\s*\{?\s*-?\d\s*\}?|[23](?!\d))?"
)
#: Names of one unit, by the name that stands for them.
_UNITS = {
    "m": ("m", "meter", "meters", "metre", "metres"),
    "cm": ("cm", "centimeter", "centimeters", "centimetre", "centimetres"),
    "mm": ("mm", "millimeter", "millimeters", "millimetre", "millimetres"),
    "km": ("km", "kilometer", "kilometers", "kilometre", "kilometres"),
    "in": ("inch", "inches"), "ft": ("ft", "foot", "feet"), "yd": ("yd", "yard", "yards"),
    "mi": ("mi", "mile", "miles"), "g": ("g", "gram", "grams"),
    "kg": ("kg", "kilogram", "kilograms"), "mg": ("mg", "milligram", "milligrams"),
    "lb": ("lb", "lbs", "pound", "pounds"), "oz": ("oz", "ounce", "ounces"),
    "s": ("s", "sec", "second", "seconds"), "min": ("min", "mins", "minute", "minutes"),
    "h": ("h", "hr", "hrs", "hour", "hours"), "day": ("day", "days"), "week": ("week", "weeks"),
    "year": ("year", "years", "yr", "yrs"), "L": ("l", "liter", "liters", "litre", "litres"),
    "mL": ("ml", "milliliter", "milliliters", "millilitre", "millilitres"),
    "J": ("joule", "joules"), "kJ": ("kj", "kilojoule", "kilojoules"), "N": ("newton", "newtons"),
    "W": ("watt", "watts"), "kW": ("kw", "kilowatt", "kilowatts"), "Hz": ("hz", "hertz"),
    "deg": ("degree", "degrees", "deg"), "rad": ("rad", "radian", "radians"),
    "$": ("dollar", "dollars", "usd"), "cent": ("cent", "cents"), "€": ("euro", "euros", "eur"),
}  # fmt: skip
_UNIT_OF = {name: unit for unit, names in _UNITS.items() for name in names}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with what it is a number of."""

    value: Fraction
    percent: bool = False
    unit: str | None = None  #: a unit that is known by name
    decimals: int | None = None  #: digits after the point, of a decimal; null of a fraction

    @property
    def plain(self) -> Fraction:
        """The value with a percentage as the share it stands for."""
        return self.value / 100 if self.percent else self.value


@dataclass(frozen=True, slots=True)
class Found:
    """A quantity and where it stands."""

    start: int
    end: int
    quantity: Quantity


def plain_signs(text: str) -> str:
    """Write signs, powers and TeX spacing as a keyboard does."""
    text = _POWER.sub(lambda m: "^{" + m.group().translate(_SUPERSCRIPT) + "}", text)
    text = re.sub(r"(?<=\d)(?=[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])", " ", text)
    text = unicodedata.normalize("NFKC", text).translate(_SIGNS)
    for pattern, plain in _TEX:
        text = pattern.sub(plain, text)
    return text


def quantities(text: str) -> list[Found]:
    """Find the numbers of a text whose signs are plain, from left to right."""
    out = []
    for match in _NUMBER.finditer(text):
        value = _value(match)
        if value is None:
            continue
        if match["sign"] and "-" in match["sign"] and _joins(text, match.start()):
            continue
        unit, end = _unit(text, match)
        out.append(
            Found(
                match.start(), end, Quantity(value, bool(match["percent"]), unit, _decimals(match))
            )
        )
    return out


def read_quantity(text: str) -> Quantity | None:
    """Read a text that is one number and nothing else, a unit aside."""
    text = plain_signs(text).strip().strip("$").strip().rstrip(".").strip()
    if text.startswith("(") and text.endswith(")"):
        text = text[1:-1].strip()
    found = quantities(text)
    if len(found) == 1 and found[0].start == 0 and found[0].end >= len(text):
        return found[0].quantity
    return None


def _joins(text: str, at: int) -> bool:
    """Whether a minus stands between two numbers, as in a range."""
    return bool(re.search(r"[\d)]\s?$", text[max(0, at - 2) : at]))


def _value(match: re.Match[str]) -> Fraction | None:
    if len(match.group()) > _MAX_DIGITS:
        return None
    try:
        value = _magnitude(match)
    except (ValueError, ZeroDivisionError):
        return None
    if value is None:
        return None
    if match["scale"]:
        value *= 10 ** _SCALE[match["scale"].lower()]
    negative = ("-" in (match["sign"] or "")) != bool(match["sign2"])
    return -value if negative else value


def _magnitude(match: re.Match[str]) -> Fraction | None:
    if match["top"]:
        return _decimal(match["whole"] or "0") + _decimal(match["top"]) / _decimal(match["bottom"])
    if match["mixed"]:
        return Fraction(int(match["mixed"])) + Fraction(int(match["over"]), int(match["under"]))
    if match["above"]:
        return _decimal(match["above"]) / _decimal(match["below"])
    repeated = match["repeat"] or match["repeat2"]
    if repeated:
        lead = match["lead"] or ""
        start = Fraction(f"{match['start'] or '0'}.{lead or '0'}")
        return start + Fraction(int(repeated), (10 ** len(repeated) - 1) * 10 ** len(lead))
    if match["european"]:
        return Fraction(match["european"].replace(".", "").replace(",", "."))
    power = int(match["ten"] or match["exponent"] or 0)
    if abs(power) > _MAX_DIGITS:
        return None
    return _decimal(match["decimal"]) * Fraction(10) ** power


def _decimal(text: str) -> Fraction:
    return Fraction(re.sub(r"[,_'\s\u00a0\u2009\u202f]", "", text))


def _decimals(match: re.Match[str]) -> int | None:
    if not match["decimal"] or match["ten"] or match["exponent"]:
        return None
    return len(match["decimal"].partition(".")[2])


def _unit(text: str, match: re.Match[str]) -> tuple[str | None, int]:
    """Read the unit after a number, or the currency before it; return it and where it ends."""
    currency = match["currency"]
    if currency:
        return _UNIT_OF.get(currency.lower(), currency[-1]), match.end()
    after = _UNIT.match(text, match.end())
    if after is None:
        return None, match.end()
    if after["degree"]:
        return "deg" + (after["scale"] or ""), after.end()
    name = (after["tex"] if after["tex"] is not None else after["word"]).strip().rstrip(".")
    power = re.sub(r"[^-\d]", "", after["power"] or "")
    unit = _UNIT_OF.get(name.lower())
    if unit is None:
        return None, after.end() if after["tex"] is not None else match.end()
    return unit + power, after.end()
