"""Tool sets that nobody here wrote: read, sampled, validated, answered, and refused when corrupted."""

from __future__ import annotations

import copy
from random import Random

import pytest
from toolsets import DOMAINS, agentdojo, bfcl, tau2

import whileai_hf as wai
from whileai_hf.world.tools import Tool, argument_values, read_tools
from whileai_hf.world.values import sample

SETS = {**{f"tau2 {d}": lambda d=d: tau2(d) for d in DOMAINS}, "agentdojo": agentdojo}


def arguments_of(tool: Tool, seed: int, bound: str = "") -> dict:
    rng, definitions = Random(seed), tool.parameters.get("$defs")
    return {
        n: sample(s, rng, n, definitions, bound=bound)
        for n, s in argument_values(tool.parameters).items()
    }


def corrupted(tool: Tool, arguments: dict) -> list[dict]:
    """Break valid arguments in every way that the schema forbids for sure."""
    out = [{**arguments, "no_such_argument": 1}]
    required = tool.parameters.get("required") or ()
    out += [{k: v for k, v in arguments.items() if k != name} for name in required]
    for name, schema in argument_values(tool.parameters).items():
        wrong = {
            "string": 7,
            "integer": "seven",
            "number": "seven",
            "boolean": "yes",
            "array": {"a": 1},
            "object": [1],
        }
        if (
            isinstance(schema.get("type"), str)
            and schema["type"] in wrong
            and not _open(tool, name)
        ):
            out.append({**arguments, name: wrong[schema["type"]]})
        if schema.get("enum") and not _open(tool, name):
            out.append({**arguments, name: "none of these"})
    return out


def _open(tool: Tool, name: str) -> bool:
    """A value with alternatives may be of another type than the first one."""
    raw = tool.parameters["properties"][name]
    return "anyOf" in raw or "oneOf" in raw or isinstance(raw.get("type"), list)


def check(tool: Tool, tools: list[Tool], seed: int) -> list[str]:
    """Say what is wrong with how a tool is handled."""
    problems = []
    for bound in ("", "lowest", "highest"):
        arguments = arguments_of(tool, seed, bound)
        if (problem := tool.problem(arguments)) is not None:
            problems.append(f"{tool.name} {bound}: {problem}")
    goal = {"tool": tool.name, "arguments": arguments}
    world = wai.World(tools, seed=seed, goal=goal)
    world.call(tool.name, arguments)
    if world.log[0]["status"] != "ok" or not world.achieved():
        problems.append(f"{tool.name}: a valid call is answered by {world.log[0]['result']}")
    for wrong in corrupted(tool, arguments):
        before = copy.deepcopy(world.records)
        result = world.call(tool.name, wrong)
        refused = isinstance(result, dict) and result.get("error") == "invalid_arguments"
        if not refused or not result["message"] or world.records != before:
            problems.append(f"{tool.name}: {wrong} is answered by {result}")
    return problems


@pytest.mark.parametrize("name", SETS)
def test_every_tool_of_a_benchmark_is_handled(name):
    tools = read_tools(SETS[name]())
    assert len(tools) >= 14
    assert [p for i, tool in enumerate(tools) for p in check(tool, tools, i)] == []


def _bfcl(every: int) -> list[str]:
    problems, at = [], 0
    for given in bfcl().values():
        for schema in given:
            at += 1
            if at % every:
                continue
            [tool] = read_tools([schema])
            own = {k: v for k, v in schema.items() if k != "response"}
            shown = tool.schema["function"]
            if any(shown[k] != v for k, v in own.items() if v):
                problems.append(f"{tool.name} is not shown as it was written")
            problems += check(tool, [tool], at)
    return problems


def test_tools_of_every_category_of_bfcl_are_handled():
    assert len(bfcl()) >= 25
    assert _bfcl(every=9) == []


@pytest.mark.slow
def test_every_tool_of_bfcl_is_handled():
    assert sum(map(len, bfcl().values())) > 3000
    assert _bfcl(every=1) == []


def test_the_catalog_finds_what_the_tools_are_about():
    catalog = wai.World(tau2("retail")).catalog
    assert catalog.main["exchange_delivered_order_items"] == "order_id"
    assert catalog.reader("modify_user_address") == ("get_user_details", {"user_id": "user_id"})
    assert catalog.about["find_user_id_by_email"] == "user"
    assert catalog.kinds["get_product_details"] == "read"


def test_a_reference_that_leads_nowhere_is_refused_by_name():
    lost = {
        "name": "f",
        "parameters": {"type": "object", "properties": {"a": {"$ref": "#/$defs/gone"}}},
    }
    with pytest.raises(wai.InputError, match="#/\\$defs/gone"):
        read_tools(lost)


def test_definitions_of_an_argument_are_found_from_anywhere():
    own = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A", "$defs": {"A": {"type": "integer"}}}},
    }
    [tool] = read_tools({"name": "f", "parameters": own})
    assert tool.problem({"a": 1}) is None
    assert tool.problem({"a": "x"}).startswith("a: ")
