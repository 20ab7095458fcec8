"""One row a task for GRPO; the reference reaches a reward only when asked for, and never a prompt."""

from __future__ import annotations

import json

import pytest
import tiny
from datasets import Dataset

import whileai_hf as wai

SECRET = "SECRET-77"


def rollouts():
    return wai.Rollouts.from_records(
        [
            {
                "task_id": f"t{i // 2}", "messages": tiny.conversation(i // 2), "tools": [tiny.WEATHER], "reward": float(i % 2), "mine": i // 2,
                "situation": {"tool": "get_weather"}, "privileged": {"reference": SECRET}, "world": {"seed": 3},
            }
            for i in range(6)
        ]
    )  # fmt: skip


def test_a_task_is_one_row_with_the_messages_before_the_first_agent_turn():
    made = wai.to_grpo(rollouts())
    assert made["task_id"] == ["t0", "t1", "t2"]
    assert [m["role"] for m in made[0]["prompt"]] == ["system", "user"]
    assert made["mine"] == [0, 1, 2]
    assert not {"reward", "messages", "privileged", "world"} & set(made.column_names)
    assert SECRET not in json.dumps(made[:], default=str)


def test_the_reference_reaches_a_verifier_when_asked_for():
    made = wai.to_grpo(rollouts(), privileged=True)
    reward = wai.ExactMatch().reward_func()
    columns = {name: [row[name] for row in made] for name in made.column_names if name != "prompt"}
    answers = [[{"role": "assistant", "content": text}] for text in (SECRET, "x", SECRET)]
    assert reward(prompts=made["prompt"], completions=answers, **columns) == [1.0, 0.0, 1.0]
    assert SECRET not in json.dumps(made["prompt"][:])


def test_prompts_of_your_own_keep_their_columns():
    texts = wai.to_grpo(Dataset.from_dict({"prompt": ["2+2?", "3+3?"], "answer": ["4", "6"]}))
    assert texts["prompt"] == ["2+2?", "3+3?"]
    chats = [[{"role": "user", "content": text}] for text in ("2+2?", "3+3?")]
    made = wai.to_grpo(Dataset.from_dict({"prompt": chats, "answer": ["4", "6"]}))
    assert made[1]["prompt"] == chats[1]
    assert made["answer"] == texts["answer"] == ["4", "6"]
    assert made[0]["tools"] is None


def test_rows_without_a_prompt_are_counted_and_bad_input_is_named():
    empty = {"task_id": "e", "messages": [{"role": "assistant", "content": "x"}]}
    rows = wai.Rollouts.from_records([empty, dict(rollouts()[0])])
    assert wai.to_grpo(rows).report.refused == {"no prompt": 1}
    with pytest.raises(wai.InputError, match="no prompt"):
        wai.to_grpo(rows.select([0]))
    with pytest.raises(wai.SchemaError, match="'messages'"):
        wai.to_grpo(Dataset.from_dict({"a": [1]}))
    assert len(wai.to_grpo(rows.select([]))) == 0
