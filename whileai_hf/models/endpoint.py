"""Endpoint: any server that speaks the OpenAI chat protocol, through the `openai` library.

What passes is tried again with growing pauses: a limit that was hit, a server error, a dropped
connection, a body that ends in the middle. What does not pass (a wrong key, a model that is not
there, a refused connection) fails with its reason, and after a row of failures without any success
the endpoint is dead and says so at once.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from whileai_hf import defaults
from whileai_hf import messages as chat
from whileai_hf.errors import AgentFailed, InputError
from whileai_hf.extras import require
from whileai_hf.models.model import Completion

#: Seconds of the first pause, of the longest one, and of the longest that a server may ask for.
_FIRST_PAUSE, _LONGEST_PAUSE, _LONGEST_ASKED = 0.5, 30.0, 300.0
#: Failures in a row, without any answer ever, after which an endpoint is dead.
_DEAD_AFTER = 8
#: Message keys that the protocol knows; columns of ours stay here.
_KEYS = ("role", "content", "tool_calls", "tool_call_id", "name")


@dataclass(slots=True)
class Usage:
    """What an endpoint was asked and what that cost; `print(model.usage)`."""

    calls: int = 0  #: answers received
    retries: int = 0
    failures: int = 0  #: requests given up
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None  #: in the currency of `price`

    def __str__(self) -> str:
        said = (
            f"{self.calls} answers, {self.prompt_tokens:,} + {self.completion_tokens:,} tokens, "
            f"{self.retries} retries, {self.failures} failures"
        )
        return said if self.cost is None else f"{said}, cost {self.cost:.4f}"


class Endpoint:
    """A chat model behind an OpenAI-compatible address."""

    def __init__(
        self, url: str, model: str, *, key: str | None = None, name: str | None = None,
        timeout: float = defaults.TIMEOUT, retries: int = defaults.MODEL_RETRIES,
        requests_per_minute: float | None = None, price: tuple[float, float] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """Describe an endpoint; nothing is sent yet.

        Args:
            url: Base address, such as `http://localhost:8000/v1`.
            model: Name of the model there.
            key: Its key, if it wants one.
            name: Name in the column `agent`; null takes that of the model.
            timeout: Seconds one request may take, pauses between requests aside.
            retries: Further requests after one that failed in passing.
            requests_per_minute: Requests are spaced to stay below it.
            price: Cost of a million prompt and of a million completion tokens.
            headers: Further HTTP headers.

        Raises:
            InputError: An option is out of range.
            MissingExtra: `openai` is not installed.
        """
        if not url.startswith(("http://", "https://")) or not model:
            raise InputError(
                f"an endpoint needs an address and a model; got {url!r} and {model!r}. "
                'Write Endpoint("http://localhost:8000/v1", "my-model").'
            )
        if not timeout > 0 or retries < 0 or (requests_per_minute or 1) <= 0:
            raise InputError(
                f"timeout and requests_per_minute must be positive and retries at least 0; got "
                f"{timeout!r}, {requests_per_minute!r}, {retries!r}. Leave them out for the defaults."
            )
        self._openai = require("openai", "models")
        self.url, self.model, self.name = url, model, name or model
        self.timeout, self.retries, self.price = timeout, retries, price
        self.usage = Usage(cost=None if price is None else 0.0)
        self._key, self._headers = key or "none", dict(headers or {})
        self._spacing = 60 / requests_per_minute if requests_per_minute else 0.0
        self._next = 0.0  # when the next request may leave, on the monotonic clock
        self._failed_in_a_row = 0
        # A client keeps connections of the loop that it was used in: one each, and none is kept alive.
        self._clients: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r}, {self.model!r})"

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
            messages: The conversation; arguments of calls may be objects or text.
            tools: Function schemas.
            sampling: Options of the request: `temperature`, `max_tokens`, `seed`, `stop`,
                `response_format` and so on; those that the protocol does not know go into its body
                beside it (`top_k`, `guided_json`).
            logprobs: Whether log-probabilities of the answer's tokens are asked for.

        Raises:
            AgentFailed: The request was refused, or failed as often as it may.
        """
        if self._failed_in_a_row >= _DEAD_AFTER and not self.usage.calls:
            raise AgentFailed(f"the endpoint {self.url} is dead: {self._reason}", "provider")
        request = self._request(messages, tools, sampling, logprobs)
        for attempt in range(self.retries + 1):
            await self._wait_turn()
            try:
                answer = await self._send(request)
                done = self._read(answer)
            except Exception as error:
                pause = self._pause(error, attempt)
                if pause is None or attempt == self.retries:
                    raise self._failure(error) from error
                self.usage.retries += 1
                await asyncio.sleep(pause)
            else:
                self._count(done)
                return done
        raise AssertionError("the last attempt returns or raises")

    def _request(
        self, messages: Sequence[Mapping[str, Any]], tools: Any, sampling: Any, logprobs: bool
    ) -> dict[str, Any]:
        known = {"temperature", "top_p", "max_tokens", "max_completion_tokens", "seed", "stop", "n",
                 "presence_penalty", "frequency_penalty", "response_format", "tool_choice",
                 "parallel_tool_calls", "reasoning_effort", "user"}  # fmt: skip
        request: dict[str, Any] = {"model": self.model, "messages": [_wire(m) for m in messages]}
        if tools:
            request["tools"] = tools
        if logprobs:
            request["logprobs"] = True
        extra = {k: v for k, v in (sampling or {}).items() if k not in known}
        request |= {k: v for k, v in (sampling or {}).items() if k in known}
        if extra:
            request["extra_body"] = extra
        return request

    async def _send(self, request: Mapping[str, Any]) -> Any:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            client = self._openai.AsyncOpenAI(
                base_url=self.url, api_key=self._key, max_retries=0, timeout=self.timeout,
                default_headers=self._headers,
            )  # fmt: skip
            self._clients[loop] = client
        # The library's own limit is on the silence between bytes; this one is on the whole answer.
        return await asyncio.wait_for(client.chat.completions.create(**request), self.timeout)

    def _read(self, answer: Any) -> Completion:
        """Read a response; a body without a choice is one that failed."""
        choices = getattr(answer, "choices", None)
        if not choices:
            detail = getattr(answer, "error", None) or "no choices"
            raise _Garbled(f"the response holds no answer: {str(detail)[:200]}")
        choice = choices[0]
        message = chat.normal_messages(
            [{"role": "assistant", **choice.message.model_dump(exclude_none=True)}]
        )[-1]
        listed = getattr(getattr(choice, "logprobs", None), "content", None)
        values = [float(token.logprob) for token in listed] if listed else None
        usage = getattr(answer, "usage", None)
        return Completion(
            message,
            choice.finish_reason or "stop",
            sum(values) if values is not None else None,
            getattr(usage, "completion_tokens", None)
            if usage
            else (len(values) if values else None),
            values,
            getattr(usage, "prompt_tokens", None) if usage else None,
        )

    async def _wait_turn(self) -> None:
        if self._spacing:
            now = time.monotonic()
            at = max(now, self._next)
            self._next = at + self._spacing
            await asyncio.sleep(at - now)

    def _pause(self, error: Exception, attempt: int) -> float | None:
        """Seconds until the next attempt, or null where there is no use in one."""
        status = getattr(error, "status_code", None)
        if isinstance(status, int) and status < 500 and status not in (408, 409, 425, 429):
            return None
        passing = (
            TimeoutError, json.JSONDecodeError, UnicodeDecodeError, _Garbled, self._openai.APIError,
        )  # fmt: skip
        if not isinstance(error, passing):
            return None
        asked = _retry_after(error)
        if asked is not None:
            return min(asked, _LONGEST_ASKED)
        grown = float(min(_FIRST_PAUSE * 2.0**attempt, _LONGEST_PAUSE))
        return grown * (0.5 + random.random() / 2)

    def _failure(self, error: Exception) -> AgentFailed:
        self.usage.failures += 1
        self._failed_in_a_row += 1
        status = getattr(error, "status_code", None)
        what = f"HTTP {status}: " if status else ""
        if isinstance(error, TimeoutError):
            said = f"no answer in {self.timeout:g} s"
        else:
            said = f"{type(error).__name__}: {error}"[:300]
        self._reason = f"{what}{said}"
        return AgentFailed(f"{self.name} did not answer: {self._reason}", "provider")

    def _count(self, done: Completion) -> None:
        self._failed_in_a_row = 0
        self.usage.calls += 1
        self.usage.prompt_tokens += done.prompt_tokens or 0
        self.usage.completion_tokens += done.n_tokens or 0
        if self.price is not None and self.usage.cost is not None:
            spent = (done.prompt_tokens or 0) * self.price[0] + (done.n_tokens or 0) * self.price[1]
            self.usage.cost += spent / 1_000_000

    _reason = ""


class _Garbled(Exception):
    """A response that is none."""


def _retry_after(error: Exception) -> float | None:
    headers = getattr(getattr(error, "response", None), "headers", None) or {}
    try:
        if headers.get("retry-after-ms"):
            return float(headers["retry-after-ms"]) / 1000
        return float(headers["retry-after"]) if headers.get("retry-after") else None
    except ValueError:  # a date: the growing pause will do
        return None


def _wire(message: Mapping[str, Any]) -> dict[str, Any]:
    """Write a message as the protocol wants it: arguments as text, no null, no key of ours."""
    out = {k: message[k] for k in _KEYS if message.get(k) is not None}
    if message.get("role") == "assistant" and "content" not in out:
        out["content"] = ""
    calls = []
    for i, call in enumerate(message.get("tool_calls") or []):
        function = call.get("function") or call
        arguments = function.get("arguments")
        written = (
            arguments
            if isinstance(arguments, str)
            else json.dumps(arguments or {}, ensure_ascii=False)
        )
        calls.append({"id": call.get("id") or f"call_{i}", "type": "function",
                      "function": {"name": function.get("name"), "arguments": written}})  # fmt: skip
    if calls:
        out["tool_calls"] = calls
    return out
