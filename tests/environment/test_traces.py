"""Traces of verifiers, of both interfaces, as rollouts."""

from __future__ import annotations

import json

import pytest

import whileai_hf as wai


def v1(task_id, reward, **more):
    """A trace of an environment that is none of ours."""
    nodes = [
        {"message": {"role": "user", "content": "hi"}, "parent": None},
        {
            "message": {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "a", "name": "f", "arguments": '{"x": 1}'}],
            },
            "parent": 0,
        },
        {"message": {"role": "tool", "tool_call_id": "a", "content": "2"}, "parent": 1},
        {"message": {"role": "assistant", "content": "bye"}, "parent": 2},
    ]
    rewards = (
        {}
        if reward is None
        else {"a": {"score": reward, "weight": 1.0}, "b": {"score": 1.0, "weight": 0.0}}
    )
    return {
        "task": {"type": "T", "data": {"idx": 0, "name": task_id}, "key": "k"}, "agent": {"config": {"model": "m"}},
        "tools": [{"name": "f", "description": "", "parameters": {"type": "object"}}], "nodes": nodes, "rewards": rewards,
        "metrics": {"n": 2.0}, "ok": reward is not None, "stop_condition": "agent_completed",
        "errors": [] if reward is not None else [{"type": "ProviderError", "message": "500"}], **more,
    }  # fmt: skip


def test_a_trace_of_any_environment_is_a_rollout_and_an_error_no_zero(tmp_path):
    episodes = [{"traces": [v1("t", r)]} for r in (1.0, 0.25, None)]
    text = "".join(json.dumps(e) + "\n" for e in episodes) + '{"traces": [{"half'
    (tmp_path / "traces.jsonl").write_text(text)
    rows = wai.rollouts_from_traces(tmp_path)
    assert rows["reward"][:] == [1.0, 0.25, None]
    assert rows["task_id"][:] == ["t"] * 3
    assert rows["repeat"][:] == [0, 1, 2]
    assert rows["judge_status"][:] == ["ok", "ok", "error"]
    assert "ProviderError" in rows["error"][2]
    (call,) = wai.tool_calls(rows[0])
    assert (call.name, call.arguments, call.result) == ("f", {"x": 1}, "2")
    assert rows["final_text"][0] == "bye"


def test_a_result_of_the_older_interface_is_a_rollout(tmp_path):
    line = {
        "example_id": 3, "prompt": [{"role": "user", "content": "hi"}], "completion": [{"role": "assistant", "content": "yes"}],
        "reward": 0.5, "info": {}, "metrics": {"n_calls": 0.0},
    }  # fmt: skip
    broken = {**line, "reward": 0.0, "error": "ModelError: 500"}
    unjudged = {**line, "reward": 0.0, "metrics": {"judge_ok": 0.0}}
    cut = {**line, "stop_condition": "max_turns_reached"}
    file = tmp_path / "results.jsonl"
    file.write_text("".join(json.dumps(x) + "\n" for x in (line, broken, unjudged, cut)))
    rows = wai.rollouts_from_traces(file)
    assert rows["reward"][:] == [0.5, None, None, 0.5]
    assert rows["finish_reason"][3] == "length"
    assert rows["task_id"][0] == "3"


def test_rewards_are_summed_by_their_weights(tmp_path):
    trace = v1(
        "t",
        1.0,
        rewards={
            "a": {"score": 0.5, "weight": 2.0},
            "b": {"score": 1.0, "weight": 0.25},
            "c": None,
        },
    )
    (tmp_path / "traces.jsonl").write_text(json.dumps(trace) + "\n")
    assert wai.rollouts_from_traces(tmp_path)["reward"][:] == [1.25]


@pytest.mark.parametrize("content", ["", "no json\n", "[1]\n"])
def test_a_file_without_traces_is_an_error(tmp_path, content):
    (tmp_path / "traces.jsonl").write_text(content)
    with pytest.raises(wai.InputError, match="holds none"):
        wai.rollouts_from_traces(tmp_path)


def test_a_folder_without_or_with_several_files_is_an_error(tmp_path):
    with pytest.raises(wai.InputError, match="has 0"):
        wai.rollouts_from_traces(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "traces.jsonl").write_text("{}")
    with pytest.raises(wai.InputError, match="has 2"):
        wai.rollouts_from_traces(tmp_path)
