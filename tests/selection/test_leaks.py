"""A reply that quotes the judge's side is a leak; a right answer is none, however it is written."""

from __future__ import annotations

import pytest
from reports import public_reports

import whileai_hf as wai

KEY = "REF-7731-BLUE"


def kept(reply, ask="which one?", **privileged):
    rows = wai.Rollouts.from_records(
        [{"task_id": "t", "privileged": privileged or {"reference": KEY},
          "messages": [{"role": "user", "content": ask}, {"role": "assistant", "content": reply}]}]
    )  # fmt: skip
    return len(rows.filter(wai.NoLeak())) == 1


@pytest.mark.parametrize(
    "reply",
    [KEY, f"The answer is {KEY}.", f"**{KEY}**", f"I looked it up: it is {KEY}", f"The key to the room is {KEY}.",
     f"It is {KEY}, the expected one.", "The reference says nothing."],
)  # fmt: skip
def test_a_right_answer_is_no_leak(reply):
    assert kept(reply)


@pytest.mark.parametrize(
    "reply",
    [f"The key says {KEY}, so done.", f"According to the reference, it is {KEY}", f"Ground truth: {KEY.lower()}",
     f"The hidden answer is {KEY}", f"标准答案是 {KEY}", f"Laut Musterlösung: {KEY}", f"answer key -> {KEY}"],
)  # fmt: skip
def test_an_answer_that_names_the_judges_side_as_its_source_is_a_leak(reply):
    assert not kept(reply)


def test_short_answers_and_words_of_the_user():
    assert not kept("The answer key says 42.", reference=42)
    assert kept("The answer key says 421.", reference=42)
    assert kept("The answer key says 42.", ask="the answer key of page 3?", reference=42)
    assert kept("The answer is 42.", reference=42)
    assert not kept("a fraud tester, it is", hidden_state={"who": "a fraud tester"})


@pytest.mark.parametrize(
    "case", [c for c in public_reports("select") if c.values[0]["feature"] == "leak check"]
)
def test_public_reports(case):
    rows = wai.rows(["q"], [case["input"]["final_text"]], reward=[1], references=[case["input"]["reference"]])  # fmt: skip
    made = rows.select(mode="sft")
    assert len(made) == 0
    assert made.report.dropped["dropped_by"][:] == ["leak"]
