"""Tool calls of every wire format in one normal form; what cannot be read is kept and marked."""

from __future__ import annotations

import pytest
from reports import public_reports

import whileai_hf as wai
from whileai_hf import messages as chat

HERE = {"T01", "T02", "T03", "T04", "T05", "T07", "T08", "T10", "T16"}


@pytest.mark.parametrize("case", [p for p in public_reports("tool_calls") if p.id in HERE])
def test_public_reports_on_tool_calls(case):
    globals()[f"_{case['id'].lower()}"](case["input"], case["expected"])


def _t01(given, expected):
    a, b = chat.normal_call(given["a"]), chat.normal_call(given["b"])
    assert (a == b) is expected["equal"]
    assert a["function"] == expected["normal"]


def _t02(given, expected):
    calls = [chat.normal_call(call) for call in given["calls"]]
    assert [call["function"]["arguments"] for call in calls] == expected["arguments"]
    assert not any("malformed" in call for call in calls)


def _t03(given, expected):
    assert ["malformed" in chat.normal_call(call) for call in given["calls"]] == expected[
        "malformed"
    ]


def _t04(given, expected):
    call = chat.normal_call(given["calls"][0])
    assert call["malformed"]
    assert call["function"]["arguments"] == given["calls"][0]["function"]["arguments"]


def _t05(given, expected):
    assert chat.normal_call(given["call"])["malformed"] == expected["suggestion"]


def _t07(given, expected):
    calls = wai.tool_calls(chat.normal_messages(given["messages"]))
    assert {call.id: call.result for call in calls} == expected["pairs"]


def _t08(given, expected):
    with pytest.raises(wai.InputError, match=expected["error"]):
        chat.normal_messages(given["messages"])


def _t10(given, expected):
    assert chat.issues(chat.normal_messages(given["messages"])) == expected["issues"]


def _t16(given, expected):
    calls = wai.tool_calls(chat.normal_messages(given["messages"]))
    steps = [
        {"name": c.name, "arguments": c.arguments, "result": c.result, "status": c.status}
        for c in calls
    ]
    assert steps == expected["steps"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>41?</think> The answer is 42", "The answer is 42"),
        ("<THINK>\na\n</THINK>\nb", "b"),
        ("<think>never closed, 41", ""),
        ("opened by the prompt</think>42", "42"),
        ("plain", "plain"),
        ("<reasoning>x</reasoning>y<think>z</think>", "y"),
    ],
)
def test_reasoning_is_removed(text, expected):
    assert chat.without_reasoning(text) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, ""),
        ("x", "x"),
        ([{"type": "text", "text": "a"}, {"type": "image"}, "b"], "ab"),
        ({"text": "t"}, "t"),
        (3, "3"),
    ],
)
def test_text_of_any_content(content, expected):
    assert chat.text_of(content) == expected


def test_results_without_ids_answer_calls_without_ids_in_order():
    messages = [
        {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}] * 2},
        {"role": "tool", "content": "1"},
        {"role": "tool", "content": "2"},
    ]
    calls = wai.tool_calls(chat.normal_messages(messages))
    assert [c.result for c in calls] == ["1", "2"]


def test_a_result_with_the_name_of_one_call_answers_it():
    calls = [{"id": n, "function": {"name": n, "arguments": "{}"}} for n in "ab"]
    messages = [
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "name": "b", "content": "2"},
        {"role": "tool", "name": "a", "content": "1"},
    ]
    out = chat.normal_messages(messages)
    assert {c.name: c.result for c in wai.tool_calls(out)} == {"a": "1", "b": "2"}
    assert out[1]["tool_call_id"] == "b"


def test_a_legacy_function_call_is_a_call():
    out = chat.normal_messages(
        [{"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}}]
    )
    assert out[0]["tool_calls"][0]["function"] == {"name": "f", "arguments": {}}


def test_a_message_without_a_role_is_refused_by_its_place():
    with pytest.raises(wai.InputError, match="message 1"):
        chat.normal_messages([{"role": "user", "content": "x"}, {"content": "y"}])


def test_the_mask_is_on_agent_turns_only():
    roles = ["system", "user", "assistant", "tool", "assistant"]
    assert chat.loss_mask([{"role": r, "content": ""} for r in roles]) == [0, 0, 1, 0, 1]
