"""Words of any script, and the numbers in a text: what texts are compared by.

A word is a run of letters, marks and digits. Scripts that write no spaces between words (Chinese,
Japanese, Thai, Lao, Khmer, Burmese, Tibetan) give one word a character with its marks, so that a
run of words means the same in every script.
"""

from __future__ import annotations

import re
import unicodedata

import regex

#: Scripts that put no space between words; a range for a fast look, the names for the split.
_SPACELESS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}"
_MAYBE_SPACELESS = re.compile("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff]|[\U00020000-\U000323af]")  # fmt: skip
_ANY_SCRIPT = regex.compile(
    rf"[{_SPACELESS}]\p{{M}}*|(?:(?![{_SPACELESS}])[\p{{L}}\p{{M}}\p{{N}}])+"
)
#: Letters and digits of a text without combining marks.
_PLAIN = re.compile(r"[^\W_]+")
_MARK = regex.compile(r"\p{M}")
#: Characters without width: soft hyphens, joiners, marks of direction and of byte order.
_UNSEEN = dict.fromkeys([0xAD, *range(0x200B, 0x2010), *range(0x202A, 0x202F), 0x2060, 0xFEFF])

_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_DATE = re.compile(r"(?<!\d)(\d{1,4})([-/.])(\d{1,2})\2(\d{1,4})(?!\d)")
#: A number with its sign and decimals; an operator between two numbers; C++ and C#.
_NUMBER = re.compile(
    r"(?<![\w)])-(?=\d)|\d+(?:\.\d+)?|(?<=[\d)])\s*([-+*/^<>=×÷%])\s*(?=[\d(])|(?<=\b[a-z])(?:\+\+|#)"
)
_UNITS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip
_NAMED = {word: str(value) for value, word in enumerate(_UNITS)} | {
    "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60", "seventy": "70", "eighty": "80", "ninety": "90",
    "hundred": "100", "thousand": "1000", "half": "0.5", "twice": "2",
}  # fmt: skip
_NAME = re.compile(rf"\b(?:{'|'.join(sorted(_NAMED, key=len, reverse=True))})\b")


def fold(text: str) -> str:
    """Fold case and Unicode forms, and leave out characters that nobody sees."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", text.translate(_UNSEEN)).casefold()


def words(text: str) -> list[str]:
    """Split a text into its words, case and Unicode forms folded, without punctuation.

    Args:
        text: Text in any script.

    Example:
        >>> words("Cancel order A-17!")
        ['cancel', 'order', 'a', '17']
        >>> words("取消订单 A17。")
        ['取', '消', '订', '单', 'a17']
    """
    text = fold(text)
    if text.isascii() or not (_MAYBE_SPACELESS.search(text) or _MARK.search(text)):
        return _PLAIN.findall(text)
    return list(_ANY_SCRIPT.findall(text))


def is_spaceless(word: str) -> bool:
    """Tell whether a word is one character of a script that writes no spaces."""
    return bool(_MAYBE_SPACELESS.match(word))


def numbers(text: str) -> list[str]:
    """List the numbers of a text in order: digits, English number words, signs and operators.

    Two texts of the same words and other numbers are two problems of one template. Thousands
    separators and the separators of dates do not count.

    Example:
        >>> numbers("Is 3 + 1,200.50 more than -5?")
        ['3', '+', '1200.5', '-', '5']
    """
    text = _NAME.sub(lambda m: _NAMED[m[0]], fold(text).replace("−", "-"))
    text = _DATE.sub(r"\1 \3 \4", _THOUSANDS.sub("", text))
    return [_plain_number(m[1] or m[0]) for m in _NUMBER.finditer(text)]


def _plain_number(found: str) -> str:
    if not found[0].isdecimal():
        return found
    whole, _, part = found.partition(".")
    part = part.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{part}" if part else "")
