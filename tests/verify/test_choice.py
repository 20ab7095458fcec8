"""MultipleChoice: the option picked, told apart from articles, pronouns and denials."""

from __future__ import annotations

import pytest
from reports import public_reports

import whileai_hf as wai

FOUR = ("first", "second", "third", "fourth")


def judged(text, reference, choices=FOUR):
    verifier = wai.MultipleChoice(choices=tuple(choices) if choices else None)
    return verifier({"final_text": text, "privileged": {"reference": reference}})


@pytest.mark.parametrize("case", public_reports("multiple_choice"))
def test_the_public_reports(case):
    given = case["input"]
    found = judged(given["final_text"], given["reference"], given["choices"])
    assert found["reward"] == case["expected"]["reward"]
    if "reason_kind" in case["expected"]:
        assert found["reason"] == case["expected"]["reason_kind"]


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("C, I believe", "C"),
        ("a good guess: D", "D"),
        ("The answer is because it is heavier, hence C", "C"),
        ("not A; it is B", "B"),
        ("B", "Answer: B"),
        ("<think>B maybe</think>The answer is C", "C"),
        ("The correct option is (A), as A is larger than B.", "A"),
        ("I choose B.", "B"),
        ("The answer is **B) second**", "B"),
        ("\\boxed{\\text{C}}", "C"),
        ("It's A", "A"),
        ("Both A and B are right.", "A,B"),
        ("A and C", "A, C"),
        ("Answer: D. fourth", "D"),
        ("d", "D"),
        ("Option c", "C"),
        ("Final answer: (b)", "B"),
        ("Therefore, the answer is second.", "B"),
        ("答案是B", "B"),
        ("答案：C。", "C"),
        ("The answer is A. However, B is close.", "A"),
        ("The answer is (D) because (A) is too small", "D"),
        ("Eliminating A, B and C leaves D", "D"),
        ("The answer is B.", "second"),
    ],
)
def test_the_pick_is_right(text, reference):
    assert judged(text, reference)["reward"] == 1.0


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("The answer is A or B", "A"),
        ("", "A"),
        ("A, B, C, D", "A"),
        ("I don't know.", "A"),
        ("A", "B"),
    ],
)
def test_another_pick_or_none_is_wrong(text, reference):
    assert judged(text, reference)["reward"] == 0.0


@pytest.mark.parametrize("reference", [None, "", "fifth", "I cannot say", []])
def test_a_reference_that_names_no_option_gives_null(reference):
    assert judged("B", reference)["reward"] is None


def test_options_are_read_from_the_row():
    row = {
        "final_text": "The answer is green.",
        "privileged": {"reference": "B", "choices": ["red", "green"]},
    }
    assert wai.MultipleChoice()(row)["reward"] == 1.0
    row = {
        "final_text": "B",
        "choices": {"text": ["red", "green"], "label": ["A", "B"]},
        "answerKey": "B",
    }
    assert wai.MultipleChoice(field="answerKey")(row)["reward"] == 1.0


def test_without_options_every_letter_is_one():
    assert judged("The answer is F.", "F", None)["reward"] == 1.0


@pytest.mark.parametrize("choices", ["red", ("one",)])
def test_wrong_choices_are_an_error(choices):
    with pytest.raises(wai.InputError, match="two or more options"):
        wai.MultipleChoice(choices=choices)
