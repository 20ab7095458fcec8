"""An exported environment is a package with sound tasks; what cannot work is refused at export."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from reports import public_reports

import whileai_hf as wai
from whileai_hf import schema

pytestmark = pytest.mark.filterwarnings("ignore")


def plain_rows(prompts, reward=None, **columns):
    """Rows of text tasks, each with its answer as reference."""
    n = len(prompts)
    answers = [f"answer {i}" for i in range(n)]
    return with_references(
        wai.rows(prompts, answers, reward=reward or [i % 2 for i in range(n)]), answers, **columns
    )


def with_references(data, answers, **columns):
    """Rows with their references, and with further columns."""
    more = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    records = [
        {**record, "privileged": {"reference": answer}, **(more[i] if more else {})}
        for i, (record, answer) in enumerate(zip(data.records(), answers, strict=True))
    ]
    return schema.to_dataset(records)


def test_the_package_holds_what_it_promises(exported, env):
    path = exported.path
    assert exported.n_train > 0
    assert exported.n_holdout > 0
    project = tomllib.loads((path / "pyproject.toml").read_text())["project"]
    assert project["name"] == "desk-case"
    assert any(d.startswith("verifiers>=0.3.1") for d in project["dependencies"])
    assert "vf-eval desk-case" in (path / "README.md").read_text()
    for split, n in (("train", exported.n_train), ("holdout", exported.n_holdout)):
        assert len(env.tasks(split)) == n


def test_every_task_is_sound_and_the_report_names_those_that_are_not(exported, env):
    assert env.validate().ok
    written = {t.id for s in ("train", "holdout") for t in env.tasks(s)}
    assert not written & set(exported.refused)
    assert all(exported.refused.values())


def test_no_situation_is_on_both_sides(rollouts, env):
    cells = {s: {t.situation["cell"] for t in env.tasks(s)} for s in ("train", "holdout")}
    assert not cells["train"] & cells["holdout"]


def test_train_is_banded_and_the_hold_out_is_not(rollouts, tmp_path):
    wai.export_environment(rollouts, tmp_path / "a", name="banded", band=(0.3, 0.8))
    env = wai.load_environment(tmp_path / "a")
    assert all(0.3 <= t.calibration["pass_rate"] <= 0.8 for t in env.tasks("train"))
    assert any(not 0.3 <= t.calibration["pass_rate"] <= 0.8 for t in env.tasks("holdout"))


def test_the_same_rows_make_the_same_package(rollouts, exported, tmp_path):
    wai.export_environment(rollouts, tmp_path / "b", name="desk_case", band=(0.0, 1.0))
    for file in sorted(
        p for p in exported.path.rglob("*") if p.is_file() and "__pycache__" not in p.parts
    ):
        again = tmp_path / "b" / file.relative_to(exported.path)
        assert again.read_bytes() == file.read_bytes(), file.name


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("support-desk", "'support_desk'"), ("Support", "'support'"), ("2nd", "Python module"), ("harbor", "verifiers"),
        ("openenv", "verifiers"), ("datasets", "installed module"), ("json", "belongs to Python"), ("", "Python module"),
    ],
)  # fmt: skip
def test_a_name_that_cannot_be_imported_is_refused_with_one_that_can(
    rollouts, tmp_path, name, says
):
    with pytest.raises(wai.InputError, match=says):
        wai.export_environment(rollouts, tmp_path / "x", name=name)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"reward": lambda row: 1}, "module-level function"),
        ({"reward": "no_such_module_here:reward"}, "must be importable"),
        ({"reward": "whileai_hf.verify.goal:nothing"}, "must be importable"),
        ({"reward": []}, "needs a reward"),
        ({"reward": None}, "needs a reward"),
        ({"reward": [wai.GoalReached()] * 2}, "Weighted"),
        ({"reward": 3}, "reward must be"),
        ({"band": (0.9, 0.1)}, "band"),
        ({"band": (0.51, 0.52)}, "no train tasks"),
        ({"holdout": 1.0}, "holdout"),
        ({"max_turns": 0}, "max_turns"),
        ({"on_cut": "maybe"}, "on_cut"),
        ({"split_by": "situation.nothing"}, "split_by"),
        ({"world": "whileai_hf.world.world:as_text"}, "world"),
        ({"files": ["nowhere.py"]}, "files"),
    ],
)  # fmt: skip
def test_what_a_trainer_would_stumble_over_is_refused_here(rollouts, tmp_path, options, says):
    given = {"reward": wai.GoalReached(), **options}
    with pytest.raises(wai.InputError, match=says):
        wai.export_environment(rollouts, tmp_path / "x", name="refused_here", **given)
    assert not (tmp_path / "x").exists()


def test_a_world_that_cannot_be_rebuilt_is_refused_by_its_task(rollouts, tmp_path):
    lost = rollouts.remove_columns(["world"])
    with pytest.raises(wai.InputError, match="needs a world"):
        wai.export_environment(lost, tmp_path / "x", name="refused_here", reward=wai.GoalReached())
    records = list(rollouts.records())
    for record in records:
        record["world"] = {**record["world"], "state": "upside down"}
    broken = schema.to_dataset(records)
    with pytest.raises(wai.InputError, match="rebuilt from its row"):
        wai.export_environment(
            broken, tmp_path / "x", name="refused_here", reward=wai.GoalReached()
        )


def test_a_folder_that_holds_something_is_left_alone(rollouts, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(wai.InputError, match=r"folder|overwrite"):
            wai.export_environment(
                rollouts,
                tmp_path,
                name="refused_here",
                reward=wai.GoalReached(),
                overwrite=overwrite,
            )
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_ungraded_rows_need_a_judge_or_no_band(rollouts, tmp_path):
    ungraded = rollouts.remove_columns(["reward"])
    with pytest.raises(wai.SchemaError, match="grade"):
        wai.export_environment(
            ungraded, tmp_path / "x", name="ungraded_desk", reward=wai.GoalReached()
        )
    report = wai.export_environment(
        ungraded, tmp_path / "x", name="ungraded_desk", reward=wai.GoalReached(), band=None
    )
    assert report.n_train > 0


def test_text_tasks_without_tools_are_an_environment_too(tmp_path):
    data = plain_rows([f"question number {i} about {'xyzuvw'[i % 6] * 3}{i}" for i in range(12)])
    report = wai.export_environment(
        data, tmp_path / "x", name="answers_only", reward=wai.ExactMatch(), band=None
    )
    env = wai.load_environment(tmp_path / "x")
    assert report.n_train + report.n_holdout == 12
    assert env.validate().ok


def test_a_reward_in_a_file_of_ones_own_travels_along(tmp_path):
    own = tmp_path / "own_reward.py"
    own.write_text("def reward(row):\n    return float('answer' in row['final_text'])\n")
    data = plain_rows([f"say something for {i} {'abcdefgh'[i]}" for i in range(8)])
    wai.export_environment(
        data,
        tmp_path / "x",
        name="own_reward_env",
        reward=".own_reward:reward",
        files=[own],
        band=None,
    )
    assert (tmp_path / "x" / "own_reward_env" / "own_reward.py").exists()
    own.unlink()
    assert wai.load_environment(tmp_path / "x").validate().ok


def test_a_mixture_is_written_and_read_with_its_weights(tmp_path):
    data = plain_rows([f"question {i} of the {'abcdefgh'[i]} kind" for i in range(8)])
    mixed = wai.Weighted((wai.ExactMatch(), 3), (wai.Includes(), 1))
    wai.export_environment(data, tmp_path / "x", name="mixed_env", reward=mixed, band=None)
    env = wai.load_environment(tmp_path / "x")
    task = env.tasks()[0]
    answer = task.privileged["reference"]
    said = [{"role": "assistant", "content": f"{answer} and more"}]
    assert env.score(task, [*task.prompt, *said]).reward == pytest.approx(0.25)


def test_policies_that_do_not_try_are_measured_and_shown(exported, env):
    measured = env.policies("holdout")
    assert measured == exported.policies
    assert measured["does nothing"] == 0
    readme = (exported.path / "README.md").read_text()
    assert f"| does nothing | {measured['does nothing']:.2f} |" in readme


def test_nothing_private_is_in_a_prompt_or_a_schema(env):
    for split in ("train", "holdout"):
        for row in env.dataset(split):
            assert set(row) == {"prompt", "task_id", "environment"}
        for task in env.tasks(split):
            shown = schema.dumps([list(task.prompt), list(task.tools)])
            assert task.privileged["outcome"] not in shown


def test_one_task_is_enough_and_none_is_not(tmp_path):
    data = plain_rows(["a single question"])
    report = wai.export_environment(
        data, tmp_path / "x", name="single_task", reward=wai.ExactMatch(), band=None
    )
    assert (report.n_train, report.n_holdout) == (1, 0)
    assert wai.load_environment(tmp_path / "x").validate().ok
    with pytest.raises(wai.InputError, match="no rows"):
        wai.export_environment(data.select([]), tmp_path / "y", name="empty_env", band=None)


def test_a_function_of_the_user_answers_in_the_world(rollouts, tmp_path):
    own = tmp_path / "own_tools.py"
    own.write_text("def execute(name, arguments):\n    return {'ran': name, **arguments}\n")
    wai.export_environment(
        rollouts,
        tmp_path / "x",
        name="executed_env",
        execute=".own_tools:execute",
        files=[own],
        band=None,
    )
    env = wai.load_environment(tmp_path / "x")
    task = next(t for t in env.tasks() if t.world["goal"] and not t.world["faults"])
    goal = task.world["goal"]
    assert env.world(task).call(goal["tool"], goal["arguments"])["ran"] == goal["tool"]


# The public reports.


@pytest.mark.parametrize("case", public_reports("env"))
def test_public_report(case, rollouts, tmp_path):
    given, expected = case["input"], case["expected"]
    REPORTS[next(iter(given))](given, expected, rollouts, tmp_path)


def _reward(given, expected, rollouts, path):
    with pytest.raises(wai.InputError, match=expected["raises"].split(" ", 1)[1]):
        wai.export_environment(rollouts, path / "x", name="reported", reward=eval(given["reward"]))


def _dependency(given, expected, rollouts, path):
    wai.export_environment(
        rollouts, path / "x", name="reported", reward=wai.GoalReached(), band=None
    )
    project = tomllib.loads((path / "x" / "pyproject.toml").read_text())["project"]
    own = next(d for d in project["dependencies"] if d.startswith("whileai"))
    assert own == f"whileai-hf>={wai.__version__}"
    assert "file:" not in json.dumps(project)


def _groups(given, expected, rollouts, path):
    records = [{**r, "reward": 1.0} for r in rollouts.records()]
    with pytest.raises(wai.InputError, match=expected["raises"]):
        wai.export_environment(
            schema.to_dataset(records), path / "x", name="reported", reward=wai.GoalReached()
        )


def _reference(given, expected, rollouts, path):
    secret = given["reference"]
    asks = [f"what is the code of {'abcdefgh'[i]}?" for i in range(8)]
    data = with_references(wai.rows(asks, [secret] * 8, reward=[1] * 8), [secret] * 8)
    wai.export_environment(data, path / "x", name="reported", reward=wai.ExactMatch(), band=None)
    env = wai.load_environment(path / "x")
    for task in [*env.tasks("train"), *env.tasks("holdout")]:
        assert secret not in schema.dumps([list(task.prompt), list(task.tools)])
        assert task.privileged["reference"] == secret
    assert secret not in json.dumps(env.dataset("train")[:], default=str)


def _verifiers(given, expected, rollouts, path):
    wai.export_environment(
        rollouts, path / "x", name="reported", reward=wai.GoalReached(), band=None
    )
    project = tomllib.loads((path / "x" / "pyproject.toml").read_text())["project"]
    own = tomllib.loads((Path(wai.__file__).parents[1] / "pyproject.toml").read_text())["project"]
    floor = next(d for d in own["optional-dependencies"]["envs"] if d.startswith("verifiers"))
    assert "verifiers>=0.4" in floor
    assert any("verifiers>=0.3.1" in d for d in project["dependencies"])
    env = wai.load_environment(path / "x")
    assert env.verifiers().Taskset is env.verifiers().Taskset


def _no_reward(given, expected, rollouts, path):
    with pytest.raises(wai.InputError, match="needs a reward"):
        wai.export_environment(rollouts, path / "x", name="reported", reward=given["reward_funcs"])


def _prompts(given, expected, rollouts, path):
    others = [f"something else about item {i} {'abcdefgh'[i]}" for i in range(8)]
    data = plain_rows(
        [*given["prompts"], *others],
        situation=[given["situation"]] * 2 + [f"o{i}" for i in range(8)],
    )
    wai.export_environment(
        data, path / "x", name="reported", reward=wai.ExactMatch(), band=None, holdout=0.4
    )
    env = wai.load_environment(path / "x")
    tasks = [*env.tasks("train"), *env.tasks("holdout")]
    assert len({t.id for t in tasks}) == len(tasks)
    assert len({t.split for t in tasks if t.ask in given["prompts"]}) == 1


REPORTS = {
    "reward": _reward, "dependency": _dependency, "groups": _groups, "reference": _reference, "verifiers": _verifiers,
    "reward_funcs": _no_reward, "prompts": _prompts,
}  # fmt: skip
