"""What the agent did not write stays out of the DPO and KTO loss; TRL's own collators let it in."""

from __future__ import annotations

import pytest
import tiny
import torch
from datasets import concatenate_datasets
from parity import templates
from peft import LoraConfig
from training.test_preference_formats import BAD, GOOD, call, pairs, result, says
from trl import DPOConfig, DPOTrainer, KTOConfig, KTOTrainer, RewardConfig, RewardTrainer
from trl.trainer.dpo_trainer import DataCollatorForPreference

import whileai_hf as wai

pytestmark = pytest.mark.filterwarnings("ignore")

SIDES = [
    (GOOD, [call("Rome", 2), result("rain", 2), says("It rains.")]),
    ([call("Oslo", 3), result("snow", 3), says("It snows.")], BAD),
    ([says("Which city?")], GOOD),
]


def options(tmp_path, **more):
    return {
        "output_dir": str(tmp_path), "max_steps": 2, "per_device_train_batch_size": 2, "use_cpu": True, "bf16": False, "gradient_checkpointing": False,
        "report_to": "none", "logging_steps": 1, "save_strategy": "no", "disable_tqdm": True, "learning_rate": 1e-3, **more,
    }  # fmt: skip


def lora():
    return LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM")


def trained(tok, batch, prefix=""):
    return [tok.decode(ids[mask.bool()]) for ids, mask in zip(batch[f"{prefix}input_ids"], batch[f"{prefix}completion_mask"], strict=True)]  # fmt: skip


def dpo(tmp_path, tok, rows, collator=None, **more):
    return DPOTrainer(
        model=tiny.model(tok), args=DPOConfig(**options(tmp_path, **more)), train_dataset=rows, processing_class=tok, peft_config=lora(), data_collator=collator,
    )  # fmt: skip


def test_upstream_puts_tool_results_into_the_loss(tmp_path):
    """When this fails TRL has mended it, and `PreferenceCollator` can go."""
    tok = tiny.tokenizer()
    trainer = dpo(tmp_path, tok, wai.to_dpo(pairs(*SIDES)))
    assert isinstance(trainer.data_collator, DataCollatorForPreference)
    assert "<tool_response>" in trained(tok, trainer.data_collator([trainer.train_dataset[0]]))[0]
    kto = KTOTrainer(
        model=tiny.model(tok),
        args=KTOConfig(**options(tmp_path)),
        train_dataset=wai.to_kto(pairs(*SIDES)),
        processing_class=tok,
        peft_config=lora(),
    )
    assert "<tool_response>" in trained(tok, kto.data_collator([kto.train_dataset[0]]))[0]


@pytest.mark.parametrize("template", [tiny.CHATML, tiny.UNMARKED], ids=["marked", "unmarked"])
def test_the_dpo_loss_sees_agent_turns_alone(template, tmp_path):
    tok = tiny.tokenizer(template)
    rows = wai.to_dpo(pairs(*SIDES))
    trainer = dpo(tmp_path, tok, rows, wai.PreferenceCollator(rows, tokenizer=tok))
    said = trained(tok, trainer.data_collator([trainer.train_dataset[i] for i in range(3)]))
    answer = '<tool_call>{{"name": "get_weather", "arguments": {{"city": "{}"}}}}</tool_call><|im_end|>{}<|im_end|>'
    assert said == [
        answer.format("Paris", "It is sunny."), answer.format("Oslo", "It snows."), "Which city?<|im_end|>",
        answer.format("Rome", "It rains."), answer.format("Paris", "No idea."), answer.format("Paris", "It is sunny."),
    ]  # fmt: skip
    trainer.train()
    assert trainer.state.log_history[0]["loss"] == pytest.approx(0.6931, abs=1e-3)


def test_the_dpo_loss_is_the_one_of_the_agents_tokens(tmp_path):
    """By hand: log probabilities of the masked tokens alone, under the model and its reference."""
    tok = tiny.tokenizer()
    rows = wai.to_dpo(pairs(*SIDES))
    trainer = dpo(tmp_path, tok, rows, wai.PreferenceCollator(rows, tokenizer=tok))
    for parameter in trainer.model.parameters():
        if parameter.requires_grad:
            torch.nn.init.normal_(parameter, std=0.2)
    batch = trainer.data_collator([trainer.train_dataset[i] for i in range(2)])

    def score():
        with torch.no_grad():
            logits = trainer.model(
                input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]
            ).logits
        logp = logits[:, :-1].log_softmax(-1).gather(2, batch["input_ids"][:, 1:, None])[..., 0]
        return (logp * batch["completion_mask"][:, 1:]).sum(1)

    trainer.model.eval()
    policy = score()
    with trainer.model.disable_adapter():
        reference = score()
    chosen, rejected = (policy - reference).chunk(2)
    expected = -torch.nn.functional.logsigmoid(trainer.beta * (chosen - rejected)).mean()
    with torch.no_grad():
        found = trainer.compute_loss(trainer.model, batch)
    assert float(found) == pytest.approx(float(expected), abs=1e-4)
    assert abs(float(found) - 0.6931) > 1e-3


def test_the_kto_loss_and_its_kl_term_see_agent_turns_alone(tmp_path):
    tok = tiny.tokenizer()
    rows = wai.to_kto(pairs(*SIDES))
    trainer = KTOTrainer(
        model=tiny.model(tok), args=KTOConfig(**options(tmp_path, per_device_train_batch_size=3)), train_dataset=rows, processing_class=tok, peft_config=lora(),
        data_collator=wai.PreferenceCollator(rows, tokenizer=tok),
    )  # fmt: skip
    batch = trainer.data_collator([trainer.train_dataset[i] for i in range(3)])
    for prefix in ("", "KL_"):
        said = trained(tok, batch, prefix)
        assert all("tool_response" not in text and "im_start" not in text for text in said)
        assert all(text.endswith("<|im_end|>") for text in said)
    assert sorted(trained(tok, batch, "KL_")) == sorted(trained(tok, batch))
    trainer.train()
    assert "loss" in trainer.state.log_history[0]


def test_a_template_that_rewrites_the_history_is_refused_and_its_training_variant_works(tmp_path):
    template = next(p for p in templates.TEMPLATES if p.stem == "qwen3").read_text(encoding="utf-8")
    tok = tiny.tokenizer(template)
    rows = wai.to_dpo(pairs(*SIDES))
    with pytest.raises(wai.InputError, match="training_template"):
        wai.PreferenceCollator(rows, tokenizer=tok)
    tok.chat_template = wai.training_template(tok)
    trainer = dpo(tmp_path, tok, rows, wai.PreferenceCollator(rows, tokenizer=tok))
    said = trained(tok, trainer.data_collator([trainer.train_dataset[0]]))[0]
    assert "It is sunny.<|im_end|>" in said
    assert "tool_response" not in said
    assert "user" not in said


def test_a_sequence_that_the_collator_does_not_know_is_refused(tmp_path):
    tok = tiny.tokenizer()
    rows = wai.to_dpo(pairs(*SIDES))
    trainer = dpo(tmp_path, tok, rows, wai.PreferenceCollator(rows.select([0]), tokenizer=tok))
    with pytest.raises(wai.InputError, match=r"ends in .*It snows"):
        trainer.data_collator([trainer.train_dataset[1]])
    both = wai.PreferenceCollator(rows.select([0]), rows.select([1, 2]), tokenizer=tok)
    assert both([trainer.train_dataset[1]])
    with pytest.raises(wai.SchemaError, match="to_dpo"):
        wai.PreferenceCollator(rows.remove_columns("prompt"), tokenizer=tok)


def test_reward_rows_train_a_reward_model(tmp_path):
    from transformers import Qwen3ForSequenceClassification

    tok = tiny.tokenizer()
    rows = wai.to_reward(concatenate_datasets([pairs(*SIDES)] * 2), margin=True)
    config = tiny.model(tok).config
    config.num_labels = 1
    trainer = RewardTrainer(
        model=Qwen3ForSequenceClassification(config),
        args=RewardConfig(**options(tmp_path)),
        train_dataset=rows,
        processing_class=tok,
    )
    trainer.train()
    assert "accuracy" in trainer.state.log_history[0]
