"""One data shape: every value comes back as it was, through every way a dataset can travel."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from datasets import Dataset, load_dataset
from hypothesis import given, settings
from hypothesis import strategies as st
from reports import public_reports

import whileai_hf as wai
from whileai_hf import schema

PING = {
    "type": "function",
    "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}},
}
PAY = {
    "type": "function",
    "function": {
        "name": "pay",
        "parameters": {"type": "object", "properties": {"n": {"minimum": 0.01}}},
    },
}


def call(**arguments):
    function = {"name": "pay", "arguments": arguments}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"type": "function", "function": function}],
    }


def record(i=0, **columns):
    return {
        "task_id": f"t{i}",
        "messages": [{"role": "user", "content": "hi"}, call(n=i)],
        **columns,
    }


RECORDS = [
    record(0, tools=[PING], markers={"kept": 1.0}, reward=1 / 3, situation={"tool": "ping"}),
    record(1, tools=[PAY, PING], privileged={"reference": "12", "third": 1 / 3}, seeded=["leak"]),
    record(2, tools=None, judge_meta={"big": 2**70, "list": [1, "2", None]}, token_logprobs=[-0.5]),
    {
        "task_id": "t3",
        "messages": [call(a=0.1), call(b="x", c=None), call(amount=1 / 3, id=10**25)],
    },
]


def through_parquet(dataset, path):
    dataset.to_parquet(path / "x.parquet")
    return load_dataset(
        "parquet", data_files=str(path / "x.parquet"), split="train", cache_dir=str(path / "c")
    )


def through_disk(dataset, path):
    dataset.save_to_disk(path / "disk")
    return Dataset.load_from_disk(path / "disk")


def through_map(dataset, path):
    mapped = dataset.map(lambda row: {"messages": row["messages"], "tools": row["tools"]})
    return mapped.filter(lambda row: len(row["messages"]) > 0)


def through_folder(dataset, path):
    (path / "data").mkdir()
    dataset.to_parquet(path / "data" / "train-00000-of-00001.parquet")
    return load_dataset(str(path), split="train", cache_dir=str(path / "c"))


WAYS = [through_parquet, through_disk, through_map, through_folder]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_records_come_back_as_they_were(way, tmp_path):
    made = schema.to_dataset(RECORDS)
    back = way(made, tmp_path)
    assert back.features == schema.FEATURES
    for given_record, row in zip(RECORDS, back, strict=True):
        read = schema.to_record(row)
        for name, value in given_record.items():
            assert read[name] == value, name
        absent = set(schema.FEATURES) - set(given_record) - {"markers"}
        assert all(read[name] is None for name in absent)


def test_streaming_gives_the_same_records(tmp_path):
    schema.to_dataset(RECORDS).to_parquet(tmp_path / "x.parquet")
    stream = load_dataset(
        "parquet", data_files=str(tmp_path / "x.parquet"), split="train", streaming=True
    )
    assert [schema.to_record(row)["messages"] for row in stream] == [r["messages"] for r in RECORDS]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def same(a, b):
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


@pytest.mark.filterwarnings("ignore:a text held")
@settings(max_examples=120, deadline=None)
@given(
    value=st.dictionaries(
        st.text(max_size=5).filter(lambda k: k != schema.TEXT_KEY), JSON, max_size=4
    )
)
def test_any_json_object_is_exact_as_read_and_after_map(value):
    value = schema.plain(value, "value")
    dataset = schema.to_dataset([{"task_id": "t", "situation": value, "messages": [call(**value)]}])
    touched = dataset.map(lambda row: {"situation": row["situation"], "messages": row["messages"]})
    for source in (dataset, touched):
        read = schema.to_record(source[0])
        assert same(read["situation"], value)
        assert same(read["messages"][0]["tool_calls"][0]["function"]["arguments"], value)


@settings(max_examples=200, deadline=None)
@given(st.text())
def test_a_string_that_is_json_stays_a_string(text):
    stored = schema.exact(schema.plain(text, "t"))
    assert same(schema.restore(stored), schema.clean_text(text))


@pytest.mark.parametrize("value", [math.nan, math.inf, {1: 2}, object(), {"a": {2, 3}}, b"x"])
def test_what_json_cannot_hold_is_refused_with_the_place(value):
    with pytest.raises(wai.InputError, match="situation of record 0"):
        schema.to_dataset([{"task_id": "t", "situation": {"x": value}}])


def test_numpy_values_become_json_numbers():
    made = schema.to_dataset(
        [{"task_id": "t", "situation": {"x": np.float64(0.5), "y": np.arange(3)}}]
    )
    assert made[0]["situation"] == {"x": 0.5, "y": [0, 1, 2]}


def test_nesting_beyond_every_codec_is_refused():
    deep = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(wai.InputError, match="deep"):
        schema.to_dataset([{"task_id": "t", "situation": {"x": deep}}])


def test_a_column_of_the_wrong_type_names_itself():
    with pytest.raises(wai.InputError, match="'reward'"):
        schema.to_dataset([{"task_id": "t", "reward": "good"}])
    with pytest.raises(wai.InputError, match="marker 'm'"):
        schema.to_dataset([{"task_id": "t", "markers": {"m": "high"}}])


def test_columns_of_the_user_survive_whatever_they_hold():
    made = schema.to_dataset(
        [
            {"task_id": "a", "mine": 1, "nested": {"x": 1}},
            {"task_id": "b", "other": "z", "nested": {"y": None}},
        ]
    )
    rows = [schema.to_record(row) for row in made]
    assert (rows[0]["mine"], rows[0]["other"], rows[1]["mine"], rows[1]["other"]) == (
        1,
        None,
        None,
        "z",
    )
    assert [row["nested"] for row in made] == [{"x": 1}, {"y": None}]


def test_no_rollouts_are_a_dataset_with_every_column():
    assert schema.empty().features == schema.FEATURES
    assert len(schema.empty()) == 0


@pytest.mark.parametrize("case", public_reports("dataset"))
def test_public_reports_on_datasets(case, tmp_path):
    given_input, expected = case["input"], case["expected"]
    check = {
        "D01": _arguments_as_given, "D03": _arguments_as_given, "D04": _strings_as_given, "D05": _large_and_nan,
        "D06": _null_rewards, "D07": _surrogates, "D08": _tools_everywhere,
    }[case["id"]]  # fmt: skip
    check(given_input, expected, tmp_path)


def _arguments_as_given(given_input, expected, path):
    made = schema.to_dataset(
        [{"task_id": "t", "messages": [call(**a)]} for a in given_input["arguments"]]
    )
    for way in (through_map, through_parquet):
        rows = [
            row["messages"][0]["tool_calls"][0]["function"]["arguments"] for row in way(made, path)
        ]
        assert rows == given_input["arguments"]


def _strings_as_given(given_input, expected, path):
    for column in ("mine", "situation"):
        made = schema.to_dataset([{"task_id": "t", column: v} for v in given_input["values"]])
        rows = [schema.to_record(row)[column] for row in through_map_of(made, column)]
        assert rows == expected["round_trip"]


def through_map_of(dataset, column):
    return dataset.map(lambda row: {column: row[column]})


def _large_and_nan(given_input, expected, path):
    row = schema.to_record(schema.to_dataset([{"task_id": "t", "situation": {"x": 2**70}}])[0])
    assert row["situation"]["x"] == 2**70
    with pytest.raises(wai.InputError, match="finite"):
        schema.to_dataset([{"task_id": "t", "situation": {"x": math.nan}}])


def _null_rewards(given_input, expected, path):
    made = schema.to_dataset([{"task_id": "t", "reward": r} for r in given_input["reward"]])
    assert made.features["reward"].dtype == expected["feature"]
    assert made["reward"][:] == expected["values"]


def _surrogates(given_input, expected, path):
    content = given_input["content"].replace("\\ud800", "\ud800")
    with pytest.warns(UserWarning, match="1 lone surrogate"):
        made = schema.to_dataset(
            [{"task_id": "t", "messages": [{"role": "user", "content": content}]}]
        )
    text = through_parquet(made, path)[0]["messages"][0]["content"]
    assert text.count("\ufffd") == expected["replaced"]


def _tools_everywhere(given_input, expected, path):
    made = wai.Rollouts.of(schema.to_dataset([{"task_id": "t", "tools": given_input["tools"]}]))
    assert through_parquet(made, path)[0]["tools"] == given_input["tools"]
    with (path / "x.jsonl").open("w") as out:
        out.writelines(json.dumps(schema.to_record(row)) + "\n" for row in made)
    lines = [json.loads(line) for line in (path / "x.jsonl").read_text().splitlines()]
    assert schema.to_dataset(lines)[0]["tools"] == given_input["tools"]
