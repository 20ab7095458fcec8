"""ExactMatch and Includes, and what they share with every verifier."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reports import public_reports

from whileai_hf.grade.runner import grade
from whileai_hf.schema import to_dataset
from whileai_hf.verify.text import ExactMatch, Includes

KINDS = {"exact_match": ExactMatch, "includes": Includes}


def row(text, reference):
    return {"final_text": text, "privileged": {"reference": reference}}


@pytest.mark.parametrize("report", public_reports(*KINDS))
def test_a_public_report_is_answered_right(report):
    given = report["input"]
    verifier = KINDS[report["kind"]](**given.get("options", {}))
    assert (
        verifier(row(given["final_text"], given["reference"]))["reward"]
        == (report["expected"]["reward"])
    )


@given(st.text(), st.text())
def test_no_text_makes_a_verifier_raise_or_leave_the_range(text, reference):
    for verifier in (ExactMatch(), Includes()):
        assert verifier(row(text, reference))["reward"] in (None, 0.0, 1.0)


def test_a_row_without_a_reference_is_not_judged():
    assert ExactMatch()({"final_text": "x"})["reward"] is None


def test_reasoning_is_not_the_answer():
    assert Includes()(row("<think>Paris</think>Rome", "Paris"))["reward"] == 0.0


def test_a_verifier_is_a_reward_function_of_trl():
    reward = ExactMatch().reward_func()
    chat = [{"role": "assistant", "content": "Paris"}]
    assert reward.__name__ == "ExactMatch"
    assert reward([""] * 3, ["Paris", "Rome", ""], answer=["paris", "paris", None]) == [1, 0, None]
    assert reward([""], [chat], privileged=[{"reference": "Paris"}]) == [1]


def test_grade_takes_a_verifier():
    graded = grade(to_dataset([row("Paris", "Paris"), row("Rome", "Paris")]), ExactMatch())
    assert graded["reward"][:] == [1.0, 0.0]
    assert graded["judge"][0] == "ExactMatch@1"


def test_a_reason_does_not_give_the_reference_away():
    for text in ("e", "answer", "differs", "Paris"):
        for verifier in (ExactMatch(), Includes()):
            assert verifier(row("nothing", text))["reason"] in (
                "the answer differs",
                "it is not in the answer",
            )


def test_an_empty_answer_is_never_an_article():
    assert ExactMatch(ignore_articles=True)(row("", "the"))["reward"] == 0.0
