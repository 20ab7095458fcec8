"""The TRL door: verbatim schemas, worlds by task, three GRPO steps, and the reward of every other door."""

from __future__ import annotations

import pytest
import tiny
from environment_scripts import POLICIES

import whileai_hf as wai
from whileai_hf.world.world import as_text

pytestmark = pytest.mark.filterwarnings("ignore")


def completion(env, task, turns):
    """What TRL makes of a rollout: calls without ids, results in its own words where it answers itself."""
    row = env.play(task, turns)
    said, names = [], {t["function"]["name"] for t in task.tools}
    for message in row["messages"][len(task.prompt) :]:
        if message["role"] == "tool":
            known = message["name"] in names
            said.append(
                {
                    "role": "tool",
                    "name": message["name"],
                    "content": message["content"] if known else "{'error': 'nope'}",
                }
            )
        elif message["role"] == "assistant":
            calls = [
                {"type": "function", "function": c["function"]}
                for c in message.get("tool_calls") or []
            ]
            said.append(
                {
                    "role": "assistant",
                    "content": message["content"],
                    **({"tool_calls": calls} if calls else {}),
                }
            )
    return said, row


def test_a_trajectory_earns_the_same_through_trl(env):
    logged = {}
    reward = env.reward_func()
    for task in env.tasks("holdout"):
        if task.follow_up:
            continue
        for name, policy in POLICIES.items():
            said, row = completion(env, task, policy(task))
            if name == "cut":
                continue  # a token limit shows in no message; TRL masks it (mask_truncated_completions)
            (got,) = reward([said], task_id=[task.id], log_metric=logged.__setitem__)
            assert got == env.judge(row)["reward"], (name, task.privileged["expected"])
    assert set(logged) == {"n_calls", "judge_ok", "truncated", "trace_clean"}


def test_the_environment_acts_on_the_world_of_its_task(env):
    environment = wai.trl_environment(env)()
    for row in env.dataset("holdout"):
        environment.reset(**row)
        task = env.task(row["task_id"])
        goal = task.world["goal"]
        if goal is None:
            continue
        shown = getattr(environment, goal["tool"])(**goal["arguments"])
        world = env.world(task)
        assert shown == as_text(world.call(goal["tool"], goal["arguments"]))
        assert "unknown argument" in getattr(environment, goal["tool"])(nonsense=1)


def test_what_is_no_environment_is_refused():
    with pytest.raises(wai.InputError, match="load_environment"):
        wai.trl_environment("desk_case")


@pytest.mark.slow
def test_three_grpo_steps_with_verbatim_schemas(env, tmp_path):
    from trl import GRPOConfig, GRPOTrainer
    from trl.chat_template_utils import qwen3_template

    tok = tiny.tokenizer()
    tok.response_template = qwen3_template
    seen = []
    reward = env.reward_func()

    def spied(**columns):
        seen.extend(columns["completions"])
        return reward(**columns)

    trainer = GRPOTrainer(
        model=tiny.model(tok), processing_class=tok, train_dataset=env.dataset("train"), reward_funcs=[spied],
        environment_factory=wai.trl_environment(env),
        args=GRPOConfig(
            output_dir=str(tmp_path), max_steps=3, per_device_train_batch_size=4, num_generations=4, max_completion_length=24,
            use_cpu=True, bf16=False, gradient_checkpointing=False, report_to="none", logging_steps=1,
        ),
    )  # fmt: skip
    env.show_tools(trainer)
    assert list(trainer._env_tools.values()) == [env.contexts[0]["tools"]]
    assert trainer.train().global_step == 3
    assert len(seen) == 12
