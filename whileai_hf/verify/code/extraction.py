"""Which text of a completion is the program."""

from __future__ import annotations

import re

_FENCE = re.compile(r"^[ \t]*```[ \t]*([\w+-]*)[^\n]*\n(.*?)(?:^[ \t]*```|\Z)", re.M | re.S)
_PYTHON = ("python", "py", "python3", "")


def program(text: str) -> str:
    """The last fenced Python block; a cut fence runs to the end; without fences, the text."""
    blocks = [body for language, body in _FENCE.findall(text) if language.lower() in _PYTHON]
    return blocks[-1] if blocks else text
