"""LocalModel: equal to `generate`, batched or not, sampled answers reproducible, calls read."""

from __future__ import annotations

import asyncio

import pytest
import tiny
import torch
from transformers import pipeline

import whileai_hf as wai
from whileai_hf.models.local import LocalModel, message_of
from whileai_hf.models.model import Model, as_model


@pytest.fixture(scope="module")
def parts():
    words = tiny.tokenizer()
    return tiny.model(words), words


def asks(n):
    return [[{"role": "user", "content": f"question {i} " + "x" * i}] for i in range(n)]


def answers(model, conversations, **options):
    async def run():
        return await asyncio.gather(*(model.complete(c, **options) for c in conversations))

    return asyncio.run(run())


def test_a_greedy_answer_is_that_of_generate(parts):
    model, words = parts
    (done,) = answers(LocalModel(model, words), asks(1), sampling={"max_tokens": 8}, logprobs=True)
    encoded = words.apply_chat_template(
        asks(1)[0], add_generation_prompt=True, return_dict=True, return_tensors="pt"
    )
    with torch.no_grad():
        out = model.generate(**encoded, max_new_tokens=8, do_sample=False)
        tokens = out[0, encoded["input_ids"].shape[1] :]
        logits = model(out).logits[0].log_softmax(-1)
    start = encoded["input_ids"].shape[1] - 1
    expected = [float(logits[start + j, token]) for j, token in enumerate(tokens[: done.n_tokens])]
    assert done.token_logprobs == pytest.approx(expected, abs=1e-4)
    assert done.logprob == pytest.approx(sum(expected), abs=1e-3)
    assert done.prompt_tokens == start + 1
    assert isinstance(LocalModel(model, words), Model)


def test_a_batch_answers_as_each_alone(parts):
    together = answers(LocalModel(*parts), asks(5), sampling={"max_tokens": 6})
    alone = [answers(LocalModel(*parts), [c], sampling={"max_tokens": 6})[0] for c in asks(5)]
    assert [d.message for d in together] == [d.message for d in alone]


def test_a_sampled_answer_depends_on_its_seed_and_not_on_its_neighbours(parts):
    sampling = {"temperature": 1.0, "max_tokens": 8, "seed": 1}
    together = answers(LocalModel(*parts), asks(3), sampling=sampling)
    alone = [answers(LocalModel(*parts), [c], sampling=sampling)[0] for c in asks(3)]
    assert [d.message for d in together] == [d.message for d in alone]
    other = answers(LocalModel(*parts), asks(3), sampling={**sampling, "seed": 2})
    assert [d.message for d in other] != [d.message for d in alone]


def test_folders_and_pipelines_are_models(parts, tmp_path):
    model, words = parts
    model.save_pretrained(tmp_path)
    words.save_pretrained(tmp_path)
    expected = answers(LocalModel(model, words), asks(1), sampling={"max_tokens": 4})[0].message
    named = as_model(f"transformers:{tmp_path}")
    assert answers(named, asks(1), sampling={"max_tokens": 4})[0].message == expected
    piped = LocalModel(pipeline("text-generation", model=model, tokenizer=words))
    assert answers(piped, asks(1), sampling={"max_tokens": 4})[0].message == expected


def test_a_tokenizer_without_a_template_is_an_error(parts):
    with pytest.raises(wai.InputError, match="chat template"):
        LocalModel(parts[0])


def test_an_error_of_the_model_reaches_whoever_waits(parts):
    model = LocalModel(*parts)
    with pytest.raises(ValueError, match="hot"):
        answers(model, asks(1), sampling={"temperature": "hot"})


@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        ('Sure. <tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>', "Sure.", [("f", {"x": 1})]),
        ('<tool_call>{"name": "f", "arguments": {}}</tool_call><tool_call>{"name": "g", "arguments": {}}</tool_call>', "", [("f", {}), ("g", {})]),
        ('[TOOL_CALLS] [{"name": "f", "arguments": {"x": 1}}]', "", [("f", {"x": 1})]),
        ('{"name": "f", "parameters": {"x": 1}}', "", [("f", {"x": 1})]),
        ('{"type": "function", "function": {"name": "f", "arguments": {"x": 1}}}', "", [("f", {"x": 1})]),
        ("<tool_call>{broken}</tool_call>", "<tool_call>{broken}</tool_call>", []),
        ('The JSON {"name": "x"} is an example.', 'The JSON {"name": "x"} is an example.', []),
        ("plain", "plain", []),
    ],
)  # fmt: skip
def test_calls_are_read_from_text(text, content, calls):
    message = message_of(text)
    assert message["content"] == content
    found = [
        (c["function"]["name"], c["function"]["arguments"]) for c in message.get("tool_calls") or []
    ]
    assert found == calls
