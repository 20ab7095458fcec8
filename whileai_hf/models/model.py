"""The one interface to a chat model, whatever serves it, and how a name becomes a model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from whileai_hf.errors import InputError

#: Providers that speak the OpenAI chat protocol: address, and the environment variable of the key.
PROVIDERS = {
    "openai": ("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "anthropic": ("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
    "hf": ("https://router.huggingface.co/v1", "HF_TOKEN"),
    "ollama": ("http://localhost:11434/v1", None),
    "vllm": ("http://localhost:8000/v1", None),
}


@dataclass(frozen=True, slots=True)
class Completion:
    """One answer of a model."""

    message: dict[str, Any]  #: an assistant message, in the OpenAI shape
    finish_reason: str | None = "stop"
    logprob: float | None = None  #: sum over the tokens of the answer, in nats
    n_tokens: int | None = None  #: tokens of the answer
    token_logprobs: list[float] | None = None
    prompt_tokens: int | None = None


@runtime_checkable
class Model(Protocol):
    """What the rooms above ask of a model."""

    name: str

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: list[dict[str, Any]] | None = None,
        sampling: Mapping[str, Any] | None = None,
        logprobs: bool = False,
    ) -> Completion:
        """Answer a conversation."""
        ...


def as_model(spec: Any, **options: Any) -> Any:
    """Make a model of a name, or take one.

    Args:
        spec: `"openai:<model>"`, `"anthropic:<model>"`, `"hf:<model>"` (the Hugging Face router),
            `"vllm:<model>@<url>"`, `"ollama:<model>"`, `"transformers:<path or id>"`, or an object
            with an asynchronous `complete`.
        options: Those of `whileai_hf.models.endpoint.Endpoint` or
            `whileai_hf.models.local.LocalModel`.

    Raises:
        InputError: The name has no known provider, or a key is missing.
    """
    if hasattr(spec, "complete"):
        return spec
    provider, _, rest = spec.partition(":") if isinstance(spec, str) else ("", "", "")
    if provider == "transformers" and rest:
        from whileai_hf.models.local import LocalModel  # noqa: PLC0415 - the two know each other

        return LocalModel(rest, **options)
    if provider not in PROVIDERS or not rest:
        known = ", ".join(f"{name}:" for name in (*PROVIDERS, "transformers"))
        raise InputError(
            f"a model must be an object with `complete` or start with one of {known}; got {spec!r}. "
            'Write "vllm:my-model@http://localhost:8000/v1".'
        )
    from whileai_hf.models.endpoint import Endpoint  # noqa: PLC0415 - the two know each other

    address, variable = PROVIDERS[provider]
    model, at, url = rest.rpartition("@")
    if not at or "://" not in url:
        model, url = rest, address
    key = options.pop("key", None) or (os.environ.get(variable) if variable else None)
    if variable and not key and url == address:
        raise InputError(
            f"{provider}: needs a key; the environment variable {variable} is not set. Set it, or "
            "pass key=."
        )
    return Endpoint(url, model, key=key, name=f"{provider}:{model}", **options)
