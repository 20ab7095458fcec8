"""See which tokens are trained before you train: labels that honour every message's mask.

Learn: how rollouts become `input_ids` and `labels`, what the report says, and how to read a row back.
Needs: `pip install "whileai-hf[train]"` and the tokenizer of a chat model with tools (`--model`).
Takes: a few seconds.
Prints: what was labelled and left out, and the trained text of a row beside all of it.
"""

import argparse

from transformers import AutoTokenizer

import whileai_hf as wai

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--model", default="Qwen/Qwen3-0.6B")
args = parser.parse_args()


@wai.tool
def get_order(order_id: str) -> dict:
    """Look up an order by id.

    Args:
        order_id: Id of the order.
    """


data = wai.simulate(
    wai.seeded_agent([get_order]), tools=[get_order], system_prompt="Help customers with orders.",
    mode="sft", budget=60, progress=False,
)  # fmt: skip
good = data.grade(wai.GoalReached(), progress=False).select(mode="sft")
print(good.report)

tokenizer = AutoTokenizer.from_pretrained(args.model)
rows = wai.to_sft(good, tokenizer, max_length=2048)
print(rows.report)  # pass `rows` to SFTTrainer as they are: it uses `labels` and cuts nothing

row = rows[0]
trained = [t for t, label in zip(row["input_ids"], row["labels"], strict=True) if label != -100]
print(f"--- all of {row['rollout_id']}\n{tokenizer.decode(row['input_ids'])}")
print(f"--- trained\n{tokenizer.decode(trained)}")

# Another mask is an option: only the last turn, or a `loss_mask` of your own making.
final = wai.to_sft(good, tokenizer, mask="final")
print(f"--- the final turns alone: {final.report}")
