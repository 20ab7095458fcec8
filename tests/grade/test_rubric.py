"""Rubrics come as prose, criteria, or a file of a specification folder."""

from __future__ import annotations

import pytest

import whileai_hf as wai
from whileai_hf.grade.rubric import Rubric

TEXT = """\
# Refund desk
Doing the job means that the right payment is refunded.

## Hard
- The payment of the customer is refunded.

## Principles
1. The amount is told.
2. Nothing else is changed.

## Pitfalls
- It promises a date.

## Notes
- A bullet that is prose.
"""


def test_a_folder_gives_prose_and_criteria(tmp_path):
    (tmp_path / "rubric.md").write_text(TEXT, encoding="utf-8")
    rubric = Rubric.of(tmp_path)
    assert [c.kind for c in rubric.criteria] == ["hard", "principle", "principle", "pitfall"]
    assert rubric.criteria[3].statement == "The reply avoids this: It promises a date."
    assert "Doing the job" in rubric.text
    assert "A bullet that is prose." in rubric.text
    assert Rubric.of(tmp_path / "rubric.md") == rubric


def test_bullets_may_name_their_kind():
    assert [
        c.kind for c in Rubric.of("- hard: a\n- [pitfall] b\n- **Principle**: c\n- prose").criteria
    ] == ["hard", "pitfall", "principle"]


def test_weights_count_in_the_mean():
    rubric = Rubric("", (wai.Criterion("a", weight=3), wai.Criterion("b")))
    assert rubric.reward([True, False]) == 0.75
    assert (
        Rubric("", (wai.Criterion("a", "hard"), wai.Criterion("b", "hard"))).reward([True, True])
        == 1
    )


@pytest.mark.parametrize("given", ["", "  ", [], None, 3])
def test_no_rubric_is_an_error(given):
    with pytest.raises(wai.InputError, match="rubric"):
        Rubric.of(given)


def test_a_folder_without_one_is_an_error(tmp_path):
    with pytest.raises(wai.InputError, match=r"rubric\.md"):
        Rubric.of(tmp_path)
