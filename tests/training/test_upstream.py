"""What the package relies on in TRL, so that a change there is noticed here."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny
import yaml
from parity import templates
from reports import public_reports
from trl import GRPOConfig, GRPOTrainer

import whileai_hf as wai

pytestmark = pytest.mark.filterwarnings("ignore")


class Seen(GRPOTrainer):
    """Keeps what the loss is computed on."""

    def _compute_loss(self, model, inputs):
        self.inputs = inputs
        return super()._compute_loss(model, inputs)


def get_weather(city: str) -> str:
    """Get the weather.

    Args:
        city: The city.
    """
    return "sunny"


@pytest.mark.parametrize("case", [p for p in public_reports("mask") if p.id == "K11"])
def test_public_report_on_completions_that_the_token_limit_cut(case, tmp_path):
    """The trainer's script sets the option; with it nothing of a cut completion is trained."""
    assert case["input"]["finish_reason"] == "length"
    script = Path(__file__).parents[2] / "trainers" / "grpo.yaml"
    masked = yaml.safe_load(script.read_text())["mask_truncated_completions"]
    template = next(p for p in templates.TEMPLATES if p.stem == "qwen3_instruct_2507")
    tok = tiny.tokenizer(template.read_text(encoding="utf-8"))
    prompts = wai.to_grpo(wai.rows(["Weather?"] * 4, ["x"] * 4))
    trainer = Seen(
        model=tiny.model(tok), processing_class=tok, train_dataset=prompts, tools=[get_weather],
        reward_funcs=[lambda completions, **_: [float(i) for i in range(len(completions))]],
        args=GRPOConfig(
            output_dir=str(tmp_path), max_steps=1, per_device_train_batch_size=4, num_generations=4, max_completion_length=4, use_cpu=True, bf16=False,
            gradient_checkpointing=False, report_to="none", save_strategy="no", disable_tqdm=True, mask_truncated_completions=masked,
        ),
    )  # fmt: skip
    trainer.train()
    cut = (trainer.inputs["completion_ids"] != tok.eos_token_id).all(1)
    assert cut.any()
    for name in case["expected"]["all_zero"]:
        if name in trainer.inputs:
            assert not trainer.inputs[name][cut].any()


@pytest.mark.parametrize("case", [p for p in public_reports("select") if p.id == "R08"])
def test_public_report_on_the_shapes_that_a_reward_is_given(case):
    """Text, a list of messages, and extra columns: one reward."""
    reward = wai.ExactMatch().reward_func()
    chat = [[{"role": "assistant", "content": "yes"}]]
    scores = [
        reward(prompts=["q"], completions=given, answer=["yes"], trainer_state=None, log_extra=print, completion_ids=[[1]])
        for given in (chat, ["yes"])
    ]  # fmt: skip
    assert scores == [[1.0], [1.0]]
    assert case["expected"] == {"same_reward_for_both": True, "extra_kwargs_accepted": True}
