"""RunReporter inside real TRL runs: plain files that load, a card that agrees with compare, nothing disturbed."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys

import pytest
import torch
from datasets import Dataset, load_dataset
from parity import monitor_testbed as bed
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

import whileai_hf as wai
from whileai_hf.training.reporter import RunReporter, group_signal
from whileai_hf.training.run_folder import RunFolder

pytestmark = pytest.mark.filterwarnings("ignore")
QUESTIONS = ["max of 4 9 2 ?", "min of 3 1 5 ?", "max of 7 7 0 ?", "min of 8 2 6 ?"] * 8
HOLDOUT = Dataset.from_dict(
    {"prompt": ["max of 1 2 3 ?", "min of 4 5 6 ?", "max of 9 8 7 ?"], "task_id": ["a", "b", "c"]}
)


def right(prompts, completions, **_):
    return [bed.gold(q, text) for q, text in zip(prompts, completions, strict=True)]


def grpo(reporter, out, **options):
    tok = bed.tokenizer()
    given = {
        "max_steps": 4,
        "per_device_train_batch_size": 8,
        "num_generations": 4,
        "max_completion_length": 8,
        "save_strategy": "no",
        **options,
    }
    return GRPOTrainer(
        model=bed.model(tok, 0), processing_class=tok, reward_funcs=[reporter.wrap(right)], callbacks=[reporter],
        train_dataset=Dataset.from_dict({"prompt": QUESTIONS}),
        args=GRPOConfig(
            output_dir=str(out), use_cpu=True, bf16=False, gradient_checkpointing=False, report_to="none", logging_steps=1,
            learning_rate=1e-3, disable_tqdm=True, **given,
        ),
    )  # fmt: skip


def test_a_run_is_written_down_and_its_card_agrees_with_compare(tmp_path):
    reporter = RunReporter(
        tmp_path / "report", holdout=HOLDOUT, reward=right, every=2, k=2, max_new_tokens=6
    )
    grpo(reporter, tmp_path / "out").train()
    folder = RunFolder(tmp_path / "report")
    assert sorted(folder.evaluations()) == [0, 2, 4]
    assert [len(rows) for rows in folder.evaluations().values()] == [6, 6, 6]
    found = folder.evaluations()
    card = (tmp_path / "report" / "README.md").read_text()
    assert str(wai.compare(found[0], found[4])) in card
    assert "| `num_generations` | 4 |" in card
    assert (tmp_path / "report" / "holdout.png").exists()
    logged = folder.metrics()
    assert any("report/zero_spread_groups" in row for row in logged)
    assert any("loss" in row for row in logged)
    assert any("holdout/pass@1_low" in row for row in logged)
    back = load_dataset(
        "json", data_files=str(tmp_path / "report" / "completions.jsonl"), split="train"
    )
    assert len(folder.rollouts()) == len(back)
    assert len(back) == 4 * 8
    assert set(back["judge"]) == {"right"}
    assert json.loads((tmp_path / "report" / "run.json").read_text())["versions"]["trl"]


def test_sampling_leaves_the_run_as_it_was(tmp_path):
    tok = bed.tokenizer()
    net = bed.model(tok, 0).train()
    tok.padding_side, before = "right", torch.random.get_rng_state()
    from whileai_hf.training.sampling import sample

    first = sample(
        net, tok, ["max of 1 2 ?"], k=3, max_new_tokens=4, temperature=1.0, batch_size=2, seed=0
    )
    assert torch.equal(torch.random.get_rng_state(), before)
    assert tok.padding_side == "right"
    assert net.training
    assert [len(texts) for texts in first] == [3]
    assert (
        sample(
            net, tok, ["max of 1 2 ?"], k=3, max_new_tokens=4, temperature=1.0, batch_size=2, seed=0
        )
        == first
    )


def test_the_training_is_the_same_with_and_without_held_out_looks(tmp_path):
    losses = []
    for holdout in (None, HOLDOUT):
        reporter = RunReporter(
            tmp_path / f"r{holdout is None}",
            holdout=holdout,
            reward=right if holdout else None,
            every=1,
            k=2,
            max_new_tokens=4,
        )
        run = grpo(reporter, tmp_path / "out", seed=3)
        run.train()
        losses.append([row["loss"] for row in run.state.log_history if "loss" in row])
    assert losses[0] == losses[1]


def test_a_full_disk_and_a_raising_reward_end_nothing(tmp_path):
    (tmp_path / "file").write_text("in the way")

    def broken(**_):
        raise RuntimeError("judge is down")

    reporter = RunReporter(
        tmp_path / "file" / "report", holdout=HOLDOUT, reward=broken, every=2, k=1, max_new_tokens=2
    )
    run = grpo(reporter, tmp_path / "out")
    run.train()
    assert run.state.global_step == 4
    assert any("judge is down" in problem for problem in reporter.folder.problems)


TRACKED = """
import sys, warnings
warnings.simplefilter("ignore")
from whileai_hf.training.run_folder import RunFolder
with RunFolder(sys.argv[1], project="tiny") as run:
    run.log({"loss": 0.5}, 1)
    run.log({"loss": 0.25}, 2)
run.log({"loss": 0.1}, 3)
print(run.problems)
"""


def test_metrics_go_to_trackio(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", TRACKED, str(tmp_path / "run")], capture_output=True, text=True, check=True,
        env={**os.environ, "TRACKIO_DIR": str(tmp_path / "trackio")},
    )  # fmt: skip
    assert done.stdout.strip().endswith("[]")
    with sqlite3.connect(tmp_path / "trackio" / "tiny.db") as db:
        found = db.execute("select step, metrics from metrics order by step").fetchall()
    assert [(step, json.loads(values)) for step, values in found] == [
        (1, {"loss": 0.5}),
        (2, {"loss": 0.25}),
    ]


def test_it_writes_metrics_of_an_sft_run(tmp_path):
    tok = bed.tokenizer()
    reporter = RunReporter(tmp_path / "report")
    rows = Dataset.from_dict({"input_ids": [[5, 6, 7, 1]] * 8, "labels": [[-100, 6, 7, 1]] * 8})
    SFTTrainer(
        model=bed.model(tok, 0), processing_class=tok, train_dataset=rows, callbacks=[reporter],
        args=SFTConfig(output_dir=str(tmp_path / "out"), max_steps=2, use_cpu=True, bf16=False, gradient_checkpointing=False, report_to="none",
                       logging_steps=1, save_strategy="no", disable_tqdm=True),
    ).train()  # fmt: skip
    assert any("loss" in row for row in RunFolder(tmp_path / "report").metrics())
    assert "Not measured" in (tmp_path / "report" / "README.md").read_text()


def test_group_signal_counts_groups_and_unanswered_calls():
    call = {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": {}}}],
    }
    rows = [
        {"prompt": p, "completion": c, "judge": "r", "reward": r}
        for p, c, r in [("a", "x", 1), ("a", [call], 1), ("b", "x", 0), ("b", "y", 1)]
    ]
    assert group_signal(rows) == {"report/unanswered_calls": 0.25, "report/zero_spread_groups": 0.5}
    assert group_signal([]) == {"report/unanswered_calls": 0.0}


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"holdout": HOLDOUT}, "belong together"),
        ({"holdout": HOLDOUT.rename_column("prompt", "q"), "reward": right}, "'prompt'"),
        ({"every": 0}, "every"),
    ],
)
def test_options_that_cannot_work_are_refused(options, what):
    with pytest.raises(wai.InputError, match=what):
        RunReporter(**options)
