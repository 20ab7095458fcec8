"""Push and load over real HTTP: the rows come back equal, and what is private stays here."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest
from hub.fake_hub import FakeHub


@pytest.fixture
def hub():
    with FakeHub() as running:
        yield running


@pytest.fixture
def user(hub, tmp_path):
    """Run code in a fresh process with its own cache, against the stand-in."""

    def run(*code, check=True):
        env = {
            **os.environ,
            "HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1", "HF_TOKEN": "hf_test",
            "HF_HOME": str(tmp_path / "home"), "HF_HUB_DISABLE_PROGRESS_BARS": "1", "PYTHONWARNINGS": "ignore",
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", "\n".join(map(textwrap.dedent, code))],
            capture_output=True,
            text=True,
            env=env,
            cwd=tmp_path,
        )
        assert not check or done.returncode == 0, done.stderr[-3000:]
        return done.stdout.strip() if check else done

    return run


MAKE = """
    import json, whileai_hf as wai
    call = {"role": "assistant", "content": "", "tool_calls": [
        {"type": "function", "function": {"name": "pay", "arguments": {"amount": 1 / 3, "to": None}}}]}
    tool = {"type": "function", "function": {"name": "pay", "parameters": {"type": "object", "properties": {}}}}
    made = wai.rows(["a", "a", "b", "b"], [[call], "x", "y", "z"], reward=[1, 0, 1, 1], references=["SECRET-77"] * 4, tools=[tool])
"""


def test_pushed_rollouts_load_back_equal_without_what_a_judge_reads(user, hub):
    said = user(MAKE, """
    print(made.push("me/refunds"))
    back = wai.load("me/refunds")
    kept = [c for c in made.column_names if c not in ("world", "privileged")]
    assert back.column_names == kept, back.column_names
    assert [{c: r[c] for c in kept} for r in made.records()] == list(back.records())
    assert type(back) is wai.Rollouts
    print(wai.pass_at(back))
    """)  # fmt: skip
    assert "4 rollouts in me/refunds (train), without world, privileged" in said
    assert "pass@1" in said
    assert not any(b"SECRET-77" in data for data in hub.repos["me/refunds"].values())


def test_load_dataset_alone_reads_what_was_pushed(user):
    user(MAKE, """
    made.push("me/refunds", privileged=True, split="test")
    from datasets import load_dataset
    back = load_dataset("me/refunds", split="test")
    assert back.features == made.features
    assert list(back) == list(made)
    """)  # fmt: skip


def test_the_card_says_what_was_measured_and_keeps_the_features(user, hub):
    user(MAKE, 'made.push("me/refunds", license="apache-2.0")')
    card = hub.repos["me/refunds"]["README.md"].decode()
    assert "whileai-hf" in card.split("---")[1]
    assert "license: apache-2.0" in card
    assert "json" in card.split("---")[1]
    assert "pass@1" in card
    assert 'load_dataset("me/refunds", split="train")' in card
    assert "Withheld" in card


def test_rows_without_rewards_are_refused_before_anything_is_sent(user, hub):
    done = user('import whileai_hf as wai\nwai.rows(["a"], ["x"]).push("me/bad")', check=False)
    assert "GuardError: publishing needs a reward on every rollout; 1 of 1 have none" in done.stderr
    assert not [path for _, path in hub.requests if "create" in path]
    user('import whileai_hf as wai\nwai.rows(["a"], ["x"]).push("me/bad", gate=False)')
    assert "me/bad" in hub.repos


def test_the_folder_of_a_training_run_is_uploaded_with_its_card(user, hub):
    user("""
    import types
    import whileai_hf as wai
    from whileai_hf.training.reporter import RunReporter
    reporter = RunReporter("report", push="me/run")
    state = types.SimpleNamespace(is_world_process_zero=True, global_step=0, max_steps=1)
    args = types.SimpleNamespace(output_dir="out", to_dict=lambda: {"learning_rate": 1e-3})
    reporter.on_train_begin(args, state, None)
    reporter.on_log(args, state, None, logs={"loss": 0.5})
    reporter.on_train_end(args, state, None)
    assert reporter.folder.problems == [], reporter.folder.problems
    """)
    assert {"README.md", "metrics.jsonl", "run.json"} <= set(hub.repos["me/run"])
    assert b"learning_rate" in hub.repos["me/run"]["README.md"]
