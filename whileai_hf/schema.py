"""The one data shape: a `datasets.Dataset` with one row a rollout.

The columns come in four groups (`GROUPS`): the task that was asked, the rollout that answered it,
the judgment on it, and markers, which are named facts where 1.0 is always the good outcome.

`datasets.Json` keeps a value as JSON text, which is what lets two rows hold different tools and
arguments. Its codec rounds some numbers, so a value that it would change is stored as text instead
(`exact`) and read back unchanged (`restore`); a value that JSON cannot hold at all is refused.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset, DatasetInfo, Features, Json, List, Value
from datasets.fingerprint import generate_random_fingerprint
from datasets.utils.json import ujson_dumps, ujson_loads

from whileai_hf.errors import InputError, SchemaError

#: Columns by group, in the order in which a row is written.
GROUPS: dict[str, dict[str, Any]] = {
    "task": {
        "task_id": Value("string"),
        "tools": List(Json()),
        "situation": Json(),
        "world": Json(),
        "privileged": Json(),
    },
    "rollout": {
        "rollout_id": Value("string"),
        "run": Value("string"),
        "repeat": Value("int64"),
        "messages": List(Json()),
        "loss_mask": List(Value("int8")),
        "ask": Value("string"),
        "final_text": Value("string"),
        "finish_reason": Value("string"),
        "error": Value("string"),
        "agent": Value("string"),
        "sampling": Json(),
        "logprob": Value("float64"),
        "n_tokens": Value("int64"),
        "token_logprobs": List(Value("float32")),
        "seeded": List(Value("string")),
    },
    "judgment": {
        "reward": Value("float64"),
        "judge_status": Value("string"),
        "judge": Value("string"),
        "reason": Value("string"),
        "failure_class": Value("string"),
        "judge_meta": Json(),
        "gold_reward": Value("float64"),
    },
    "marker": {
        "markers": List({"name": Value("string"), "value": Value("float64")}),
    },
}

#: Every column of a rollout and its type.
FEATURES = Features({name: kind for group in GROUPS.values() for name, kind in group.items()})

#: Columns that hold one JSON value, and columns that hold a list of them.
JSON_COLUMNS = tuple(name for name, kind in FEATURES.items() if isinstance(kind, Json))
JSON_LISTS = tuple(
    name
    for name, kind in FEATURES.items()
    if isinstance(kind, List) and isinstance(kind.feature, Json)
)

#: Columns that no prompt and no export may carry.
PRIVATE = ("world", "privileged")

#: The five things a judge can have said.
JUDGE_STATUSES = ("ok", "missing_reward", "invalid_result", "error", "timeout")

#: The key under which a JSON value that the codec would change travels as text.
TEXT_KEY = "$json"

#: The bounds between which the codec keeps integers.
_MIN_INT, _MAX_INT = -(2**63), 2**64 - 1

#: Nesting beyond which JSON codecs give up.
_MAX_DEPTH = 200


def feature_of(name: str) -> Any:
    """Return the type of a column, or raise for a name that is none of ours."""
    if name not in FEATURES:
        raise SchemaError(
            f"a column of a rollout is required; got {name!r}. Use one of: {', '.join(FEATURES)}."
        )
    return FEATURES[name]


def _kept_as_is(value: Any, depth: int = 0) -> bool:
    """Tell quickly that a value is plain JSON which the codec keeps; False only means "look closer"."""
    kind = type(value)
    if kind is str:
        return value.isascii() or _encodes(value)
    if kind is dict:
        for key, inner in value.items():
            if type(key) is not str or not (key.isascii() or _encodes(key)):
                return False
            if type(inner) is str and inner.isascii():
                continue
            if depth > _MAX_DEPTH or not _kept_as_is(inner, depth + 1):
                return False
        return True
    if kind is list:
        return depth < _MAX_DEPTH and all(_kept_as_is(inner, depth + 1) for inner in value)
    if value is None or kind is bool:
        return True
    if kind is int:
        return bool(_MIN_INT <= value <= _MAX_INT)
    return kind is float and math.isfinite(value) and is_exact(value)


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_exact(value: Any) -> bool:
    """Tell whether the `Json` feature gives this JSON value back unchanged."""
    if isinstance(value, dict):
        return all(map(is_exact, value.values()))
    if isinstance(value, list):
        return all(map(is_exact, value))
    if isinstance(value, float):
        # Read as written here, and read after `Dataset.map` has written it anew.
        return bool(ujson_loads(repr(value)) == value == ujson_loads(ujson_dumps(value)))
    if isinstance(value, int):
        return _MIN_INT <= value <= _MAX_INT
    return True


def plain(value: Any, where: str, depth: int = 0) -> Any:
    """Copy a value into plain JSON types, or say what JSON cannot hold.

    Tuples and arrays become lists, NumPy scalars become Python numbers, and lone surrogates, which
    no file can hold, become U+FFFD.

    Args:
        value: What the caller wants to store.
        where: Path of the value, for the error.
        depth: How deep `value` lies.

    Raises:
        InputError: A key is no string, a number is not finite, the nesting is too deep, or a type
            has no JSON form.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(
                f"{where} must be a finite number, because JSON has no other; got {value!r}. "
                "Store null, or keep the number in a typed column."
            )
        return float(value)
    if depth > _MAX_DEPTH:
        raise InputError(
            f"{where} must be nested at most {_MAX_DEPTH} deep; it is deeper. Store it as JSON text."
        )
    return _plain_container(value, where, depth)


def _plain_container(value: Any, where: str, depth: int) -> Any:
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise InputError(
                    f"{where} must have strings as keys; got {key!r}. Convert the keys first."
                )
        return {clean_text(k): plain(v, f"{where}.{k}", depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v, f"{where}[{i}]", depth + 1) for i, v in enumerate(value)]
    if isinstance(value, (np.generic, np.ndarray)):
        return plain(value.tolist(), where, depth + 1)
    raise InputError(
        f"{where} must be a JSON value (null, boolean, number, string, list, object); "
        f"got {type(value).__name__}. Convert it first."
    )


def clean_text(text: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot hold, by U+FFFD, with a warning that counts them."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        cleaned = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        count = cleaned.count("\ufffd") - text.count("\ufffd")
        warnings.warn(
            f"a text held {count} lone surrogate(s), which no file can hold; "
            "each is replaced by U+FFFD",
            stacklevel=2,
        )
        return cleaned
    return text


def exact(value: Any, where: str = "value") -> Any:
    """Return a form of a JSON value that the `Json` feature keeps exactly.

    Most values are their own form. An object or list with a number that the codec would round is
    wrapped as `{"$json": text}`; `restore` takes the wrapping off.

    Args:
        value: A JSON value; NumPy scalars and tuples are converted.
        where: Path of the value, for the error.
    """
    if isinstance(value, dict) and _kept_as_is(value):
        return value
    value = plain(value, where)
    if isinstance(value, str):  # the codec takes a string that is itself JSON for what it says
        return {TEXT_KEY: dumps(value)} if _is_json(value) else value
    return value if is_exact(value) else {TEXT_KEY: dumps(value)}


def _is_json(text: str) -> bool:
    try:
        ujson_loads(text)
    except ValueError:
        return False
    return True


def exact_message(message: Any, where: str = "message") -> dict[str, Any]:
    """Return a message in the form that is stored: exact, with arguments as objects where they fit.

    A tool call whose arguments the codec would change keeps them as JSON text, the OpenAI wire
    format, which every renderer of this package parses.
    """
    if isinstance(message, dict) and _kept_as_is(message):
        return message
    copy: dict[str, Any] = plain(message, where)
    if not isinstance(copy, dict):
        raise InputError(
            f"{where} must be an object with a role; got {type(message).__name__}. "
            'Write {"role": …, "content": …}.'
        )
    if is_exact(copy):
        return copy
    for call in copy.get("tool_calls") or []:
        function = call.get("function", call) if isinstance(call, dict) else {}
        if isinstance(function, dict) and not is_exact(function.get("arguments")):
            function["arguments"] = dumps(function["arguments"])
    return {k: v if is_exact(v) else {TEXT_KEY: dumps(v)} for k, v in copy.items()}


def restore(value: Any) -> Any:
    """Undo `exact`, and parse the tool-call arguments of a message that are kept as JSON text."""
    if isinstance(value, dict):
        if value.keys() == {TEXT_KEY}:
            return json.loads(value[TEXT_KEY])
        out = {k: restore(v) if isinstance(v, (dict, list)) else v for k, v in value.items()}
        if isinstance(out.get("arguments"), str) and "name" in out:
            out["arguments"] = _parsed(out["arguments"])
        return out
    if isinstance(value, list):
        return [restore(v) if isinstance(v, (dict, list)) else v for v in value]
    return value


def _parsed(arguments: str) -> Any:
    try:
        value = json.loads(arguments)
    except ValueError:
        return arguments
    return value if isinstance(value, dict) else arguments


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def dumps(value: Any) -> str:
    """Write one JSON value exactly, compactly, and only if it is JSON."""
    return _ENCODER.encode(value)


def to_table(records: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Write records as an Arrow table with the features of a rollout.

    Every JSON value is written with `json`, never through the rounding codec of `Dataset.from_list`.
    Columns that a record lacks are null. Columns that are not ours are added after ours, with the
    type that Arrow infers.

    Args:
        records: One mapping a rollout. `markers` may be a mapping from name to value.

    Raises:
        InputError: A value cannot be stored; the message names record and column.
    """
    rows = [record if isinstance(record, dict) else dict(record) for record in records]
    arrays = {name: _array(name, [row.get(name) for row in rows]) for name in FEATURES}
    extra = dict.fromkeys(name for row in rows for name in row if name not in FEATURES)
    arrays |= {name: _extra_array(name, [row.get(name) for row in rows]) for name in extra}
    return pa.table(arrays)


def to_dataset(records: Iterable[Mapping[str, Any]]) -> Dataset:
    """Write records as a `datasets.Dataset` with explicit features; see `to_table`."""
    return from_table(to_table(records))


def from_table(table: pa.Table) -> Dataset:
    """View a table of `to_table` as a `datasets.Dataset`, its features explicit."""
    features = Features.from_arrow_schema(table.schema)
    features = Features({name: FEATURES.get(name, kind) for name, kind in features.items()})
    # A mark of its own, not a hash of the table, which would copy it: what lives in memory is
    # cached by no `map`.
    mark = generate_random_fingerprint()
    return Dataset(table, info=DatasetInfo(features=features), fingerprint=mark)


def empty() -> Dataset:
    """Return a dataset of no rollouts that has every column."""
    return to_dataset([])


def _array(name: str, values: list[Any]) -> pa.Array:
    kind = FEATURES[name]
    if name in JSON_COLUMNS:
        texts = [
            None if v is None else dumps(exact(v, f"{name} of record {i}"))
            for i, v in enumerate(values)
        ]
        return _json_array(texts)
    if name in JSON_LISTS:
        return _json_list(name, values)
    if name == "markers":
        values = [marker_list(v) if v else None for v in values]  # no marker is null
    try:
        return pa.array(_texts(values), type=pa.schema(Features({name: kind}).arrow_schema)[0].type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError) as error:
        raise InputError(
            f"the column {name!r} must hold {kind.dtype if isinstance(kind, Value) else kind}; "
            f"Arrow says: {error}. Convert the values, or give them a column name of their own."
        ) from error


def _texts(values: list[Any]) -> list[Any]:
    return [clean_text(v) if isinstance(v, str) else v for v in values]


def _json_array(texts: Sequence[str | None]) -> pa.Array:
    kind = pa.json_(pa.string())
    return pa.ExtensionArray.from_storage(kind, pa.array(texts, type=pa.string()))


def _json_list(name: str, values: list[Any]) -> pa.Array:
    convert = exact_message if name == "messages" else exact
    offsets, texts = [0], []
    written: dict[int, str] = {}  # by identity: rows share their tools and their system message
    for i, value in enumerate(values):
        for j, item in enumerate(_items(value, name, i)):
            text = written.get(id(item))
            if text is None:
                text = dumps(convert(item, f"{name}[{j}] of record {i}"))
                written[id(item)] = text
            texts.append(text)
        offsets.append(len(texts))
    missing = pa.array([value is None for value in values], type=pa.bool_())
    return pa.ListArray.from_arrays(
        pa.array(offsets, type=pa.int32()), _json_array(texts), mask=missing
    )


def message_array(values: Sequence[Any]) -> pa.Array:
    """Write conversations, one list of messages a row, as a column of type `List(Json())`."""
    return _json_list("messages", list(values))


def _items(value: Any, name: str, i: int) -> Sequence[Any]:
    if value is None:
        return ()
    if isinstance(value, (list, tuple)):
        return value
    raise InputError(
        f"{name} of record {i} must be a list; got {type(value).__name__}. Wrap it in a list."
    )


def _extra_array(name: str, values: list[Any]) -> pa.Array:
    values = _texts(values)
    try:
        array = pa.array(values)
        lossless = not any(isinstance(v, (dict, list, tuple)) for v in values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        lossless = False
    if lossless:
        return array
    # Nested or mixed: Arrow would fill the keys that one row lacks, so it is kept as JSON.
    return _json_array([None if v is None else dumps(exact(v, name)) for v in values])


def marker_list(markers: Any) -> list[dict[str, Any]]:
    """Return markers in the stored form, a list of name and value, from either form."""
    pairs = (
        markers.items()
        if isinstance(markers, Mapping)
        else ((m["name"], m["value"]) for m in markers)
    )
    return [{"name": str(name), "value": _marker_value(name, value)} for name, value in pairs]


def _marker_value(name: str, value: Any) -> float | None:
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if math.isfinite(number):
        return number
    raise InputError(
        f"the marker {name!r} must be a finite number, 1.0 being the good outcome; got {value!r}. "
        "Return a number, or leave the marker out."
    )


def marker_dict(markers: Any) -> dict[str, float]:
    """Return markers as the mapping that judges and users read; null is the empty mapping."""
    if not markers:
        return {}
    if isinstance(markers, Mapping):
        return dict(markers)
    return {m["name"]: m["value"] for m in markers}


def to_record(row: Mapping[str, Any]) -> dict[str, Any]:
    """Turn a dataset row into a record: exact JSON values, arguments as objects, markers a mapping.

    The inverse of `to_table` for one row: `to_record(to_dataset([r])[0])` holds the values of `r`.
    """
    record = dict(row)
    for name in (*JSON_COLUMNS, *JSON_LISTS):
        if name in record:
            record[name] = restore(_object(record[name]))
    if "markers" in record:
        record["markers"] = marker_dict(record["markers"])
    return record


def _object(value: Any) -> Any:
    if isinstance(value, str):
        return _parsed(value)
    return value
