"""Numeric: the number an answer commits to, in any spelling, exactly."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reports import public_reports

import whileai_hf as wai
from whileai_hf.verify.quantities import plain_signs, quantities, read_quantity


def judged(text, reference, **options):
    return wai.Numeric(**options)({"final_text": text, "privileged": {"reference": reference}})


@pytest.mark.parametrize("case", public_reports("numeric"))
def test_the_public_reports(case):
    given_ = case["input"]
    found = judged(given_["final_text"], given_["reference"], **given_.get("options", {}))
    assert found["reward"] == case["expected"]["reward"]


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("The answer is 3.14", "3.14"),
        ("The result: 12.5 dollars", "12.5"),
        ("answer is 5. wait no\nThe answer is 7", "7"),
        ("The answer is 5. Wait, I made a mistake: it is 9.", "9"),
        ("I need 3/4 of 12 = 9", "9"),
        ("1 1/2", "1.5"),
        ("50%", "0.5"),
        ("10 m2", "10"),
        ("x = 42 (see note 1)", "42"),
        ("42, not 43", "42"),
        ("−7", "-7"),
        ("\\dfrac{3}{4}", "0.75"),
        ("-\\frac12", "-0.5"),
        ("0.35", "35%"),
        ("1,234.50", "1234.5"),
        ("1.234,56 €", "1234.56"),
        ("12,34,567", "1234567"),
        ("3,5", "3.5"),
        ("The answer is 6*7 = 42.", "42"),
        ("Answer: **42** apples", "42"),
        ("It costs $3 million", "3000000"),
        ("2½ cups", "2.5"),
        ("1e6", 1000000),
        ("3.2 × 10⁻⁴", "0.00032"),
        ("0.(3)", "1/3"),
        ("The answer is 42 because 6 times 7 is 42 and 5 is odd", "42"),
        ("15 kilometers", "15 km"),
        ("It took 3 hours, so 12", "12"),
        ("答案是 42。", "42"),
        ("La respuesta es 42.", "42"),
        ("Die Antwort lautet 42.", "42"),
        ("La réponse est 42.", "42"),
        ("\\boxed{\\$1{,}200}", "1200"),
        ("The answer is: 7 days (one week of 7)", "7"),
        ("**Answer:**\n\n$42$", "42"),
        ("#### 1,000", "He pays 1,000 in all.\n#### 1000"),
        ("7", Decimal("7.0")),
        ("1/3", Fraction(1, 3)),
        ("<think>The answer is 41</think>The answer is 42", "42"),
    ],
)
def test_the_committed_number_is_right(text, reference):
    assert judged(text, reference)["reward"] == 1.0


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        ("2024/05/01", "404.8"),
        ("3:30", "3"),
        ("between 3-5", "5"),
        ("3 to 5", "5"),
        ("35", "35%"),
        ("15 km", "15 m"),
        ("$18", "€18"),
        ("1/3", "0.333"),
        ("2.7", "3"),
        ("<think>The answer is 42", "42"),
        ("version v42", "42"),
        ("zero", "0"),
        ("9" * 1000, "9"),
    ],
)
def test_another_number_or_none_is_wrong(text, reference):
    assert judged(text, reference)["reward"] == 0.0


@pytest.mark.parametrize("reference", [None, "", "seven", True, [], float("nan"), float("inf")])
def test_a_reference_that_is_no_number_gives_null(reference):
    assert judged("7", reference)["reward"] is None


def test_an_answer_with_more_digits_rounds_to_the_reference():
    assert judged("28.571", "28.6")["reward"] == 1.0
    assert judged("28.651", "28.6")["reward"] == 0.0
    assert judged("28.571", "28.6", rounding=False)["reward"] == 0.0
    assert judged("28.571", "29")["reward"] == 0.0


def test_tolerances_and_percent_are_switches():
    assert judged("101", "100", rel_tol=0.01)["reward"] == 1.0
    assert judged("101", "100", abs_tol=0.5)["reward"] == 0.0
    assert judged("35", "35%", percent="lenient")["reward"] == 1.0


@pytest.mark.parametrize("option", [{"percent": "x"}, {"rel_tol": -1}, {"abs_tol": -1}])
def test_a_wrong_option_is_an_error(option):
    with pytest.raises(wai.InputError, match="tolerances"):
        wai.Numeric(**option)


@given(
    st.decimals(
        allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12, places=4
    )
)
def test_every_decimal_is_read_as_it_is_written(value):
    for text in (f"{value:f}", f"{value:,f}", f"${value:,f}$"):
        assert read_quantity(text).value == Fraction(value)
    assert judged(f"The answer is {value:,f}.", str(value))["reward"] == 1.0


def test_numbers_stand_where_they_are_said_to():
    text = plain_signs("from 3 apples to -4.5 %")
    assert [(text[q.start : q.start + 2], q.quantity.percent) for q in quantities(text)] == [
        ("3 ", False),
        ("-4", True),
    ]
