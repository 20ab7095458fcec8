"""Verifiers of plain text: the answer is the reference, or holds it as whole words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from whileai_hf.verify.base import Verifier

#: Typographic quotes and dashes, and what a keyboard writes for them.
_PLAIN = str.maketrans("‘’‚“”„–—−", "'''\"\"\"---")

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def normal_text(text: str, ignore_articles: bool = False) -> str:
    """Fold case, Unicode forms, quotes, dashes, white space and a closing full stop.

    Articles go only as whole words, as in SQuAD's metric (Rajpurkar et al. 2016).
    """
    text = unicodedata.normalize("NFKC", text).translate(_PLAIN).casefold()
    if ignore_articles:
        text = _ARTICLES.sub(" ", text).strip() or text
    text = " ".join(text.split())
    return text.rstrip(".!").rstrip() or text


def _references(reference: Any) -> list[str]:
    many = isinstance(reference, Sequence) and not isinstance(reference, (str, bytes))
    values = [str(value) for value in (reference if many else [reference])]
    return [value for value in values if value.strip()]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactMatch(Verifier):
    """1 where the answer is the reference, or one of several; see `normal_text`.

    Attributes:
        ignore_articles: Whether English articles count.
    """

    ignore_articles: bool = False

    def check(self, answer: str, reference: Any) -> tuple[float | None, str]:
        """Compare normal forms; an empty reference cannot be read."""
        wanted = _references(reference)
        if not wanted:
            return None, "the reference is empty"
        found = normal_text(answer, self.ignore_articles)
        good = any(found == normal_text(w, self.ignore_articles) for w in wanted)
        return float(good), "the answer is the reference" if good else "the answer differs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Includes(Verifier):
    """1 where the answer holds the reference, or one of several, as whole words."""

    def check(self, answer: str, reference: Any) -> tuple[float | None, str]:
        """Search normal forms; an empty reference cannot be read."""
        wanted = _references(reference)
        if not wanted:
            return None, "the reference is empty"
        found = normal_text(answer)
        good = any(re.search(rf"(?<!\w){re.escape(normal_text(w))}(?!\w)", found) for w in wanted)
        return float(good), "the answer holds the reference" if good else "it is not in the answer"
