"""Labels of people go to the rows they belong to, and say who gave them."""

from __future__ import annotations

import pytest
from grade.labelled_rows import rows

import whileai_hf as wai


def plain(n=4):
    return rows([None] * n, [1.0] * n)


def test_labels_are_put_beside_their_rows():
    data = wai.attach_labels(plain(), {"r2": 1, "r0": False})
    assert data["gold_reward"][:] == [0.0, None, 1.0, None]
    assert data["gold_kind"][:] == ["human", None, "human", None]
    assert "gold_kind" not in plain().column_names


def test_a_second_annotator_is_added_and_a_tie_is_no_label():
    data = wai.attach_labels(plain(), {"r0": 1, "r1": 1, "r2": 0}, annotator="ann")
    data = wai.attach_labels(data, {"r0": 1, "r1": 0}, annotator="bob")
    assert data["gold_reward"][:] == [1.0, None, 0.0, None]
    data = wai.attach_labels(data, {"r1": 0}, annotator="eve")
    assert data["gold_reward"][1] == 0.0


def test_rows_of_labels_name_their_annotators():
    labels = [
        {"rollout_id": f"r{i}", "gold_reward": g, "annotator": who}
        for who in "ab"
        for i, g in enumerate([1, 0, 1, 0])
    ]
    data = wai.attach_labels(plain(), labels)
    found = wai.annotator_agreement(data)
    assert found.percent.value == 1.0
    assert set(found.raters) == {"a", "b"}


def test_a_label_of_a_model_makes_the_row_one_of_a_model():
    data = wai.attach_labels(plain(), {"r0": 1, "r1": 1})
    data = wai.attach_labels(data, {"r1": 1}, annotator="judge", kind="model")
    assert data["gold_kind"][:2] == ["human", "model"]


@pytest.mark.parametrize(
    ("labels", "options", "match"),
    [
        ({"r9": 1}, {}, "r9"),
        ({"r0": 85}, {}, "85"),
        ({"r0": "yes"}, {}, "yes"),
        ({"r0": 1}, {"kind": "person"}, "person"),
        ([{"id": "r0", "label": 1}], {}, "rollout_id"),
        ({"t": 1}, {"key": "run"}, "run"),
    ],
)
def test_a_label_that_fits_nowhere_is_an_error(labels, options, match):
    with pytest.raises(wai.InputError, match=match):
        wai.attach_labels(plain(), labels, **options)


def test_one_annotator_agrees_with_nobody():
    with pytest.raises(wai.InputError, match="two annotators"):
        wai.annotator_agreement(wai.attach_labels(plain(), {"r0": 1}))
    with pytest.raises(wai.SchemaError, match="attach_labels"):
        wai.annotator_agreement(plain())


def test_nothing_to_attach_leaves_the_labels_empty():
    assert wai.attach_labels(plain(), {})["gold_reward"][:] == [None] * 4
    assert len(wai.attach_labels(plain().select(range(0)), {})) == 0
