"""An environment in process: tasks, play, score, and the same reward as simulate and grade."""

from __future__ import annotations

import pytest

import whileai_hf as wai

pytestmark = pytest.mark.filterwarnings("ignore")


def test_it_loads_from_the_folder_the_package_and_the_installed_name(exported, env, module):
    for source in (exported.path, exported.path / "desk_case", "desk_case", "me/desk-case@0.1.0"):
        assert wai.load_environment(source).folder == env.folder


@pytest.mark.parametrize("source", ["no_such_env", "datasets", "", "a b"])
def test_what_is_no_environment_is_refused_with_the_way_out(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(wai.InputError, match="export_environment"):
        wai.load_environment(source)


def test_an_unknown_split_or_task_is_an_error_that_names_what_there_is(env):
    with pytest.raises(wai.InputError, match="train, holdout"):
        env.tasks("test")
    with pytest.raises(wai.InputError, match="no task 'nope'"):
        env.task("nope")


def test_simulate_and_grade_give_the_reward_of_the_environment(env):
    tasks = env.rows("holdout")
    played = wai.simulate(
        wai.seeded_agent(list(env.tasks()[0].tools), rate=0.5), tasks=tasks, repeats=3, repeat_policy="fixed",
        progress=False,
    )  # fmt: skip
    graded = played.grade(env.judge, progress=False)
    for record in graded.records():
        score = env.score(record["task_id"], record["messages"], record["finish_reason"])
        assert score.reward == record["reward"]
    assert {0.0, 1.0} <= set(graded["reward"])


def test_a_cut_rollout_earns_what_the_policy_says(env):
    task = env.tasks()[0]
    call = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "a", "function": {"name": "get_order", "arguments": {}}}],
    }
    said = [*task.prompt, call]
    score = env.score(task, said)
    assert (score.reward, score.metrics["truncated"], score.failure_class) == (0.0, 1.0, "cut")
    whole = [*task.prompt, *({"role": "assistant", **t} for t in task.solution)]
    assert env.score(task, whole, "length").metrics["truncated"] == 1.0


def test_an_error_is_no_zero(env):
    task = env.tasks()[0]
    score = env.score(task, list(task.prompt), "error", "agent: APIError: 500")
    assert score.reward is None
    assert score.metrics["judge_ok"] == 0.0


def test_raw_tool_call_markup_is_not_read_by_a_reward(env):
    task = env.tasks()[0]
    for left in ('<tool_call>{"name": ', "<tool_call>{}</tool_call>", "Hi <tool_call>{broken"):
        row = env.judge({**task.record([*task.prompt, {"role": "assistant", "content": left}])})
        assert row["truncated"] == 0.0
        assert (
            row["reward"]
            == env.score(
                task, [*task.prompt, {"role": "assistant", "content": left.split("<")[0].strip()}]
            ).reward
        )


def test_the_world_answers_what_a_trainer_answered_in_its_own_words(env):
    task = env.tasks()[0]
    call = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "a", "function": {"name": "nope", "arguments": {"x": 1}}}],
    }
    said = [
        *task.prompt,
        call,
        {"role": "tool", "tool_call_id": "a", "content": "{'error': 'boom'}"},
    ]
    assert "no tool 'nope'" in env.replayed(task, said)[-1]["content"]
