"""Regex: a pattern that the answer must hold, and what it captures against the reference."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import regex

from whileai_hf.errors import InputError
from whileai_hf.verify.base import Verifier, reference_of
from whileai_hf.verify.text import _references, normal_text

#: Seconds that a search may take: a pattern can be made to need the age of the universe.
_SECONDS = 1.0
#: Characters of an answer that are searched.
_MAX_CHARS = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Regex(Verifier):
    r"""1 where the answer holds a match; with a reference, where the last match captured it.

    A search that takes more than a second earns nothing: an answer can be written to make it so.

    Attributes:
        pattern: A pattern of the `regex` library, which reads those of `re`.
        group: Number or name of the group that is compared; null takes the first one, or the whole
            match of a pattern without groups.
        ignore_case: Whether case is ignored.
    """

    pattern: str
    group: int | str | None = None
    ignore_case: bool = False

    def __post_init__(self) -> None:
        try:
            compiled = self._compiled()
            if self.group is not None:
                compiled.sub(regex.escape(f"\\g<{self.group}>"), "")
        except (regex.error, TypeError) as error:
            raise InputError(
                f"pattern must be a regular expression; got {self.pattern!r}: {error}. Escape it, or "
                "repair it."
            ) from error
        known = {*range(compiled.groups + 1), *compiled.groupindex}
        if self.group is not None and self.group not in known:
            raise InputError(
                f"group must be one of the pattern's; got {self.group!r} of {sorted(map(str, known))}. "
                "Name one of them."
            )

    def _compiled(self) -> Any:
        return regex.compile(self.pattern, regex.IGNORECASE if self.ignore_case else 0)

    def __call__(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Judge one row; a row without a reference asks for a match alone."""
        reference = reference_of(row, self.field)
        if reference is None and self.field is None:
            return self._verdict(self.candidate(row), _Matched())
        return self._verdict(self.candidate(row), reference)

    def check(self, answer: str, reference: Any) -> tuple[float | None, str]:
        """Search, and compare the captured text of the last match."""
        wanted = None if isinstance(reference, _Matched) else _references(reference)
        if wanted is not None and not wanted:
            return None, "the reference is empty"
        compiled = self._compiled()
        group = self.group if self.group is not None else min(compiled.groups, 1)
        try:
            found_all = compiled.finditer(answer[-_MAX_CHARS:], timeout=_SECONDS, concurrent=True)
            last = functools.reduce(lambda _, match: match, found_all, None)
        except TimeoutError:
            return 0.0, "the search took too long"
        if last is None:
            return 0.0, "nothing matches"
        if wanted is None:
            return 1.0, "the pattern matches"
        found = normal_text(last[group] or "")
        good = any(found == normal_text(one) for one in wanted)
        return float(good), "the match is the reference" if good else "the match differs"


class _Matched:
    """Stands for a reference where a match is all that is asked."""
