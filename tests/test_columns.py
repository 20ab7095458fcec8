"""Columns in, columns out, whatever index, format or stream lies on the dataset."""

from __future__ import annotations

import numpy as np
import pytest
from datasets import Dataset, DatasetDict, Value

import whileai_hf as wai
from whileai_hf import columns, schema


@pytest.fixture
def made():
    return schema.to_dataset([{"task_id": t, "reward": r, "mine": i} for i, (t, r) in enumerate(
        [("b", 1.0), ("a", None), ("b", 0.5), ("c", 0.0)]
    )])  # fmt: skip


def test_numbers_are_floats_and_null_is_nan(made):
    np.testing.assert_array_equal(columns.numbers(made, "reward", "step"), [1.0, np.nan, 0.5, 0.0])


def test_booleans_and_integers_are_numbers():
    ds = Dataset.from_dict({"reward": [True, False, None], "n": [1, 2, 3]})
    np.testing.assert_array_equal(columns.numbers(ds, "reward", "step"), [1, 0, np.nan])
    np.testing.assert_array_equal(columns.numbers(ds, "n", "step"), [1, 2, 3])


def test_text_is_no_number():
    with pytest.raises(wai.SchemaError, match="needs numbers"):
        columns.numbers(Dataset.from_dict({"reward": ["1"]}), "reward", "step")


def test_tasks_are_numbered_as_they_appear_also_behind_an_index(made):
    codes, ids = columns.task_codes(made, "step")
    assert (codes.tolist(), ids) == ([0, 1, 0, 2], ["b", "a", "c"])
    codes, ids = columns.task_codes(made.select([3, 2, 0]), "step")
    assert (codes.tolist(), ids) == ([0, 1, 1], ["c", "b"])


def test_a_row_without_a_task_is_refused():
    with pytest.raises(wai.SchemaError, match="1 of 2 rows"):
        columns.task_codes(Dataset.from_dict({"task_id": ["a", None]}), "step")


def test_no_rows_have_no_tasks():
    codes, ids = columns.task_codes(schema.empty(), "step")
    assert (len(codes), ids) == (0, [])


def test_a_missing_column_names_the_step_that_makes_it(made):
    with pytest.raises(wai.SchemaError, match=r"pass_at needs the column 'reward'.*grade"):
        columns.numbers(made.remove_columns("reward"), "reward", "pass_at")


def test_what_is_no_dataset_is_told_how_to_become_one(made):
    with pytest.raises(wai.InputError, match="got list"):
        columns.check_dataset([{"a": 1}], "step")
    with pytest.raises(wai.InputError, match=r"dataset\['train'\]"):
        columns.check_dataset(DatasetDict(train=made), "step")
    with pytest.raises(wai.InputError, match="all rows at once"):
        columns.check_dataset(made.to_iterable_dataset(), "step")


def test_a_stream_is_read_in_one_pass(made):
    stream = made.to_iterable_dataset()
    table = columns.read(stream, ["task_id", "reward"], "step")
    assert table["task_id"].to_pylist() == ["b", "a", "b", "c"]


def test_new_columns_follow_the_index_and_leave_the_dataset_alone(made):
    view = made.filter(lambda row: row["mine"] != 1).sort("mine", reverse=True)
    before = view._fingerprint
    out = columns.with_columns(
        view,
        {"reward": ([0.1, 0.2, 0.3], Value("float64")), "new": (["x", "y", "z"], Value("string"))},
    )
    assert out["mine"][:] == [3, 2, 0]
    assert out["reward"][:] == [0.1, 0.2, 0.3]
    assert out["new"][:] == ["x", "y", "z"]
    assert view["reward"][:] == [0.0, 0.5, 1.0]
    assert (view._fingerprint, "new" in view.column_names) == (before, False)
    assert out._fingerprint != before


def test_new_columns_keep_rollouts_rollouts(made):
    out = columns.with_columns(
        wai.Rollouts.of(made), {"new": (np.array([1.0, np.nan, 2, 3]), Value("float64"))}
    )
    assert type(out) is wai.Rollouts
    assert out["new"][:] == [1.0, None, 2.0, 3.0]
