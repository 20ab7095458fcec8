"""RewardModel: a sequence classifier of `transformers` as a judge and as a TRL reward function."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from whileai_hf import messages as chat
from whileai_hf.errors import InputError
from whileai_hf.extras import require

#: What becomes of a score: the chance that it beats a score of zero (Bradley and Terry 1952,
#: Biometrika 39:324-345), or the number itself.
ACTIVATIONS = ("sigmoid", "none")


class RewardModel:
    """Scores a conversation with a classifier of one output, or with one class of several.

    Rows that `grade` asks for at the same time are scored in one batch.
    """

    def __init__(
        self, model: Any, tokenizer: Any = None, *, activation: str = "sigmoid", label: int = -1,
        batch_size: int = 16, max_length: int | None = None,
    ) -> None:  # fmt: skip
        """Load a model.

        Args:
            model: A sequence classifier, or the path or Hub id of one.
            tokenizer: Its tokenizer; null loads the one beside a model that was named.
            activation: `"sigmoid"`: the score as a chance in [0, 1]; `"none"`: the number itself, for
                models that answer in [0, 1] or with `grade(scale=)`.
            label: The class that is good, of a model with several; its softmax is the score.
            batch_size: Conversations in a forward pass.
            max_length: Tokens kept, from the end; null takes the tokenizer's limit.

        Raises:
            InputError: An option is unknown, or a model object comes without its tokenizer.
            MissingExtra: `transformers` is not installed.
        """
        if activation not in ACTIVATIONS or batch_size < 1:
            raise InputError(
                f"activation must be one of {', '.join(ACTIVATIONS)} and batch_size at least 1; got "
                f"{activation!r} and {batch_size!r}. The default is 'sigmoid'."
            )
        self._torch = require("torch", "train")
        if isinstance(model, str):
            transformers = require("transformers", "train")
            tokenizer = tokenizer or transformers.AutoTokenizer.from_pretrained(model)
            model = transformers.AutoModelForSequenceClassification.from_pretrained(model)
        if tokenizer is None:
            raise InputError(
                f"a reward model needs its tokenizer; got a {type(model).__name__} alone. "
                "Pass RewardModel(model, tokenizer)."
            )
        self.model, self.tokenizer = model.eval(), tokenizer
        self.activation, self.label, self.batch_size = activation, label, batch_size
        limit = getattr(tokenizer, "model_max_length", None)
        self.max_length = max_length or (limit if limit and limit < 1_000_000 else None)
        self.name = str(getattr(model.config, "_name_or_path", "") or type(model).__name__)
        self._waiting: list[_Request] = []
        self._queue, self._model = threading.Lock(), threading.Lock()

    def __call__(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Judge one row, in one batch with those that wait."""
        request = _Request(self._text(row))
        with self._queue:
            self._waiting.append(request)
        with self._model:
            if request.score is None:
                with self._queue:
                    batch = self._waiting[: self.batch_size]
                    if request not in batch:
                        batch = [request, *batch[:-1]]
                    self._waiting = [r for r in self._waiting if r not in batch]
                for asked, score in zip(batch, self.scores([r.text for r in batch]), strict=True):
                    asked.score = score
        return {"reward": request.score}

    def scores(self, texts: Sequence[str]) -> list[float]:
        """Score texts, (texts,), in one forward pass."""
        torch = self._torch
        encoded = self.tokenizer(
            list(texts), return_tensors="pt", padding=True, truncation=self.max_length is not None,
            max_length=self.max_length, add_special_tokens=False,
        )  # fmt: skip
        with torch.no_grad():
            logits = self.model(**encoded.to(self.model.device)).logits.float()
        if logits.shape[-1] > 1:
            return [float(p) for p in logits.softmax(-1)[:, self.label]]
        values = [float(v) for v in logits[:, 0]]
        return [1 / (1 + math.exp(-v)) for v in values] if self.activation == "sigmoid" else values

    def reward_func(self) -> Callable[..., list[float]]:
        """Return the model as a reward function of TRL's trainers; its scores are not squashed."""

        def reward(prompts: Sequence[Any], completions: Sequence[Any], **_: Any) -> list[float]:
            texts = []
            for prompt, completion in zip(prompts, completions, strict=True):
                if isinstance(completion, str):
                    texts.append(f"{prompt}{completion}")
                else:
                    texts.append(self._text({"messages": [*prompt, *completion]}))
            out: list[float] = []
            with self._model:
                for start in range(0, len(texts), self.batch_size):
                    out += self.scores(texts[start : start + self.batch_size])
            return out

        reward.__name__ = "RewardModel"
        return reward

    def _text(self, row: Mapping[str, Any]) -> str:
        turns = chat.normal_messages(row.get("messages") or [])
        if not turns:
            turns = [{"role": "assistant", "content": chat.text_of(row.get("final_text"))}]
        if getattr(self.tokenizer, "chat_template", None):
            return str(
                self.tokenizer.apply_chat_template(turns, tools=row.get("tools"), tokenize=False)
            )
        return "\n".join(f"{turn['role']}: {chat.text_of(turn.get('content'))}" for turn in turns)


class _Request:
    """A text that waits for its score."""

    __slots__ = ("score", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.score: float | None = None
