"""A model whose answers are a function of the request."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Completion:
    message: dict
    prompt_tokens: int | None = 100
    n_tokens: int | None = 10


class Scripted:
    name = "scripted"

    def __init__(self, answer):
        self.answer, self.requests = answer, []

    async def complete(self, messages, *, tools=None, sampling=None, logprobs=False):
        self.requests.append(list(messages))
        answer = self.answer(messages) if callable(self.answer) else self.answer
        return Completion({"role": "assistant", "content": answer})
