"""Tool schemas that nobody here wrote: BFCL, τ²-bench and AgentDojo, out of their wheels."""

from __future__ import annotations

import ast
import datetime
import enum
import functools
import json
import typing
import uuid
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pydantic

DOMAINS = ("retail", "airline", "telecom")


def package(name: str) -> Path:
    """Where an installed package keeps its files, without importing it."""
    return Path(find_spec(name).origin).parent


@functools.cache
def bfcl() -> dict[str, list[dict[str, Any]]]:
    """The distinct tools of every category of BFCL, by file."""
    root = package("bfcl_eval") / "data"
    out: dict[str, list[dict[str, Any]]] = {}
    seen = set()
    for path in [
        *sorted(root.glob("*.json")),
        *sorted((root / "multi_turn_func_doc").glob("*.json")),
    ]:
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line.startswith('{"'):
                continue  # a file that is one pretty-printed object holds no tool
            entry = json.loads(line)
            alone = [entry] if "parameters" in entry and "name" in entry else []
            for given in entry.get("function") or alone:
                mark = json.dumps(given, sort_keys=True)
                if mark not in seen:
                    seen.add(mark)
                    out.setdefault(path.name, []).append(given)
    return out


@functools.cache
def tau2(domain: str) -> list[Any]:
    """The tools of a domain as functions: the agent's and, for telecom, the user's own.

    The package cannot be imported without its stack of providers, so signatures and data models are
    taken from its source.
    """
    root = package("tau2") / "domains" / domain
    scope = _scope(f"tau2_{domain}")
    for name in ("data_model.py", "user_data_model.py"):
        if (root / name).exists():
            _define(root / name, scope)
    found = []
    for name in ("tools.py", "user_tools.py"):
        if (root / name).exists():
            found += list(_functions(root / name, scope))
    return found


def _scope(name: str) -> dict[str, Any]:
    return {**vars(typing), "BaseModel": pydantic.BaseModel, "Field": pydantic.Field, "enum": enum,
            "Enum": enum.Enum, "StrEnum": enum.StrEnum, "uuid": uuid, "datetime": datetime, "dt": datetime,
            "DB": pydantic.BaseModel, "BaseModelNoExtra": pydantic.BaseModel, "__name__": name}  # fmt: skip


def _define(path: Path, scope: dict[str, Any]) -> None:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.ClassDef, ast.Assign)):
            try:
                exec(compile(ast.Module([node], []), str(path), "exec", dont_inherit=True), scope)
            except NameError:
                continue  # a helper of the package that no signature needs


def _functions(path: Path, scope: dict[str, Any]) -> Iterator[Any]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        marks = [ast.unparse(d) for d in getattr(node, "decorator_list", [])]
        if isinstance(node, ast.FunctionDef) and any("is_tool" in mark for mark in marks):
            node.args.args = [a for a in node.args.args if a.arg != "self"]
            yield _make(node, path, scope)


def _make(node: ast.FunctionDef, path: Path, scope: dict[str, Any]) -> Any:
    source = f"def {node.name}({ast.unparse(node.args)}):\n    {ast.get_docstring(node)!r}"
    exec(compile(source, str(path), "exec", dont_inherit=True), scope)
    return scope[node.name]


@functools.cache
def agentdojo() -> list[Any]:
    """The tools of AgentDojo's four suites as functions, without what the environment injects."""
    folder = package("agentdojo") / "default_suites" / "v1" / "tools"
    scope = _scope("agentdojo_tools") | {"EmailStr": str}
    _define(folder / "types.py", scope)
    found = {}
    for path in sorted(folder.glob("*.py")):
        _define(path, scope)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and "Depends(" in ast.unparse(node.args):
                given = [a for a in node.args.args if "Depends(" not in ast.unparse(a)]
                defaults = node.args.defaults
                node.args.args, node.args.defaults = given, defaults[-len(given) :] if given else []
                found[node.name] = _make(node, path, scope)
    return list(found.values())


def tau2_policy(domain: str) -> str:
    """The system prompt of a domain."""
    root = package("tau2") / "data" / "tau2" / "domains" / domain
    path = next(p for p in (root / "policy.md", root / "main_policy.md") if p.exists())
    return path.read_text(encoding="utf-8")
