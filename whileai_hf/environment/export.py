"""export_environment: graded rollouts as a package that verifiers evaluates and TRL trains on.

What rollouts came from is what on-policy training needs: their tasks, their world and their reward.
The package holds them as data beside four short adapters and depends on this library, which owns the
world, the judge and the loop: a copy of them in each package would drift from what `simulate` and
`grade` do, and the parity of the doors would end with the first fix.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datasets import Dataset

from whileai_hf import columns, defaults, schema
from whileai_hf.environment import package, references, scoring, solutions
from whileai_hf.environment.environment import CARD, Environment
from whileai_hf.environment.names import check_name
from whileai_hf.environment.splits import Split, situation_key, split_tasks
from whileai_hf.environment.tasks import EnvironmentTask
from whileai_hf.errors import InputError


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What `export_environment` wrote, and what it left out."""

    path: Path
    name: str
    n_train: int
    n_holdout: int
    refused: Mapping[str, str]  #: unsound tasks by id, and why
    left_out: Mapping[str, str]  #: sound tasks in neither split, and why
    policies: Mapping[str, float | None]  #: mean reward on the hold-out of policies that do not try

    def __str__(self) -> str:
        lines = [
            f"{self.name}: {self.n_train} train and {self.n_holdout} held-out tasks, to {self.path}"
        ]
        lines += [f"  refused {task}: {why}" for task, why in list(self.refused.items())[:10]]
        for why in dict.fromkeys(self.left_out.values()):
            lines.append(f"  {sum(v == why for v in self.left_out.values())} left out: {why}")
        earned = ", ".join(
            f"{k} {'-' if v is None else f'{v:.2f}'}" for k, v in self.policies.items()
        )
        return "\n".join([*lines, f"  policies that do not try earn: {earned}"])

    def to_dict(self) -> dict[str, Any]:
        """Return the fields."""
        return {n: getattr(self, n) for n in self.__slots__} | {"path": str(self.path)}


def export_environment(  # noqa: PLR0913 - every part of an environment, each with a default
    source: Dataset,
    path: str | Path,
    *,
    name: str,
    reward: Any = "task_checklist",
    world: Callable[[Mapping[str, Any]], Any] | str | None = None,
    execute: Callable[[str, dict[str, Any]], Any] | str | None = None,
    solution: Callable[[Mapping[str, Any]], Any] | str | None = None,
    holdout: float = defaults.ENVIRONMENT_HOLDOUT,
    band: tuple[float, float] | None = defaults.DIFFICULTY_BAND,
    split_by: str = "situation",
    max_turns: int = defaults.MAX_TURNS,
    on_cut: str = "zero",
    files: Sequence[str | Path] = (),
    dependencies: Sequence[str] = (),
    description: str | None = None,
    version: str = "0.1.0",
    seed: int = 0,
    overwrite: bool = False,
) -> ExportReport:
    """Write rollouts as an environment: an installable package with tasks, world and reward.

    Tools, system prompt, world and references come from the rows. Tasks whose known solution does not
    earn 1, or on which doing nothing does, are refused and named in the report.

    Args:
        source: Graded rollouts; their pass rates place the tasks in the band.
        path: Folder to write; it must be new or empty.
        name: Python module of the package, in small letters.
        reward: A verifier, a judge, `module:name` of one, or a composition such as `wai.Weighted(…)`.
        world: A function of a row that returns its world, an object with `call(name, arguments)` and
            `log`; null is the simulated world of the row.
        execute: A function `(tool, arguments) -> result` that answers instead of the simulated world.
        solution: A function of a row that returns `{"calls": [[name, arguments]…], "final_text": …}`, or
            agent turns; null takes `privileged.solution`, an honest stand-in for simulated tasks, or a
            rollout of the task that earned 1.
        holdout: Share of the tasks that is held out, in [0, 1).
        band: Lowest and highest pass rate of a task to train on; null keeps all, graded or not.
        split_by: Column, or dotted path, of what must not be on both sides.
        max_turns: Agent turns after which a rollout is cut.
        on_cut: What a cut rollout earns: "zero", "null", or "score" for what is there.
        files: Python files that travel inside the package, for functions that no installed package has.
        dependencies: Further requirements of the package.
        description: One line for the Hub.
        version: Version of the package.
        seed: Of the split.
        overwrite: Whether to replace an environment of this name that lies at `path`.

    Returns:
        What was written; `print` shows what was refused and what policies that do not try earn.

    Raises:
        InputError: The name cannot be imported, nothing is left to train on, a reward or a world cannot
            be imported or rebuilt, or an option is out of range.
    """
    target, inside = Path(path), [Path(f) for f in files]
    check_name(name)
    _check_options(holdout, band, max_turns, inside)
    _check_target(target, name, overwrite)
    card = {
        "format": 1, "name": name, "version": version, "description": description,
        "reward": _reward_of(reward, inside), "max_turns": max_turns, "on_cut": scoring.check_cut(on_cut),
        "world": None if world is None else references.write(world, "world", inside),
        "execute": None if execute is None else references.write(execute, "execute", inside),
        "files": [f.name for f in inside],
        "dependencies": list(dependencies),
    }  # fmt: skip
    columns.check_dataset(source, "export_environment")
    needed = ["task_id", "messages", *(["reward"] if band is not None else [])]
    columns.check_columns(source, needed, "export_environment")
    solve = None if solution is None else _callable(solution, inside)
    groups = _grouped(source)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / name
        package.copy_files(inside, folder)
        tasks, contexts = _tasks(groups)
        env = Environment(
            folder, {**card, "contexts": contexts, "n_tasks": {"train": 0, "holdout": 0}}
        )
        _check_worlds(env, tasks)
        tasks = [solutions.with_solution(t, groups[t.id], env, solve) for t in tasks]
        checks = {t.id: env.check(t) for t in tasks}
        refused = {k: c.reason for k, c in checks.items() if not c.ok}
        sound = [t for t in tasks if t.id not in refused]
        keys = {t.id: situation_key(groups[t.id][0], split_by) for t in sound}
        rates = {t.id: t.calibration.get("pass_rate") for t in sound}
        split = split_tasks(sound, keys, rates, holdout, band, seed)
        _check_split(split, sound, refused, holdout, band)
        card |= {
            "contexts": contexts,
            "n_tasks": {"train": len(split.train), "holdout": len(split.holdout)},
            "refused": refused,
            "left_out": split.dropped,
        }
        report = _written(Path(scratch), card, split)
        _moved(Path(scratch), target)
    return ExportReport(
        target, name, len(split.train), len(split.holdout), refused, split.dropped, report
    )


def _check_options(
    holdout: float, band: tuple[float, float] | None, max_turns: int, files: Sequence[Path]
) -> None:
    if not 0 <= holdout < 1:
        raise InputError(f"holdout must lie in [0, 1); got {holdout!r}. 0.2 holds a fifth out.")
    if band is not None and not 0 <= band[0] <= band[1] <= 1:
        raise InputError(
            f"a band must be (low, high) within [0, 1]; got {band!r}. Pass band=None to keep every task."
        )
    if isinstance(max_turns, bool) or not isinstance(max_turns, int) or max_turns < 1:
        raise InputError(f"max_turns must be a positive integer; got {max_turns!r}.")
    for file in files:
        if not file.is_file() or file.suffix != ".py" or not file.stem.isidentifier():
            raise InputError(
                f"files must be Python files with importable names; got {str(file)!r}. Check the path."
            )


def _check_target(target: Path, name: str, overwrite: bool) -> None:
    if target.is_file() or (target.is_dir() and any(target.iterdir()) and not overwrite):
        raise InputError(
            f"path must be a new or an empty folder; {str(target)!r} holds something. "
            "Pass another path, or overwrite=True to replace an environment of this name."
        )
    if (
        overwrite
        and target.is_dir()
        and any(target.iterdir())
        and not (target / name / CARD).is_file()
    ):
        raise InputError(
            f"overwrite replaces an environment named {name!r}; {str(target)!r} holds none. "
            "Pass another path."
        )


def _reward_of(reward: Any, files: Sequence[Path]) -> Any:
    if reward is None or (isinstance(reward, (list, tuple)) and not reward):
        raise InputError(
            f"an environment needs a reward; got {reward!r}. Pass a verifier, or leave it out for the "
            "checklist of simulated tasks."
        )
    if isinstance(reward, (list, tuple)):
        raise InputError(
            f"reward must be one judge; got {len(reward)} of them. Mix them with wai.Weighted((a, 2), (b, 1))."
        )
    return references.write(reward, "reward", files)


def _callable(given: Any, files: Sequence[Path]) -> Callable[..., Any]:
    """Take a function as it is: a solution is computed now, and need not be imported again."""
    if callable(given):
        return given  # type: ignore[no-any-return]
    return references.read(references.write(given, "solution", files), None, "solution")


def _grouped(source: Dataset) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    names = [n for n in source.column_names if n not in ("token_logprobs", "judge_meta")]
    for batch in columns.batches(source.select_columns(names)):
        for values in zip(*batch.values(), strict=True):
            record = schema.to_record(dict(zip(batch, values, strict=True)))
            groups.setdefault(str(record["task_id"]), []).append(record)
    if not groups:
        raise InputError(
            "an environment needs tasks; the dataset has no rows. Simulate and grade some first."
        )
    return groups


def _tasks(
    groups: Mapping[str, Sequence[Mapping[str, Any]]],
) -> tuple[list[EnvironmentTask], list[dict[str, Any]]]:
    contexts: dict[str, dict[str, Any]] = {}
    order: list[str] = []
    made = []
    for task_id, rows in groups.items():
        first = rows[0]
        prompt = solutions.prompt_of(first)
        system = "\n\n".join(m["content"] for m in prompt if m["role"] == "system")
        shared = {"system_prompt": system, "tools": list(first.get("tools") or [])}
        key = schema.dumps(schema.plain(shared, "tools"))
        if key not in contexts:
            contexts[key] = shared
            order.append(key)
        given = [r.get("reward") for r in rows]
        rewards = [r for r in given if r is not None and not math.isnan(r)]
        said = [m for m in prompt if m["role"] != "system"]
        head = [{"role": "system", "content": system}] if system else []
        made.append(
            EnvironmentTask(
                task_id, "train", (*head, *said), tuple(shared["tools"]), order.index(key),
                first.get("situation"), first.get("world"), dict(first.get("privileged") or {}), None,
                {"attempts": len(rewards), "pass_rate": sum(rewards) / len(rewards) if rewards else None},
            )
        )  # fmt: skip
    return made, [contexts[k] for k in order]


def _check_worlds(env: Environment, tasks: Sequence[EnvironmentTask]) -> None:
    """Build every world once: one that cannot be rebuilt here cannot be rebuilt by a trainer."""
    for task in tasks:
        if task.tools and task.world is None and not env.card["world"] and not env.card["execute"]:
            raise InputError(
                f"every task with tools needs a world; the rows of task {task.id!r} have none. Export what "
                "`simulate` made, or pass execute= or world=."
            )
        try:
            world = env.world(task)
        except Exception as error:
            raise InputError(
                f"the world of every task must be rebuilt from its row; that of {task.id!r} failed with "
                f"{type(error).__name__}: {error}. Pass rows with their world, or world=."
            ) from error
        if not callable(getattr(world, "call", None)) or not hasattr(world, "log"):
            raise InputError(
                f"world must return an object with `call` and `log`; for task {task.id!r} it returned "
                f"{type(world).__name__}. Return a wai.World, or one of your own."
            )


def _check_split(
    split: Split, sound: Sequence[Any], refused: Mapping[str, str], holdout: float, band: Any
) -> None:
    if not sound:
        task, why = next(iter(refused.items()))
        raise InputError(
            f"an environment needs tasks whose solution earns 1 and on which doing nothing does not; all "
            f"{len(refused)} are refused, first {task!r}: {why}. Pass solution=, or another reward."
        )
    if not split.train:
        raise InputError(
            f"no train tasks: none of {len(sound)} sound tasks is left in the band {band!r} after {holdout:g} "
            "of them were held out. Attempts that all earn the same teach nothing; roll out more attempts, widen "
            "band=, or pass band=None."
        )


def _written(root: Path, card: Mapping[str, Any], split: Split) -> dict[str, float | None]:
    """Write data and card, measure the policies on what was written, and write the rest."""
    folder = root / str(card["name"])
    package.write_data(folder, card, split.train, split.holdout)
    env = Environment(folder, card)
    earned = env.policies("holdout" if split.holdout else "train")
    package.write_project(root, env, earned)
    return earned


def _moved(made: Path, target: Path) -> None:
    """Put the finished package in its place; what was there before is gone only then."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(made, target)
