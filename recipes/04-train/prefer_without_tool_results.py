"""Train with DPO on the agent's own tokens: what TRL's collator lets into the loss, and what ours keeps out.

Learn: how pairs of graded rollouts become rows for `DPOTrainer`, and which tokens the loss sees.
Needs: `pip install "whileai-hf[train]"` and a chat model whose template renders tools (`--model`).
Takes: a minute on a CPU with a small model.
Prints: the pairs and what was left out, one pair's tokens in the loss under both collators, and the loss.
"""

import argparse
import tempfile

from transformers import AutoTokenizer
from trl import DPOConfig, DPOTrainer

import whileai_hf as wai

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--model", default="Qwen/Qwen2.5-0.5B-Instruct")
parser.add_argument("--steps", type=int, default=4)
args = parser.parse_args()


@wai.tool
def cancel_order(order_id: str) -> dict:
    """Cancel an order.

    Args:
        order_id: Id of the order.
    """


data = wai.simulate(
    wai.seeded_agent([cancel_order], rate=0.5), tools=[cancel_order], system_prompt="Help customers.",
    mode="rl", repeats=4, repeat_policy="fixed", budget=80, progress=False,
)  # fmt: skip
pairs = wai.build_preference_pairs(data.grade(wai.GoalReached(), progress=False))
print(pairs.report)

tokenizer = AutoTokenizer.from_pretrained(args.model)
rows = wai.to_dpo(pairs, tokenizer, max_length=1024)
print(rows.report)

with tempfile.TemporaryDirectory() as folder:
    config = DPOConfig(
        output_dir=folder, max_steps=args.steps, per_device_train_batch_size=2, logging_steps=1,
        report_to="none", save_strategy="no", gradient_checkpointing=False, bf16=False,
    )  # fmt: skip
    given = {
        "model": args.model,
        "args": config,
        "train_dataset": rows,
        "processing_class": tokenizer,
    }
    for name, collator in (
        ("TRL", None),
        ("ours", wai.PreferenceCollator(rows, tokenizer=tokenizer)),
    ):
        trainer = DPOTrainer(**given, data_collator=collator)
        batch = trainer.data_collator([trainer.train_dataset[0]])
        seen = batch["input_ids"][0][batch["completion_mask"][0].bool()]
        print(f"--- the chosen reply in the loss, {name}\n{tokenizer.decode(seen)}")
    trainer.train()
    print(f"loss {trainer.state.log_history[0]['loss']:.3f}, ln 2 before the first step")
