"""HackMonitor inside real TRL trainers: it sees what is trained on, decides alike everywhere, and resumes."""

from __future__ import annotations

import inspect
import json
import sys

import pytest
from datasets import Dataset
from parity import monitor_testbed as bed
from trl import (
    DPOConfig,
    DPOTrainer,
    GRPOConfig,
    GRPOTrainer,
    RLOOConfig,
    RLOOTrainer,
    SFTConfig,
    SFTTrainer,
)

import whileai_hf as wai
from whileai_hf.training.monitor import HackMonitor

pytestmark = pytest.mark.filterwarnings("ignore")
QUESTIONS = ["max of 4 9 2 ?", "min of 3 1 5 ?", "max of 7 7 0 ?", "min of 8 2 6 ?"] * 8


def gold(prompts, completions, **_):
    return [bed.gold(q, text) for q, text in zip(prompts, completions, strict=True)]


def digits(completions, **_):
    """A reward that pays for digits, whatever they say."""
    return [float(any(w.isdigit() for w in text.split())) for text in completions]


def trainer(monitor, out, rewards, cls=GRPOTrainer, config=GRPOConfig, **options):
    tok = bed.tokenizer()
    given = {
        "max_steps": 6,
        "per_device_train_batch_size": 8,
        "num_generations": 4,
        "max_completion_length": 8,
        "save_strategy": "no",
        **options,
    }
    eval_rows = given.pop("eval_rows", None)
    return cls(
        model=bed.model(tok, 0), processing_class=tok, reward_funcs=rewards, callbacks=[monitor],
        train_dataset=Dataset.from_dict({"prompt": QUESTIONS, "right": [bed.answer(q) for q in QUESTIONS]}), eval_dataset=eval_rows,
        args=config(
            output_dir=str(out), use_cpu=True, bf16=False, gradient_checkpointing=False, report_to="none", logging_steps=1,
            learning_rate=1e-3, disable_tqdm=True, **given,
        ),
    )  # fmt: skip


def quiet(**options):
    said = []
    return HackMonitor(write=said.append, audit=(8, 4), window=2, **options), said


def test_it_sees_the_rows_that_are_trained_on_and_logs_its_numbers(tmp_path):
    monitor, said = quiet(gold=gold)
    run = trainer(monitor, tmp_path, [monitor.wrap(digits)])
    run.train()
    assert [look.n_rows for look in monitor.looks] == [16, 16, 16]
    assert [look.n_audited for look in monitor.looks] == [8, 12, 16]
    assert "gold scores 16 of about 48 rollouts (33%) in 3 looks" in said[0]
    logged = [row for row in run.state.log_history if "hack/score" in row]
    assert logged
    assert any("rewards/digits/mean" in row for row in run.state.log_history)


def test_gold_gets_the_columns_of_the_dataset(tmp_path):
    seen = []

    def by_column(prompts, completions, right, **_):
        seen.extend(zip(prompts, right, strict=True))
        return [0.0] * len(prompts)

    monitor, _ = quiet(gold=by_column)
    trainer(monitor, tmp_path, [monitor.wrap(digits)]).train()
    assert seen
    assert all(bed.answer(q) == right for q, right in seen)


def test_a_verifier_is_a_gold_and_an_async_function_a_reward(tmp_path):
    class Verifier:
        def reward_func(self):
            async def score(prompts, completions, **_):
                return gold(prompts, completions)

            return score

    async def paid(completions, **_):
        return digits(completions)

    monitor, _ = quiet(gold=Verifier())
    wrapped = monitor.wrap(paid)
    assert inspect.iscoroutinefunction(wrapped)
    assert wrapped.__name__ == "paid"
    trainer(monitor, tmp_path, [wrapped]).train()
    assert len(monitor.looks) == 3


def test_evaluation_rollouts_never_count(tmp_path):
    rows = Dataset.from_dict({"prompt": QUESTIONS[:4], "right": ["0"] * 4})
    monitor, _ = quiet(gold=gold)
    trainer(
        monitor, tmp_path, [monitor.wrap(digits)], eval_rows=rows, eval_strategy="steps", eval_steps=1,
        per_device_eval_batch_size=4, eval_on_start=True,
    ).train()  # fmt: skip
    assert [look.n_rows for look in monitor.looks] == [16, 16, 16]


def test_a_generation_that_is_used_twice_counts_once(tmp_path):
    monitor, _ = quiet(gold=gold)
    trainer(
        monitor,
        tmp_path,
        [monitor.wrap(digits)],
        steps_per_generation=2,
        num_iterations=2,
        max_steps=8,
    ).train()
    assert sum(look.n_rows for look in monitor.looks) == 2 * 16


def test_the_proxy_is_the_weighted_sum_and_a_null_reward_is_left_out(tmp_path):
    def some(completions, **_):
        return [None if i % 2 else 1.0 for i, _ in enumerate(completions)]

    monitor, _ = quiet(gold=gold)
    trainer(
        monitor,
        tmp_path,
        [monitor.wrap(digits), monitor.wrap(some)],
        reward_weights=[0.5, 2.0],
        max_steps=4,
    ).train()
    assert set(monitor._alarm.audit.proxy[0]) <= {0.0, 0.5, 2.0, 2.5}
    only, _ = quiet(gold=gold)
    trainer(only, tmp_path, [only.wrap(some)], max_steps=4).train()
    assert only.looks[0].n_rows == 8


def _alarm_at(monitor, index):
    """Make the rule fire at a look, whatever the data."""
    real = type(monitor)._look

    def look(rows, state):
        real(monitor, rows, state)
        if len(monitor.looks) == index + 1:
            monitor._raise(
                "feature", monitor.looks[-1], rows, [{}] * len(rows), [0.0] * len(rows), state
            )

    monitor._look = look


def test_stopping_saves_a_checkpoint_and_says_why(tmp_path):
    monitor, said = quiet(gold=gold, stop_on="feature")
    _alarm_at(monitor, 1)
    run = trainer(monitor, tmp_path, [monitor.wrap(digits)], save_strategy="steps", save_steps=100)
    run.train()
    assert run.state.global_step == 4
    assert (tmp_path / "checkpoint-4").exists()
    assert any(text.startswith("HackMonitor: step 4:") for text in said)


def test_a_resumed_run_has_the_looks_of_one_that_never_stopped(tmp_path):
    whole, _ = quiet(gold=gold)
    trainer(
        whole,
        tmp_path / "a",
        [whole.wrap(digits)],
        max_steps=8,
        save_strategy="steps",
        save_steps=5,
    ).train()
    state = json.loads((tmp_path / "a" / "checkpoint-5" / "trainer_state.json").read_text())
    assert "HackMonitor" in state["stateful_callbacks"]
    again, _ = quiet(gold=gold)
    trainer(again, tmp_path / "a", [again.wrap(digits)], max_steps=8).train(
        resume_from_checkpoint=str(tmp_path / "a" / "checkpoint-5")
    )
    assert (
        [look.n_rows for look in again.looks] == [look.n_rows for look in whole.looks] == [16] * 4
    )
    assert again.looks[:2] == whole.looks[:2]
    assert [look.n_audited for look in again.looks] == [look.n_audited for look in whole.looks]


def test_without_gold_it_shows_completions_and_no_number(tmp_path):
    monitor, said = quiet()
    trainer(monitor, tmp_path, [monitor.wrap(digits)]).train()
    assert "no gold" in said[0]
    assert len(monitor.looks) == 3
    assert not any(alarm.finding in ("feature", "gain") for alarm in monitor.alarms)
    assert not any("z " in text or "log e" in text for text in said)


def test_rloo_is_watched_the_same_way(tmp_path):
    monitor, _ = quiet(gold=gold)
    trainer(monitor, tmp_path, [monitor.wrap(digits)], RLOOTrainer, RLOOConfig, beta=0.0).train()
    assert [look.n_rows for look in monitor.looks] == [16, 16, 16]


def test_sft_and_dpo_runs_get_a_report_of_drift_and_no_verdict(tmp_path):
    tok = bed.tokenizer()
    monitor, said = quiet(gold=gold)
    rows = Dataset.from_dict({"input_ids": [[5, 6, 7, 1]] * 8, "labels": [[-100, 6, 7, 1]] * 8})
    options = {"max_steps": 3, "use_cpu": True, "bf16": False, "gradient_checkpointing": False, "report_to": "none", "logging_steps": 1,
               "save_strategy": "no", "disable_tqdm": True, "learning_rate": 1e-2}  # fmt: skip
    SFTTrainer(
        model=bed.model(tok, 0),
        processing_class=tok,
        train_dataset=rows,
        callbacks=[monitor],
        args=SFTConfig(output_dir=str(tmp_path), **options),
    ).train()
    assert "only drift" in said[0]
    assert "no verdict: entropy" in said[-1]
    assert monitor.alarms == []
    bed.model(tok, 0).save_pretrained(tmp_path / "m")
    tok.save_pretrained(tmp_path / "m")
    monitor, said = quiet()
    pairs = Dataset.from_dict(
        {"prompt": ["max of 1 2 ? "] * 8, "chosen": ["2"] * 8, "rejected": ["1 so so"] * 8}
    )
    DPOTrainer(
        model=str(tmp_path / "m"),
        processing_class=tok,
        train_dataset=pairs,
        callbacks=[monitor],
        args=DPOConfig(output_dir=str(tmp_path), **options),
    ).train()
    assert "rewards/margins" in said[-1]


def test_a_run_too_short_for_two_looks_is_refused(tmp_path):
    monitor, _ = quiet(gold=gold)
    with pytest.raises(wai.InputError, match="at least 2 windows"):
        trainer(monitor, tmp_path, [monitor.wrap(digits)], max_steps=2).train()


@pytest.mark.parametrize(
    ("options", "what"),
    [({"stop_on": "length"}, "'length'"), ({"window": 0}, "window"), ({"audit": (1, 1)}, "audit")],
)
def test_options_that_mean_nothing_are_refused(options, what):
    with pytest.raises(wai.InputError, match=what):
        HackMonitor(**options)


def test_wrapping_what_is_no_reward_is_refused():
    with pytest.raises(wai.InputError, match="got str"):
        HackMonitor().wrap("accuracy")


def test_a_gold_outside_the_unit_interval_is_refused(tmp_path):
    monitor, _ = quiet(gold=lambda completions, **_: [2.0] * len(completions))
    with pytest.raises(wai.InputError, match=r"\[0, 1\]"):
        trainer(monitor, tmp_path, [monitor.wrap(digits)]).train()


def _two_ranks(out, report):
    sys.path.insert(0, str(bed.Path(bed.__file__).parents[1]))
    from accelerate.utils import gather_object

    monitor = HackMonitor(
        gold=gold, window=2, audit=(8, 4), stop_on="feature", write=lambda text: None
    )
    _alarm_at(monitor, 1)
    run = trainer(monitor, out, [monitor.wrap(digits)], per_device_train_batch_size=4, max_steps=8)
    run.train()
    looks = gather_object([[look.to_dict() for look in monitor.looks]])
    steps = gather_object([run.state.global_step])
    if run.accelerator.is_main_process:
        bed.Path(report).write_text(json.dumps({"looks": looks, "steps": steps}))


@pytest.mark.slow
def test_two_ranks_look_alike_and_stop_together(tmp_path):
    from accelerate import debug_launcher

    debug_launcher(_two_ranks, (str(tmp_path), str(tmp_path / "report.json")), num_processes=2)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["steps"] == [4, 4]
    assert report["looks"][0] == report["looks"][1]
    assert [look["n_rows"] for look in report["looks"][0]] == [16, 16]
