# /// script
# dependencies = ["whileai-hf[train,report]"]
# ///
r"""Train with GRPO on the tasks of rollouts, watched and proved on held-out tasks.

The prompts are the tasks of a dataset of rollouts (`simulate`, `select`, or a pushed one); the reward is a
Python function `path.py:name` or `module:name` of TRL's shape, and so is the gold that `HackMonitor`
trusts. A share of the tasks is held out; the run ends with the paired difference on them.

One process, on the CPU or on one GPU:

    python trainers/grpo.py --config trainers/grpo.yaml --dataset_name me/refunds-v1 \
        --model_name_or_path Qwen/Qwen3-0.6B --reward rewards.py:right --gold rewards.py:hidden_tests

Several processes:

    torchrun --nproc_per_node 2 trainers/grpo.py --config trainers/grpo.yaml ...

With LoRA: `--use_peft --lora_r 16`. Resume: `--resume_from_checkpoint last`. Publish: `--push_to_hub`.
"""

import importlib
import importlib.util
import json
from dataclasses import dataclass, field
from pathlib import Path

from datasets import load_dataset
from transformers import AutoTokenizer
from trl import GRPOConfig, GRPOTrainer, ModelConfig, TrlParser, get_peft_config

import whileai_hf as wai


@dataclass
class ScriptArguments:
    """What is trained on, what is paid, and what is trusted."""

    dataset_name: str = field(
        metadata={"help": "Hub id, folder or file of rollouts, or of rows with a prompt."}
    )
    reward: str = field(
        metadata={"help": "The reward that is trained on, as path.py:name or module:name."}
    )
    gold: str | None = field(default=None, metadata={"help": "The reward that the monitor trusts."})
    holdout: float = field(
        default=0.2, metadata={"help": "Share of the tasks that is never trained on."}
    )
    holdout_k: int = field(default=4, metadata={"help": "Completions of each held-out task."})
    holdout_every: int = field(
        default=50, metadata={"help": "Steps between two looks at the held-out tasks."}
    )
    stop_on: str | None = field(
        default=None, metadata={"help": "Finding that ends the run: feature or gain."}
    )


def imported(name):
    """Import a function by `path.py:name` or `module:name`."""
    where, _, attribute = name.partition(":")
    if where.endswith(".py"):
        spec = importlib.util.spec_from_file_location(Path(where).stem, where)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(where)
    return getattr(module, attribute)


def tasks(name):
    """One row a task, with a `prompt`: the messages before the first turn of the agent."""
    source = Path(name)
    rows = (
        load_dataset("json", data_files=name, split="train")
        if source.suffix == ".jsonl"
        else wai.load(name)
    )
    if "prompt" in rows.column_names:
        return rows
    seen, keep, prompts = set(), [], []
    for i, row in enumerate(rows.records()):
        if row["task_id"] not in seen:
            seen.add(row["task_id"])
            keep.append(i)
            first = next(j for j, m in enumerate(row["messages"]) if m["role"] == "assistant")
            prompts.append(row["messages"][:first])
    kept = rows.select(keep).remove_columns(
        [c for c in rows.column_names if c not in ("task_id", "privileged")]
    )
    return kept.add_column("prompt", prompts)


def main(script, training, model):
    """Train, and prove it on the held-out tasks."""
    tokenizer = AutoTokenizer.from_pretrained(model.model_name_or_path)
    data = tasks(script.dataset_name).train_test_split(script.holdout, seed=training.seed)
    reward = imported(script.reward)
    gold = imported(script.gold) if script.gold else None

    monitor = wai.HackMonitor(gold=gold, stop_on=[script.stop_on] if script.stop_on else ())
    reporter = wai.RunReporter(
        Path(training.output_dir) / "report", holdout=data["test"], reward=gold or reward,
        every=script.holdout_every, k=script.holdout_k, max_new_tokens=training.max_completion_length,
    )  # fmt: skip
    trainer = GRPOTrainer(
        model=model.model_name_or_path, args=training, processing_class=tokenizer,
        reward_funcs=[monitor.wrap(reporter.wrap(reward))], callbacks=[monitor, reporter],
        train_dataset=data["train"], peft_config=get_peft_config(model),
    )  # fmt: skip
    trainer.train(resume_from_checkpoint=training.resume_from_checkpoint)
    trainer.save_model(training.output_dir)

    if trainer.accelerator.is_main_process:
        found = reporter.folder.evaluations()
        print(wai.compare(found[min(found)], found[max(found)]))
        for alarm in monitor.alarms:
            print(alarm)
        (Path(training.output_dir) / "alarms.json").write_text(
            json.dumps([a.to_dict() for a in monitor.alarms])
        )
    if training.push_to_hub:
        trainer.push_to_hub(dataset_name=script.dataset_name)


if __name__ == "__main__":
    parser = TrlParser((ScriptArguments, GRPOConfig, ModelConfig))
    main(*parser.parse_args_and_config())
