"""The world as TRL's environment: the tools as they are described, and one reward through both doors."""

from __future__ import annotations

import inspect

import pytest
import tiny
from transformers.utils.chat_template_utils import get_json_schema
from trl import GRPOConfig, GRPOTrainer

import whileai_hf as wai
from whileai_hf import schema

pytestmark = pytest.mark.filterwarnings("ignore")


@wai.tool
def get_order(order_id: str, detailed: bool = False) -> dict:
    """Look up an order.

    Args:
        order_id: Id of the order.
        detailed: Whether to list the items.
    """
    return {}


@wai.tool
def cancel_order(order_id: str, reason: str) -> dict:
    """Cancel an order.

    Args:
        order_id: Id of the order.
        reason: Why.
    """
    return {}


TOOLS = [get_order, cancel_order]


@pytest.fixture(scope="module")
def rollouts():
    return wai.simulate(
        wai.seeded_agent(TOOLS, rate=0.5), tools=TOOLS, system_prompt="Help.", mode="rl", budget=48, progress=False
    )  # fmt: skip


def test_the_methods_give_the_schemas_back():
    environment = wai.world_environment(TOOLS)()
    for shown in wai.tool_schemas(TOOLS):
        made = get_json_schema(getattr(environment, shown["function"]["name"]))["function"]
        wanted = shown["function"]
        assert made["description"] == wanted["description"]
        assert made["parameters"].get("required") == wanted["parameters"].get("required")
        for name, kind in wanted["parameters"]["properties"].items():
            assert made["parameters"]["properties"][name]["type"] == kind["type"]
            assert made["parameters"]["properties"][name]["description"] == kind["description"]


def test_a_trajectory_earns_the_same_in_the_environment_and_from_the_verifier(rollouts):
    verifier = wai.GoalReached()
    factory = wai.world_environment(
        TOOLS, reward=lambda world: wai.GoalReached().check(world, {})[0]
    )
    rewards = []
    for row in rollouts.records():
        environment = factory()
        environment.reset(**{k: row[k] for k in ("world", "task_id")}, prompt=row["messages"][:2])
        for call in wai.tool_calls(row):
            answer = getattr(environment, call.name)(**call.arguments)
            assert answer == call.result
        assert environment.get_reward() == verifier(row)["reward"]
        rewards.append(environment.get_reward())
    assert 0 < sum(rewards) < len(rewards)


def test_arguments_that_are_wrong_are_answered_and_not_raised(rollouts):
    environment = wai.world_environment(TOOLS)()
    environment.reset(**next(iter(rollouts.records())))
    assert "unknown argument" in environment.get_order(order="x")
    assert "get_reward" not in dict(inspect.getmembers(environment))


@pytest.mark.parametrize(
    ("name", "argument"), [("reset", "x"), ("get-order", "x"), ("f", "order-id")]
)
def test_tools_that_cannot_be_methods_are_named(name, argument):
    tool = {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {"type": "object", "properties": {argument: {"type": "string"}}},
        },
    }
    with pytest.raises(wai.InputError, match="Rename"):
        wai.world_environment([tool])
    with pytest.raises(wai.InputError, match="got none"):
        wai.world_environment([])


def test_a_task_with_other_tools_is_named(rollouts):
    row = next(iter(rollouts.records()))
    with pytest.raises(wai.InputError, match=r"cancel_order; a task has cancel_order, get_order"):
        wai.world_environment([cancel_order])().reset(**row)
    with pytest.raises(wai.InputError, match="world"):
        wai.world_environment(TOOLS)().reset(task_id="t")


def test_grpo_trains_in_the_world(rollouts, tmp_path):
    from parity import templates

    tok = tiny.tokenizer(
        next(p for p in templates.TEMPLATES if p.stem == "qwen3_instruct_2507").read_text()
    )
    data = wai.to_grpo(rollouts, privileged=True)
    seen = []

    def reward(prompts, completions, environments, **columns):
        assert {type(e).__name__ for e in environments} == {"WorldEnvironment"}
        scores = wai.GoalReached().reward_func()(
            prompts=prompts, completions=completions, **columns
        )
        seen.extend(zip(scores, environments, strict=True))
        return scores

    trainer = GRPOTrainer(
        model=tiny.model(tok), processing_class=tok, train_dataset=data, reward_funcs=[reward], environment_factory=wai.world_environment(TOOLS),
        args=GRPOConfig(
            output_dir=str(tmp_path), max_steps=1, per_device_train_batch_size=4, num_generations=4, max_completion_length=24, use_cpu=True, bf16=False,
            gradient_checkpointing=False, report_to="none", logging_steps=1, save_strategy="no", disable_tqdm=True,
        ),
    )  # fmt: skip
    trainer.train()
    assert len(seen) == 4
    assert all(score is not None for score, _ in seen)
    row = schema.to_record(data[0])
    assert "world" not in str(row["prompt"])
