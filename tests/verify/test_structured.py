"""JSON in an answer: read strictly, validated with formats, compared by value."""

from __future__ import annotations

import json
import time

import pytest
from reports import public_reports

import whileai_hf as wai
from whileai_hf.verify.json_values import NoJSON, read_json


def row(text, reference=None):
    return {"final_text": text, "privileged": {"reference": reference}}


@pytest.mark.parametrize("case", public_reports("json_extract"))
def test_the_public_reports_about_extraction(case):
    given, expected = case["input"], case["expected"]
    text = "[" * 100_000 if "repeated" in given["final_text"] else given["final_text"]
    verifiers = [wai.JSONField(path=given["field"])] if "field" in given else [wai.JSONValid()]
    start = time.monotonic()
    for verifier in verifiers:
        found = verifier(row(text, given.get("reference")))
        assert found["reward"] == expected["reward"]
        if "reason_kind" in expected:
            assert expected["reason_kind"] in found["reason"]
    if "value" in expected:
        assert read_json(text) == expected["value"]
    if "with_repair" in expected:
        assert wai.JSONValid(repair=True)(row(text))["reward"] == expected["with_repair"]
    assert time.monotonic() - start < 2


@pytest.mark.parametrize("case", public_reports("json_schema"))
def test_the_public_reports_about_schemas(case):
    given, expected = case["input"], case["expected"]
    if expected["reward"] == "error":
        with pytest.raises(wai.InputError, match="JSON Schema"):
            wai.JSONSchema(schema=given["schema"])
        assert wai.JSONSchema()(row("{}", given["schema"]))["reward"] is None
        return
    instance = float("nan") if "NaN" in str(given["instance"]) else given["instance"]
    found = wai.JSONSchema(schema=given["schema"])(row(json.dumps(instance)))
    assert found["reward"] == expected["reward"]
    if "warning" in expected:
        assert expected["warning"] in found["reason"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ("```\n[1, 2]\n```\nThat is all.", [1, 2]),
        ('```json\n{"a": 1}\n```\nNo:\n```json\n{"a": 2}\n```', {"a": 2}),
        ('Take {title} and see [1]. {"a": [1, {"b": 2}]} as in {x}', {"a": [1, {"b": 2}]}),
        ("null", None),
        ("3.0", 3.0),
        ('~~~json\n{"a": "```"}\n~~~', {"a": "```"}),
        ('The list is [{"a": 1}, {"a": 2}].', [{"a": 1}, {"a": 2}]),
        ('{"a": "he said \\"{\\" twice"}', {"a": 'he said "{" twice'}),
        ('```json\n{"a": 1}', {"a": 1}),
    ],
)
def test_the_value_is_found(text, value):
    assert read_json(text) == value


@pytest.mark.parametrize(
    "text",
    ["", "no value", '{"a": 1} then {"a": 2,}', '{"items": [{"id": 1}, {"id": ', "{'a': 1}", '{"a": 01}',
     '{"a": Infinity}', '```json\n{"a": 1\n```', '{"a": {"b": 1, "b": 1}}', "{title}"],
)  # fmt: skip
def test_what_is_no_json_is_none(text):
    with pytest.raises(NoJSON):
        read_json(text)


def test_fields_compare_by_value():
    text = '{"n": 1, "s": "1.0", "b": true, "z": null, "o": {"l": [{"id": 7}]}, "a.b": 5}'
    judge = lambda path, reference: wai.JSONField(path=path)(row(text, reference))["reward"]  # noqa: E731 - used below
    assert judge("n", 1.0) == 1.0
    assert judge("n", "1.0") == 1.0
    assert judge("n", True) == 0.0
    assert judge("s", 1.0) == 0.0
    assert judge("b", True) == 1.0
    assert judge("z", "null") == 1.0
    assert judge("missing", "null") == 0.0
    assert judge("o.l.0.id", 7) == 1.0
    assert judge("a.b", 5) == 1.0


@pytest.mark.parametrize(
    ("format", "good", "bad"),
    [
        ("date-time", "2024-02-28T10:00:00Z", "2024-02-28 10:00"),
        ("email", "a@b.example", "a at b"),
        ("uri", "https://a.example/x", "not a uri"),
        ("ipv4", "127.0.0.1", "300.0.0.1"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123"),
        ("time", "10:00:00Z", "25:00:00Z"),
    ],
)
def test_formats_are_asserted(format, good, bad):
    schema = {"type": "string", "format": format}
    assert wai.JSONSchema(schema=schema)(row(json.dumps(good)))["reward"] == 1.0
    assert wai.JSONSchema(schema=schema)(row(json.dumps(bad)))["reward"] == 0.0


def test_a_schema_pattern_is_bounded_in_time():
    schema = {"type": "string", "pattern": r"^(?:(?:a|aa)+)+\d$"}
    start = time.monotonic()
    assert wai.JSONSchema(schema=schema)(row(json.dumps("a" * 5000 + "!")))["reward"] == 0.0
    assert time.monotonic() - start < 3


def test_a_schema_may_stand_in_the_row():
    schema = {"type": "object", "required": ["a"]}
    assert wai.JSONSchema()(row('{"a": 1}', schema))["reward"] == 1.0
    assert wai.JSONSchema()(row('{"b": 1}', json.dumps(schema)))["reward"] == 0.0
    assert wai.JSONSchema()(row("{}"))["reward"] is None
