"""References to code that an environment stores as JSON: what is written down can be imported again.

A function is stored as `module:name`, or as `.module:name` where its file travels inside the package.
Verifiers are stored by their class and options, compositions by their parts.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import whileai_hf as wai
from whileai_hf.errors import InputError

#: The reward of simulated tasks.
CHECKLIST = "whileai_hf.grade.checklist:task_checklist"

#: Short names of references.
SHORT = {"task_checklist": CHECKLIST}


def write(given: Any, role: str, files: Sequence[Path] = ()) -> Any:
    """Describe a callable as JSON.

    Args:
        given: A `module:name`, a module-level function, a verifier, or a composition of these.
        role: What it is for, for errors: "reward", "world", "execute" or "solution".
        files: Files that travel inside the package.

    Raises:
        InputError: It cannot be imported again somewhere else.
    """
    if isinstance(given, str):
        text = SHORT.get(given, given)
        _check_text(text, role, files)
        return text
    parts = getattr(given, "parts", None)
    if parts is not None and type(given).__module__.startswith("whileai_hf."):
        made: dict[str, Any] = {"parts": [write(p, role, files) for p in parts]}
        if hasattr(given, "weights"):
            made["weights"] = list(given.weights)
        return {"class": _name(type(given), role, files), **made}
    if dataclasses.is_dataclass(given) and not isinstance(given, type) and callable(given):
        options = {f.name: getattr(given, f.name) for f in dataclasses.fields(given) if f.init}
        stored = {
            n: {"ref": write(v, role, files)} if callable(v) else v for n, v in options.items()
        }
        return {"class": _name(type(given), role, files), "options": stored}
    if not callable(given):
        raise InputError(
            f"{role} must be a function, a verifier or a text `module:name`; got {given!r:.80}. "
            "Name a module-level function."
        )
    return _name(given, role, files)


def _check_text(text: str, role: str, files: Sequence[Path]) -> None:
    module, colon, name = text.partition(":")
    if not colon or not module or not name.isidentifier():
        raise InputError(
            f"{role} must be written `module:name`; got {text!r}. Name a module-level function."
        )
    if module.startswith("."):
        if module[1:] not in {path.stem for path in files}:
            raise InputError(
                f"{role} {text!r} must lie in a file of the package; files holds "
                f"{', '.join(p.name for p in files) or 'none'}. Pass files=[{module[1:] + '.py'!r}]."
            )
        return
    read(text, None, role)


def _name(function: Any, role: str, files: Sequence[Path]) -> str:
    """Return `module:name` of a function or a class that can be imported again."""
    qualname = getattr(function, "__qualname__", "")
    module = getattr(function, "__module__", None) or ""
    if not qualname.isidentifier() or not module:
        raise InputError(
            f"{role} must be importable where the environment is installed; got "
            f"{qualname or function!r}, which lives inside a function or has no name. "
            "Name a module-level function."
        )
    source = inspect.getsourcefile(function)
    inside = {path.resolve(): path.stem for path in files}
    if source and (stem := inside.get(Path(source).resolve())):
        return f".{stem}:{qualname}"
    text = f"{module}:{qualname}"
    if module == "__main__" or not _importable(text, function):
        raise InputError(
            f"{role} must be importable where the environment is installed; {qualname!r} is defined in "
            f"{module!r}. Name a module-level function of an installed package, or pass its file in files=[...]."
        )
    return text


def _importable(text: str, function: Any) -> bool:
    try:
        found = read(text, None, "")
    except InputError:
        return False
    return bool(
        found is function or getattr(found, "__code__", 0) == getattr(function, "__code__", 1)
    )


def read(stored: Any, folder: Path | None, role: str) -> Callable[..., Any]:
    """Import what `write` described.

    Args:
        stored: The description.
        folder: Folder of the package, for names that begin with a dot.
        role: What it is for, for errors.

    Raises:
        InputError: It cannot be imported, or is not callable.
    """
    if isinstance(stored, Mapping):
        return _built(stored, folder, role)  # type: ignore[no-any-return]
    module, _, name = stored.partition(":")
    try:
        found = getattr(_module(module, folder), name)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"{role} must be importable; {stored!r} failed with {type(error).__name__}: {error}. "
            "Name a module-level function, and list its package in dependencies=[...]."
        ) from error
    if not callable(found):
        raise InputError(
            f"{role} must be callable; {stored!r} is {type(found).__name__}. Name a module-level function."
        )
    return found  # type: ignore[no-any-return]


def _built(stored: Mapping[str, Any], folder: Path | None, role: str) -> Any:
    cls = read(stored["class"], folder, role)
    if "parts" in stored:
        parts = [read(part, folder, role) for part in stored["parts"]]
        weights = stored.get("weights")
        return cls(*parts) if weights is None else cls(*zip(parts, weights, strict=True))
    options = {
        name: read(value["ref"], folder, role)
        if isinstance(value, Mapping) and value.keys() == {"ref"}
        else tuple(value)
        if isinstance(value, list)
        else value
        for name, value in stored["options"].items()
    }
    return cls(**options)


def _module(name: str, folder: Path | None) -> Any:
    if not name.startswith("."):
        return importlib.import_module(name)
    if folder is None:
        raise ImportError(f"{name!r} lies inside a package")
    path = folder / f"{name[1:]}.py"
    full = f"_whileai_env_{folder.name}_{abs(hash(str(path.resolve())))}_{name[1:]}"
    if full in sys.modules:
        return sys.modules[full]
    spec = importlib.util.spec_from_file_location(full, path)
    if spec is None or spec.loader is None or not path.exists():
        raise ImportError(f"the package holds no file {path.name!r}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[full] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[full]
        raise
    return module


def describe(stored: Any) -> str:
    """Say what a description names, for a README."""
    if isinstance(stored, Mapping):
        inner = ", ".join(describe(part) for part in stored.get("parts", ()))
        return f"{stored['class'].rpartition(':')[2]}({inner})"
    return str(stored).rpartition(":")[2]


def version() -> str:
    """The version of this package, on which an environment depends."""
    return str(wai.__version__)
