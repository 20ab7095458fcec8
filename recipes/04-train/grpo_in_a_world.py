"""Train with GRPO in a world that fails on schedule, and prove it on tasks that were never trained on.

Learn: tasks of a simulation as TRL's environment, the end of the world as the reward, a paired before and after.
Needs: `pip install "whileai-hf[train]"` and a chat model that calls tools (`--model`); a GPU for more than a look.
Takes: minutes on a GPU; `--steps 2` looks at it on a CPU.
Prints: the paired difference on the held-out tasks, and where the report lies.
"""

import argparse

from transformers import AutoTokenizer
from trl import GRPOConfig, GRPOTrainer

import whileai_hf as wai

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--model", default="Qwen/Qwen3-0.6B")
parser.add_argument("--steps", type=int, default=50)
parser.add_argument("--tokens", type=int, default=256)
parser.add_argument("--output", default="grpo-in-a-world")
args = parser.parse_args()


@wai.tool
def get_order(order_id: str) -> dict:
    """Look up an order by id.

    Args:
        order_id: Id of the order.
    """


@wai.tool
def cancel_order(order_id: str) -> dict:
    """Cancel an order.

    Args:
        order_id: Id of the order.
    """


# The stand-in agent only writes the situations down; the model that is trained meets the same worlds.
tools = [get_order, cancel_order]
data = wai.simulate(
    wai.seeded_agent(tools), tools=tools, system_prompt="Help customers with orders.", mode="rl",
    budget=64, progress=False,
)  # fmt: skip
tasks = wai.to_grpo(data, privileged=True).train_test_split(0.25, seed=0)
print(f"{len(tasks['train'])} tasks to train on, {len(tasks['test'])} held out")

reward = wai.GoalReached()  # by what the calls did, whatever was said
reporter = wai.RunReporter(
    f"{args.output}/report",
    holdout=tasks["test"],
    reward=reward,
    k=2,
    every=25,
    max_new_tokens=args.tokens,
)
trainer = GRPOTrainer(
    model=args.model, processing_class=AutoTokenizer.from_pretrained(args.model),
    train_dataset=tasks["train"], environment_factory=wai.world_environment(tools),
    reward_funcs=[reporter.wrap(reward)], callbacks=[reporter],
    args=GRPOConfig(
        output_dir=args.output, max_steps=args.steps, per_device_train_batch_size=8, num_generations=8,
        max_completion_length=args.tokens, mask_truncated_completions=True, logging_steps=5,
        save_strategy="no", report_to="none", gradient_checkpointing=False, bf16=False,
    ),
)  # fmt: skip
trainer.train()

found = reporter.folder.evaluations()
print(wai.compare(found[min(found)], found[max(found)]))
print(f"the run as plain files: {args.output}/report")
