"""The door to verifiers below 0.4 (`load_environment`): a multi-turn environment with verbatim schemas.

That interface has no null reward: what cannot be judged is written as 0 with `judge_ok` 0, and
`rollouts_from_traces` reads it back as null.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Sequence
from typing import Any

from datasets import Dataset

from whileai_hf import messages as chat
from whileai_hf import schema
from whileai_hf.environment import playing, scoring
from whileai_hf.environment.environment import Environment
from whileai_hf.environment.tasks import EnvironmentTask
from whileai_hf.errors import MissingExtra
from whileai_hf.world.world import as_text


def load(
    env: Environment,
    split: str = "train",
    num_tasks: int | None = None,
    max_turns: int | None = None,
    **options: Any,
) -> Any:
    """Make an environment of verifiers 0.3.1.

    Args:
        env: The environment.
        split: Tasks to train on; evaluation takes the same split unless that is "train", then the hold-out.
        num_tasks: How many tasks to load; null for all.
        max_turns: Agent turns after which a rollout is cut; null for the environment's own.
        options: Passed on to `MultiTurnEnv`.

    Raises:
        MissingExtra: The installed verifiers has no such interface.
    """
    try:
        vf = importlib.import_module("verifiers.legacy")
    except ImportError as error:
        raise MissingExtra(
            "load_environment is the interface of verifiers below 0.4, and the installed one has none. "
            "Use the id of the package with vf-eval, or pip install 'verifiers==0.3.1'."
        ) from error
    held_out = split if split != "train" or not env.tasks("holdout") else "holdout"
    return _environment_class(vf)(
        env,
        dataset=_dataset(env.tasks(split)[:num_tasks]),
        eval_dataset=_dataset(env.tasks(held_out)[:num_tasks]),
        rubric=_rubric(vf),
        max_turns=env.max_turns if max_turns is None else max_turns,
        **options,
    )


def _dataset(tasks: Sequence[EnvironmentTask]) -> Dataset:
    """Write prompts; `info` is JSON text, because Arrow would fill the keys that a row lacks."""
    rows = []
    for task in tasks:
        tools = [
            {
                k: t["function"].get(k) or ({} if k == "parameters" else "")
                for k in ("name", "description", "parameters")
            }
            for t in task.tools
        ]
        info = schema.dumps({"task_id": task.id, "tool_defs": tools})
        rows.append({"prompt": playing.wire(task.prompt), "answer": "", "info": info})
    return Dataset.from_list(rows)


def _rubric(vf: Any) -> Any:
    rubric = vf.Rubric()

    def reader(name: str) -> Any:
        async def read(state: Any) -> float:
            return float(state["whileai"][name])

        read.__name__ = name
        return read

    rubric.add_reward_func(reader("reward"), 1.0)
    for name in scoring.METRICS:
        rubric.add_metric(reader(name))
    return rubric


def _environment_class(vf: Any) -> Any:
    class WorldEnvironment(vf.MultiTurnEnv):
        """Every rollout acts on the world of its task."""

        def __init__(self, environment: Environment, **options: Any) -> None:
            super().__init__(**options)
            self.environment = environment

        async def setup_state(self, state: Any) -> Any:
            info = state["info"]
            info = json.loads(info) if isinstance(info, str) else info
            state["task"] = self.environment.task(info["task_id"])
            state["world"] = self.environment.world(state["task"])
            state["spoke"] = False
            return state

        @vf.stop  # type: ignore[untyped-decorator]
        async def finished(self, state: Any) -> bool:
            """The agent called nothing, and the user has nothing to add."""
            if not state["trajectory"]:
                return False
            last = _plain(state["trajectory"][-1]["completion"])[-1]
            return not last.get("tool_calls") and not self._speaks(state, last)

        def _speaks(self, state: Any, last: dict[str, Any]) -> bool:
            text = chat.text_of(last.get("content"))
            return bool(
                state["task"].follow_up and not state["spoke"] and ("?" in text or "？" in text)
            )

        async def env_response(self, messages: Any, state: Any, **_: Any) -> Any:
            """Answer the calls, or let the user say what was left open."""
            last = _plain(messages)[-1]
            if not last.get("tool_calls"):
                state["spoke"] = True
                return [{"role": "user", "content": state["task"].follow_up}]
            return [
                {"role": "tool", "tool_call_id": call["id"], "content": as_text(state["world"].call(call["function"]["name"], call["function"]["arguments"]))}
                for call in last["tool_calls"]
            ]  # fmt: skip

        @vf.cleanup  # type: ignore[untyped-decorator]
        async def score_it(self, state: Any) -> None:
            """Score once, before the rubric reads."""
            said = [*state["task"].prompt, *_plain(state["completion"] or [])]
            cut = (
                bool(state.get("is_truncated"))
                or state.get("stop_condition") == "max_turns_reached"
            )
            cut = cut or any(step.get("is_truncated") for step in state["trajectory"])
            error = state.get("error")
            found = await asyncio.to_thread(
                self.environment.score,
                state["task"],
                said,
                "length" if cut else "stop",
                str(error) if error else None,
            )
            reward = 0.0 if found.reward is None else found.reward
            judged = float(found.reward is not None)
            state["whileai"] = {**found.metrics, "reward": reward, "judge_ok": judged}

    return WorldEnvironment


def _plain(messages: Any) -> list[dict[str, Any]]:
    """Read messages of verifiers: models or mappings, calls flat or in the OpenAI form."""
    out = []
    for message in messages:
        given = (
            message.model_dump(exclude_none=True)
            if hasattr(message, "model_dump")
            else dict(message)
        )
        kept = {
            k: v
            for k, v in given.items()
            if v is not None and k in ("role", "content", "tool_calls", "tool_call_id")
        }
        out.append(kept)
    return chat.normal_messages(out)
