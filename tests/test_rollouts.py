"""Rollouts are a Dataset that stays Rollouts, whatever a user does with it."""

from __future__ import annotations

import copy
import pickle

import pytest
from datasets import Dataset, Value, concatenate_datasets

import whileai_hf as wai
from whileai_hf.schema import FEATURES


@pytest.fixture
def rollouts():
    return wai.rows(
        ["a", "a", "b", "c"],
        ["1", "2", "3", "4"],
        reward=[1.0, 0.0, 0.5, None],
        references=list("1234"),
    )


METHODS = {
    "add_column": lambda r: r.add_column("x", [1, 2, 3, 4]),
    "cast_column": lambda r: r.cast_column("reward", Value("float32")),
    "filter": lambda r: r.filter(lambda row: row["task_id"] != "x"),
    "filter_batched": lambda r: r.filter(lambda b: [True] * len(b["reward"]), batched=True),
    "flatten_indices": lambda r: r.select([1, 0]).flatten_indices(),
    "map": lambda r: r.map(lambda row: {"y": 1}),
    "map_two_processes": lambda r: r.map(lambda row: {"y": 1}, num_proc=2),
    "remove_columns": lambda r: r.remove_columns(["reward"]),
    "rename_column": lambda r: r.rename_column("reward", "score"),
    "select_columns": lambda r: r.select_columns(["task_id", "reward"]),
    "select": lambda r: r.select([0, 2]),
    "select_range": lambda r: r.select(range(2)),
    "shard": lambda r: r.shard(2, 0),
    "shuffle": lambda r: r.shuffle(seed=0),
    "skip": lambda r: r.skip(1),
    "sort": lambda r: r.sort("task_id"),
    "take": lambda r: r.take(2),
    "with_format": lambda r: r.with_format("arrow"),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda r: pickle.loads(pickle.dumps(r)),
}


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:This process")
@pytest.mark.parametrize("name", METHODS)
def test_rollouts_stay_rollouts(rollouts, name):
    out = METHODS[name](rollouts)
    assert type(out) is wai.Rollouts
    assert len(out) > 0


def test_both_halves_of_a_split_are_rollouts(rollouts):
    halves = rollouts.train_test_split(0.5, seed=0)
    assert {type(half) for half in halves.values()} == {wai.Rollouts}


def test_saving_and_loading_gives_the_same_rollouts(rollouts, tmp_path):
    rollouts.save_to_disk(tmp_path / "r")
    back = wai.Rollouts.load_from_disk(tmp_path / "r")
    assert type(back) is wai.Rollouts
    assert list(back) == list(rollouts)
    assert back.features == FEATURES


def test_a_plain_dataset_becomes_rollouts_and_stays_what_it_was(rollouts):
    plain = concatenate_datasets([rollouts, rollouts])
    viewed = wai.Rollouts.of(plain, report="said", warnings=["read this"])
    assert (viewed.report, viewed.warnings) == ("said", ("read this",))
    assert list(viewed) == list(plain)


def test_what_a_step_said_does_not_stick_to_rows_made_from_it(rollouts):
    noted = wai.Rollouts.of(rollouts, report="said", warnings=["read this"])
    assert noted.filter(lambda row: True).report is None
    assert rollouts.report is None


def test_select_with_indices_is_that_of_datasets(rollouts):
    assert rollouts.select([3, 1])["final_text"][:] == ["4", "2"]
    assert rollouts.select(indices=[0])["final_text"][:] == ["1"]


def test_views_by_verdict_share_the_rows(rollouts):
    assert rollouts.passes()["final_text"][:] == ["1"]
    assert rollouts.failures()["final_text"][:] == ["2"]
    assert rollouts.partials()["final_text"][:] == ["3"]
    assert rollouts.unjudged()["final_text"][:] == ["4"]


def test_records_read_markers_as_a_mapping_and_arguments_as_objects():
    made = wai.Rollouts.from_records(
        [{"task_id": "t", "markers": {"kept": 0.25}, "messages": [{"role": "assistant", "content": "", "tool_calls": [
            {"type": "function", "function": {"name": "pay", "arguments": {"amount": 1 / 3}}}]}]}]
    )  # fmt: skip
    record = next(iter(made.records()))
    assert record["markers"] == {"kept": 0.25}
    assert record["messages"][0]["tool_calls"][0]["function"]["arguments"] == {"amount": 1 / 3}


def test_rollouts_of_anything_else_are_refused():
    with pytest.raises(wai.InputError, match=r"takes a datasets.Dataset"):
        wai.Rollouts.of([{"task_id": "t"}])


def test_an_empty_dataset_has_empty_views():
    none = wai.Rollouts.from_records([])
    assert isinstance(none, Dataset)
    assert len(none.passes()) == len(none.unjudged()) == 0


def test_filtered_rollouts_are_written_in_one_pass_and_come_back(tmp_path):
    many = wai.rows(
        [f"q{i}" for i in range(50)],
        [f"a{i}" for i in range(50)],
        references=["x"] * 50,
        reward=[i % 2 for i in range(50)],
    )
    for view in (
        many.passes(),
        many.passes().shuffle(seed=1),
        many.select([]),
        many,
        many.filter(lambda row: row["reward"] == 0),
    ):
        view.to_parquet(tmp_path / "x.parquet")
        assert list(wai.load(tmp_path / "x.parquet")) == list(view)
        assert wai.load(tmp_path / "x.parquet").features == FEATURES
