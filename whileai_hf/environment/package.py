"""The files of an exported environment: data, a card, thin adapters, a README and tests."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from whileai_hf.environment import references
from whileai_hf.environment.environment import CARD, Environment
from whileai_hf.environment.tasks import EnvironmentTask, write_lines

#: Oldest verifiers whose classes (v1) and whose `load_environment` (v0) the package serves.
_VERIFIERS = "verifiers>=0.3.1,<0.5"

_INIT = Template('''\
"""$title

verifiers scans `__all__` for one Taskset, one Harness and one Env; they are made on first use, so that the
tasks, the world and the reward work without verifiers.
"""

from typing import Any

from $name.core import ENVIRONMENT

__all__ = ["ENVIRONMENT", "Env", "Harness", "Taskset", "load_environment"]


def __getattr__(name: str) -> Any:
    if name in ("Env", "Harness", "Taskset"):
        return getattr(ENVIRONMENT.verifiers(), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load_environment(split: str = "train", **options: Any) -> Any:
    """Load the environment for verifiers below 0.4; `split` is "train" or "holdout"."""
    return ENVIRONMENT.verifiers_v0(split, **options)
''')

_CORE = '''\
"""Tasks, world, tool schemas and reward, read from the files beside this one."""

from pathlib import Path

import whileai_hf as wai

ENVIRONMENT = wai.load_environment(Path(__file__).parent)
'''

_TRL = Template('''\
"""The environment for GRPOTrainer, without verifiers.

trainer = GRPOTrainer(..., train_dataset=ENVIRONMENT.dataset("train"), environment_factory=environment_factory,
                      reward_funcs=[ENVIRONMENT.reward_func()])
ENVIRONMENT.show_tools(trainer)          # render the verbatim schemas
"""

import whileai_hf as wai
from $name.core import ENVIRONMENT

environment_factory = wai.trl_environment(ENVIRONMENT)
''')

_PYPROJECT = Template("""\
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"

[project]
name = "$dist"
version = "$version"
description = $description
readme = "README.md"
requires-python = ">=3.11"
license = "Apache-2.0"
tags = ["tool-use", "multi-turn", "train", "eval"]
keywords = ["environment", "multi-turn", "tool-use", "verifiers"]
dependencies = $dependencies

[project.optional-dependencies]
test = ["pytest>=8"]

[tool.hatch.build.targets.wheel]
packages = ["$name"]
""")

_TESTS = Template('''\
"""The environment proves itself offline: its solutions earn the full reward, and nothing private is shown."""

import asyncio
import json

import pytest

from $name import ENVIRONMENT

TASKS = ENVIRONMENT.tasks("train") + ENVIRONMENT.tasks("holdout")


def test_the_solution_of_every_task_earns_one_and_doing_nothing_does_not():
    report = ENVIRONMENT.validate()
    assert report.ok, report


def test_no_task_is_in_both_splits():
    assert len({task.id for task in TASKS}) == len(TASKS)


def test_verifiers_gives_the_solutions_their_reward_and_shows_the_schemas_as_they_are():
    vf = pytest.importorskip("verifiers.v1")
    with ENVIRONMENT.reference_server() as server:
        config = vf.resolve_env_config({"taskset": {"id": "$dist"}})
        env = vf.load_environment(config)
        client = vf.EvalClientConfig(base_url=server.url, api_key_var="NO_KEY")

        async def play():
            async with env.serving():
                tasks = list(env.taskset)[:4]
                return [await env.run_episode(t, vf.ModelContext(model="reference", client=client)) for t in tasks]

        for episode in asyncio.run(play()):
            (trace,) = episode.traces
            assert trace.ok, trace.errors
            assert trace.reward == 1.0
        for request in server.requests:
            tools = [task.tools for task in TASKS]
            assert tuple(request.get("tools") or ()) in tools
            assert "solution" not in json.dumps(request.get("metadata") or "")
''')

_README = Template("""\
# $dist

### Overview

- **Environment ID**: `$dist`
- **Short description**: $title
- **Tags**: tool-use, multi-turn, train, eval

### Datasets

- **Primary dataset**: the tasks in `$name/data/`, written by `whileai_hf.export_environment`
- **Split sizes**: train $n_train, holdout $n_holdout; no situation is in both, and no ask of one is nearly one of the other
- **Left out**: $n_refused unsound tasks, $n_left more by band or likeness

### Task

- **Type**: multi-turn tool use over $tools
- **World**: $world
- **Reward**: `$reward`, in [0, 1], the same through `vf-eval`, TRL and `simulate` with `grade`

### Quickstart

```bash
pip install -e .
vf-eval $dist -m MODEL --client.base-url URL --client.api-key-var VAR \\
    --env.taskset.split holdout -n 8 -r 4 --no-push --no-rich             # verifiers >= 0.4
vf-eval $dist -m MODEL -b URL -k VAR -a '{"split": "holdout"}' -n 8 -r 4   # verifiers < 0.4
vf-validate $dist --runtime.type subprocess --no-rich                     # no model: every task is sound
```

```python
import whileai_hf as wai
from $name import ENVIRONMENT
from trl import GRPOConfig, GRPOTrainer

trainer = GRPOTrainer("Qwen/Qwen3-0.6B", train_dataset=ENVIRONMENT.dataset("train"), reward_funcs=[ENVIRONMENT.reward_func()],
                      environment_factory=wai.trl_environment(ENVIRONMENT), args=GRPOConfig())
ENVIRONMENT.show_tools(trainer)      # the schemas verbatim: TRL reads them off signatures otherwise
trainer.train()
```

prime-rl and Hosted Training read `configs/prime_rl.toml`; it is checked against the configuration classes of verifiers,
and was not run, because both need GPUs.

### Environment arguments

| verifiers >= 0.4 | verifiers < 0.4 | default | meaning |
| --- | --- | --- | --- |
| `--env.taskset.split` | `split` | `train` | `train` or `holdout` |
| `--env.taskset.num-tasks` | `num_tasks` | all | tasks to load |
| `--env.agent.max-turns` | `max_turns` | $max_turns | agent turns after which a rollout is cut |

### Metrics

| metric | weight | meaning |
| --- | --- | --- |
| `reward` | 1 | $reward_line |
| `n_calls` | 0 | tool calls made |
| `judge_ok` | 0 | whether the rollout could be judged |
| `truncated` | 0 | whether a limit cut it; a cut rollout $cut_line |
| `trace_clean` | 0 | whether every call was readable, named a tool and was answered |

A rollout that cannot be judged, or whose endpoint failed, is an error of the rollout and no zero.

### What policies that do not try earn

| policy | mean reward on the $measured tasks |
| --- | --- |
$policies

Why it depends on `whileai-hf`: world, judge and loop are the library's, so that a fix there reaches every environment and the
doors stay equal; the base install brings no torch.
""")

_PRIME_RL = Template("""\
# GRPO on this environment with prime-rl, or as the environment of a Hosted-Training run. Checked against the
# configuration classes of verifiers by the tests of whileai_hf; not run, because it needs GPUs.
max_steps = 100
seq_len = 4096

[model]
name = "Qwen/Qwen3-0.6B"

[orchestrator]
batch_size = 128
rollouts_per_example = 8

[orchestrator.sampling]
max_tokens = 512

[[orchestrator.env]]
id = "$dist"

[orchestrator.env.taskset]
id = "$dist"
split = "train"

[orchestrator.env.agent]
max_turns = $max_turns

[orchestrator.env.agent.runtime]
type = "subprocess"

[orchestrator.eval]
interval = 20
num_examples = $n_holdout
rollouts_per_example = 4

[[orchestrator.eval.env]]
id = "$dist"

[orchestrator.eval.env.taskset]
id = "$dist"
split = "holdout"
""")


def copy_files(files: Sequence[Path], folder: Path) -> None:
    """Copy the files that travel inside the package."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copyfile(file, folder / file.name)


def write_data(
    folder: Path, card: Mapping[str, Any], train: Sequence[EnvironmentTask], holdout: Sequence[EnvironmentTask]
) -> None:  # fmt: skip
    """Write the tasks and the card."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    for split, tasks in (("train", train), ("holdout", holdout)):
        text = write_lines([t.row() for t in tasks])
        (folder / "data" / f"{split}.jsonl").write_text(text, encoding="utf-8")
    text = json.dumps(card, indent=1, ensure_ascii=False)
    (folder / CARD).write_text(text + "\n", encoding="utf-8")


def write_project(root: Path, env: Environment, policies: Mapping[str, float | None]) -> None:
    """Write everything that is made of the card: code, project file, README, tests, a training configuration."""
    facts = _facts(env, policies)
    files = {
        f"{env.name}/__init__.py": _INIT, f"{env.name}/core.py": Template(_CORE),
        f"{env.name}/trl_env.py": _TRL, "pyproject.toml": _PYPROJECT, "README.md": _README,
        "tests/test_environment.py": _TESTS, "configs/prime_rl.toml": _PRIME_RL,
    }  # fmt: skip
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.substitute(facts), encoding="utf-8")


def _facts(env: Environment, policies: Mapping[str, float | None]) -> dict[str, Any]:
    card = env.card
    names = list(dict.fromkeys(t["function"]["name"] for c in env.contexts for t in c["tools"]))
    shown = ", ".join(f"`{n}`" for n in names[:12]) + (
        f" and {len(names) - 12} more" if names[12:] else ""
    )
    title = (
        card["description"] or f"{env.name.replace('_', ' ')}: tasks for an agent that calls tools."
    )
    dependencies = [f"whileai-hf>={references.version()}", _VERIFIERS, *card["dependencies"]]
    earned = [f"| {k} | {'not judged' if v is None else f'{v:.2f}'} |" for k, v in policies.items()]
    return {
        "name": env.name, "dist": env.name.replace("_", "-"), "version": card["version"], "title": title,
        "description": json.dumps(title, ensure_ascii=False), "dependencies": json.dumps(dependencies),
        "n_train": card["n_tasks"]["train"], "n_holdout": card["n_tasks"]["holdout"],
        "n_refused": len(card["refused"]), "n_left": len(card["left_out"]), "tools": shown or "no tool",
        "world": _world_line(card), "reward": references.describe(card["reward"]),
        "reward_line": f"what `{references.describe(card['reward'])}` says of the rollout",
        "max_turns": env.max_turns, "policies": "\n".join(earned),
        "measured": "held-out" if card["n_tasks"]["holdout"] else "train",
        "cut_line": {"zero": "earns 0", "null": "is not judged", "score": "is judged as it stands"}[env.on_cut],
    }  # fmt: skip


def _world_line(card: Mapping[str, Any]) -> str:
    if card["world"]:
        return f"`{references.describe(card['world'])}` builds it for each rollout"
    if card["execute"]:
        return (
            f"`{references.describe(card['execute'])}` answers the calls; faults come on schedule"
        )
    return "simulated, seeded, with faults on a schedule; rebuilt from each task's specification"
