"""The measurements as `evaluate` modules: loaded by path, combined, pushed as Spaces.

Each folder under `evaluate_modules/` is a whole Space: the module, its card, its page. The statistics
are those of this package; a module only turns `predictions` and `references` into columns.
"""

from __future__ import annotations

from pathlib import Path

from whileai_hf.errors import InputError

_MODULES = Path(__file__).parent / "evaluate_modules"


def metric_path(name: str) -> str:
    """Return the folder of an `evaluate` module, for `evaluate.load`; nothing is downloaded.

    Args:
        name: `"pass_at_k"`, `"pass_hat_k"` or `"judge_agreement"`.

    Raises:
        InputError: There is no such module.
    """
    known = sorted(path.name for path in _MODULES.iterdir() if path.is_dir())
    if name not in known:
        raise InputError(
            f"a metric must be one of {', '.join(known)}; got {name!r}. "
            'Write evaluate.load(wai.metric_path("pass_at_k")).'
        )
    return str(_MODULES / name)
