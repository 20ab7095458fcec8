"""RunReporter: a TRL callback that writes down a run and proves, on held-out tasks, what it did."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import Dataset

from whileai_hf import defaults
from whileai_hf import messages as chat
from whileai_hf.errors import InputError
from whileai_hf.extras import require
from whileai_hf.training.monitor import run_async
from whileai_hf.training.observed import name_of, observed, reward_function
from whileai_hf.training.report_card import write_card
from whileai_hf.training.run_folder import RunFolder
from whileai_hf.training.sampling import play, rendered_prompt, sample

TrainerCallback: Any = require("transformers.trainer_callback", "train").TrainerCallback
_collectives = require("accelerate.utils", "train")


class RunReporter(TrainerCallback):
    """Write metrics, completions and held-out results of a run as plain files, and a card.

    It never ends a run: what cannot be written is warned of and left out.

    Args:
        path: The run folder; null is `report` inside the trainer's `output_dir`.
        holdout: Tasks that are never trained on, with a column `prompt` and the columns that
            `reward` reads; `task_id` if there is one. With `tools` and `world` (as `to_grpo` keeps
            them with `privileged=True`) the model acts on the world, turn by turn. Null measures
            nothing.
        reward: The reward on the held-out tasks: a TRL reward function or a verifier, in [0, 1].
        every: Optimizer steps between two held-out evaluations; the first is before training, the
            last after it.
        k: Completions of each held-out task.
        max_new_tokens: Tokens of a held-out completion, or of each turn of one.
        max_turns: Agent turns of a held-out rollout that acts on a world.
        temperature: Of the held-out sampling.
        batch_size: Held-out sequences generated at once.
        project: Name of a trackio project that metrics also go to; needs `trackio`.
        push: Hub model id that the run folder is uploaded to at the end.
        seed: Of the held-out sampling.

    Example:
        `GRPOTrainer(reward_funcs=[reporter.wrap(reward)], callbacks=[reporter], …)`
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        holdout: Dataset | None = None,
        reward: Any = None,
        every: int = 50,
        k: int = 4,
        max_new_tokens: int = 256,
        max_turns: int = defaults.MAX_TURNS,
        temperature: float = 1.0,
        batch_size: int = 16,
        project: str | None = None,
        push: str | None = None,
        seed: int = 0,
    ) -> None:
        if (holdout is None) != (reward is None):
            raise InputError(
                "holdout and reward belong together; got only one of them. "
                "Pass the held-out tasks and the reward that grades them, or neither."
            )
        if holdout is not None and "prompt" not in holdout.column_names:
            raise InputError(
                f"holdout needs a column 'prompt'; it has {', '.join(holdout.column_names)}. "
                "Rename the column that is asked."
            )
        if every < 1 or k < 1:
            raise InputError(
                f"every and k must be at least 1; got {every!r} and {k!r}. Raise them."
            )
        self.path, self.holdout, self.every, self.k = path, holdout, every, k
        self.reward = reward.reward_func() if hasattr(reward, "reward_func") else reward
        self.options: dict[str, Any] = {
            "k": k, "max_new_tokens": max_new_tokens, "temperature": temperature,
            "batch_size": batch_size, "seed": seed,
        }  # fmt: skip
        self.max_turns, self.project, self.push = max_turns, project, push
        self.folder: RunFolder | None = None
        self._seen: list[dict[str, Any]] = []

    # Completions are seen through the reward functions.

    def wrap(self, reward: Any) -> Callable[..., Any]:
        """Return a reward function that behaves as `reward` and shows its completions."""
        function = reward_function(reward)
        return observed(function, functools.partial(self._see, name_of(function)))

    def _see(self, name: str, rewards: Any, columns: Mapping[str, Any]) -> Any:
        prompts, completions = columns["prompts"], columns["completions"]
        for prompt, completion, reward in zip(prompts, completions, rewards, strict=False):
            number = None if reward is None else float(reward)
            self._seen.append(
                {"prompt": prompt, "completion": completion, "judge": name, "reward": number}
            )
        return rewards

    # What the trainer tells.

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Open the folder, and measure the held-out tasks before the first step."""
        path = Path(self.path) if self.path else Path(args.output_dir) / "report"
        if state.is_world_process_zero:
            self.folder = RunFolder(path, config=args.to_dict(), project=self.project)
        if state.global_step == 0:
            self._evaluate(state, kwargs)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Write the completions of the step, and measure every so many steps."""
        rows = _collectives.gather_object(self._seen)
        self._seen = []
        if self.folder is not None and rows:
            self.folder.log(group_signal(rows), state.global_step)
            self.folder.completions(rows, state.global_step)
        if state.global_step % self.every == 0 and state.global_step < state.max_steps:
            self._evaluate(state, kwargs)

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Forget the completions that evaluation generated."""
        self._seen = []

    def on_log(
        self,
        args: Any,
        state: Any,
        control: Any,
        logs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Write the trainer's own metrics."""
        if self.folder is not None and logs:
            self.folder.log(logs, state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Measure the held-out tasks once more, and write the card."""
        self._evaluate(state, kwargs)
        if self.folder is None:
            return
        with self.folder.survive("the card"):
            write_card(self.folder, name=Path(args.output_dir).name)
        self.folder.close()
        if self.push is not None:
            with self.folder.survive("the upload"):
                hub = require("huggingface_hub", "train")
                hub.create_repo(self.push, exist_ok=True, private=True)
                hub.upload_folder(repo_id=self.push, folder_path=str(self.folder.path))

    # The held-out tasks.

    def _evaluate(self, state: Any, kwargs: Mapping[str, Any]) -> None:
        """Sample and grade the held-out tasks, each rank its share, and write what came out."""
        if self.holdout is None:
            return
        rows: list[dict[str, Any]] = []
        survive = self.folder.survive if self.folder is not None else _swallow
        with survive("the held-out evaluation"):
            rows = self._share(kwargs)
        rows = _collectives.gather_object(rows)
        if self.folder is not None:
            self.folder.holdout(rows, state.global_step)

    def _share(self, kwargs: Mapping[str, Any]) -> list[dict[str, Any]]:
        holdout = self.holdout
        if holdout is None:
            return []
        state = require("accelerate", "train").PartialState()
        mine = range(state.process_index, len(holdout), state.num_processes)
        tasks = [holdout[i] for i in mine]
        flat = [
            (i, task, said)
            for i, task, k in zip(mine, tasks, self._completions(tasks, kwargs), strict=True)
            for said in k
        ]
        rewards = self._rewards(flat)
        return [
            {
                "task_id": str(task.get("task_id") or f"holdout-{i}"),
                "repeat": j % self.k,
                "prompt": task["prompt"],
                "completion": said,
                "reward": None if reward is None else float(reward),
                "judge_status": "missing_reward" if reward is None else "ok",
            }
            for j, ((i, task, said), reward) in enumerate(zip(flat, rewards, strict=True))
        ]

    def _completions(
        self, tasks: Sequence[Mapping[str, Any]], kwargs: Mapping[str, Any]
    ) -> list[list[Any]]:
        """Return `k` completions of each task: text for a text, messages for messages."""
        model, tokenizer = kwargs["model"], kwargs["processing_class"]
        if tasks and all(t.get("world") and t.get("tools") for t in tasks):
            return play(model, tokenizer, tasks, max_turns=self.max_turns, **self.options)
        prompts = [rendered_prompt(tokenizer, t["prompt"], t.get("tools")) for t in tasks]
        texts = sample(model, tokenizer, prompts, **self.options)
        return [
            k
            if isinstance(t["prompt"], str)
            else [[{"role": "assistant", "content": c}] for c in k]
            for t, k in zip(tasks, texts, strict=True)
        ]

    def _rewards(self, flat: Sequence[tuple[int, Mapping[str, Any], Any]]) -> list[Any]:
        if not flat:
            return []
        names = [name for name in flat[0][1] if name != "prompt"]
        columns = {name: [task[name] for _, task, _ in flat] for name in names}
        prompts = [task["prompt"] for _, task, _ in flat]
        completions = [said for _, _, said in flat]
        scores = self.reward(prompts=prompts, completions=completions, **columns)
        return list(run_async(scores) if inspect.isawaitable(scores) else scores)


class _swallow:  # noqa: N801 - used like a function: the rank without a folder has nothing to write to
    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> bool:
        return True


def group_signal(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Say how much of a generation can teach, and how much of it was cut.

    Args:
        rows: Completions with `prompt`, `completion`, `judge` and `reward`, of one or more reward
            functions; the rewards of a completion are added.

    Returns:
        Share of groups whose rewards are all equal, which have zero advantage; share of completions
        that end in tool calls nobody answered, which no trainer counts as truncated.
    """
    functions = len({row["judge"] for row in rows}) or 1
    n = len(rows) // functions
    totals: dict[Any, list[float]] = {}
    for i, row in enumerate(rows[:n]):
        known = [s for f in range(functions) if (s := rows[i + f * n]["reward"]) is not None]
        if known:
            key = row["prompt"] if isinstance(row["prompt"], str) else repr(row["prompt"])
            totals.setdefault(key, []).append(float(sum(known)))
    groups = [values for values in totals.values() if len(values) > 1]
    unanswered = sum(_unanswered(row["completion"]) for row in rows[:n])
    out = {"report/unanswered_calls": unanswered / max(n, 1)}
    if groups:
        out["report/zero_spread_groups"] = sum(max(v) - min(v) < 1e-9 for v in groups) / len(groups)
    return out


def _unanswered(completion: Any) -> bool:
    if not isinstance(completion, list) or not completion:
        return False
    calls = chat.tool_calls([m for m in completion if isinstance(m, Mapping)])
    return any(call.result is None for call in calls)
