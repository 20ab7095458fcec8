"""Pairs are asked about in both orders, and order never decides."""

from __future__ import annotations

import pytest
from datasets import Dataset
from grade.scripted_model import Scripted
from reports import public_reports

import whileai_hf as wai


def pairs(n, chosen="a longer and better reply", rejected="short"):
    return Dataset.from_dict({"prompt": [f"q{i}" for i in range(n)], "chosen": [f"{chosen} {i}" for i in range(n)],
                              "rejected": [f"{rejected} {i}" for i in range(n)]})  # fmt: skip


def by_length(first, second):
    return "first" if len(first["final_text"]) > len(second["final_text"]) else "second"


def test_a_judge_of_substance_says_the_same_in_both_orders():
    found = wai.judge_pairs(pairs(30), by_length)
    assert set(found["preference"]) == {"chosen"}
    assert found.report.agreement.value == 1.0
    assert found.report.n_flips == 0


def test_a_judge_of_the_first_place_makes_ties():
    found = wai.judge_pairs(pairs(30), lambda first, second: "first")
    assert set(found["preference"]) == {"tie"}
    assert found.report.flips.value == 1.0
    assert "position" in found.report.flags


def test_an_order_without_an_answer_is_no_preference():
    found = wai.judge_pairs(pairs(4), lambda first, second: None)
    assert found["preference"][:] == [None] * 4
    assert found.report.agreement is None
    assert "unmeasured" in str(found.report)


def test_a_model_judge_compares():
    model = Scripted(
        lambda m: (
            '{"reason": "r", "better": "%s"}'
            % (
                "first"
                if m[1]["content"].index("longer") < m[1]["content"].index("short")
                else "second"
            )
        )
    )
    found = wai.judge_pairs(pairs(5), wai.Judge("Prefer substance.", model))
    assert set(found["preference"]) == {"chosen"}
    assert len(model.requests) == 10


def test_messages_are_read_as_well_as_text():
    row = {"prompt": [[{"role": "user", "content": "q"}]], "chosen": [[{"role": "assistant", "content": "long reply"}]],
           "rejected": [[{"role": "assistant", "content": "no"}]]}  # fmt: skip
    assert wai.judge_pairs(Dataset.from_dict(row), by_length)["preference"][0] == "chosen"


def test_a_dataset_without_pairs_is_an_error():
    with pytest.raises(wai.SchemaError, match="chosen"):
        wai.judge_pairs(pairs(2).remove_columns("chosen"), by_length)
    with pytest.raises(wai.InputError, match="function of two rows"):
        wai.judge_pairs(pairs(2), 3)


@pytest.mark.parametrize("case", [c for c in public_reports("judge") if c.id in ("G09", "G10")])
def test_public_reports(case):
    given, expected = case["input"], case["expected"]
    if "flips" in given:

        def judge(first, second):
            i = int(first["final_text"].split()[-1])
            return "first" if i < given["flips"] else by_length(first, second)

        report = wai.judge_pairs(pairs(given["pairs"]), judge).report
        assert report.flips.value == pytest.approx(expected["position_flip_rate"])
        assert report.n_flips == expected["ties_from_flips"]
    else:
        report = wai.judge_pairs(pairs(20), by_length).report
        assert report.length_only.value == expected["length_only_accuracy"]
        assert expected["flag"] in report.flags
