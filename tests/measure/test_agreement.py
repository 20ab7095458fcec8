"""agreement: equal to scikit-learn and to the krippendorff package, with intervals over tasks."""

from __future__ import annotations

import krippendorff
import numpy as np
import pytest
from datasets import Dataset
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, confusion_matrix

import whileai_hf as wai


def labelled(judge, gold, per_task=1):
    return Dataset.from_dict(
        {"task_id": [f"t{i // per_task}" for i in range(len(judge))],
         "reward": judge, "gold_reward": gold}
    )  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=3, max_size=40))
def test_kappa_alpha_and_confusion_equal_the_libraries(pairs):
    judge, gold = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    found = wai.agreement(labelled(judge, gold))
    classes = sorted(set(judge) | set(gold))
    assert found.percent.value == pytest.approx(np.mean(judge == gold))
    if len(classes) == 1:
        assert found.kappa is None
        assert found.alpha is None
        assert found.degenerate
        return
    assert np.array_equal(found.confusion, confusion_matrix(gold, judge, labels=classes))
    if found.kappa is not None:
        assert found.kappa.value == pytest.approx(cohen_kappa_score(judge, gold))
    expected = krippendorff.alpha(np.stack([judge, gold]), level_of_measurement="nominal")
    assert found.alpha.value == pytest.approx(expected)
    for estimate in (found.percent, found.kappa, found.alpha):
        if estimate is not None:
            assert estimate.interval.low <= estimate.value + 1e-9
            assert estimate.value <= estimate.interval.high + 1e-9


def test_three_raters_with_missing_labels_have_an_alpha():
    table = np.array([[1, 0, 1, np.nan, 0], [1, 0, 0, 1, 0], [np.nan, 0, 1, 1, 1]])
    dataset = Dataset.from_dict(
        {
            "task_id": list("abcde"),
            **{f"r{i}": [None if np.isnan(v) else v for v in row] for i, row in enumerate(table)},
        }
    )
    found = wai.agreement(dataset, ("r0", "r1", "r2"))
    assert found.alpha.value == pytest.approx(
        krippendorff.alpha(table, level_of_measurement="nominal")
    )
    assert found.kappa is None
    assert found.confusion is None


def test_labels_of_one_task_are_not_independent():
    rng = np.random.default_rng(0)
    gold = np.repeat(rng.integers(0, 2, 10), 10).astype(float)
    judge = np.where(np.repeat(rng.random(10) < 0.7, 10), gold, 1 - gold)
    clustered = wai.agreement(labelled(judge, gold, per_task=10)).percent.interval
    alone = wai.agreement(labelled(judge, gold)).percent.interval
    assert clustered.high - clustered.low > 2 * (alone.high - alone.low)


def test_a_label_between_two_classes_is_left_out_and_counted():
    found = wai.agreement(labelled([1.0, 0.5, 0.0, None], [1.0, 1.0, 0.0, 1.0]))
    assert (found.n_rows, found.n_skipped) == (2, 2)
    assert found.skipped_share == 0.5
    assert wai.agreement(labelled([1.0, 0.5, 0.0], [1.0, 1.0, 0.0]), threshold=0.5).n_skipped == 0


def test_text_labels_are_classes():
    found = wai.agreement(
        Dataset.from_dict({"task_id": list("abc"), "a": ["x", "y", "x"], "b": ["x", "y", "y"]}),
        ("a", "b"),
    )
    assert found.classes == ("x", "y")
    assert found.percent.value == pytest.approx(2 / 3)


def test_the_line_says_what_is_not_measurable():
    found = wai.agreement(labelled([1.0] * 12, [1.0] * 12))
    assert found.percent.value == 1.0
    assert found.percent.interval.low < 0.8  # twelve labels do not show 80 %
    assert "kappa not measurable: one class" in str(found)


def test_a_judge_that_says_yes_to_all_has_a_kappa_of_zero():
    assert wai.agreement(labelled([1.0] * 10, [1.0] * 9 + [0.0])).kappa.value == 0.0


@pytest.mark.parametrize(
    ("raters", "message"),
    [
        (("reward",), "two or more"),
        (("reward", "reward"), "different"),
        (("reward", "polte"), "'polte'"),
    ],
)
def test_raters_that_name_nothing_are_errors(raters, message):
    with pytest.raises((wai.InputError, wai.SchemaError), match=message):
        wai.agreement(labelled([1.0], [1.0]), raters)


def test_no_row_with_two_labels_is_an_error():
    with pytest.raises(wai.InputError, match="two raters labelled"):
        wai.agreement(labelled([1.0, 0.0], [None, None]))


@pytest.mark.slow
@pytest.mark.parametrize(("n_tasks", "per_task"), [(10, 6), (30, 4), (50, 2), (100, 1)])
@pytest.mark.parametrize(
    ("accuracy", "prevalence", "correlation"),
    [(0.9, 0.5, 0.0), (0.9, 0.5, 0.3), (0.8, 0.3, 0.2), (0.95, 0.2, 0.2), (0.6, 0.5, 0.2)],
)
def test_intervals_cover(n_tasks, per_task, accuracy, prevalence, correlation):
    """Judges and labels that hang together within a task: nominal 95 % covers at least 92 %."""
    rng = np.random.default_rng(n_tasks)
    says = prevalence * accuracy + (1 - prevalence) * (1 - accuracy)
    by_chance = prevalence * says + (1 - prevalence) * (1 - says)
    middle = (prevalence + says) / 2
    alike = middle**2 + (1 - middle) ** 2
    truth = [accuracy, (accuracy - by_chance) / (1 - by_chance), (accuracy - alike) / (1 - alike)]
    covered, trials = np.zeros(3), 300
    for _ in range(trials):
        right, base = (_rates(m, correlation, n_tasks, rng) for m in (accuracy, prevalence))
        gold = rng.random((n_tasks, per_task)) < base[:, None]
        judge = np.where(rng.random((n_tasks, per_task)) < right[:, None], gold, ~gold)
        found = wai.agreement(
            labelled(judge.ravel().astype(float), gold.ravel().astype(float), per_task)
        )
        covered += [
            estimate is None or t in estimate.interval
            for t, estimate in zip(truth, (found.percent, found.kappa, found.alpha), strict=True)
        ]
    assert np.all(covered / trials > 0.92 - 0.02), covered / trials


def _rates(mean, correlation, n, rng):
    if correlation == 0:
        return np.full(n, mean)
    size = 1 / correlation - 1
    return rng.beta(mean * size, (1 - mean) * size, n)
