"""ToolCalls and StateEqual: what was called, and what was left behind."""

from __future__ import annotations

import pytest
from reports import public_reports

import whileai_hf as wai

HERE = {"T11", "T12", "T13", "T15"}


def row(calls, reference, tools=None):
    made = [
        {"type": "function", "function": {"name": name, "arguments": arguments}}
        for name, arguments in calls
    ]
    messages = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "", "tool_calls": made},
    ]
    return {"messages": messages, "tools": tools, "privileged": {"reference": reference}}


def score(calls, reference, tools=None, **options):
    return wai.ToolCalls(**options)(row(calls, reference, tools))["reward"]


@pytest.mark.parametrize("case", [p for p in public_reports("tool_calls") if p.id in HERE])
def test_public_reports_on_reference_calls(case):
    given, expected = case["input"], case["expected"]
    if "schema" in given:
        tools = [{"type": "function", "function": {"name": "f", "parameters": given["schema"]}}]
        assert score([["f", given["got"]]], [["f", given["expected"]]], tools) == float(
            expected["equal"]
        )
    elif "equal" in expected:
        found = [score([["f", got]], [["f", given["expected"]]]) for got in given["got"]]
        assert found == [float(e) for e in expected["equal"]]
    else:
        assert score(given["got"], given["expected"]) == expected["reward"]


@pytest.mark.parametrize("case", [p for p in public_reports("tool_calls") if p.id == "T14"])
def test_public_report_on_end_states(case):
    given = case["input"]
    judge = wai.StateEqual(
        state=lambda row: given["got_state"], unordered=tuple(given["options"]["unordered"])
    )
    assert (
        judge({"privileged": {"state": given["expected_state"]}})["reward"]
        == case["expected"]["reward"]
    )
    strict = wai.StateEqual(state=lambda row: given["got_state"])
    assert strict({"privileged": {"state": given["expected_state"]}})["reward"] == 0.0


A, B = ["a", {"x": 1}], ["b", {}]


@pytest.mark.parametrize(
    ("calls", "options", "reward"),
    [
        ([A, B], {}, 1.0), ([B, A], {}, 1.0), ([B, A], {"order": "strict"}, 0.0), ([A, B], {"order": "strict"}, 1.0), ([A], {}, 0.0),
        ([A, B, B], {}, 0.0), ([A, B, B], {"extra": True}, 1.0), ([A, B, A], {"order": "strict", "extra": True}, 1.0), ([], {}, 0.0),
        ([["a", '{"x": 1}'], B], {}, 1.0), ([["a", '{"x": 1'], B], {}, 0.0), ([["a", {"x": 1, "y": 2}], B], {}, 0.0),
    ],
)  # fmt: skip
def test_calls_count_by_name_arguments_and_order(calls, options, reward):
    assert score(calls, [A, B], **options) == reward


@pytest.mark.parametrize("reference", ["text", 3, [["a"]], [{"name": "a", "arguments": "{"}], None])
def test_a_reference_that_is_no_list_of_calls_gives_null(reference):
    assert score([A], reference) is None


def test_no_call_is_right_where_none_is_wanted():
    assert score([], []) == 1.0
    assert wai.ToolCalls()({"messages": None, "privileged": {"reference": []}})["reward"] == 1.0


def test_an_unknown_order_is_refused():
    with pytest.raises(wai.InputError, match="'sorted'"):
        wai.ToolCalls(order="sorted")


def test_it_is_a_reward_function_of_trl():
    function = wai.ToolCalls().reward_func()
    completions = [row([A], [])["messages"][1:], row([B], [])["messages"][1:]]
    assert function(prompts=["p"] * 2, completions=completions, reference=[[A], [A]]) == [1.0, 0.0]


def test_the_end_state_of_a_simulated_world_is_compared():
    @wai.tool
    def cancel_order(order_id: str) -> dict:
        """Cancel an order."""

    data = wai.simulate(
        wai.seeded_agent([cancel_order], rate=0.0),
        tools=[cancel_order],
        budget=30,
        repeats=1,
        progress=False,
    )
    judge = wai.StateEqual()
    for record in data.records():
        end = judge.candidate(record)
        record["privileged"]["state"] = end
        assert judge(record)["reward"] == 1.0
        spoiled = {**end, "ORD-0": {"status": "done"}}
        assert judge({**record, "privileged": {"state": spoiled}})["reward"] == 0.0
    assert judge({"world": None, "messages": [], "privileged": {"state": {}}})["reward"] is None
