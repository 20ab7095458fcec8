# /// script
# dependencies = ["whileai-hf[train]"]
# ///
r"""Train with DPO on preference pairs, the agent's own tokens alone, and prove it on held-out tasks.

The data are pairs: `prompt`, `chosen`, `rejected`, `tools`, `task_id`, as `build_preference_pairs` makes them.
Each is branched where its replies first differ; tool results and user turns stay out of the loss, into which
TRL's own collator puts them. A share of the tasks is held out; before and after training the model
answers their prompts, and the run ends with the paired difference of what the answers earn.

One process, on the CPU or on one GPU:

    python trainers/dpo.py --config trainers/dpo.yaml --dataset_name me/refund-pairs \
        --model_name_or_path Qwen/Qwen2.5-0.5B-Instruct --reward rewards.py:polite

Several processes, and a machine of Hugging Face Jobs:

    torchrun --nproc_per_node 2 trainers/dpo.py --config trainers/dpo.yaml ...
    hf jobs uv run --flavor a10g-small trainers/dpo.py --dataset_name me/refund-pairs ...

With LoRA: `--use_peft --lora_target_modules all-linear`. Resume: `--resume_from_checkpoint last`. Publish: `--push_to_hub`.
"""

import importlib
import random
import runpy
from dataclasses import dataclass, field
from pathlib import Path

from transformers import AutoTokenizer
from transformers.trainer_utils import get_last_checkpoint
from trl import (
    DPOConfig,
    DPOTrainer,
    ModelConfig,
    TrlParser,
    get_peft_config,
    get_quantization_config,
)

import whileai_hf as wai


@dataclass
class ScriptArguments:
    """What is trained on, and how it is proved."""

    dataset_name: str = field(metadata={"help": "Hub id, folder or file of preference pairs."})
    reward: str = field(
        metadata={
            "help": "What held-out answers earn: a verifier's name, path.py:name or module:name."
        }
    )
    holdout: float = field(
        default=0.2, metadata={"help": "Share of the tasks that is never trained on."}
    )
    holdout_k: int = field(default=4, metadata={"help": "Answers to each held-out prompt."})
    holdout_every: int = field(default=100, metadata={"help": "Steps between two looks at them."})
    holdout_tokens: int = field(default=256, metadata={"help": "Tokens of a held-out answer."})


def named(name):
    """Find a reward: a verifier of whileai_hf, or a function as `path.py:name` or `module:name`."""
    where, _, attribute = name.partition(":")
    if not attribute:
        return getattr(wai, where)()
    if where.endswith(".py"):
        return runpy.run_path(where)[attribute]
    return getattr(importlib.import_module(where), attribute)


def split(rows, share, seed):
    """Split by task, so that no task is on both sides."""
    ids = sorted(set(rows["task_id"]))
    random.Random(seed).shuffle(ids)
    held = set(ids[: max(1, round(share * len(ids)))])
    where = [task in held for task in rows["task_id"]]
    sides = ([i for i, out in enumerate(where) if out is side] for side in (False, True))
    return [rows.select(side) for side in sides]


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
    given, tokenizer.chat_template = tokenizer.chat_template, wai.training_template(tokenizer)
    pairs, held_out = split(wai.load(script.dataset_name), script.holdout, training.seed)
    with training.main_process_first(desc="rows"):
        rows = wai.to_dpo(pairs, tokenizer, max_length=training.max_length)
    if not len(rows):
        raise SystemExit(f"nothing to train: {rows.report}")

    reporter = wai.RunReporter(
        Path(training.output_dir) / "report", holdout=wai.to_grpo(held_out), reward=named(script.reward),
        k=script.holdout_k, every=script.holdout_every, max_new_tokens=script.holdout_tokens, seed=training.seed,
    )  # fmt: skip
    trainer = DPOTrainer(
        model=model.model_name_or_path, args=training, processing_class=tokenizer, train_dataset=rows,
        data_collator=wai.PreferenceCollator(rows, tokenizer=tokenizer), callbacks=[reporter],
        peft_config=get_peft_config(model), quantization_config=get_quantization_config(model),
    )  # fmt: skip
    trainer.accelerator.print(rows.report)
    trainer.train(resume_from_checkpoint=checkpoint(training))
    tokenizer.chat_template = given  # the variant for training is no template to chat with
    trainer.save_model(training.output_dir)

    if trainer.accelerator.is_main_process:
        found = reporter.folder.evaluations()
        if len(found) > 1:
            print(wai.compare(found[min(found)], found[max(found)]))
        else:
            print(
                f"held-out tasks: not measured; {'; '.join(reporter.folder.problems) or 'no step was made'}"
            )
    if training.push_to_hub:
        trainer.push_to_hub(dataset_name=script.dataset_name)
    trainer.end()


if __name__ == "__main__":
    parser = TrlParser((ScriptArguments, DPOConfig, ModelConfig))
    main(*parser.parse_args_and_config())
