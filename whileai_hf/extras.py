"""Optional libraries, imported where they are used and named where they are missing."""

from __future__ import annotations

import importlib
from typing import Any

from whileai_hf.errors import MissingExtra


def require(module: str, extra: str) -> Any:
    """Import an optional library, or say how to install it.

    Args:
        module: Dotted name of the module, such as `"torch"`.
        extra: The extra of `whileai-hf` that installs it, such as `"train"`.

    Raises:
        MissingExtra: The library is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing = error.name or module
        raise MissingExtra(
            f"this needs the library {module!r}; importing it failed at {missing!r}. "
            f"Install it with: pip install 'whileai-hf[{extra}]'"
        ) from error
