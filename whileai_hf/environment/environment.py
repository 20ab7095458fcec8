"""Environment: the tasks, the world and the reward of a package, in process.

The same object stands behind every door: verifiers and TRL get adapters of it, and `simulate` with
`grade` its rows and its judge. Prompts and tool schemas are all that a policy sees.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasets import Dataset

from whileai_hf import extras, schema
from whileai_hf import messages as chat
from whileai_hf.environment import playing, references, scoring
from whileai_hf.environment.tasks import SPLITS, EnvironmentTask, read_lines
from whileai_hf.errors import InputError
from whileai_hf.rollouts import Rollouts
from whileai_hf.simulate.rollout import Rollout
from whileai_hf.world.world import World, as_text

#: The file that says what an environment is.
CARD = "environment.json"


@dataclass(frozen=True, slots=True)
class TaskCheck:
    """What a task's solution and a policy that does nothing earn."""

    task_id: str
    gold: float | None
    nothing: float | None
    reason: str = ""

    @property
    def ok(self) -> bool:
        """Whether the solution earns 1 and doing nothing does not."""
        return self.gold == 1.0 and self.nothing != 1.0


@dataclass(frozen=True, slots=True)
class ValidationReport:
    """What `Environment.validate` found; `print` gives the line to quote."""

    checks: tuple[TaskCheck, ...]

    @property
    def ok(self) -> bool:
        """Whether every task is sound."""
        return all(check.ok for check in self.checks)

    @property
    def refused(self) -> dict[str, str]:
        """Why each unsound task is unsound, by its id."""
        return {c.task_id: c.reason for c in self.checks if not c.ok}

    def __str__(self) -> str:
        sound = sum(c.ok for c in self.checks)
        line = f"{sound} of {len(self.checks)} tasks: the solution earns 1, doing nothing does not"
        return "\n".join([line, *(f"  {k}: {v}" for k, v in list(self.refused.items())[:10])])

    def to_dict(self) -> dict[str, Any]:
        """Return the counts and the refused tasks."""
        return {"n_tasks": len(self.checks), "refused": self.refused}


class Environment:
    """An environment that `export_environment` wrote; see `load_environment`.

    Attributes:
        name: Its Python module name.
        folder: Folder of the package.
        max_turns: Agent turns after which a rollout is cut.
        on_cut: What a rollout earns that was cut: "zero", "null", or "score" for what is there.
    """

    def __init__(self, folder: Path, card: Mapping[str, Any]) -> None:
        self.folder, self.card = folder, card
        self.name: str = card["name"]
        self.max_turns: int = card["max_turns"]
        self.on_cut: str = scoring.check_cut(card["on_cut"])
        self.contexts: list[dict[str, Any]] = card["contexts"]
        self._execute = self._read("execute")
        self._world = self._read("world")

    def __repr__(self) -> str:
        sizes = ", ".join(f"{split} {self.card['n_tasks'][split]}" for split in SPLITS)
        return f"Environment({self.name!r}, {sizes}, reward {references.describe(self.card['reward'])})"

    def __deepcopy__(self, memo: Any) -> Environment:
        return self  # it is never changed, and its tasks are many

    def _read(self, role: str) -> Any:
        stored = self.card.get(role)
        return None if stored is None else references.read(stored, self.folder, role)

    @functools.cached_property
    def reward(self) -> Any:
        """The judge behind the score."""
        return references.read(self.card["reward"], self.folder, "reward")

    @functools.cached_property
    def _by_split(self) -> dict[str, list[EnvironmentTask]]:
        return {split: self._load(split) for split in SPLITS}

    def _load(self, split: str) -> list[EnvironmentTask]:
        text = (self.folder / "data" / f"{split}.jsonl").read_text(encoding="utf-8")
        return [EnvironmentTask.from_row(r, split, self.contexts) for r in read_lines(text)]

    @functools.cached_property
    def _by_id(self) -> dict[str, EnvironmentTask]:
        return {task.id: task for tasks in self._by_split.values() for task in tasks}

    # Tasks.

    def tasks(self, split: str = "train") -> list[EnvironmentTask]:
        """Return the tasks of a split, "train" or "holdout", in the order of the file."""
        if split not in SPLITS:
            raise InputError(f"split must be one of {', '.join(SPLITS)}; got {split!r}. Pick one.")
        return list(self._by_split[split])

    def task(self, task_id: str) -> EnvironmentTask:
        """Return a task by its id."""
        try:
            return self._by_id[task_id]
        except KeyError:
            raise InputError(
                f"{self.name} has no task {task_id!r}; there are {len(self._by_id)}, first "
                f"{next(iter(self._by_id), None)!r}. Take ids from env.tasks(split)."
            ) from None

    def rows(self, split: str = "holdout") -> Rollouts:
        """Return the tasks as rows for `wai.simulate(agent, tasks=…)`, world and references included."""
        made = [
            {**task.record(list(task.prompt)), "finish_reason": None, "final_text": None}
            for task in self.tasks(split)
        ]
        return Rollouts.from_records(made)

    def dataset(self, split: str = "train") -> Dataset:
        """Return the prompts for a trainer: `prompt`, `task_id`, `environment`; nothing that only a judge may read."""
        made = [
            {"messages": list(t.prompt), "task_id": t.id, "environment": self.tool_set(t.context)}
            for t in self.tasks(split)
        ]
        table = schema.to_table(made).select(["messages", "task_id", "environment"])
        return schema.from_table(table.rename_columns(["prompt", "task_id", "environment"]))

    def tool_set(self, context: int) -> str:
        """Name a tool set of this environment."""
        return f"{self.name}_{context}"

    # Playing and scoring.

    def world(self, task: EnvironmentTask) -> Any:
        """Build the world of a task as it is before the first call."""
        if self._world is not None:
            return self._world(task.record(list(task.prompt)))
        if task.world is None:
            return World(list(task.tools), execute=self._execute)
        return World.from_row({"tools": list(task.tools), "world": task.world}, self._execute)

    def start(self, task: EnvironmentTask, agent: Any, max_turns: int | None = None) -> Rollout:
        """Begin a rollout of a task; `play` or `play_async` of it plays to the end."""
        turns = self.max_turns if max_turns is None else max_turns
        return playing.start(task, self.world(task), agent, turns)

    def play(self, task: EnvironmentTask, turns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Play given agent turns and return the rollout as a record; after the last one it says nothing."""
        rollout = self.start(task, playing.Script(turns))
        rollout.play()
        return task.record(rollout.messages, rollout.finish_reason, rollout.error)

    def score(
        self,
        task: EnvironmentTask | str,
        messages: Sequence[Mapping[str, Any]],
        finish_reason: str | None = "stop",
        error: str | None = None,
    ) -> scoring.Score:
        """Score a conversation.

        Args:
            task: The task, or its id.
            messages: The whole conversation, the prompt included.
            finish_reason: How it ended; "length" and "max_turns" are cut.
            error: What broke it off; then there is no reward.
        """
        task = self.task(task) if isinstance(task, str) else task
        row = task.record(chat.normal_messages(messages), finish_reason, error)
        return self._score(task, row)

    def _score(self, task: EnvironmentTask, row: Mapping[str, Any]) -> scoring.Score:
        names = [t["function"]["name"] for t in task.tools]
        return scoring.score(row, self.reward, self.on_cut, names)

    def judge(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """Judge a row for `wai.grade(rows, env.judge)`: the reward that every other door gives."""
        task = self.task(row["task_id"])
        messages = list(row["messages"] or [])
        made = task.record(messages, row.get("finish_reason"), row.get("error"))
        found = self._score(task, made)
        return {
            "reward": found.reward, "reason": found.reason, "failure_class": found.failure_class,
            "markers": dict(found.markers), **found.metrics,
        }  # fmt: skip

    def replayed(
        self, task: EnvironmentTask, messages: Sequence[Mapping[str, Any]]
    ) -> list[dict[str, Any]]:
        """Let the world answer every call of a conversation again.

        A trainer answers a call of an unknown tool, or one that it cannot read, in words of its own;
        a score must not depend on them. Calls that had no answer stay without.
        """
        world, out = self.world(task), []
        waiting: list[dict[str, Any]] = []
        for message in map(dict, messages):
            if message["role"] == "assistant":
                waiting = list(message.get("tool_calls") or [])
            elif message["role"] == "tool" and waiting:
                function = waiting.pop(0)["function"]
                result = world.call(str(function["name"]), function["arguments"])
                message["content"] = as_text(result)
            out.append(message)
        return out

    # Doors.

    @functools.cache  # noqa: B019 - an environment lives as long as its module
    def verifiers(self) -> Any:
        """Return the classes `Taskset`, `Harness` and `Env` for verifiers 0.3.1 and later."""
        extras.require("verifiers.v1", "envs")
        door = importlib.import_module("whileai_hf.environment.verifiers_v1")
        return door.classes(self)

    def verifiers_v0(self, split: str = "train", **options: Any) -> Any:
        """Return an environment for verifiers below 0.4; see `load_environment` of the package."""
        door = importlib.import_module("whileai_hf.environment.verifiers_v0")
        return door.load(self, split, **options)

    def reward_func(self) -> Any:
        """Return the reward function for GRPOTrainer."""
        door = importlib.import_module("whileai_hf.environment.trl")
        return door.reward_func(self)

    def show_tools(self, trainer: Any) -> None:
        """Let a GRPOTrainer render the tool schemas verbatim."""
        door = importlib.import_module("whileai_hf.environment.trl")
        door.show_tools(self, trainer)

    def reference_server(self) -> Any:
        """Serve the stored solutions as an OpenAI-compatible endpoint: `with env.reference_server() as server`."""
        door = importlib.import_module("whileai_hf.environment.reference_server")
        return door.reference_server(self)

    # Whether it is sound.

    def check(self, task: EnvironmentTask) -> TaskCheck:
        """Play the solution of a task, and a policy that does nothing."""
        if task.solution is None:
            return TaskCheck(task.id, None, None, "no solution is known")
        gold = self._earned(task, task.solution)
        idle = self._earned(task, ())
        reason = ""
        if gold.reward != 1.0:
            reason = f"the solution earns {_shown(gold.reward)}: {gold.reason}"
        elif idle.reward == 1.0:
            reason = f"doing nothing earns 1: {idle.reason}"
        return TaskCheck(task.id, gold.reward, idle.reward, reason)

    def _earned(self, task: EnvironmentTask, turns: Sequence[Mapping[str, Any]]) -> scoring.Score:
        return self._score(task, self.play(task, turns))

    def validate(self, split: str | None = None) -> ValidationReport:
        """Check every task of a split, or of both; see `check`."""
        given = SPLITS if split is None else (split,)
        return ValidationReport(tuple(self.check(t) for s in given for t in self.tasks(s)))

    def policies(self, split: str = "holdout", seed: int = 0) -> dict[str, float | None]:
        """Return the mean reward of policies that no environment may pay for, by name; null: none was judged."""
        out: dict[str, float | None] = {}
        for name, policy in playing.POLICIES.items():
            found = [self._earned(t, policy(t, seed)).reward for t in self.tasks(split)]
            known = [r for r in found if r is not None]
            out[name] = sum(known) / len(known) if known else None
        return out


def _shown(reward: float | None) -> str:
    return "nothing, it cannot be judged" if reward is None else f"{reward:g}"


def load_environment(source: str | Path) -> Environment:
    """Load an environment in process.

    Args:
        source: Folder of an exported environment or of its package, or the name of an installed one,
            such as `"support_desk"` or `"me/support-desk@1.0"`.

    Raises:
        InputError: There is no environment, or what it refers to cannot be imported.

    Example:
        `env = wai.load_environment("envs/support_desk"); print(env.validate())`
    """
    folder = _folder(source)
    card = json.loads((folder / CARD).read_text(encoding="utf-8"))
    if card.get("format") != 1:
        raise InputError(
            f"an environment of format 1 is required; {folder.name} has {card.get('format')!r}. "
            "Install a newer whileai-hf."
        )
    return Environment(folder, card)


def _folder(source: str | Path) -> Path:
    path = Path(source)
    inner: list[Path] = sorted(path.iterdir()) if path.is_dir() else []
    for found in (path, *inner):
        if (found / CARD).is_file():
            return found
    name = str(source).rsplit("/", 1)[-1].split("@", 1)[0].replace("-", "_").lower()
    spec = importlib.util.find_spec(name) if name.isidentifier() else None
    if spec is not None and spec.origin and (Path(spec.origin).parent / CARD).is_file():
        return Path(spec.origin).parent
    raise InputError(
        f"load_environment takes a folder that holds {CARD}, or the name of an installed environment; "
        f"got {str(source)!r}. Write one with wai.export_environment, or pip install it."
    )
