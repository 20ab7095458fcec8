"""The door to verifiers 0.3.1 and later (the v1 interface): taskset, task, harness and environment.

The harness plays the loop of `simulate` in this process, through the endpoint that verifiers intercepts:
no sandbox, no tool server. What is judged, and where the conversation is kept, is `trace.info`, so that a
saved trace scores as it did. A trace names its task and holds nothing that only a judge may read.
"""

from __future__ import annotations

import asyncio
import functools
import ssl
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import verifiers.v1 as vf
from openai import APIError, APIStatusError, AsyncOpenAI, DefaultAsyncHttpxClient

from whileai_hf import messages as chat
from whileai_hf.environment import playing
from whileai_hf.environment.environment import Environment
from whileai_hf.environment.tasks import EnvironmentTask
from whileai_hf.simulate.agents import Attempt, Turn

#: Where a trace keeps what is judged.
KEY = "whileai"


class Unjudged(Exception):
    """A rollout could not be judged; verifiers records the error, and no reward."""


class WorldData(vf.TaskData):
    """One task as it travels: what the policy sees, and the name under which the rest is found."""

    task_id: str
    split: str


class WorldConfig(vf.TasksetConfig):
    """Which tasks to load."""

    split: Literal["train", "holdout"] = "train"
    """Which tasks to load."""
    num_tasks: int | None = None
    """How many of them (all by default)."""


class WorldTask(vf.Task[WorldData, vf.State]):
    """Scoring of one task by the environment."""

    environment: ClassVar[Environment]

    @property
    def key(self) -> str:
        """The task's own id, under which resumed and replayed runs find it."""
        return str(self.data.task_id)

    @property
    def source(self) -> EnvironmentTask:
        """The whole task."""
        return self.environment.task(self.data.task_id)

    async def validate(self, runtime: vf.Runtime) -> bool:
        """Play the stored solution."""
        return bool(self.environment.check(self.source).gold == 1.0)

    @vf.reward(weight=1.0)  # type: ignore[untyped-decorator]
    async def reward(self, trace: vf.Trace) -> float:
        """Score the conversation, and log what is never summed."""
        kept = trace.info.get(KEY) or {
            "messages": list(self.source.prompt),
            "finish_reason": "stop",
        }
        found = await asyncio.to_thread(
            self.environment.score, self.source, kept["messages"], kept["finish_reason"]
        )
        trace.record_metrics(found.metrics)
        if found.reward is None:
            raise Unjudged(f"{found.status}: {found.reason}")
        return found.reward


class WorldHarness(vf.Harness[vf.HarnessConfig]):
    """The chat loop of `simulate` against the endpoint of a rollout."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False
    environment: ClassVar[Environment]

    async def launch(
        self, ctx: vf.ModelContext, trace: vf.Trace, runtime: vf.Runtime, endpoint: str, secret: str,
        mcp_urls: dict[str, str], data: vf.TaskData,
    ) -> vf.ProgramResult:  # fmt: skip
        """Play one rollout."""
        task = self.environment.task(data.task_id)
        turns = trace.agent.config.max_turns or self.environment.max_turns
        system, _ = self.resolve_prompt(data)
        web = DefaultAsyncHttpxClient(verify=_certificates())
        async with AsyncOpenAI(
            base_url=endpoint, api_key=secret, max_retries=2, http_client=web
        ) as client:
            agent = EndpointAgent(client, ctx.model, list(task.tools))
            rollout = self.environment.start(task, agent, turns)
            if system and rollout.messages[0]["role"] == "system":
                rollout.messages[0]["content"] = system  # one that the command line replaced
            await rollout.play_async(None)
        finish = _finish(rollout.finish_reason, agent.failure, trace)
        trace.info[KEY] = {
            "task_id": task.id, "messages": rollout.messages, "finish_reason": finish,
        }  # fmt: skip
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Read the certificates once: a client that reads its own takes a tenth of a second to make."""
    return ssl.create_default_context()


def _finish(finish: str | None, failure: Exception | None, trace: vf.Trace) -> str:
    """Say how a rollout ended; a provider that failed is raised again, for verifiers to record."""
    if failure is None:
        if finish == "max_turns":
            trace.stop("max_turns")
        return finish or "stop"
    if trace.stop_condition is not None:
        return "max_turns"  # verifiers refused the next turn
    text = str(failure).lower()
    if (
        isinstance(failure, APIStatusError)
        and failure.status_code in (400, 413)
        and "context" in text
    ):
        trace.stop("context_length")
        return "length"
    raise failure


class EndpointAgent:
    """An agent of the loop that asks an OpenAI-compatible endpoint."""

    inline = False

    def __init__(self, client: AsyncOpenAI, model: str, tools: Sequence[Mapping[str, Any]]) -> None:
        self.client, self.name, self.tools = client, model, list(tools)
        self.failure: Exception | None = None

    async def respond(self, messages: Sequence[Mapping[str, Any]], attempt: Attempt) -> Turn:
        """Ask once; a failure is kept, so that it can be told from a mistake of the policy."""
        options: dict[str, Any] = {"model": self.name, "messages": playing.wire(messages)}
        if self.tools:
            options["tools"] = self.tools
        try:
            answer = await self.client.chat.completions.create(**options)
        except APIError as error:
            self.failure = error
            raise
        choice = answer.choices[0]
        said = choice.message.model_dump(exclude_none=True, include={"content", "tool_calls"})
        message = chat.normal_messages([{"role": "assistant", **said}])[-1]
        return Turn([message], choice.finish_reason or "stop")


class WorldEnvConfig(vf.SingleAgentEnvConfig):
    """Runs on this machine: the tools are a world in this process, so no sandbox is needed."""


class WorldEnv(vf.SingleAgentEnv, vf.Env[WorldEnvConfig]):
    """The single-agent environment, which `vf-replay` knows."""


@dataclass(frozen=True, slots=True)
class Classes:
    """What a package exports."""

    Taskset: type
    Harness: type
    Env: type


def classes(env: Environment) -> Classes:
    """Make the three classes of a package; verifiers finds their types by their bases."""
    task = type("WorldTask", (WorldTask,), {"environment": env, "__module__": __name__})

    def load(self: Any) -> list[Any]:
        found = env.tasks(self.config.split)
        found = found if self.config.num_tasks is None else found[: self.config.num_tasks]
        return [task(_data(t), self.config.task) for t in found]

    taskset = types.new_class(
        "Taskset", (vf.Taskset[task, WorldConfig],), {}, lambda body: body.update(load=load)
    )
    harness = type("Harness", (WorldHarness,), {"environment": env})
    agent = vf.AgentConfig(runtime=vf.SubprocessConfig(), max_turns=env.max_turns)
    config = type(
        "EnvConfig", (WorldEnvConfig,), {"__annotations__": {"agent": vf.AgentConfig}, "agent": agent, "__module__": __name__},
    )  # fmt: skip
    made = types.new_class("Env", (WorldEnv, vf.Env[config]))
    return Classes(taskset, harness, made)


def _data(task: EnvironmentTask) -> WorldData:
    said = [m for m in task.prompt if m["role"] != "system"]
    system = next((m["content"] for m in task.prompt if m["role"] == "system"), None)
    prompt = said[0]["content"] if len(said) == 1 else playing.wire(said)
    return WorldData(
        id=task.id,
        name=task.id,
        prompt=prompt,
        system_prompt=system,
        task_id=task.id,
        split=task.split,
    )
