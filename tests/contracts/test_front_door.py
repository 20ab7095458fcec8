"""The front door is light, sorted by room, complete, and a function wins over a room of its name."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import whileai_hf as wai

PACKAGE = Path(wai.__file__).parent
HEAVY = (
    "torch",
    "transformers",
    "trl",
    "peft",
    "accelerate",
    "verifiers",
    "matplotlib",
    "evaluate",
    "datasets",
)


def _python(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_importing_the_package_imports_nothing_heavy():
    loaded = _python("import sys, whileai_hf; print(*sys.modules)").split()
    assert not [name for name in HEAVY if name in loaded]


def test_importing_the_package_takes_under_half_a_second():
    code = "import time; t = time.process_time(); import whileai_hf; print(time.process_time() - t)"
    assert min(float(_python(code)) for _ in range(3)) < 0.5


def test_every_name_of_the_stub_exists():
    missing = [name for name in wai.__all__ if not hasattr(wai, name)]
    assert not missing


def test_the_stub_is_sorted_and_re_exports_each_name_once():
    tree = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))
    lines = [
        (n.module, a.name, a.asname)
        for n in tree.body
        if isinstance(n, ast.ImportFrom)
        for a in n.names
    ]
    assert lines == sorted(lines)
    assert all(name == asname for _, name, asname in lines)
    names = [name for _, name, _ in lines]
    assert len(names) == len(set(names))


def test_a_function_wins_over_the_room_of_its_name():
    rooms = {p.name for p in PACKAGE.iterdir() if p.is_dir() and (p / "__init__.py").exists()}
    shared = sorted(rooms & set(wai.__all__))
    code = (
        "import importlib, types, whileai_hf as wai\n"
        f"for name in {shared!r}:\n"
        "    importlib.import_module('whileai_hf.' + name)\n"
        "    assert not isinstance(getattr(wai, name), types.ModuleType), name\n"
        "print('fine')"
    )
    assert _python(code).strip() == "fine"


def test_every_public_name_has_a_docstring():
    bare = [
        name
        for name in wai.__all__
        if callable(getattr(wai, name)) and not (getattr(wai, name).__doc__ or "").strip()
    ]
    assert not bare
