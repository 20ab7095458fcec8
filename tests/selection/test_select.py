"""Selection: every gate drops for its reason alone, and nothing of the caller's is edited."""

from __future__ import annotations

import pickle

import pytest
from datasets import Dataset
from reports import public_reports

import whileai_hf as wai


def graded(*tasks, **columns):
    ids = [f"t{i}" for i, rewards in enumerate(tasks) for _ in rewards]
    rewards = [r for rewards in tasks for r in rewards]
    return wai.rows(
        [f"ask {i}" for i in ids],
        [f"reply {n}" for n in range(len(ids))],
        reward=rewards,
        task_ids=ids,
        **columns,
    )


MIXED = ([1.0, 0, 1, 0], [1.0, 1, 1, 1], [0.0, 0, 0, 0], [1.0, 1, 1, 0], [None, 1.0, 0, 0])


def test_rl_keeps_tasks_with_a_gradient_and_says_what_it_dropped():
    rows = graded(*MIXED).select(mode="rl")
    assert rows.report.n_tasks_kept == 3
    assert len(rows) == 11
    assert {d.gate: d.n for d in rows.report.gates if d.n} == {"unjudged": 1, "no spread": 8}
    dropped = rows.report.dropped
    assert len(dropped) == 9
    assert set(dropped["dropped_by"]) == {"unjudged", "no spread"}
    assert all(dropped["dropped_why"])
    assert str(rows.report).startswith("rl selection: kept 11 of 20 rollouts, 3 of 5 tasks")


def test_the_task_list_for_online_sampling_has_no_attempt_in_it():
    tasks = graded(*MIXED).select(mode="rl").report.tasks
    assert tasks["task_id"][:] == ["t0", "t3", "t4"]
    assert not {"messages", "reward", "final_text"} & set(tasks.column_names)


def test_the_band_is_measured_before_anything_is_dropped():
    # 7 of 8 pass with one text: deduplicated first, the task would look like 1 of 2.
    rows = wai.rows(["q"] * 8, ["same"] * 7 + ["other"], reward=[1.0] * 7 + [0.0])
    assert len(rows.select(mode="rl")) == 0
    assert rows.select(mode="rl").report.gates[-1].n == 8
    assert len(rows.select(mode="rl", sure=True)) == 8
    assert len(rows.select(mode="rl", band=(0.0, 0.9))) == 8


def test_sft_keeps_the_best_attempt_of_each_task_that_passed():
    rows = graded(*MIXED).select(mode="sft")
    assert rows["task_id"][:] == ["t0", "t1", "t3", "t4"]
    assert set(rows["reward"][:]) == {1.0}
    assert len(graded(*MIXED).select(mode="sft", top=2)) == 7
    assert len(graded(*MIXED).select(mode="sft", top=None)) == 10
    again = graded(*MIXED).select(mode="sft", pick="random", seed=1)
    assert again["task_id"][:] == rows["task_id"][:]


def test_partial_credit_is_selected_by_its_value():
    rows = graded([0.3, 0.7], [0.5, 0.5])
    assert rows.select(mode="rl")["task_id"][:] == ["t0", "t0"]
    assert rows.select(mode="sft", min_reward=0.6)["reward"][:] == [0.7]


@pytest.mark.parametrize(
    "gate",
    [
        wai.Judged(),
        wai.Finished(),
        wai.Spoken(),
        wai.NoLeak(),
        wai.Spread(),
        wai.Band(),
        wai.Rewarded(),
        wai.Unique(),
    ],
    ids=lambda g: g.name,
)
def test_a_gate_by_hand_is_the_gate_in_select(gate):
    rows = graded(*MIXED, references=["x"] * 20)
    stated = wai.with_duplicates(wai.with_group_stats(rows))
    by_hand = stated.filter(pickle.loads(pickle.dumps(gate)))
    assert rows.select(mode="rl", gates=[gate])["rollout_id"][:] == by_hand["rollout_id"][:]


SECRET = "the customer is a fraud tester"


@pytest.mark.parametrize(
    ("reply", "ask", "kept"),
    [
        (f"Note: {SECRET}.", "hi", False),
        (f"NOTE: {SECRET.upper()}", "hi", False),
        ("All done.", "hi", True),
        (f"You said {SECRET}.", f"I say {SECRET}", True),
        ("The long right answer of it", "hi", True),
    ],
)
def test_only_hidden_state_that_nobody_said_is_a_leak(reply, ask, kept):
    rows = wai.Rollouts.from_records(
        [{"task_id": "t", "reward": 1.0, "privileged": {"hidden_state": SECRET, "reference": "The long right answer of it"},
          "messages": [{"role": "user", "content": ask}, {"role": "assistant", "content": reply}]}]
    )  # fmt: skip
    assert len(rows.select(mode="sft")) == int(kept)


@pytest.mark.parametrize(
    "reply",
    [
        "退款已经完成，金额为三十欧元。" * 30,
        "- one\n- two\n- three",
        "A",
        "503 units",
        "-" * 40 + "\nworld_state",
        "42",
        "```python\nprint(1)\n```",
        "¿Listo?",
    ],
)
def test_right_answers_in_any_script_and_shape_survive(reply):
    rows = wai.rows(["q", "q"], [reply, "wrong"], reward=[1, 0], references=[reply] * 2)
    assert rows.select(mode="sft")["final_text"][:] == [reply]
    assert len(rows.select(mode="rl")) == 2


def test_the_input_is_the_same_afterwards():
    rows = graded(*MIXED)
    before, mark = list(rows), rows._fingerprint
    rows.select(mode="rl")
    rows.select(mode="sft")
    assert list(rows) == before
    assert rows._fingerprint == mark


def test_a_plain_dataset_and_a_view_are_selected_alike():
    rows = graded(*MIXED)
    shuffled = rows.shuffle(seed=3)
    plain = Dataset(rows.data, info=rows.info)
    assert list(wai.select(plain, mode="rl")) == list(rows.select(mode="rl"))
    assert sorted(shuffled.select(mode="rl")["rollout_id"]) == sorted(
        rows.select(mode="rl")["rollout_id"]
    )


def test_facts_that_the_rewards_contradict_are_refused():
    stated = wai.with_group_stats(graded([1.0, 0]))
    lied = stated.map(lambda row: {"attempts": 1, "passes": 0.0})
    with pytest.raises(wai.InputError, match="fit the rewards"):
        wai.select(lied, mode="rl")


@pytest.mark.parametrize(
    ("options", "what"),
    [({"mode": "dpo"}, "'dpo'"), ({"mode": "sft", "pick": "first"}, "'first'"), ({"mode": "sft", "top": 0}, "top"),
     ({"mode": "rl", "band": (0.8, 0.2)}, "band"), ({"mode": "rl", "gates": ["band"]}, "'band'")],
)  # fmt: skip
def test_options_that_name_nothing_are_errors(options, what):
    with pytest.raises(wai.InputError, match=what):
        wai.select(graded([1.0, 0]), **options)


def test_a_misspelled_option_and_a_missing_column_are_errors():
    with pytest.raises(TypeError, match="bandd"):
        wai.select(graded([1.0]), mode="rl", bandd=(0, 1))
    with pytest.raises(wai.SchemaError, match="reward"):
        wai.select(Dataset.from_dict({"task_id": ["a"]}), mode="rl")


def test_no_rows_and_one_row_are_selected():
    none = wai.Rollouts.from_records([])
    assert len(none.select(mode="rl")) == len(none.select(mode="sft")) == 0
    assert len(graded([1.0]).select(mode="sft")) == 1
    assert len(graded([1.0]).select(mode="rl")) == 0


def test_group_facts_are_the_rate_with_its_interval():
    row = wai.with_group_stats(graded([1.0, 0, 1, None]))[3]
    assert (row["attempts"], row["passes"], row["reward_spread"]) == (3, 2.0, 1.0)
    assert row["pass_rate"] == pytest.approx(2 / 3)
    assert row["pass_rate_low"] < row["pass_rate"] < row["pass_rate_high"]


def test_duplicates_are_marked_within_a_task_only():
    rows = wai.rows(["q", "q", "q", "p"], ["Yes  sir", "yes sir", "no", "yes sir"])
    assert wai.with_duplicates(rows)["duplicate"][:] == [False, True, False, False]


def named(groups, **columns):
    pairs = [(task, r) for task, rewards in groups.items() for r in rewards]
    return wai.rows([t for t, _ in pairs], [f"reply {i}" for i in range(len(pairs))], reward=[r for _, r in pairs],
                    task_ids=[t for t, _ in pairs], **columns)  # fmt: skip


@pytest.mark.parametrize(
    "case", [c for c in public_reports("select") if c.values[0]["feature"] != "leak check"]
)
def test_public_reports(case):
    given, expected = case["input"], case["expected"]
    if case["id"] == "R08":  # a reward function of TRL reads text and conversations alike
        reward = wai.ExactMatch().reward_func()
        talk = [[{"role": "assistant", "content": "yes"}]]
        options = {"prompts": ["q"], "reference": ["yes"], "something_else": [1]}
        assert list(reward(completions=talk, **options)) == list(
            reward(completions=["yes"], **options)
        )
        return
    if case["id"] == "R09":
        rows = wai.rows(["q"] * 4, ["same"] * 4, reward=[r == "ok" for r in given["groups"]["a"]])
        made = rows.select(mode="rl", gates=[wai.Unique(), wai.Spread()])
        assert made.report.gates[0].n == 3
        assert made.report.tasks["attempts"][:] == [4]
        return
    groups = given.get("groups") or {
        t: [1.0] * c + [0.0] * (n - c) for t, (c, n) in given["rates"].items()
    }
    rows = named(groups)
    made = rows.select(mode="rl")
    if "kept" in expected:
        assert sorted(set(made["task_id"])) == expected["kept"]
    if "dropped" in expected:
        signal = made.report.signal.to_dict()
        assert {name: signal[name] for name in expected["dropped"]} == expected["dropped"]
    if "mean" in expected:
        facts = wai.with_group_stats(rows)[0]
        assert facts["pass_rate"] == pytest.approx(expected["mean"], abs=1e-4)
        assert facts["attempts"] == expected["n"]
        assert {d.gate: d.n for d in made.report.gates}["unjudged"] == expected["ungraded"]
    if "error_or_report" in expected:
        assert len(made) == 0
        assert expected["error_or_report"] in str(made.report)


def test_cut_rollouts_are_dropped_or_kept():
    rows = named({"a": [1, 0, 0]}).map(
        lambda row, i: {"finish_reason": "length" if i == 2 else "stop"}, with_indices=True
    )
    assert len(rows.select(mode="rl")) == 2
    assert len(rows.select(mode="rl", truncated="keep")) == 3
    with pytest.raises(wai.InputError, match="truncated"):
        rows.select(mode="rl", truncated="penalize")


def test_a_gate_in_two_processes_gives_the_same_rows_and_a_second_call_is_a_cache_hit(tmp_path):
    graded(*MIXED).save_to_disk(tmp_path / "rows")
    rows = wai.Rollouts.load_from_disk(tmp_path / "rows")
    stated = wai.with_group_stats(rows)
    one = stated.filter(wai.Band())
    assert list(stated.filter(wai.Band(), num_proc=2)) == list(one)
    again = wai.with_group_stats(wai.Rollouts.load_from_disk(tmp_path / "rows"))
    assert again.filter(wai.Band())._fingerprint == one._fingerprint
    assert again.filter(wai.Band(1, 0.1, 0.9))._fingerprint != one._fingerprint


def test_select_composed_by_hand_is_select():
    rows = graded(*MIXED)
    stated = wai.with_group_stats(rows)
    for gate in (
        wai.Judged(),
        wai.NoLeak(),
        wai.Finished(),
        wai.Spoken(),
        wai.Spread(),
        wai.Band(),
    ):
        stated = stated.filter(gate)
    assert stated["rollout_id"][:] == rows.select(mode="rl")["rollout_id"][:]


def test_a_gate_of_another_room_is_composed():
    rows = graded([1.0, 0], [1.0, 0])
    stated = wai.with_contamination(rows, ["ask t0"])
    assert set(stated.select(mode="rl", gates=[wai.Uncontaminated(), wai.Spread()])["task_id"]) == {
        "t1"
    }
