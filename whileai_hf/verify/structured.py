"""Verifiers of JSON: that an answer holds valid JSON, that it fits a schema, that a field is right.

Formats are asserted, a boolean is no number, 3.0 is an integer, multiples are decimal. Broken JSON
is not repaired unless that is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

import regex
from jsonschema import Draft202012Validator, FormatChecker, SchemaError, ValidationError, validators

from whileai_hf import schema as rows
from whileai_hf.errors import InputError
from whileai_hf.verify.base import Verifier, reference_of
from whileai_hf.verify.calls import same_value
from whileai_hf.verify.json_values import NoJSON, read_json

#: Seconds that one pattern of a schema may take.
_SECONDS = 1.0
_MISSING = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class JSONValid(Verifier):
    """1 where the answer holds one valid JSON value; see `read_json` for where it is looked for.

    Attributes:
        repair: Whether broken JSON is repaired first, by `json_repair`.
    """

    repair: bool = False

    def __call__(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Judge one row; there is nothing to compare with."""
        return self._verdict(self.candidate(row), True)

    def check(self, answer: str, reference: Any) -> tuple[float | None, str]:
        """Read the value."""
        try:
            read_json(answer, repair=self.repair)
        except NoJSON as reason:
            return 0.0, str(reason)
        return 1.0, "it is valid JSON"


@dataclass(frozen=True, slots=True, kw_only=True)
class JSONSchema(Verifier):
    """1 where the answer's JSON value fits a JSON Schema, Draft 2020-12 with formats asserted.

    Attributes:
        schema: The schema; null reads it from the reference of the row.
        repair: Whether broken JSON is repaired first, by `json_repair`.
    """

    schema: Mapping[str, Any] | bool | None = None
    repair: bool = False

    def __post_init__(self) -> None:
        if self.schema is None:
            return
        try:
            _checked(json.dumps(self.schema))
        except (SchemaError, TypeError, ValueError) as error:
            what = error.message if isinstance(error, SchemaError) else str(error)
            raise InputError(
                f"schema must be a JSON Schema; got one in which {what}. "
                "Types are string, number, integer, boolean, object, array and null."
            ) from error

    def __call__(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Judge one row."""
        wanted = self.schema if self.schema is not None else reference_of(row, self.field)
        return self._verdict(self.candidate(row), wanted)

    def check(self, answer: str, reference: Any) -> tuple[float | None, str]:
        """Validate the value; a reference that is no schema gives null."""
        wanted = rows.restore(reference)
        try:
            wanted = json.loads(wanted) if isinstance(wanted, str) else wanted
            validator = _checked(json.dumps(wanted))
        except (SchemaError, TypeError, ValueError):
            return None, "the reference is no JSON Schema"
        try:
            value = read_json(answer, repair=self.repair)
            error = next(validator.iter_errors(value), None)
        except NoJSON as reason:
            return 0.0, str(reason)
        except (TimeoutError, RecursionError):
            return 0.0, "the check took too long"
        if error is not None:
            return 0.0, f"it breaks the rule {error.validator!r}"
        if _open(wanted):
            return 1.0, "it fits; the schema does not constrain the top-level type"
        return 1.0, "it fits the schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class JSONField(Verifier):
    """1 where a field of the answer's JSON value equals the reference.

    Numbers compare by value, a boolean is no number, null is not a missing field. A reference that
    is text is compared as text, and where the field is no text as the JSON that it spells.

    Attributes:
        path: Dotted path of the field, with indices for arrays: `"order.items.0.id"`.
        repair: Whether broken JSON is repaired first, by `json_repair`.
    """

    path: str
    repair: bool = False

    def check(self, answer: str, reference: Any) -> tuple[float | None, str]:
        """Compare the field."""
        try:
            value = _at(read_json(answer, repair=self.repair), self.path)
        except NoJSON as reason:
            return 0.0, str(reason)
        if value is _MISSING:
            return 0.0, "the field is missing"
        wanted = rows.restore(reference)
        good = same_value(value, wanted) or _spelled(value, wanted)
        return float(good), "the field is the reference" if good else "the field differs"


def _spelled(value: Any, wanted: Any) -> bool:
    if not isinstance(wanted, str) or isinstance(value, str):
        return False
    try:
        return same_value(value, json.loads(wanted))
    except (ValueError, RecursionError):
        return False


def _at(value: Any, path: str) -> Any:
    if isinstance(value, Mapping) and path in value:
        return value[path]
    for part in path.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif (
            isinstance(value, list)
            and part.lstrip("-").isdigit()
            and -len(value) <= int(part) < len(value)
        ):
            value = value[int(part)]
        else:
            return _MISSING
    return value


def _open(wanted: Any) -> bool:
    """Whether a schema speaks of properties or items and admits any other type beside."""
    if not isinstance(wanted, Mapping):
        return False
    typed = {"type", "enum", "const", "allOf", "anyOf", "oneOf", "$ref", "not", "if"}
    return not typed & wanted.keys()


@lru_cache(maxsize=256)
def _checked(text: str) -> Any:
    wanted = json.loads(text)
    Draft202012Validator.check_schema(wanted)
    return _Validator(wanted, format_checker=_FORMATS)


_FORMATS = FormatChecker()
_TIME = regex.compile(
    r"(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:[Zz]|[-+](?:[01]\d|2[0-3]):[0-5]\d)"
)


def _is_time(value: object) -> bool:
    """A full-time of RFC 3339, section 5.6; the library lets an hour of 25 pass."""
    return not isinstance(value, str) or _TIME.fullmatch(value) is not None


_FORMATS.checks("time")(_is_time)


def _multiple_of(_: Any, divisor: Any, value: Any, __: Any) -> Iterator[ValidationError]:
    """Multiples in decimal: 4.02 is one of 0.01."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return
    if Decimal(str(value)) % Decimal(str(divisor)) != 0:
        yield ValidationError("not a multiple")


def _pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[ValidationError]:
    """Patterns with a time limit."""
    if isinstance(value, str) and not regex.search(
        pattern, value, timeout=_SECONDS, concurrent=True
    ):
        yield ValidationError("no match")


_Validator = validators.extend(
    Draft202012Validator, {"multipleOf": _multiple_of, "pattern": _pattern}
)
