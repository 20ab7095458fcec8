"""Sample held-out prompts with the model that is being trained, and leave everything as it was."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from whileai_hf.extras import require


def sample(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[Any],
    *,
    k: int,
    max_new_tokens: int,
    temperature: float,
    batch_size: int,
    seed: int,
) -> list[list[str]]:
    """Generate `k` completions for each prompt.

    Padding side, train mode, gradient checkpointing's cache setting and the random state of the
    run are as before afterwards.

    Args:
        model: A `transformers` causal language model.
        tokenizer: Its tokenizer; a conversational prompt goes through its chat template.
        prompts: Text, or lists of messages.
        k: Completions for each prompt.
        max_new_tokens: Tokens of a completion.
        temperature: Of the sampling; 0 is greedy.
        batch_size: Sequences generated at once.
        seed: Of the sampling, so that two evaluations of one model agree.

    Returns:
        Completions as text, `k` for each prompt.
    """
    torch = require("torch", "train")
    texts = [_render(tokenizer, prompt) for prompt in prompts for _ in range(k)]
    out: list[str] = []
    with _undisturbed(model, tokenizer, seed), torch.no_grad():
        for start in range(0, len(texts), batch_size):
            batch = tokenizer(
                texts[start : start + batch_size], return_tensors="pt", padding=True,
                add_special_tokens=False, return_token_type_ids=False,
            ).to(model.device)  # fmt: skip
            options = {"do_sample": True, "temperature": temperature} if temperature else {}
            generated = model.generate(
                **batch, max_new_tokens=max_new_tokens, pad_token_id=tokenizer.pad_token_id,
                eos_token_id=tokenizer.eos_token_id, use_cache=True, **(options or {"do_sample": False}),
            )  # fmt: skip
            new = generated[:, batch["input_ids"].shape[1] :]
            out.extend(tokenizer.batch_decode(new, skip_special_tokens=True))
    return [out[i : i + k] for i in range(0, len(out), k)]


def _render(tokenizer: Any, prompt: Any) -> str:
    if isinstance(prompt, str):
        return prompt
    return str(
        tokenizer.apply_chat_template(list(prompt), tokenize=False, add_generation_prompt=True)
    )


@contextlib.contextmanager
def _undisturbed(model: Any, tokenizer: Any, seed: int) -> Iterator[None]:
    torch = require("torch", "train")
    side, training, cache = tokenizer.padding_side, model.training, model.config.use_cache
    devices = [model.device] if model.device.type == "cuda" else []
    tokenizer.padding_side = "left"
    model.eval()
    try:
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(seed)
            yield
    finally:
        tokenizer.padding_side = side
        model.config.use_cache = cache
        model.train(training)
