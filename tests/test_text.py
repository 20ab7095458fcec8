"""Words and numbers: any script, any punctuation, any form of the same character."""

from __future__ import annotations

import doctest
import unicodedata

import pytest

from whileai_hf import text


def test_the_examples_of_the_docstrings_are_what_they_say():
    assert doctest.testmod(text).failed == 0


@pytest.mark.parametrize(
    ("written", "split"),
    [
        ("Don’t  STOP — please_now", ["don", "t", "stop", "please", "now"]),
        ("退款，好吗？", list("退款好吗")),
        ("東京タワー", list("東京タワー")),
        ("주문을 취소", ["주문을", "취소"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("Straße", ["strasse"]),
        ("ｆｕｌｌ　ｗｉｄｔｈ", ["full", "width"]),
        ("soft\u00adhyphen zero\u200bwidth", ["softhyphen", "zerowidth"]),
        ("مرحبا، كيف", ["مرحبا", "كيف"]),
        ("", []),
        ("?!…", []),
    ],
)
def test_a_text_is_split_into_words(written, split):
    assert text.words(written) == split


def test_thai_and_burmese_give_one_word_a_character_with_its_marks():
    assert text.words("ที่นี่") == ["ที่", "นี่"]
    assert "".join(text.words("မြန်မာ")) == "မြန်မာ"


def test_two_unicode_forms_of_a_text_have_the_same_words():
    written = "Crème brûlée à Zürich, Việt Nam"
    assert text.words(unicodedata.normalize("NFD", written)) == text.words(written)


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("3+5", ["3", "+", "5"]),
        ("3 - 5", ["3", "-", "5"]),
        ("order A-17", ["17"]),
        ("1,000 and 007", ["1000", "7"]),
        ("2024-05-01", ["2024", "5", "1"]),
        ("05/01/2024", ["5", "1", "2024"]),
        ("three cats and 3 dogs", ["3", "3"]),
        ("- 5 apples", ["5"]),
        ("it is −5.50", ["-", "5.5"]),
        ("C++ or C# or C", ["++", "#"]),
        ("no number", []),
    ],
)
def test_numbers_are_read_with_signs_and_operators(written, found):
    assert text.numbers(written) == found


def test_a_lone_surrogate_is_no_crash():
    assert text.words("a\ud800b") == ["a", "b"]
    assert text.numbers("\ud8005") == ["5"]
