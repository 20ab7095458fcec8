"""All, Any, Weighted and @verifier."""

from __future__ import annotations

import pytest

from whileai_hf.errors import InputError
from whileai_hf.verify.compose import All, Any, Weighted, verifier
from whileai_hf.verify.text import ExactMatch, Includes

ROW = {"final_text": "It is Rome", "privileged": {"reference": "Rome"}}


def test_all_is_the_worst_and_any_the_best_part():
    assert All(ExactMatch(), Includes())(ROW)["reward"] == 0.0
    assert Any(ExactMatch(), Includes())(ROW)["reward"] == 1.0


def test_weighted_is_the_weighted_mean():
    assert Weighted((ExactMatch(), 3), (Includes(), 1))(ROW)["reward"] == 0.25


def test_a_part_without_a_reward_leaves_the_whole_without_one():
    assert Any(Includes(), ExactMatch(field="nowhere"))(ROW)["reward"] is None


@pytest.mark.parametrize("make", [All, Any, Weighted, lambda: Weighted((ExactMatch(), -1))])
def test_what_cannot_be_composed_is_refused(make):
    with pytest.raises(InputError):
        make()


def test_a_function_becomes_a_verifier_that_cannot_leave_the_range():
    @verifier
    def ends(answer, reference):
        return 7 if answer == "seven" else answer.endswith(reference)

    assert ends(ROW)["reward"] == 1.0
    assert ends.name == "ends@1"
    assert ends({**ROW, "final_text": "seven"})["reward"] is None


def test_a_composed_verifier_is_a_reward_function_of_trl():
    reward = Weighted((ExactMatch(), 3), (Includes(), 1)).reward_func()
    assert reward.__name__ == "Weighted"
    given = ["Rome", "It is Rome", "Oslo", "x"]
    assert reward([""] * 4, given, answer=["Rome"] * 3 + [None]) == [1.0, 0.25, 0.0, None]
