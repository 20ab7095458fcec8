"""Whatever was written is read back as rollouts."""

from __future__ import annotations

import json

import pytest

import whileai_hf as wai


@pytest.fixture
def made():
    return wai.rows(["a", "b"], ["x", "y"], reward=[1 / 3, 0.0], references=["1", "2"])


def test_a_saved_folder(made, tmp_path):
    made.save_to_disk(tmp_path / "r")
    assert list(wai.load(tmp_path / "r")) == list(made)


def test_a_parquet_file_and_a_folder_of_them(made, tmp_path):
    (tmp_path / "d").mkdir()
    made.to_parquet(tmp_path / "d" / "train.parquet")
    for source in (tmp_path / "d", tmp_path / "d" / "train.parquet"):
        back = wai.load(source)
        assert type(back) is wai.Rollouts
        assert list(back) == list(made)


def test_json_lines_are_read_number_for_number(made, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(r) + "\n" for r in made.records()) + "\n")
    assert list(wai.load(path)) == list(made)


def test_an_empty_file_is_no_rollouts(tmp_path):
    (tmp_path / "x.jsonl").write_text("")
    assert len(wai.load(tmp_path / "x.jsonl")) == 0


@pytest.mark.parametrize(("text", "what"), [("{", "line 1 is not"), ("{}\n[1]", "line 2 is list")])
def test_a_broken_line_is_named(tmp_path, text, what):
    (tmp_path / "x.jsonl").write_text(text)
    with pytest.raises(wai.InputError, match=what):
        wai.load(tmp_path / "x.jsonl")


@pytest.mark.parametrize("name", ["nowhere/at/all", "missing.parquet", "./missing/data.jsonl"])
def test_a_path_that_is_not_there_is_said(name):
    with pytest.raises(wai.InputError, match="does not exist"):
        wai.load(name)


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "x.csv").write_text("a,b")
    with pytest.raises(wai.InputError, match=r"\.parquet or \.jsonl"):
        wai.load(tmp_path / "x.csv")
