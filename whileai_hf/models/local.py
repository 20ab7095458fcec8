"""LocalModel: a `transformers` model in this process, batched over whoever asks at the same time."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from whileai_hf import messages as chat
from whileai_hf.errors import InputError
from whileai_hf.extras import require
from whileai_hf.models.model import Completion

#: Calls as models write them into text: Hermes and Qwen, Mistral, and a bare object as of Llama.
_TAGGED = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)
_MISTRAL = re.compile(r"\[TOOL_CALLS\]\s*(\[.*\])", re.DOTALL)
_BARE = re.compile(r"\s*(?:<\|python_tag\|>)?\s*(\{\s*\"(?:name|type)\".*\})\s*$", re.DOTALL)


@dataclass(slots=True)
class _Request:
    ids: list[int]
    sampling: Mapping[str, Any]
    logprobs: bool
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[Completion]


class LocalModel:
    """A causal language model; greedy answers share a forward pass, sampled ones are seeded each.

    A sampled answer depends on its conversation and the seed, not on who else asked.
    """

    def __init__(
        self, model: Any, tokenizer: Any = None, *, name: str | None = None, batch_size: int = 16,
        max_tokens: int = 512,
    ) -> None:  # fmt: skip
        """Load a model.

        Args:
            model: A causal language model, a text-generation pipeline, or the path or id of a model.
            tokenizer: Its tokenizer, with a chat template; null loads the one beside a named model.
            name: Name in the column `agent`.
            batch_size: Conversations in a forward pass.
            max_tokens: Tokens of an answer, where `sampling` does not say.

        Raises:
            InputError: There is no tokenizer, or it has no chat template.
            MissingExtra: `transformers` is not installed.
        """
        self._torch = require("torch", "train")
        if isinstance(model, str):
            transformers = require("transformers", "train")
            name = name or f"transformers:{model}"
            tokenizer = tokenizer or transformers.AutoTokenizer.from_pretrained(model)
            model = transformers.AutoModelForCausalLM.from_pretrained(model)
        elif (
            hasattr(model, "model")
            and hasattr(model, "tokenizer")
            and not hasattr(model, "generate")
        ):
            model, tokenizer = model.model, tokenizer or model.tokenizer  # a pipeline
        if tokenizer is None or not getattr(tokenizer, "chat_template", None):
            raise InputError(
                "a local model needs a tokenizer with a chat template; got "
                f"{type(tokenizer).__name__}{' without one' if tokenizer is not None else ''}. "
                "Pass LocalModel(model, tokenizer), and set tokenizer.chat_template."
            )
        self.model, self.tokenizer = model.eval(), tokenizer
        self.name = name or str(getattr(model.config, "_name_or_path", "") or type(model).__name__)
        self.batch_size, self.max_tokens = batch_size, max_tokens
        self._waiting: list[_Request] = []
        self._lock, self._wake = threading.Lock(), threading.Event()
        self._thread: threading.Thread | None = None

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: list[dict[str, Any]] | None = None,
        sampling: Mapping[str, Any] | None = None,
        logprobs: bool = False,
    ) -> Completion:
        """Answer a conversation.

        Args:
            messages: The conversation.
            tools: Function schemas, for the chat template.
            sampling: `temperature` (0 and null are greedy), `top_p`, `top_k`, `max_tokens`, `seed`,
                `stop`.
            logprobs: Whether the log-probabilities of the answer's tokens are returned, those of the
                model at temperature 1.
        """
        ids = self._encoded(messages, tools)
        loop = asyncio.get_running_loop()
        request = _Request(ids, dict(sampling or {}), logprobs, loop, loop.create_future())
        with self._lock:
            self._waiting.append(request)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._serve, daemon=True)
                self._thread.start()
        self._wake.set()
        return await request.done

    def _encoded(self, messages: Sequence[Mapping[str, Any]], tools: Any) -> list[int]:
        turns = [{k: v for k, v in m.items() if v is not None} for m in messages]
        encoded = self.tokenizer.apply_chat_template(
            turns, tools=tools, add_generation_prompt=True, return_dict=True
        )
        return list(encoded["input_ids"])

    def _serve(self) -> None:
        """Answer what waits, until nothing has come for a while."""
        while True:
            self._wake.clear()
            with self._lock:
                batch = self._batch()
            if batch:
                self._answer(batch)
                continue
            if not self._wake.wait(5.0):
                with self._lock:
                    if not self._waiting:
                        self._thread = None
                        return

    def _batch(self) -> list[_Request]:
        """Greedy requests of one length limit together; a sampled one alone."""
        if not self._waiting:
            return []
        first = self._waiting[0]
        key = self._key(first)
        batch = [r for r in self._waiting if self._key(r) == key] if key else [first]
        batch = batch[: self.batch_size]
        self._waiting = [r for r in self._waiting if r not in batch]
        return batch

    def _key(self, request: _Request) -> tuple[Any, ...] | None:
        return None if request.sampling.get("temperature") else ("greedy", self._limit(request))

    def _limit(self, request: _Request) -> int:
        given = request.sampling.get("max_tokens") or request.sampling.get("max_completion_tokens")
        return int(given or self.max_tokens)

    def _answer(self, batch: list[_Request]) -> None:
        try:
            answers: list[Any] = self._generated(batch)
        except Exception as error:  # noqa: BLE001 - handed to whoever waits
            answers = [error] * len(batch)
        for request, answer in zip(batch, answers, strict=True):
            if not request.loop.is_closed():
                request.loop.call_soon_threadsafe(_finish, request.done, answer)

    def _generated(self, batch: list[_Request]) -> list[Completion]:
        torch = self._torch
        width = max(len(r.ids) for r in batch)
        pad = self.tokenizer.pad_token_id
        pad = self.tokenizer.eos_token_id if pad is None else pad
        ids = torch.tensor([[pad] * (width - len(r.ids)) + r.ids for r in batch])
        mask = torch.tensor([[0] * (width - len(r.ids)) + [1] * len(r.ids) for r in batch])
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(_seed(batch[0]))
            out = self.model.generate(
                input_ids=ids.to(self.model.device), attention_mask=mask.to(self.model.device),
                max_new_tokens=self._limit(batch[0]), pad_token_id=pad,
                return_dict_in_generate=True, output_logits=any(r.logprobs for r in batch),
                **_options(batch[0].sampling, self.tokenizer),
            )  # fmt: skip
        tokens = out.sequences[:, width:].tolist()
        scores = None
        if any(r.logprobs for r in batch):
            scores = torch.stack(out.logits, dim=1).float().log_softmax(-1)
        return [self._completion(r, i, tokens[i], scores) for i, r in enumerate(batch)]

    def _completion(self, request: _Request, i: int, tokens: list[int], scores: Any) -> Completion:
        ends = self._ends()
        stop = next((j for j, token in enumerate(tokens) if token in ends), None)
        kept = tokens if stop is None else tokens[: stop + 1]
        values = None
        if request.logprobs and scores is not None:
            values = [float(scores[i, j, token]) for j, token in enumerate(kept)]
        said = kept if stop is None else kept[:-1]
        message = read_message(self.tokenizer, said)
        reason = (
            "length" if stop is None else ("tool_calls" if message.get("tool_calls") else "stop")
        )
        return Completion(
            message, reason, sum(values) if values is not None else None, len(kept), values,
            len(request.ids),
        )  # fmt: skip

    def _ends(self) -> set[int]:
        ends = getattr(self.model.generation_config, "eos_token_id", None)
        listed = ends if isinstance(ends, (list, tuple)) else [ends]
        return {e for e in (*listed, self.tokenizer.eos_token_id) if e is not None}


def _finish(done: asyncio.Future[Completion], answer: Any) -> None:
    if done.done():
        return
    if isinstance(answer, Exception):
        done.set_exception(answer)
    else:
        done.set_result(answer)


def _seed(request: _Request) -> int:
    """The seed of one answer: of the conversation and the seed that was asked for."""
    text = json.dumps([request.ids, request.sampling.get("seed", 0)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=7).digest(), "big")


def _options(sampling: Mapping[str, Any], tokenizer: Any) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if sampling.get("stop"):
        stop = sampling["stop"]
        out |= {
            "stop_strings": [stop] if isinstance(stop, str) else list(stop),
            "tokenizer": tokenizer,
        }
    if not sampling.get("temperature"):
        return {**out, "do_sample": False, "temperature": None, "top_p": None, "top_k": None}
    return {
        **out, "do_sample": True, "temperature": float(sampling["temperature"]),
        "top_p": sampling.get("top_p", 1.0), "top_k": sampling.get("top_k", 0),
    }  # fmt: skip


def read_message(tokenizer: Any, tokens: Sequence[int]) -> dict[str, Any]:
    """Read generated tokens as a message: text, and the calls that the model wrote into it.

    A tokenizer that knows the format of its model (`response_schema`) parses it; otherwise the marks
    of Hermes, Qwen, Mistral and Llama are looked for.
    """
    if getattr(tokenizer, "response_schema", None):
        try:
            parsed = tokenizer.parse_response(list(tokens))
            return chat.normal_messages([{"role": "assistant", **parsed}])[-1]
        except Exception:  # noqa: BLE001 - text that does not fit the schema is read as it stands
            pass
    text = tokenizer.decode(tokens, skip_special_tokens=False)
    for special in getattr(tokenizer, "all_special_tokens", []):
        text = text.replace(special, "") if "tool_call" not in special.lower() else text
    return message_of(text)


def message_of(text: str) -> dict[str, Any]:
    """Read a text that may hold calls as an assistant message."""
    written: list[str] = _TAGGED.findall(text)
    rest = _TAGGED.sub("", text)
    if not written and (mistral := _MISTRAL.search(text)):
        written, rest = [mistral[1]], text[: mistral.start()]
    if not written and (bare := _BARE.fullmatch(text)):
        written, rest = [bare[1]], ""
    calls: list[dict[str, Any]] = []
    for part in written:
        try:
            value = json.loads(part)
        except ValueError:
            return {"role": "assistant", "content": text.strip()}
        calls += [
            _call(v, len(calls) + i)
            for i, v in enumerate(value if isinstance(value, list) else [value])
        ]
    message: dict[str, Any] = {"role": "assistant", "content": rest.strip()}
    if calls:
        message["tool_calls"] = [chat.normal_call(call) for call in calls]
    return message


def _call(value: Any, number: int) -> dict[str, Any]:
    function = value.get("function") if isinstance(value, Mapping) else None
    given = function if isinstance(function, Mapping) else value
    arguments = given.get("arguments", given.get("parameters", {}))
    return {"id": f"call_{number}", "type": "function",
            "function": {"name": given.get("name"), "arguments": arguments}}  # fmt: skip
