"""Dialects: the schemas of other formats as plain JSON Schema, and looking inside one."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from jsonschema.validators import Draft202012Validator

#: Type names of other dialects in JSON Schema.
_TYPES = {
    "dict": "object", "hashmap": "object", "map": "object", "float": "number", "double": "number",
    "long": "integer", "int": "integer", "bool": "boolean", "tuple": "array", "list": "array",
    "arraylist": "array", "set": "array", "str": "string", "char": "string", "byte": "integer",
    "short": "integer", "any": None, "none": "null",
}  # fmt: skip


def hoist(parameters: dict[str, Any]) -> None:
    """Move the definitions of each argument to the top, where their references point."""
    for schema in parameters.get("properties", {}).values():
        if isinstance(schema, dict) and isinstance(schema.get("$defs"), dict):
            parameters.setdefault("$defs", {}).update(schema.pop("$defs"))


def dangling(parameters: Mapping[str, Any]) -> str | None:
    """Return a reference that leads nowhere, or null."""
    waiting: list[Any] = [parameters]
    while waiting:
        found = waiting.pop()
        if isinstance(found, Mapping):
            target = found.get("$ref")
            if isinstance(target, str) and not _leads(parameters, target):
                return target
            waiting.extend(found.values())
        elif isinstance(found, list):
            waiting.extend(found)
    return None


def _leads(parameters: Any, target: str) -> bool:
    if not target.startswith("#"):
        return False
    for part in [p for p in target[1:].split("/") if p]:
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(parameters, list) and key.isdigit() and int(key) < len(parameters):
            parameters = parameters[int(key)]
        elif isinstance(parameters, Mapping) and key in parameters:
            parameters = parameters[key]
        else:
            return False
    return True


def plain_schema(schema: Any) -> Any:
    """Translate a schema of another dialect into JSON Schema, leaving names of properties alone."""
    if not isinstance(schema, Mapping):
        return copy.deepcopy(schema)
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _NAMED and isinstance(value, Mapping):
            out[key] = {name: plain_schema(inner) for name, inner in value.items()}
        elif key in _NESTED:
            out[key] = plain_schema(value)
        elif key in _LISTED and isinstance(value, Sequence):
            out[key] = [plain_schema(inner) for inner in value]
        elif key not in ("type", "required", "optional", "nullable"):
            out[key] = copy.deepcopy(value)
    kind = _plain_type(schema.get("type"))
    if kind is not None:
        out["type"] = kind
    _require(out, schema, schema.get("required"))
    if kind is not None and _contradicts(out.get("enum"), kind):
        del out["type"]  # the values that are listed decide
    if isinstance(out.get("items"), list):  # the tuple form of older drafts
        out["prefixItems"] = out.pop("items")
    return out


#: Keys whose values are schemas by name, one schema, and lists of schemas.
_NAMED = ("properties", "$defs", "definitions", "patternProperties")
_NESTED = ("items", "additionalProperties", "not", "contains", "propertyNames")
_LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")


def _contradicts(values: Any, kind: Any) -> bool:
    """Tell whether a schema lists values that are not of the type that it states."""
    typed = Draft202012Validator({"type": kind})
    return isinstance(values, list) and not all(typed.is_valid(value) for value in values)


def _plain_type(value: Any) -> Any:
    if isinstance(value, list):
        return [kind for v in value if (kind := _plain_type(v)) is not None]
    if not isinstance(value, str):
        return None
    name = value.strip()
    if not name:
        return None
    return _TYPES.get(name.lower(), name.lower() if name.lower() in _JSON else name)


_JSON = ("object", "array", "string", "number", "integer", "boolean", "null")


def _require(out: dict[str, Any], schema: Mapping[str, Any], value: Any) -> None:
    """Keep a list of required names; the boolean of other dialects belongs to the parent."""
    if isinstance(value, list):
        known = schema.get("properties")
        out["required"] = list(
            dict.fromkeys(n for n in value if not isinstance(known, Mapping) or n in known)
        )


def argument_values(parameters: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the schema of each argument, with local references resolved one level."""
    definitions = parameters.get("$defs") or parameters.get("definitions") or {}
    return {
        name: resolve(schema, definitions)
        for name, schema in parameters.get("properties", {}).items()
    }


def resolve(schema: Any, definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Follow a local reference, and pick the first alternative that is not null."""
    for _ in range(8):
        if not isinstance(schema, Mapping):
            return {}
        reference = schema.get("$ref")
        if isinstance(reference, str):
            schema = definitions.get(reference.rsplit("/", 1)[-1], {})
            continue
        choices = schema.get("anyOf") or schema.get("oneOf")
        if choices:
            real = [c for c in choices if not (isinstance(c, Mapping) and c.get("type") == "null")]
            schema = {
                **{k: v for k, v in schema.items() if k not in ("anyOf", "oneOf")},
                **resolve((real or choices)[0], definitions),
            }
            continue
        break
    return dict(schema)
