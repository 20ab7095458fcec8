"""The door to TRL: environment classes whose tools act on the world of a task, and the reward."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from whileai_hf import messages as chat
from whileai_hf.environment.environment import Environment
from whileai_hf.errors import InputError
from whileai_hf.training.world_environment import world_environment


def trl_environment(env: Environment) -> Any:
    """Return what `GRPOTrainer(environment_factory=…)` takes.

    Train on `env.dataset("train")` with `reward_funcs=[env.reward_func()]`; `reset` gets the columns of a
    row and builds the world of its task. Wrong argument names and values reach the world, which answers
    as it does everywhere else.

    Args:
        env: The environment.

    Returns:
        A class, or one by name where the tasks have several tool sets; the column `environment` of the
        dataset then says which a task uses.

    Raises:
        InputError: The environment has no tools, or one that cannot be a Python method.

    Example:
        `GRPOTrainer(..., environment_factory=wai.trl_environment(env), reward_funcs=[env.reward_func()])`
    """
    if not isinstance(env, Environment):
        raise InputError(
            f"trl_environment takes an environment; got {type(env).__name__}. "
            "Load one with wai.load_environment(path)."
        )
    made = {env.tool_set(i): _class(env, c["tools"]) for i, c in enumerate(env.contexts)}
    return made if len(made) > 1 else next(iter(made.values()))


def _class(env: Environment, tools: Sequence[Mapping[str, Any]]) -> type[Any]:
    base = world_environment(list(tools))

    def reset(self: Any, task_id: str, **row: Any) -> None:
        self.task = env.task(task_id)
        self.world = env.world(self.task)

    return type("TaskEnvironment", (base,), {"__doc__": "One rollout's world.", "reset": reset})


def reward_func(env: Environment) -> Callable[..., list[float | None]]:
    """Return the reward function; null where a rollout cannot be judged, which TRL leaves out."""

    def reward(
        completions: Sequence[Any], task_id: Sequence[str], log_metric: Any = None, **columns: Any
    ) -> list[float | None]:
        found = [_scored(env, t, c) for t, c in zip(task_id, completions, strict=True)]
        if log_metric is not None and found:
            for name in found[0].metrics:
                log_metric(name, sum(s.metrics[name] for s in found) / len(found))
        return [s.reward for s in found]

    reward.__name__ = "reward"
    return reward


def _scored(env: Environment, task_id: str, completion: Any) -> Any:
    task = env.task(task_id)
    if isinstance(completion, str):
        completion = [{"role": "assistant", "content": completion}]
    said = chat.normal_messages(completion)
    return env.score(task, env.replayed(task, [*task.prompt, *said]))


def show_tools(env: Environment, trainer: Any) -> None:
    """Render prompts with the schemas as they are.

    TRL (1.16) reads schemas off signatures, which lose enum, pattern, limits and additionalProperties, and
    has no public way to say otherwise.
    """
    sets = {env.tool_set(i): c["tools"] for i, c in enumerate(env.contexts)}
    only = next(iter(sets.values()))
    trainer._env_tools = {name: sets.get(name, only) for name in trainer._env_tools}
