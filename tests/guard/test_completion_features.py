"""Completions of any shape and script become named numbers."""

from __future__ import annotations

from whileai_hf.guard.completion_features import completion_features, completion_text

CALL = {"type": "function", "function": {"name": "pay", "arguments": {"n": 3}}}
CHAT = [
    {"role": "assistant", "content": "I look.", "tool_calls": [CALL, CALL]},
    {"role": "tool", "name": "pay", "content": "SECRET RESULT"},
    {"role": "assistant", "content": "Done!"},
]


def test_words_phrases_and_signs_are_present_or_absent():
    found = completion_features("Sure: the answer is 42!")
    assert (
        found["the word 'sure'"] == found["the phrase 'the answer'"] == found["the sign '!'"] == 1.0
    )
    assert found["the number of digits"] == 2.0
    assert "the word 'no'" not in found


def test_calls_are_counted_and_results_are_not_the_policys_words():
    found = completion_features(CHAT)
    assert found["the number of tool calls"] == found["calls of pay"] == 2.0
    assert found["unanswered tool calls"] == 1.0
    assert "the word 'secret'" not in found
    assert completion_text(CHAT) == 'I look.\npay({"n": 3})\npay({"n": 3})\nDone!'


def test_a_script_without_spaces_is_read_by_characters():
    found = completion_features("订单已退款")
    assert found["the word '退'"] == found["the phrase '退 款'"] == 1.0


def test_repetition_is_a_share():
    assert completion_features("a b a b a b")["repeated pairs of words"] == 1 - 2 / 5


def test_nothing_odd_breaks_it():
    for odd in (
        "",
        [],
        [{}],
        {"role": "assistant", "content": None},
        [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}],
        7,
    ):
        assert all(isinstance(v, float) for v in completion_features(odd).values())
