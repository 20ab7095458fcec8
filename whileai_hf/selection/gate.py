"""What a gate is: a frozen, picklable row predicate that says what it reads and why it drops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Gate:
    """A row predicate: true keeps the row. Subclasses say what they read and why they drop."""

    version: int = 1  #: part of the fingerprint, so that a changed rule is no cache hit

    name: ClassVar[str] = "gate"
    why: ClassVar[str] = ""
    reads: ClassVar[tuple[str, ...]] = ()

    def __call__(self, row: Mapping[str, Any]) -> bool:
        """Tell whether the row may stay."""
        raise TypeError("a gate is one of the subclasses of Gate")
