"""Every way to write a tool down is read, and what cannot be one is refused by name."""

from __future__ import annotations

import ast
import enum
import json
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Annotated, Literal

import bfcl_eval
import jsonschema
import pytest

import whileai_hf as wai
from whileai_hf.world.tools import argument_values, read_tools
from whileai_hf.world.values import sample


class Color(enum.Enum):
    RED = "red"


@dataclass
class Box:
    width: int
    label: str = "x"


@wai.tool
def ship(
    order_id: str, box: Box, color: Color, speed: Literal["slow", "fast"] = "slow", tags: list[str] | None = None,
    weight: Annotated[float, "kg"] = 1.5, note: dict | None = None,
) -> dict:  # fmt: skip
    """Ship an order. Costs money.

    Args:
        order_id: The order's id,
            as printed.
        box (Box): What it goes in.

    Returns:
        The parcel.
    """
    return {"shipped": order_id}


def test_a_signature_is_a_schema_and_the_function_stays_one():
    shown = wai.tool_schemas([ship])[0]["function"]
    properties = shown["parameters"]["properties"]
    assert shown["description"] == "Ship an order. Costs money."
    assert shown["parameters"]["required"] == ["order_id", "box", "color"]
    assert properties["order_id"] == {
        "type": "string",
        "description": "The order's id, as printed.",
    }
    assert properties["speed"]["enum"] == ["slow", "fast"]
    assert properties["box"]["properties"]["width"]["type"] == "integer"
    assert properties["weight"]["default"] == 1.5
    assert ship("A", Box(1), Color.RED) == {"shipped": "A"}


OPENAI = {
    "type": "function",
    "function": {
        "name": "f",
        "description": "d",
        "strict": True,
        "parameters": {"type": "object", "properties": {"a": {"type": "string", "pattern": "^x"}}},
    },
}


def test_dialects_are_one_schema_and_the_openai_form_is_verbatim():
    parameters = OPENAI["function"]["parameters"]
    flat = {"name": "f", "description": "d", "parameters": parameters}
    assert wai.tool_schemas([OPENAI]) == [OPENAI]
    for given in (
        flat,
        {"name": "f", "description": "d", "input_schema": parameters},
        {"name": "f", "description": "d", "inputSchema": parameters},
    ):
        assert wai.tool_schemas([given])[0]["function"]["parameters"] == parameters


def test_a_json_file_and_json_lines_are_read(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"tools": [OPENAI]}))
    (tmp_path / "b.jsonl").write_text(json.dumps(OPENAI) + "\n" + json.dumps({"name": "g"}) + "\n")
    assert [t.name for t in read_tools(tmp_path / "a.json")] == ["f"]
    assert [t.name for t in read_tools(str(tmp_path / "b.jsonl"))] == ["f", "g"]


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        ([{"parameters": {}}], "needs a name"), ([{"name": "f", "parameters": {"type": 3}}], None), ([{"name": "f", "parameters": "x"}], "object of JSON Schema"),
        ([{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "strnig"}}}}], "must be JSON Schema"), ([OPENAI, OPENAI], "name of its own"),
        ([3], "function or a schema"), (7, "list"), ("missing.json", "does not exist"),
    ],
)  # fmt: skip
def test_what_is_no_tool_is_refused(bad, what):
    if what is None:
        assert read_tools(bad)
        return
    with pytest.raises(wai.InputError, match=what):
        read_tools(bad)


def test_an_argument_without_a_type_is_refused():
    with pytest.raises(wai.InputError, match="'x'"):
        wai.tool(lambda x: x)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"a": "xy"}, None),
        ({"a": "y"}, "a: "),
        ({"b": 1}, "unknown argument 'b'"),
        ([], "object"),
        ({"a": 3}, "a: "),
    ],
)
def test_arguments_are_validated_with_the_reason(arguments, problem):
    found = read_tools([OPENAI])[0].problem(arguments)
    assert (found is None) if problem is None else found.startswith(problem) or problem in found


def bfcl_tools():
    root = Path(bfcl_eval.__file__).parent / "data"
    for path in [
        *sorted(root.glob("*.json")),
        *sorted((root / "multi_turn_func_doc").glob("*.json")),
    ]:
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line.startswith(chr(123) + chr(34)):
                continue  # a file that is one pretty-printed object holds no tool
            entry = json.loads(line)
            yield from entry.get("function") or (
                [entry] if "parameters" in entry and "name" in entry else []
            )


def test_every_tool_of_bfcl_is_read_sampled_and_validated():
    seen, wrong = 0, []
    for i, given in enumerate(bfcl_tools()):
        if i % 7:  # every seventh of some nine thousand keeps the test short
            continue
        [tool] = read_tools([given])
        assert tool.schema["function"]["parameters"] == (
            given.get("parameters") or tool.schema["function"]["parameters"]
        )
        rng = Random(i)
        values = {
            n: sample(s, rng, n, tool.parameters.get("$defs"))
            for n, s in argument_values(tool.parameters).items()
        }
        seen += 1
        if tool.problem(values):
            wrong.append((tool.name, tool.problem(values)))
    assert seen > 1000
    assert not wrong


def _functions(path):
    """Tool functions of a package that cannot be imported here: their source, made callable."""
    scope = {
        "Annotated": Annotated,
        "Depends": lambda f: f,
        "datetime": __import__("datetime"),
        "Any": object,
    }
    exec("from typing import *\nimport datetime as dt", scope)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node):
            yield node, scope


def test_the_tools_of_tau2_retail_are_read_from_their_source():
    import tau2

    path = Path(tau2.__file__).parent / "domains" / "retail" / "tools.py"
    names = []
    for node, scope in _functions(path):
        arguments = [a for a in node.args.args if a.arg != "self"]
        if not any(
            isinstance(d, ast.Call) and "is_tool" in ast.unparse(d) for d in node.decorator_list
        ):
            continue
        plain = ", ".join(f"{a.arg}: {ast.unparse(a.annotation)}" for a in arguments)
        source = f"def {node.name}({plain}):\n    {ast.get_docstring(node)!r}"
        exec(source, scope)
        names += [t.name for t in read_tools([scope[node.name]])]
    assert {"get_order_details", "cancel_pending_order", "exchange_delivered_order_items"} <= set(
        names
    )
    assert len(names) >= 13


@pytest.mark.parametrize(
    "pattern", [r"^O-[0-9]+$", r"^[A-Z]{3}\d{2,4}$", r"^(red|blue)-\d$", r"^\d{4}-\d{2}-\d{2}$"]
)
def test_a_pattern_is_sampled(pattern):
    value = sample({"type": "string", "pattern": pattern}, Random(1), "x")
    jsonschema.validate(value, {"type": "string", "pattern": pattern})
