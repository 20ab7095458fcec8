# /// script
# dependencies = ["whileai-hf[train]"]
# ///
r"""Train a reward model on preference pairs, and prove it on held-out tasks.

The data are pairs: `prompt`, `chosen`, `rejected`, `tools`, `task_id`, as `build_preference_pairs` makes them.
A share of the tasks is held out; a held-out pair earns 1 where the chosen reply gets the higher score, and the run
ends with the paired difference before and after training.

One process, on the CPU or on one GPU:

    python trainers/reward.py --config trainers/reward.yaml --dataset_name me/refund-pairs \
        --model_name_or_path Qwen/Qwen3-0.6B

Several processes, and a machine of Hugging Face Jobs:

    torchrun --nproc_per_node 2 trainers/reward.py --config trainers/reward.yaml ...
    hf jobs uv run --flavor a10g-small trainers/reward.py --dataset_name me/refund-pairs ...

With LoRA: `--use_peft --lora_task_type SEQ_CLS --lora_target_modules all-linear`. Resume: `--resume_from_checkpoint last`.
Publish: `--push_to_hub`.
"""

import random
from dataclasses import dataclass, field
from pathlib import Path

import torch
from transformers import AutoTokenizer
from transformers.trainer_utils import get_last_checkpoint
from trl import (
    ModelConfig,
    RewardConfig,
    RewardTrainer,
    TrlParser,
    get_peft_config,
    get_quantization_config,
)

import whileai_hf as wai


@dataclass
class ScriptArguments:
    """What is trained on, and how it is proved."""

    dataset_name: str = field(metadata={"help": "Hub id, folder or file of preference pairs."})
    margin: bool = field(
        default=False, metadata={"help": "Whether the loss demands the difference of the rewards."}
    )
    holdout: float = field(
        default=0.2, metadata={"help": "Share of the tasks that is never trained on."}
    )


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


@torch.no_grad()
def preferred(trainer, tokenizer, pairs):
    """Return a row a held-out pair: 1 where the chosen reply scores higher."""
    model = trainer.accelerator.unwrap_model(trainer.model)
    was_training = model.training
    model.eval()
    rows = []
    for i, pair in enumerate(pairs):
        scores = []
        for side in ("chosen", "rejected"):
            ids = tokenizer.apply_chat_template(
                pair["prompt"] + pair[side],
                tools=pair["tools"],
                return_dict=True,
                return_tensors="pt",
            )
            scores.append(float(model(**ids.to(model.device)).logits[0, 0]))
        rows.append(
            {"task_id": pair["task_id"], "repeat": i, "prompt": pair["prompt"], "completion": pair["chosen"],
             "reward": float(scores[0] > scores[1]), "judge_status": "ok"}
        )  # fmt: skip
    model.train(was_training)
    return rows


def main(script, training, model):
    """Train, and prove it on the held-out tasks."""
    tokenizer = AutoTokenizer.from_pretrained(
        model.model_name_or_path, revision=model.model_revision
    )
    training.model_init_kwargs = {
        "revision": model.model_revision, "attn_implementation": model.attn_implementation, "dtype": model.dtype,
    }  # fmt: skip
    pairs, held_out = split(wai.load(script.dataset_name), script.holdout, training.seed)
    with training.main_process_first(desc="rows"):
        rows = wai.to_reward(pairs, tokenizer, max_length=training.max_length, margin=script.margin)
        held_out = wai.to_reward(held_out, tokenizer, max_length=training.max_length)
    if not len(rows):
        raise SystemExit(f"nothing to train: {rows.report}")

    trainer = RewardTrainer(
        model=model.model_name_or_path, args=training, processing_class=tokenizer, train_dataset=rows,
        peft_config=get_peft_config(model), quantization_config=get_quantization_config(model),
    )  # fmt: skip
    trainer.accelerator.print(rows.report)
    report = wai.training_run(Path(training.output_dir) / "report")
    resumed = checkpoint(training)
    if resumed is None:
        before = preferred(trainer, tokenizer, held_out)
        if trainer.accelerator.is_main_process:
            report.holdout(before, step=0)
    trainer.train(resume_from_checkpoint=resumed)
    trainer.save_model(training.output_dir)

    after = preferred(trainer, tokenizer, held_out)
    if trainer.accelerator.is_main_process:
        report.holdout(after, step=trainer.state.global_step)
        found = report.evaluations()
        if len(found) > 1:
            print(wai.compare(found[min(found)], found[max(found)]))
        else:
            print(
                f"held-out tasks: not measured; {'; '.join(report.problems) or 'no step was made'}"
            )
    if training.push_to_hub:
        trainer.push_to_hub(dataset_name=script.dataset_name)
    trainer.end()


if __name__ == "__main__":
    parser = TrlParser((ScriptArguments, RewardConfig, ModelConfig))
    main(*parser.parse_args_and_config())
