# /// script
# dependencies = ["whileai-hf[train]"]
# ///
r"""Train with GRPO on tasks, with verifiers as rewards or in the world of each task, watched and proved.

The tasks are those of rollouts (`simulate`, `select`, or a pushed set), or rows with a `prompt` of your own. The
reward is a verifier of whileai_hf by its name, or a Python function `path.py:name` or `module:name` of TRL's
shape; so is the gold that `HackMonitor` trusts. With `--environment` the model acts on the world that rows of
`simulate` carry, through TRL's `environment_factory`. A share of the tasks is held out; the run ends with the
paired difference on them.

One process, on the CPU or on one GPU; prompts with a verifier, then the tasks of a world:

    python trainers/grpo.py --config trainers/grpo.yaml --dataset_name questions.jsonl \
        --model_name_or_path Qwen/Qwen3-0.6B --reward ExactMatch --gold rewards.py:hidden_tests
    python trainers/grpo.py --config trainers/grpo.yaml --dataset_name rollouts.parquet \
        --model_name_or_path Qwen/Qwen3-0.6B --reward GoalReached --environment

Several processes, and a machine of Hugging Face Jobs:

    torchrun --nproc_per_node 2 trainers/grpo.py --config trainers/grpo.yaml ...
    hf jobs uv run --flavor a10g-small trainers/grpo.py --dataset_name me/refunds-v1 ...

With LoRA: `--use_peft --lora_r 16`. Resume: `--resume_from_checkpoint last`. Publish: `--push_to_hub`.
"""

import importlib
import json
import runpy
from dataclasses import dataclass, field
from pathlib import Path

from transformers import AutoTokenizer
from transformers.trainer_utils import get_last_checkpoint
from trl import (
    GRPOConfig,
    GRPOTrainer,
    ModelConfig,
    TrlParser,
    get_peft_config,
    get_quantization_config,
)

import whileai_hf as wai


@dataclass
class ScriptArguments:
    """What is trained on, what is paid, and what is trusted."""

    dataset_name: str = field(
        metadata={"help": "Hub id, folder or file of rollouts, or of rows with a prompt."}
    )
    reward: str = field(
        metadata={"help": "What is paid: a verifier's name, path.py:name or module:name."}
    )
    gold: str | None = field(
        default=None, metadata={"help": "What the monitor trusts, named as the reward is."}
    )
    environment: bool = field(
        default=False, metadata={"help": "Whether the model acts on the world of each task."}
    )
    holdout: float = field(
        default=0.2, metadata={"help": "Share of the tasks that is never trained on."}
    )
    holdout_k: int = field(default=4, metadata={"help": "Completions of each held-out task."})
    holdout_every: int = field(default=50, metadata={"help": "Steps between two looks at them."})
    stop_on: str | None = field(
        default=None, metadata={"help": "Finding that ends the run: feature or gain."}
    )


def named(name):
    """Find a reward: a verifier of whileai_hf, or a function as `path.py:name` or `module:name`."""
    where, _, attribute = name.partition(":")
    if not attribute:
        return getattr(wai, where)()
    if where.endswith(".py"):
        return runpy.run_path(where)[attribute]
    return getattr(importlib.import_module(where), attribute)


def checkpoint(training):
    """Resume from the newest checkpoint for `last`, or begin where there is none."""
    if training.resume_from_checkpoint != "last":
        return training.resume_from_checkpoint
    there = Path(training.output_dir).is_dir()
    return get_last_checkpoint(training.output_dir) if there else None


def main(script, training, model):
    """Train, and prove it on the held-out tasks."""
    tokenizer = AutoTokenizer.from_pretrained(
        model.model_name_or_path, revision=model.model_revision
    )
    training.model_init_kwargs = {
        "revision": model.model_revision, "attn_implementation": model.attn_implementation, "dtype": model.dtype,
    }  # fmt: skip
    tasks = wai.to_grpo(wai.load(script.dataset_name), privileged=True)
    if not script.environment:  # a prompt alone: the held-out tasks are answered, not acted on
        tasks = tasks.remove_columns([c for c in ("world",) if c in tasks.column_names])
    data = tasks.train_test_split(script.holdout, seed=training.seed)
    reward, gold = named(script.reward), named(script.gold) if script.gold else None

    monitor = wai.HackMonitor(gold=gold, stop_on=[script.stop_on] if script.stop_on else ())
    reporter = wai.RunReporter(
        Path(training.output_dir) / "report", holdout=data["test"], reward=gold or reward,
        every=script.holdout_every, k=script.holdout_k, max_new_tokens=training.max_completion_length,
        seed=training.seed,
    )  # fmt: skip
    trainer = GRPOTrainer(
        model=model.model_name_or_path, args=training, processing_class=tokenizer,
        reward_funcs=[monitor.wrap(reporter.wrap(reward))], callbacks=[monitor, reporter],
        train_dataset=data["train"], peft_config=get_peft_config(model),
        quantization_config=get_quantization_config(model),
        environment_factory=wai.world_environment(tasks[0]["tools"]) if script.environment else None,
    )  # fmt: skip
    trainer.train(resume_from_checkpoint=checkpoint(training))
    trainer.save_model(training.output_dir)

    if trainer.accelerator.is_main_process:
        found = reporter.folder.evaluations()
        if len(found) > 1:
            print(wai.compare(found[min(found)], found[max(found)]))
        else:
            print(
                f"held-out tasks: not measured; {'; '.join(reporter.folder.problems) or 'no step was made'}"
            )
        for alarm in monitor.alarms:
            print(alarm)
        (Path(training.output_dir) / "alarms.json").write_text(
            json.dumps([a.to_dict() for a in monitor.alarms])
        )
    if training.push_to_hub:
        trainer.push_to_hub(dataset_name=script.dataset_name)
    trainer.end()


if __name__ == "__main__":
    parser = TrlParser((ScriptArguments, GRPOConfig, ModelConfig))
    main(*parser.parse_args_and_config())
