"""Sample held-out tasks with the model that is being trained, and leave everything as it was."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from whileai_hf import messages as chat
from whileai_hf import schema
from whileai_hf.errors import InputError
from whileai_hf.extras import require
from whileai_hf.world.world import World, as_text


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
    raw: bool = False,
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
        raw: Whether completions keep their special tokens, up to the stop token.

    Returns:
        Completions as text, `k` for each prompt.
    """
    torch = require("torch", "train")
    texts = [rendered_prompt(tokenizer, prompt) for prompt in prompts for _ in range(k)]
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
            texts_out = tokenizer.batch_decode(new, skip_special_tokens=not raw)
            out.extend(_until_stop(t, tokenizer) for t in texts_out) if raw else out.extend(
                texts_out
            )
    return [out[i : i + k] for i in range(0, len(out), k)]


def _until_stop(text: str, tokenizer: Any) -> str:
    """Cut padding off, and what stands behind the stop token; a cut reply has none."""
    said, stop, _ = text.partition(tokenizer.eos_token)
    return said.replace(tokenizer.pad_token, "") + stop


def rendered_prompt(tokenizer: Any, prompt: Any, tools: Any = None) -> str:
    """Return what the model reads: text as it is, messages through the chat template."""
    if isinstance(prompt, str):
        return prompt
    return str(
        tokenizer.apply_chat_template(
            list(prompt), tools=tools, tokenize=False, add_generation_prompt=True
        )
    )


def play(
    model: Any,
    tokenizer: Any,
    tasks: Sequence[Mapping[str, Any]],
    *,
    k: int,
    max_turns: int,
    **options: Any,
) -> list[list[list[dict[str, Any]]]]:
    """Let the model act on the world of each task, `k` times, all rollouts turn by turn together.

    Args:
        model: A `transformers` causal language model.
        tokenizer: Its tokenizer; TRL has to know how its chat template writes tool calls.
        tasks: Rows with `prompt`, `tools` and `world`.
        k: Rollouts of each task.
        max_turns: Agent turns after which a rollout is cut.
        **options: Of `sample`: `max_new_tokens`, `temperature`, `batch_size`, `seed`.

    Returns:
        For each task its `k` completions: the messages after the prompt.

    Raises:
        InputError: TRL cannot read the calls of this chat template.
    """
    tokenizer = _reader(tokenizer)
    rollouts = [_Play.of(task) for task in tasks for _ in range(k)]
    seed = options.pop("seed")
    for turn in range(max_turns):
        active = [r for r in rollouts if not r.done]
        if not active:
            break
        texts = [rendered_prompt(tokenizer, r.messages, r.tools) for r in active]
        replies = sample(model, tokenizer, texts, k=1, seed=seed + turn, raw=True, **options)
        for rollout, [reply], text in zip(active, replies, texts, strict=True):
            rollout.take(_read(tokenizer, text, reply, rollout.tools))
    made = [r.messages[r.start :] for r in rollouts]
    return [made[i : i + k] for i in range(0, len(made), k)]


@dataclass(slots=True)
class _Play:
    """One rollout: what was said, and the world that answers."""

    messages: list[dict[str, Any]]
    tools: Any
    world: World
    start: int = 0
    done: bool = field(default=False)

    @classmethod
    def of(cls, task: Mapping[str, Any]) -> _Play:
        record = schema.to_record(task)
        prompt = schema.restore(list(task["prompt"]))
        return cls(prompt, record["tools"], World.from_row(record), len(prompt))

    def take(self, message: dict[str, Any]) -> None:
        """Take one turn: answer its calls, or end."""
        [turn] = chat.normal_messages([message])
        self.messages.append(turn)
        calls = turn.get("tool_calls") or []
        self.done = not calls
        for call in calls:
            function = call["function"]
            result = as_text(self.world.call(function["name"], function["arguments"]))
            self.messages.append({"role": "tool", "name": function["name"], "content": result})


def _reader(tokenizer: Any) -> Any:
    """Return a tokenizer that reads tool calls, the given one untouched."""
    if getattr(tokenizer, "response_template", None) or getattr(tokenizer, "response_schema", None):
        return tokenizer
    twin = copy.copy(tokenizer)
    try:
        return require("trl.chat_template_utils", "train").add_response_schema(twin)
    except ValueError as error:
        raise InputError(
            "to act on a world TRL has to know how the chat template writes tool calls; it does not "
            "know this one. Set tokenizer.response_template, or measure prompts without `world`."
        ) from error


def _read(tokenizer: Any, text: str, reply: str, tools: Any) -> dict[str, Any]:
    utils = require("trl.chat_template_utils", "train")

    def encode(part: str) -> list[int]:
        ids: list[int] = tokenizer(part, add_special_tokens=False)["input_ids"]
        return ids

    message: dict[str, Any] = utils.parse_response(
        tokenizer, encode(reply), prefix=encode(text), tools=tools
    )
    return {**message, "role": "assistant"}


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
