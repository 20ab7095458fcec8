"""One task of an environment: what is asked, in which world, and how it can be solved."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from whileai_hf import messages as chat
from whileai_hf import schema

#: Splits of an environment.
SPLITS = ("train", "holdout")


@dataclass(frozen=True, slots=True)
class EnvironmentTask:
    """A task. Only `prompt` and `tools` are for the policy; everything else stays with the scorer."""

    id: str
    split: str
    prompt: tuple[dict[str, Any], ...]  #: system and user messages before the first turn
    tools: tuple[dict[str, Any], ...]  #: verbatim schemas
    context: int = 0  #: which tool set of the environment it uses
    situation: Any = None
    world: Any = None
    privileged: Mapping[str, Any] = field(default_factory=dict)
    solution: tuple[dict[str, Any], ...] | None = None  #: agent turns that earn the full reward
    calibration: Mapping[str, Any] = field(default_factory=dict)  #: attempts and pass rate

    @property
    def ask(self) -> str:
        """The first user text."""
        return chat.first_ask(self.prompt)

    @property
    def follow_up(self) -> str | None:
        """What the user answers, once, when the agent asks back."""
        found = self.privileged.get("follow_up")
        return found if isinstance(found, str) and found else None

    def record(
        self,
        messages: Sequence[Mapping[str, Any]],
        finish_reason: str | None = "stop",
        error: str | None = None,
    ) -> dict[str, Any]:
        """Return a rollout of this task as a record.

        Args:
            messages: The whole conversation, the prompt included, in the normal form.
            finish_reason: How it ended.
            error: What broke it off.
        """
        said = [dict(m) for m in messages]
        return {
            "task_id": self.id, "tools": list(self.tools) or None, "situation": self.situation,
            "world": self.world, "privileged": dict(self.privileged), "ask": self.ask,
            "messages": said, "loss_mask": chat.loss_mask(said), "final_text": chat.final_text(said),
            "finish_reason": finish_reason, "error": error,
        }  # fmt: skip

    def row(self) -> dict[str, Any]:
        """Return what `data/*.jsonl` holds of the task; prompt and tools are shared by context."""
        return {
            "id": self.id, "context": self.context, "messages": [dict(m) for m in self.prompt if m["role"] != "system"],
            "situation": self.situation, "calibration": dict(self.calibration), "world": self.world,
            "privileged": dict(self.privileged),
            "solution": None if self.solution is None else [dict(m) for m in self.solution],
        }  # fmt: skip

    @classmethod
    def from_row(
        cls, row: Mapping[str, Any], split: str, contexts: Sequence[Mapping[str, Any]]
    ) -> EnvironmentTask:
        """Read a line of `data/*.jsonl`."""
        shared = contexts[row["context"]]
        system = shared["system_prompt"]
        prompt = [{"role": "system", "content": system}] if system else []
        solution = row.get("solution")
        return cls(
            row["id"], split, (*prompt, *row["messages"]), tuple(shared["tools"]), row["context"],
            row.get("situation"), row.get("world"), row.get("privileged") or {},
            None if solution is None else tuple(solution), row.get("calibration") or {},
        )  # fmt: skip


def read_lines(text: str) -> list[dict[str, Any]]:
    """Read JSON lines."""
    return [json.loads(line) for line in text.splitlines() if line.strip()]


def write_lines(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write JSON lines, exactly."""
    return "".join(schema.dumps(schema.plain(row, "a task")) + "\n" for row in rows)
