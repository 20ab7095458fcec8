"""A model acts on the worlds of held-out tasks, and is left as it was."""

from __future__ import annotations

import pytest
import tiny
import torch
from parity import templates
from trl import SFTConfig, SFTTrainer

import whileai_hf as wai
from whileai_hf.training.sampling import play

pytestmark = pytest.mark.filterwarnings("ignore")


@wai.tool
def get_order(order_id: str) -> dict:
    """Look up an order by id.

    Args:
        order_id: The id.
    """
    return {}


def template(name):
    return next(p for p in templates.TEMPLATES if p.stem == name).read_text(encoding="utf-8")


def learned(tok, rows, tmp_path, steps=90):
    """A tiny model that has learned a few rollouts by heart."""
    trainer = SFTTrainer(
        model=tiny.model(tok), processing_class=tok, train_dataset=wai.to_sft(rows, tok),
        args=SFTConfig(
            output_dir=str(tmp_path), max_steps=steps, per_device_train_batch_size=2, learning_rate=8e-3, max_length=None, use_cpu=True, bf16=False,
            gradient_checkpointing=False, report_to="none", save_strategy="no", disable_tqdm=True, lr_scheduler_type="constant",
        ),
    )  # fmt: skip
    trainer.train()
    return trainer.model


def test_a_model_that_learned_a_rollout_plays_it_in_the_world(tmp_path):
    tok = tiny.tokenizer(template("qwen3_instruct_2507"))
    data = wai.simulate(
        wai.seeded_agent([get_order], rate=0.0),
        tools=[get_order],
        system_prompt="Help.",
        budget=30,
        progress=False,
    )
    graded = data.grade(wai.GoalReached(), progress=False)
    solved = graded.filter(lambda row: row["reward"] == 1.0 and len(row["messages"]) == 5)
    rows = solved.select([0])
    net = learned(tok, rows, tmp_path)
    state = torch.get_rng_state()
    options = {"max_new_tokens": 80, "temperature": 0.0, "batch_size": 4, "seed": 0}
    [[said, again]] = play(
        net, tok, list(wai.to_grpo(rows, privileged=True)), k=2, max_turns=4, **options
    )
    assert said == again
    wanted = next(iter(rows.records()))["messages"][2:]
    assert [m["role"] for m in said] == ["assistant", "tool", "assistant"]
    assert said[0]["tool_calls"][0]["function"] == wanted[0]["tool_calls"][0]["function"]
    assert said[1]["content"] == wanted[1]["content"]
    assert torch.equal(state, torch.get_rng_state())
    one = play(net, tok, list(wai.to_grpo(rows, privileged=True)), k=1, max_turns=1, **options)
    assert [m["role"] for m in one[0][0]] == ["assistant", "tool"]


def test_a_template_whose_calls_nobody_can_read_is_refused():
    tok = tiny.tokenizer()
    with pytest.raises(wai.InputError, match="response_template"):
        play(
            tiny.model(tok),
            tok,
            [],
            k=1,
            max_turns=1,
            max_new_tokens=1,
            temperature=0.0,
            batch_size=1,
            seed=0,
        )
