"""Agents: whatever answers a conversation, under one contract.

Inside, an agent is asked for its next message, given the messages so far. Outside it may be a
function of the user's message that answers with steps and a final text, a chat function of messages
and tools, or an object with an asynchronous `complete`.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from whileai_hf import messages as chat
from whileai_hf.errors import InputError
from whileai_hf.models.endpoint import Endpoint
from whileai_hf.models.local import LocalModel
from whileai_hf.models.model import as_model
from whileai_hf.simulate.situations import Situation
from whileai_hf.world.world import World, as_text


@dataclass(slots=True)
class Attempt:
    """What an agent may know of the rollout that it plays."""

    situation: Situation
    repeat: int
    seed: int
    world: World
    tools: list[dict[str, Any]]
    notes: dict[str, Any] = field(default_factory=dict)  #: the agent's own, for this rollout


@dataclass(slots=True)
class Turn:
    """One message of an agent."""

    messages: list[dict[str, Any]]  #: usually one; several where the agent ran its own tools
    finish_reason: str = "stop"
    logprob: float | None = None
    n_tokens: int | None = None
    token_logprobs: list[float] | None = None
    seeded: list[str] = field(default_factory=list)  #: faults that were planted on purpose
    final: bool = False  #: the agent ran its own tools, and this is its last word


class Agent(Protocol):
    """What the engine asks."""

    name: str
    inline: bool  #: it answers at once, without waiting for anything

    def respond(self, messages: Sequence[Mapping[str, Any]], attempt: Attempt) -> Any:
        """Return the next `Turn`, or an awaitable of it."""
        ...


class MessageAgent:
    """A function of the user's message: `agent(text) -> {"steps": […], "final_text": …}` or text.

    A step is `{"tool", "arguments", "result"}`; the function answers its own tool calls. A step
    without a result is answered by the world.
    """

    inline = False

    def __init__(self, function: Callable[[str], Any]) -> None:
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)

    def respond(self, messages: Sequence[Mapping[str, Any]], attempt: Attempt) -> Any:
        """Ask with the last user message."""
        asked = next(m["content"] for m in reversed(messages) if m["role"] == "user")
        answer = self.function(asked)
        if inspect.isawaitable(answer):
            return self._later(answer, attempt)
        return self._turn(answer, attempt)

    async def _later(self, answer: Any, attempt: Attempt) -> Turn:
        return self._turn(await answer, attempt)

    def _turn(self, answer: Any, attempt: Attempt) -> Turn:
        if isinstance(answer, Mapping) and "role" in answer:
            return Turn([_message(answer)])
        if isinstance(answer, str):
            return Turn([{"role": "assistant", "content": answer}], final=True)
        if not isinstance(answer, Mapping) or "final_text" not in answer:
            raise InputError(
                "an agent must return text, a message, or steps with a final_text; "
                f"got {type(answer).__name__}{f' with {sorted(answer)}' if isinstance(answer, Mapping) else ''}. "
                'Return {"steps": [...], "final_text": "..."}.'
            )
        out: list[dict[str, Any]] = []
        for i, step in enumerate(answer.get("steps") or []):
            out += _step(step, f"call_{len(attempt.world.log)}_{i}", attempt.world)
        out.append({"role": "assistant", "content": chat.text_of(answer["final_text"])})
        return Turn(out, answer.get("finish_reason") or "stop", final=True)


def _step(step: Any, call_id: str, world: World) -> list[dict[str, Any]]:
    if not isinstance(step, Mapping) or not (step.get("tool") or step.get("name")):
        raise InputError(
            f"a step must be an object with a tool; got {step!r:.80}. "
            'Write {"tool": name, "arguments": {...}, "result": ...}.'
        )
    name = str(step.get("tool") or step.get("name"))
    call = chat.normal_call(
        {"id": call_id, "function": {"name": name, "arguments": step.get("arguments")}}
    )
    result = step["result"] if "result" in step else world.call(name, step.get("arguments") or {})
    return [
        {"role": "assistant", "content": chat.text_of(step.get("text")), "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "name": name, "content": as_text(result)},
    ]


class ChatAgent:
    """A chat function: `agent(messages, tools) -> message`, synchronous or not."""

    inline = False

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = getattr(function, "__name__", type(function).__name__)

    def respond(self, messages: Sequence[Mapping[str, Any]], attempt: Attempt) -> Any:
        """Ask with a copy of the messages, so that the function may change them."""
        answer = self.function([dict(m) for m in messages], attempt.tools)
        return self._later(answer) if inspect.isawaitable(answer) else Turn([_message(answer)])

    async def _later(self, answer: Any) -> Turn:
        return Turn([_message(await answer)])


class ModelAgent:
    """An object with `async complete(messages, *, tools, sampling, logprobs)`, a model client."""

    inline = False

    def __init__(self, model: Any, sampling: Mapping[str, Any] | None, logprobs: bool) -> None:
        self.model, self.sampling, self.logprobs = model, sampling, logprobs
        # An endpoint of ours bounds each request itself; a pause that its server asked for is no hang.
        self.keeps_time = isinstance(model, (Endpoint, LocalModel))
        self.name = str(getattr(model, "name", None) or type(model).__name__)

    async def respond(self, messages: Sequence[Mapping[str, Any]], attempt: Attempt) -> Turn:
        """Ask the model once."""
        done = await self.model.complete(
            list(messages),
            tools=attempt.tools or None,
            sampling=self._sampling(attempt),
            logprobs=self.logprobs,
        )
        return Turn(
            [_message(done.message)], done.finish_reason or "stop", getattr(done, "logprob", None),
            getattr(done, "n_tokens", None), getattr(done, "token_logprobs", None),
        )  # fmt: skip

    def _sampling(self, attempt: Attempt) -> dict[str, Any]:
        """Give every attempt a seed of its own: the same run draws the same answers again."""
        text = f"{attempt.seed}/{attempt.situation.task_id}/{attempt.repeat}"
        drawn = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big") >> 1
        return {"seed": drawn, **(self.sampling or {})}


def _message(answer: Any) -> dict[str, Any]:
    """Read what a chat function returned: a message, a response object that holds one, or text."""
    if isinstance(answer, str):
        return {"role": "assistant", "content": answer}
    choices = getattr(answer, "choices", None)
    if choices is None and isinstance(answer, Mapping):
        choices = answer.get("choices")
    if choices:
        first = choices[0]
        answer = first["message"] if isinstance(first, Mapping) else first.message
    if hasattr(answer, "model_dump"):
        answer = answer.model_dump(exclude_none=True)
    if not isinstance(answer, Mapping):
        raise InputError(
            f"a chat agent must return a message; got {type(answer).__name__}. "
            'Return {"role": "assistant", "content": "..."}.'
        )
    return chat.normal_messages([{"role": "assistant", **answer}])[-1]


def as_agent(
    agent: Any, sampling: Mapping[str, Any] | None = None, logprobs: bool = False
) -> Agent:
    """Take an agent in any form.

    Args:
        agent: A function of a message, a chat function of messages and tools, the name of a model
            (`"vllm:my-model@http://localhost:8000/v1"`, see `whileai_hf.as_model`), a `transformers`
            pipeline, or an object with `respond` or an asynchronous `complete`.
        sampling: How a model samples.
        logprobs: Whether a model is asked for log-probabilities.

    Raises:
        InputError: It is none of these.
    """
    if hasattr(agent, "respond"):
        return agent  # type: ignore[no-any-return]
    if isinstance(agent, str):
        agent = as_model(agent)
    elif _is_pipeline(agent):
        agent = LocalModel(agent)
    if hasattr(agent, "complete"):
        return ModelAgent(agent, sampling, logprobs)
    if not callable(agent):
        raise InputError(
            f"an agent must be a function or an object with `complete`; got {type(agent).__name__}. "
            "Pass a function of the user's message or of (messages, tools), or wai.seeded_agent(tools)."
        )
    return ChatAgent(agent) if _positional(agent) >= 2 else MessageAgent(agent)


def _is_pipeline(agent: Any) -> bool:
    return hasattr(agent, "task") and hasattr(agent, "tokenizer") and hasattr(agent, "model")


def _positional(function: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum((p.kind in kinds and p.default is p.empty) or p.name == "tools" for p in parameters)
