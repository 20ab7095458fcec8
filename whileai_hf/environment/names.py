"""Names of environments: what can be imported, and what would hide something else."""

from __future__ import annotations

import importlib.util
import keyword
import re
import sys
from pathlib import Path

from whileai_hf.environment.environment import CARD
from whileai_hf.errors import InputError

#: Modules of `verifiers.v1.tasksets`, `envs` and `harnesses`, which verifiers finds before a package of
#: that name.
_OF_VERIFIERS = frozenset([
    "acp", "agentic_judge", "bash", "browser", "claude_code", "codex", "default", "env", "environment",
    "gem", "harbor", "judge", "kimi_code", "mini_swe_agent", "nemo_gym", "null", "opencode", "openenv",
    "openreward", "reasoning_gym", "rlm", "single_agent", "taskset", "terminus_2", "textarena", "verifiers",
])  # fmt: skip


def check_name(name: str) -> str:
    """Refuse a name that cannot be a module, or that another module has.

    Raises:
        InputError: It is refused; the message says what would go wrong.
    """
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        way_out = re.sub(r"[^a-z0-9]+", "_", str(name).lower()).strip("_")
        raise InputError(
            "the name of an environment must be a Python module in small letters, because it is imported; "
            f"got {name!r}. Write {way_out or 'my_environment'!r}; vf-eval takes it with hyphens too."
        )
    if keyword.iskeyword(name) or name in sys.stdlib_module_names:
        raise InputError(
            f"the name of an environment must be free; {name!r} belongs to Python. "
            f"Write {name + '_env'!r}."
        )
    if name in _OF_VERIFIERS or _in_verifiers(name):
        raise InputError(
            f"the name of an environment must be free; verifiers would load its own {name!r} instead. "
            f"Write {name + '_env'!r}."
        )
    spec = importlib.util.find_spec(name)
    if spec is not None and not _is_environment(spec.origin):
        raise InputError(
            f"the name of an environment must be free; an installed module is called {name!r}. "
            f"Write {name + '_env'!r}."
        )
    return name


def _is_environment(origin: str | None) -> bool:
    return origin is None or (Path(origin).parent / CARD).exists()


def _in_verifiers(name: str) -> bool:
    """Look into the installed verifiers, whose folders grow with each release."""
    spec = importlib.util.find_spec("verifiers")
    if spec is None or not spec.submodule_search_locations:
        return False
    root = Path(next(iter(spec.submodule_search_locations))) / "v1"
    groups = ("tasksets", "harnesses", "envs", "judges")
    return any((root / g / name).is_dir() or (root / g / f"{name}.py").is_file() for g in groups)
