"""Spans of every generation of the conventions become rollouts, one a conversation."""

from __future__ import annotations

import json

import pytest

import whileai_hf as wai

CALL = {"type": "tool_call", "id": "c1", "name": "get_order", "arguments": {"order_id": "ORD-1"}}
RESULT = {"type": "tool_call_response", "id": "c1", "response": {"status": "paid"}}
USER = {"role": "user", "parts": [{"type": "text", "content": "Where is ORD-1?"}]}
DONE = {
    "role": "assistant",
    "parts": [{"type": "text", "content": "It is paid."}],
    "finish_reason": "stop",
}


def otlp(*spans):
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def span(start, trace="t1", events=(), **attributes):
    listed = [
        {"key": k, "value": {"stringValue": v if isinstance(v, str) else json.dumps(v)}}
        for k, v in attributes.items()
    ]
    return {
        "traceId": trace,
        "startTimeUnixNano": str(start),
        "attributes": listed,
        "events": list(events),
    }


def named(**attributes):
    return {f"gen_ai.{k.replace('__', '.')}": v for k, v in attributes.items()}


def conversation():
    first = named(operation__name="chat", request__model="m1", system_instructions=[{"type": "text", "content": "Help."}],
                  input__messages=[USER], output__messages=[{"role": "assistant", "parts": [CALL]}])  # fmt: skip
    tool = named(
        operation__name="execute_tool",
        tool__name="get_order",
        tool__call__id="c1",
        tool__call__result='{"status": "paid"}',
    )
    last = named(operation__name="chat", system_instructions=[{"type": "text", "content": "Help."}],
                 input__messages=[USER, {"role": "assistant", "parts": [CALL]}, {"role": "tool", "parts": [RESULT]}], output__messages=[DONE])  # fmt: skip
    return span(30, **last), span(10, **first), span(20, **tool)


def test_spans_of_one_trace_are_one_conversation_whatever_their_order():
    data = wai.from_spans(otlp(*conversation()))
    assert [m["role"] for m in data[0]["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    [call] = wai.tool_calls(data[0])
    assert (call.name, call.arguments, json.loads(call.result)) == (
        "get_order",
        {"order_id": "ORD-1"},
        {"status": "paid"},
    )
    assert data[0]["final_text"] == "It is paid."
    assert data[0]["agent"] == "m1"
    assert data[0]["error"] is None


def test_traces_are_told_apart_and_conversations_joined():
    spans = [
        span(i, f"t{i}", **named(input__messages=[USER], output__messages=[DONE])) for i in range(3)
    ]
    assert len(wai.from_spans(otlp(*spans))) == 3
    same = [
        span(
            i,
            f"t{i}",
            **named(
                conversation__id="c",
                input__messages=[{"role": "user", "content": f"ask {i}"}],
                output__messages=[DONE],
            ),
        )
        for i in range(3)
    ]
    joined = wai.from_spans(otlp(*same))
    assert [m["role"] for m in joined[0]["messages"]] == ["user", "assistant"] * 3


def test_the_older_events_and_the_flat_form_are_read(tmp_path):
    def event(name, **attributes):
        return {
            "name": name,
            "attributes": [{"key": k, "value": {"stringValue": v}} for k, v in attributes.items()],
        }

    calls = json.dumps(
        [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    )
    events = [event("gen_ai.user.message", content="Hi"), event("gen_ai.assistant.message", tool_calls=calls),
              event("gen_ai.tool.message", id="1", content="ok"), event("gen_ai.choice", message=json.dumps({"content": "Bye"}))]  # fmt: skip
    data = wai.from_spans([span(1, events=events)])
    assert [m["role"] for m in data[0]["messages"]] == ["user", "assistant", "tool", "assistant"]
    assert wai.tool_calls(data[0])[0].result == "ok"
    flat = {"context": {"trace_id": "x"}, "start_time": "2026-01-01", "attributes": {
        "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Hi", "gen_ai.completion.0.content": "Bye"}}  # fmt: skip
    (tmp_path / "spans.jsonl").write_text(
        json.dumps(flat) + "\n" + json.dumps({**flat, "context": {"trace_id": "y"}}) + "\n"
    )
    assert wai.from_spans(tmp_path / "spans.jsonl")["final_text"][:] == ["Bye", "Bye"]


def test_spans_aim_a_simulation():
    data = wai.from_spans(otlp(*conversation())).grade(judge=lambda row: 0, progress=False)
    made = wai.simulate(
        tools=[{"name": "get_order"}], traces=data, budget=5, repeats=1, progress=False
    )
    assert len(made) == 5


@pytest.mark.parametrize(
    "bad", [{}, [], otlp(span(1, **named(request__model="m"))), "no/such.json", [3]]
)
def test_spans_without_messages_are_refused(bad):
    with pytest.raises(wai.InputError):
        wai.from_spans(bad)


def test_messages_of_langchain_are_read_in_every_dress():
    call = {"name": "get_order", "args": {"order_id": "ORD-1"}, "id": "c1", "type": "tool_call"}
    plain = [{"type": "human", "content": "Where?"}, {"type": "ai", "content": "", "tool_calls": [call]},
             {"type": "tool", "content": "paid", "tool_call_id": "c1", "status": "success"}, {"type": "ai", "content": "Paid."}]  # fmt: skip
    names = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}
    nested = [{"type": m["type"], "data": m} for m in plain]
    built = [
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", names[m["type"]]],
            "kwargs": m,
        }
        for m in plain
    ]

    class Message:
        def __init__(self, **fields):
            self.__dict__.update(fields)

    data = wai.from_chats(
        [{"messages": m} for m in (plain, nested, built, [Message(**m) for m in plain])]
    )
    for row in data:
        assert row["messages"] == data[0]["messages"]
        assert [m["role"] for m in row["messages"]] == ["user", "assistant", "tool", "assistant"]
        assert wai.tool_calls(row)[0].result == "paid"
        assert row["error"] is None
