"""The next tasks: easy to hard, without what is solved and what nothing is known of."""

from __future__ import annotations

import numpy as np
import pytest
from datasets import Dataset

import whileai_hf as wai


def graded(**tasks):
    pairs = [(task, r) for task, rewards in tasks.items() for r in rewards]
    return Dataset.from_dict({"task_id": [t for t, _ in pairs], "reward": [r for _, r in pairs]})


ROUND = {"easy": [1.0] * 3 + [0.0], "hard": [1.0] + [0.0] * 3, "middle": [1.0, 0.0], "solved": [1.0] * 9 + [0.0],
         "dead": [0.0] * 4, "thin": [1.0]}  # fmt: skip


def test_tasks_come_in_tiers_from_easy_to_hard():
    made = wai.curriculum(graded(**ROUND))
    assert list(dict.fromkeys(made["task_id"])) == ["easy", "middle", "hard"]
    assert sorted(set(made["tier"])) == [1, 2, 3]
    assert made.report.to_dict() == {
        "tiers": (1, 1, 1),
        "solved": 1,
        "not_ready": 1,
        "unmeasured": 1,
    }
    assert str(made.report).startswith("curriculum, tasks: tier 1 1, tier 2 1, tier 3 1;")


def test_solved_tasks_retire_and_thin_ones_stay():
    kept = wai.retire_solved(graded(**ROUND))
    assert set(kept["task_id"]) == set(ROUND) - {"solved"}
    assert set(wai.retire_solved(graded(**ROUND), sure=True)["task_id"]) == set(ROUND)
    assert "solved" not in wai.retire_solved(graded(solved=[1.0] * 40), sure=True)["task_id"][:]


def test_the_next_round_takes_the_band_and_what_is_new():
    tasks = Dataset.from_dict({"task_id": ["dead", "hard", "new", "solved"]})
    assert wai.next_round(tasks, graded(**ROUND))["task_id"][:] == ["hard", "new"]
    assert wai.next_round(tasks, graded(**ROUND), unseen=False)["task_id"][:] == ["hard"]
    assert "dead" in wai.next_round(tasks, graded(**ROUND), sure=True)["task_id"][:]
    with pytest.raises(wai.InputError, match="none of 1 tasks"):
        wai.next_round(Dataset.from_dict({"task_id": ["x"]}), graded(**ROUND))


def test_the_signal_counts_each_task_once():
    signal = wai.group_signal(
        graded(a=[1, 1], b=[0, 0], c=[1, 0], d=[0.5, 0.5], e=[1], f=[None, None], g=[0.3, 0.4])
    )
    assert (signal.all_pass, signal.all_fail, signal.all_equal, signal.mixed) == (1, 1, 1, 2)
    assert (signal.single, signal.unjudged, signal.n_tasks) == (1, 1, 7)
    assert signal.share_mixed == pytest.approx(0.4)
    assert 0.4 in signal.interval
    assert "3 groups unanimous, 2 mixed" in str(signal)
    assert "not measured" in str(wai.group_signal(graded(a=[1])))


@pytest.mark.parametrize("options", [{"solved": 0.1}, {"tiers": 0}, {"min_attempts": True}])
def test_options_out_of_range_are_errors(options):
    with pytest.raises(wai.InputError):
        wai.curriculum(graded(**ROUND), **options)


def test_nothing_gives_nothing():
    none = Dataset.from_dict(
        {"task_id": np.array([], dtype=str), "reward": np.array([], dtype=float)}
    )
    assert len(wai.curriculum(none)) == len(wai.retire_solved(none)) == 0
    assert wai.group_signal(none).n_tasks == 0
