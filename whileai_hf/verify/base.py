"""What every verifier shares: the answer it reads, the reference it reads it against, the verdict.

The answer is the final text of the rollout with reasoning removed. The reference is
`privileged.reference`, or the field that was named. A reason is fixed words and quotes neither of
them: blanking a short reference out of a sentence would give it away. A verifier never raises on a
row: a reference that is missing or cannot be read gives a null reward.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from whileai_hf import messages as chat

#: Columns in which training sets keep the reference, in the order in which they are tried.
_REFERENCES = ("reference", "answer", "solution")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifier:
    """A versioned, immutable function of a row: `verifier(row)` is a verdict for `grade`.

    Attributes:
        field: Column, or dotted path, of the reference; null reads `privileged.reference`.
    """

    version: ClassVar[str] = "1"

    field: str | None = None

    @property
    def name(self) -> str:
        """Name and version, as `grade` writes them into the column `judge`."""
        return f"{type(self).__name__}@{self.version}"

    def check(self, answer: Any, reference: Any) -> tuple[float | None, str]:
        """Return a reward in [0, 1], or null where the reference cannot be read, and the reason."""
        raise NotImplementedError

    def __call__(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Judge one row."""
        return self._verdict(self.candidate(row), reference_of(row, self.field))

    def candidate(self, row: Mapping[str, Any]) -> Any:
        """Return what is checked: the answer, unless a verifier reads something else of the row."""
        return answer_of(row)

    def _verdict(self, answer: Any, reference: Any) -> dict[str, Any]:
        if reference is None:
            return {"reward": None, "reason": "the row has no reference"}
        try:
            reward, reason = self.check(answer, reference)
        except Exception as error:  # noqa: BLE001 - a verifier is a reward: it never stops a run
            return {"reward": None, "reason": f"{self.name} failed: {type(error).__name__}"}
        if reward is not None and not (math.isfinite(reward) and 0 <= reward <= 1):
            return {"reward": None, "reason": f"{self.name} left [0, 1]"}
        return {"reward": reward, "reason": reason}

    def reward_func(self) -> Callable[..., list[float | None]]:
        """Return this verifier as a reward function of TRL's trainers.

        It reads text and conversational completions, and the reference from the column `field`, or
        else from `reference`, `answer`, `solution` or `privileged`.
        """

        def reward(
            prompts: Sequence[Any], completions: Sequence[Any], **columns: Any
        ) -> list[float | None]:
            given = {k: v for k, v in columns.items() if isinstance(v, (list, tuple))}
            out: list[float | None] = []
            for i, completion in enumerate(completions):
                row = {k: v[i] for k, v in given.items() if len(v) == len(completions)}
                row = {**row, **_as_row(completion)}
                reference = reference_of(row, self.field)
                if reference is None and self.field is None:
                    reference = next((row[c] for c in _REFERENCES if row.get(c) is not None), None)
                out.append(self._verdict(self.candidate(row), reference)["reward"])
            return out

        reward.__name__ = type(self).__name__
        return reward


def _as_row(completion: Any) -> dict[str, Any]:
    if isinstance(completion, str):
        return {"final_text": completion, "messages": None}
    return {"final_text": None, "messages": list(completion)}


def answer_of(row: Mapping[str, Any]) -> str:
    """Return the final text of a row with reasoning removed."""
    text = row.get("final_text")
    if text is None:
        text = chat.final_text(row.get("messages") or [])
    return chat.without_reasoning(chat.text_of(text))


def reference_of(row: Mapping[str, Any], field: str | None = None) -> Any:
    """Return the reference of a row, null where there is none."""
    value: Any = row
    for part in (field or "privileged.reference").split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
