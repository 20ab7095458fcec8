"""Tools: reading every way in which they are written down, into one schema.

A tool is a Python function whose signature is the schema, or a schema in the dialect of OpenAI,
Anthropic, MCP or the Berkeley Function-Calling Leaderboard. The schema that a user gave is kept
verbatim, because it is what the agent sees; arguments are validated and sampled against a copy in
plain JSON Schema.
"""

from __future__ import annotations

import copy
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import jsonschema
from jsonschema.validators import Draft202012Validator
from pydantic import TypeAdapter

from whileai_hf.errors import InputError
from whileai_hf.world.dialects import argument_values as argument_values
from whileai_hf.world.dialects import dangling, hoist, plain_schema
from whileai_hf.world.dialects import resolve as resolve

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: what the agent sees, what arguments must satisfy, and perhaps the function."""

    name: str
    description: str
    schema: dict[str, Any]  #: OpenAI form; its inner parts are as the user wrote them
    parameters: dict[str, Any]  #: plain JSON Schema of the arguments object
    function: Callable[..., Any] | None = None

    def problem(self, arguments: Any) -> str | None:
        """Say what is wrong with arguments, or null; unknown arguments are wrong."""
        if not isinstance(arguments, Mapping):
            return "arguments must be an object"
        known = self.parameters.get("properties", {})
        closed = self.parameters.get("additionalProperties", False) is False
        if closed and (unknown := [name for name in arguments if name not in known]):
            return f"unknown argument {unknown[0]!r}; known are {', '.join(known) or 'none'}"
        error = jsonschema.exceptions.best_match(self._validator().iter_errors(dict(arguments)))
        if error is None:
            return None
        where = ".".join(map(str, error.absolute_path))
        return f"{where}: {error.message}" if where else str(error.message)

    def _validator(self) -> Any:
        key = id(self.parameters)
        if key not in _VALIDATORS:
            _VALIDATORS[key] = (Draft202012Validator(self.parameters), self.parameters)
        return _VALIDATORS[key][0]


#: Validators by the identity of their schema, which they keep alive.
_VALIDATORS: dict[int, tuple[Any, Any]] = {}


def tool(function: F) -> F:
    """Make a function a tool: its signature is the schema, its docstring the description.

    Types become JSON Schema (through pydantic, so that `Annotated`, `Literal`, enums, dataclasses and
    typed dicts work); a Google-style `Args:` section describes the arguments. The function stays
    callable as it was.

    Raises:
        InputError: An argument has no type, or one that has no JSON form.

    Example:
        >>> @tool
        ... def get_order(order_id: str) -> dict:
        ...     '''Look up an order by id.'''
        >>> tool_schemas([get_order])[0]["function"]["parameters"]["required"]
        ['order_id']
    """
    function.__tool_schema__ = function_schema(function)  # type: ignore[attr-defined]
    return function


def function_schema(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the OpenAI-style schema of a function; see `tool`."""
    name = getattr(function, "__name__", type(function).__name__)
    try:
        hints = get_type_hints(function, include_extras=True)
    except Exception as error:
        raise InputError(
            f"the types of the tool {name!r} must be importable; reading them failed: {error}. "
            "Import them at the top of the module."
        ) from error
    described = _described(inspect.getdoc(function) or "")
    properties, required = {}, []
    for argument in inspect.signature(function).parameters.values():
        if argument.kind in (argument.VAR_POSITIONAL, argument.VAR_KEYWORD):
            continue
        if argument.name not in hints:
            raise InputError(
                f"every argument of a tool needs a type; {name!r} has none for "
                f"{argument.name!r}. Annotate it, such as {argument.name}: str."
            )
        properties[argument.name] = _type_schema(hints[argument.name], name, argument.name)
        if argument.name in described:
            properties[argument.name]["description"] = described[argument.name]
        if argument.default is argument.empty:
            required.append(argument.name)
        elif argument.default is not None:
            properties[argument.name].setdefault("default", argument.default)
    parameters: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = required
    hoist(parameters)
    shown = {"name": name, "description": described[""], "parameters": parameters}
    return {"type": "function", "function": shown}


def _type_schema(hint: Any, tool_name: str, argument: str) -> dict[str, Any]:
    try:
        schema: dict[str, Any] = TypeAdapter(hint).json_schema()
    except Exception as error:
        raise InputError(
            f"an argument of a tool needs a type with a JSON form; {argument!r} of {tool_name!r} is "
            f"{hint!r}. Use str, int, float, bool, list, dict, Literal, an enum or a dataclass."
        ) from error
    schema.pop("title", None)
    return schema


def _described(docstring: str) -> dict[str, str]:
    """Split a docstring: the description under "", and the text of each argument."""
    head, *rest = re.split(
        r"^\s*(?:Args|Arguments|Parameters):\s*$", docstring, maxsplit=1, flags=re.M
    )
    out = {
        "": " ".join(
            re.split(r"^\s*(?:Returns|Raises|Example|Examples):", head, flags=re.M)[0].split()
        )
    }
    for found in re.finditer(
        r"^\s*:param\s+(?:[\w\[\], |]+\s)?(\w+):\s*(.+(?:\n(?!\s*:).+)*)", docstring, re.M
    ):
        out[found[1]] = " ".join(found[2].split())
    out[""] = re.split(r"\s*:(?:param|returns?|raises)\b", out[""], maxsplit=1)[0]
    if rest:
        section = re.split(
            r"^(?:Returns|Raises|Yields|Example|Examples|Note):", rest[0], flags=re.M
        )[0]
        for found in re.finditer(
            r"^\s*(\w+)\s*(?:\([^)]*\))?:\s*(.*(?:\n(?!\s*\w+\s*(?:\([^)]*\))?:).*)*)",
            section,
            re.M,
        ):
            out[found[1]] = " ".join(found[2].split())
    return out


def tool_schemas(tools: Any) -> list[dict[str, Any]]:
    """Return the OpenAI-style schemas of tools in any form; see `read_tools`."""
    return [t.schema for t in read_tools(tools)]


def read_tools(tools: Any) -> list[Tool]:
    """Read tools.

    Args:
        tools: A list of functions, of `Tool`s, and of schemas as OpenAI, Anthropic, MCP or BFCL
            write them; one of those; or the path of a JSON file with a list of schemas.

    Raises:
        InputError: A tool has no name, a name comes twice, or parameters are not JSON Schema.
    """
    if tools is None:
        return []
    if isinstance(tools, (str, Path)):
        tools = _from_file(Path(tools))
    if isinstance(tools, (Mapping, Tool)) or callable(tools):
        tools = [tools]
    if not isinstance(tools, Iterable):
        raise InputError(
            f"tools must be functions, schemas or a path; got {type(tools).__name__}. Pass a list."
        )
    found = [_read(given, i) for i, given in enumerate(tools)]
    names = [t.name for t in found]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(
            f"each tool needs a name of its own; {twice[0]!r} comes {names.count(twice[0])} times. "
            "Rename or drop one."
        )
    return found


def _from_file(path: Path) -> Any:
    if not path.exists():
        raise InputError(
            f"tools must be a list or a file; {str(path)!r} does not exist. Check the path."
        )
    text = path.read_text(encoding="utf-8")
    try:
        loaded = json.loads(text)
    except ValueError:
        try:
            loaded = [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError as error:
            raise InputError(
                f"a file of tools must be JSON or JSON lines; {path.name} is not: {error}. "
                "Write a list of schemas."
            ) from error
    return loaded.get("tools", [loaded]) if isinstance(loaded, dict) else loaded


def _read(given: Any, i: int) -> Tool:
    if isinstance(given, Tool):
        return given
    if callable(given) and not isinstance(given, Mapping):
        schema = getattr(given, "__tool_schema__", None) or function_schema(given)
        return _make(schema, schema["function"], given)
    if not isinstance(given, Mapping):
        raise InputError(
            f"a tool must be a function or a schema; tool {i} is {type(given).__name__}. "
            "Decorate a function with wai.tool, or pass its JSON schema."
        )
    inner = given.get("function")
    inner = inner if isinstance(inner, Mapping) else given
    name = inner.get("name")
    if not isinstance(name, str) or not name.strip():
        raise InputError(
            f"a tool needs a name; tool {i} has {name!r}. Give it a key 'name' with a string."
        )
    parameters = next(
        (inner[key] for key in ("parameters", "input_schema", "inputSchema") if inner.get(key)),
        None,
    )
    shown = {"name": name, "description": inner.get("description") or ""}
    rest = {
        k: v
        for k, v in inner.items()
        if k not in ("name", "description", "parameters", "input_schema", "inputSchema", "type")
    }
    shown |= {"parameters": parameters or {"type": "object", "properties": {}}, **rest}
    return _make({"type": "function", "function": copy.deepcopy(shown)}, shown, None)


def _make(
    schema: dict[str, Any], shown: Mapping[str, Any], function: Callable[..., Any] | None
) -> Tool:
    name = shown["name"]
    if not isinstance(shown["parameters"], Mapping):
        raise InputError(
            f"the parameters of the tool {name!r} must be an object of JSON Schema; got "
            f"{type(shown['parameters']).__name__}. Write {{'type': 'object', 'properties': …}}."
        )
    parameters = plain_schema(shown["parameters"])
    parameters.setdefault("type", "object")
    parameters.setdefault("properties", {})
    hoist(parameters)
    if (lost := dangling(parameters)) is not None:
        raise InputError(
            f"every reference in the parameters of the tool {name!r} must lead somewhere; {lost!r} does not. "
            "Add it under $defs, or write the schema out."
        )
    try:
        Draft202012Validator.check_schema(parameters)
    except jsonschema.SchemaError as error:
        where = ".".join(map(str, error.absolute_path)) or "its top"
        raise InputError(
            f"the parameters of the tool {name!r} must be JSON Schema; at {where}: "
            f"{error.message}. Repair the schema."
        ) from error
    return Tool(name, str(shown.get("description") or ""), schema, parameters, function)
