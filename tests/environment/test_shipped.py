"""The environments of `envs/`: sound, private, made again by their recipes, and run by the real commands."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import whileai_hf as wai
from whileai_hf import schema

pytestmark = pytest.mark.filterwarnings("ignore")

ROOT = Path(__file__).parents[2]
NAMES = sorted(p.name for p in (ROOT / "envs").iterdir() if (p / "pyproject.toml").is_file())
NEEDS = {"bfcl_state": "bfcl_eval"}


def shipped(name):
    if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is not installed")
    return wai.load_environment(ROOT / "envs" / name)


def test_there_are_three():
    assert {"support_desk", "bfcl_state", "inbox_injection"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_task_is_sound(name):
    report = shipped(name).validate()
    assert report.ok, report
    assert len(report.checks) >= 30


@pytest.mark.parametrize("name", NAMES)
def test_policies_that_do_not_try_earn_what_the_readme_says(name):
    env = shipped(name)
    readme = (ROOT / "envs" / name / "README.md").read_text()
    for policy, earned in env.policies("holdout").items():
        assert f"| {policy} | {earned:.2f} |" in readme
    assert env.policies("holdout")["does nothing"] == 0
    assert env.policies("holdout")["calls everything"] == 0


def test_who_always_refuses_earns_the_share_of_tasks_to_refuse():
    env = shipped("support_desk")
    tasks = env.tasks("holdout")
    share = sum(t.privileged["expected"] == "refuse" for t in tasks) / len(tasks)
    assert env.policies("holdout")["always refuses"] == pytest.approx(share, abs=0.1)


@pytest.mark.parametrize("name", NAMES)
def test_no_prompt_and_no_schema_holds_what_only_the_scorer_may_read(name):
    env = shipped(name)
    for split in ("train", "holdout"):
        for task in env.tasks(split):
            shown = schema.dumps([list(task.prompt), list(task.tools)])
            names = {t["function"]["name"] for t in task.tools}
            for text in set(strings(task.privileged)) - names:
                assert len(text) < 12 or text in task.ask or text not in shown, (task.id, text)
    assert set(env.dataset("train").column_names) == {"prompt", "task_id", "environment"}


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_environment_is_what_its_recipe_makes(name, tmp_path):
    shipped(name)
    script = ROOT / "recipes" / "05-export" / f"{name}_env.py"
    subprocess.run(
        [sys.executable, "-W", "ignore", script, tmp_path / name], check=True, capture_output=True
    )
    for file in ("data/train.jsonl", "data/holdout.jsonl", "environment.json"):
        made = tmp_path / name / name / file
        assert made.read_text() == (ROOT / "envs" / name / name / file).read_text(), file


@pytest.mark.parametrize("name", NAMES)
def test_the_prime_rl_configuration_names_what_verifiers_accepts(name, monkeypatch):
    vf = pytest.importorskip("verifiers.v1")
    monkeypatch.syspath_prepend(str(ROOT / "envs" / name))
    shipped(name)
    config = tomllib.loads((ROOT / "envs" / name / "configs" / "prime_rl.toml").read_text())
    for entry in (config["orchestrator"]["env"][0], config["orchestrator"]["eval"]["env"][0]):
        given = {k: v for k, v in entry.items() if k in ("taskset", "agent")}
        resolved = vf.resolve_env_config(given)
        assert resolved.taskset.split in ("train", "holdout")
        assert resolved.agent.runtime.type == "subprocess"


def run(command, path, cwd, **more):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(path), str(ROOT)]), **more}
    done = subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-3000:])
    return done


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_vf_eval_resume_replay_and_validate_run_for_real(name, tmp_path):
    env, path, tools = shipped(name), ROOT / "envs" / name, Path(sys.executable).parent
    dist = name.replace("_", "-")
    with env.reference_server() as server:
        for split in ("train", "holdout"):
            run(
                [tools / "vf-eval", dist, "-m", "reference", "--client.base-url", server.url, "--client.api-key-var", "NO_KEY",
                 "--env.taskset.split", split, "-n", "2", "-r", "4", "--no-push", "--no-rich", "-o", "runs", "--run.name", split],
                path, tmp_path,
            )  # fmt: skip
            rows = wai.rollouts_from_traces(tmp_path / "runs" / split, env=env)
            assert rows["reward"][:] == [1.0] * 8
            assert sorted(rows["repeat"][:]) == [0, 0, 1, 1, 2, 2, 3, 3]
        assert "2 tasks" in str(wai.pass_at(rows))
        traces = tmp_path / "runs" / "holdout" / "traces.jsonl"
        traces.write_text("".join(traces.read_text().splitlines(keepends=True)[:5]))
        config = next((tmp_path / "runs" / "holdout").rglob("eval.json"))
        run([tools / "vf-eval", "@", str(config), "--resume"], path, tmp_path)
        assert len(traces.read_text().splitlines()) == 8
    run([tools / "vf-replay", "runs/holdout", "--no-rich", "-o", "again"], path, tmp_path)
    again = wai.rollouts_from_traces(tmp_path / "again", env=env)
    assert again["reward"][:] == [1.0] * 8
    for request in server.requests:
        shown = json.dumps(request["messages"])
        assert "privileged" not in shown
        assert "calibration" not in shown
    run(
        [tools / "vf-validate", dist, "--taskset.split", "holdout", "--runtime.type", "subprocess", "--no-rich", "-n", "4", "-o", "val"],
        path, tmp_path,
    )  # fmt: skip
    summary = json.loads(next((tmp_path / "val").rglob("summary.json")).read_text())
    assert summary["outcomes"]["valid"] == 4, summary
