"""A sentence embedder out of a transformers model: texts to unit vectors, on this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whileai_hf.errors import InputError
from whileai_hf.extras import require


@dataclass(frozen=True)
class SentenceEmbedder:
    """Embed texts as the mean of a model's last hidden states (Reimers and Gurevych 2019, arXiv:1908.10084).

    Attributes:
        model: Path or Hub id of a sentence embedder, such as `sentence-transformers/all-MiniLM-L6-v2`.
        batch_size: Texts in one pass, sorted by length.
        max_tokens: Tokens of a text that are read.
    """

    model: str
    batch_size: int = 64
    max_tokens: int = 256

    def __getstate__(self) -> dict[str, Any]:
        """Leave the loaded model behind: each process loads its own."""
        return {k: v for k, v in self.__dict__.items() if k != "_loaded"}

    def __call__(self, texts: list[str]) -> NDArray[np.float32]:
        """Embed texts; shape (texts, dimensions)."""
        torch = require("torch", "train")
        tokenizer, model = self._load()
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        out: list[Any] = [None] * len(texts)
        for start in range(0, len(order), self.batch_size):
            part = order[start : start + self.batch_size]
            batch = tokenizer(
                [texts[i] for i in part], padding=True, truncation=True, max_length=self.max_tokens,
                return_tensors="pt",
            )  # fmt: skip
            with torch.no_grad():
                hidden = model(**batch).last_hidden_state
            mask = batch["attention_mask"].unsqueeze(-1)
            mean = (hidden * mask).sum(1) / mask.sum(1)
            for i, vector in zip(part, mean.float().numpy(), strict=True):
                out[i] = vector
        return np.array(out, dtype=np.float32)

    def _load(self) -> tuple[Any, Any]:
        found: tuple[Any, Any] | None = self.__dict__.get("_loaded")
        if found is None:
            transformers = require("transformers", "train")
            tokenizer = transformers.AutoTokenizer.from_pretrained(self.model)
            found = tokenizer, transformers.AutoModel.from_pretrained(self.model).eval()
            object.__setattr__(self, "_loaded", found)
        return found


def as_embedder(embedder: Any) -> Callable[[list[str]], Any] | None:
    """Return a callable as it is, a `SentenceEmbedder` of a name, and null for null.

    Raises:
        InputError: It is none of these.
    """
    if embedder is None:
        return None
    if isinstance(embedder, str) and embedder:
        return SentenceEmbedder(embedder)
    if not callable(embedder):
        raise InputError(
            f"embedder must turn a list of texts into vectors; got {embedder!r}. "
            "Pass a callable, or the path or Hub id of a sentence embedder."
        )
    given: Callable[[list[str]], Any] = embedder
    return given
