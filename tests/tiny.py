"""A tiny Qwen3-shaped model and a byte-level tokenizer with a tool template, made offline."""

from __future__ import annotations

import functools
import json

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather", "description": "Get the weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "The city."}}, "required": ["city"]},
    },
}  # fmt: skip

#: ChatML with tools; the agent's words, calls and stop token lie inside the generation marks.
CHATML = """\
{%- if tools %}{{ '<|im_start|>system\\n' }}
{%- if messages[0].role == 'system' %}{{ messages[0].content + '\\n' }}{% endif %}
{%- for tool in tools %}{{ tool | tojson }}{{ '\\n' }}{% endfor %}{{ '<|im_end|>\\n' }}{% endif %}
{%- for m in messages %}
{%- if m.role == 'assistant' %}{{ '<|im_start|>assistant\\n' }}{% generation %}{{ m.content }}
{%- for c in m.tool_calls or [] %}{{ '<tool_call>' }}{{ {'name': c.function.name, 'arguments': c.function.arguments} | tojson }}{{ '</tool_call>' }}{% endfor %}
{{- '<|im_end|>' }}{% endgeneration %}{{ '\\n' }}
{%- elif m.role == 'tool' %}{{ '<|im_start|>user\\n<tool_response>' + m.content + '</tool_response><|im_end|>\\n' }}
{%- elif m.role == 'user' or not tools %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""

UNMARKED = CHATML.replace("{% generation %}", "").replace("{% endgeneration %}", "")


def conversation(i, bad_first=False):
    """A user asks for the weather; with `bad_first` the agent calls a tool that is not there first."""
    city = ["Paris", "Rome", "Oslo", "Lima", "Cairo", "Delhi"][i % 6]

    def call(name, n):
        return {
            "id": f"c{n}",
            "type": "function",
            "function": {"name": name, "arguments": {"city": city}},
        }

    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": f"Weather in {city}?"},
    ]
    if bad_first:
        messages += [
            {"role": "assistant", "content": "", "tool_calls": [call("nope", 0)]},
            {"role": "tool", "tool_call_id": "c0", "content": "error: unknown tool"},
        ]
    return [
        *messages,
        {"role": "assistant", "content": "", "tool_calls": [call("get_weather", 1)]},
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
        {"role": "assistant", "content": f"It is sunny in {city}."},
    ]


@functools.cache
def _core():
    corpus = [json.dumps(conversation(i, i % 2 == 0)) for i in range(60)] + [
        json.dumps(WEATHER),
        "system\nuser\nassistant\n",
    ] * 20
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    core.train_from_iterator(
        corpus,
        trainers.BpeTrainer(
            vocab_size=600,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        ),
    )
    return core.to_str()


def tokenizer(chat_template=CHATML):
    fast = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(_core()),
        bos_token="<|endoftext|>",
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        padding_side="left",
    )
    fast.add_tokens(
        [
            "<tool_call>",
            "</tool_call>",
            "<tool_response>",
            "</tool_response>",
            "<think>",
            "</think>",
        ]
    )
    fast.chat_template = chat_template
    return fast


def model(tok, seed=0):
    torch.manual_seed(seed)
    return Qwen3ForCausalLM(Qwen3Config(
        vocab_size=len(tok), hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=2048, tie_word_embeddings=True,
        eos_token_id=tok.eos_token_id, pad_token_id=tok.pad_token_id, bos_token_id=None,
    ))  # fmt: skip
