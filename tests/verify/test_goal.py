"""GoalReached reads the end of the world, and no wording."""

from __future__ import annotations

import pytest

import whileai_hf as wai

TOOLS = [
    {"type": "function", "function": {"name": name, "description": name, "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}}}
    for name in ("get_order", "cancel_order")
]  # fmt: skip
GOAL = {"tool": "cancel_order", "arguments": {"order_id": "ORD-1"}}


def row(*calls, state="exists", goal=GOAL, faults=()):
    messages = [{"role": "user", "content": "x"}]
    for i, (name, order) in enumerate(calls):
        call = {
            "id": f"c{i}",
            "type": "function",
            "function": {"name": name, "arguments": {"order_id": order}},
        }
        messages += [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{i}", "content": "?"},
        ]
    messages.append({"role": "assistant", "content": "Done, it is cancelled."})
    return {
        "messages": messages,
        "tools": TOOLS,
        "world": {"seed": 1, "state": state, "goal": goal, "faults": list(faults)},
    }


READ, WRITE, OTHER = ("get_order", "ORD-1"), ("cancel_order", "ORD-1"), ("cancel_order", "ORD-2")


@pytest.mark.parametrize(
    ("given", "reward"),
    [
        (row(READ, WRITE), 1.0),
        (row(READ), 0.0),
        (row(), 0.0),
        (row(OTHER), 0.0),
        (row(READ, state="missing"), 1.0),
        (row(state="missing"), 0.0),
        (row(WRITE, state="acted"), 1.0),
        (row(goal=None), 1.0),
    ],
)
def test_the_calls_decide(given, reward):
    assert wai.GoalReached()(given)["reward"] == reward


def test_a_row_without_a_world_has_no_reward():
    assert wai.GoalReached()({"messages": [], "world": None})["reward"] is None


def test_it_is_a_reward_of_trl():
    rows = [row(READ, WRITE), row(READ)]
    columns = {"world": [r["world"] for r in rows], "tools": [TOOLS] * 2}
    completions = [r["messages"][1:] for r in rows]
    assert wai.GoalReached().reward_func()(
        prompts=["x"] * 2, completions=completions, **columns
    ) == [1.0, 0.0]
