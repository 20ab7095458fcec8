"""What a user already has becomes rollouts, and nothing of it is lost."""

from __future__ import annotations

import json

import pytest

import whileai_hf as wai

CALL = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": '{"n": 3}'}}
BROKEN = {"id": "c1", "type": "function", "function": {"name": "pay", "arguments": '{"n": 3'}}


def log(call):
    return [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "pay 3"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "paid"},
        {"role": "assistant", "content": "Done."},
    ]


def test_the_same_prompt_twice_is_one_task_with_two_attempts():
    made = wai.rows(["1+1", "1+1", "2+2"], ["2", "3", "4"], reward=[1, False, 0.5])
    assert made["task_id"][0] == made["task_id"][1] != made["task_id"][2]
    assert made["repeat"][:] == [0, 1, 0]
    assert len(set(made["rollout_id"])) == 3
    assert made["reward"][:] == [1.0, 0.0, 0.5]


def test_references_are_kept_where_no_prompt_carries_them():
    made = wai.rows(["q"], ["a"], references=["12"])
    assert made[0]["privileged"] == {"reference": "12"}
    assert "12" not in json.dumps(made[0]["messages"])


def test_prompts_and_completions_may_be_conversations():
    made = wai.rows([log(CALL)[:2]], [log(CALL)[2:]])
    assert made[0]["ask"] == "pay 3"
    assert made[0]["final_text"] == "Done."
    assert made[0]["loss_mask"] == [0, 0, 1, 0, 1]


@pytest.mark.parametrize("reward", [[1.5], [-0.1], ["good"], [float("nan")], [float("inf")]])
def test_a_reward_outside_the_unit_interval_is_refused(reward):
    with pytest.raises(wai.InputError, match="row 0"):
        wai.rows(["q"], ["a"], reward=reward)


def test_columns_of_different_lengths_are_refused_by_name():
    with pytest.raises(wai.InputError, match="completions needs one value for each of the 2"):
        wai.rows(["a", "b"], ["x"])
    with pytest.raises(wai.InputError, match="references"):
        wai.rows(["a"], ["x"], references=[])


def test_no_prompts_are_no_rollouts():
    assert len(wai.rows([], [])) == 0


def test_arguments_in_json_text_become_objects():
    made = wai.from_chats([log(CALL)])
    assert made[0]["messages"][2]["tool_calls"][0]["function"]["arguments"] == {"n": 3}
    assert made[0]["error"] is None


def test_a_malformed_call_is_kept_marked_and_named():
    made = wai.from_chats([log(BROKEN), log(CALL)])
    call = made[0]["messages"][2]["tool_calls"][0]
    assert call["function"]["arguments"] == '{"n": 3'
    assert "not JSON" in call["malformed"]
    assert "message 2" in made[0]["error"]
    assert made[1]["error"] is None


def test_logs_with_the_same_start_are_attempts_at_one_task():
    made = wai.from_chats([log(CALL), log(BROKEN)])
    assert made["task_id"][0] == made["task_id"][1]
    assert made["repeat"][:] == [0, 1]


def test_a_file_of_logs_keeps_tools_rewards_and_columns_of_its_own(tmp_path):
    tool = {"type": "function", "function": {"name": "pay", "parameters": {}}}
    lines = [
        {"messages": log(CALL), "tools": [tool], "reward": 1, "customer": "x", "task_id": "mine"},
        {"messages": log(CALL)},
    ]
    path = tmp_path / "logs.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)) + "\n\n")
    made = wai.from_chats(path)
    assert made[0]["tools"] == [tool]
    assert (made[0]["reward"], made[0]["customer"], made[0]["task_id"]) == (1.0, "x", "mine")
    assert made[1]["customer"] is None


def test_a_broken_line_is_named(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"messages": []\n')
    with pytest.raises(wai.InputError, match="line 1"):
        wai.from_chats(tmp_path / "x.jsonl")


@pytest.mark.parametrize("bad", [[], {"messages": []}, {"tools": []}])
def test_a_log_without_messages_is_refused(bad):
    with pytest.raises(wai.InputError, match="log 0"):
        wai.from_chats([bad])
