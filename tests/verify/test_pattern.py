"""Regex: built or refused at once, bounded in time, the last match counts."""

from __future__ import annotations

import time

import pytest
from reports import public_reports

import whileai_hf as wai


@pytest.mark.parametrize("case", public_reports("regex"))
def test_the_public_reports(case):
    given, expected = case["input"], case["expected"]
    if "raises" in expected:
        with pytest.raises(wai.InputError, match="regular expression"):
            wai.Regex(pattern=given["pattern"])
        return
    row = {"final_text": given["final_text"], "privileged": {"reference": given.get("reference")}}
    start = time.monotonic()
    assert wai.Regex(pattern=given["pattern"])(row)["reward"] == expected["reward"]
    assert time.monotonic() - start < expected.get("max_seconds", 5)


def test_a_search_without_end_earns_nothing():
    start = time.monotonic()
    found = wai.Regex(pattern=r"(?:(?:a|aa)+)+\d$")({"final_text": "a" * 5000 + "!"})
    assert found["reward"] == 0.0
    assert time.monotonic() - start < 3


def test_a_group_is_compared_with_the_reference():
    row = {"final_text": "score=3 grade=7", "privileged": {"reference": "7"}}
    assert wai.Regex(pattern=r"score=(\d) grade=(?P<g>\d)", group="g")(row)["reward"] == 1.0
    assert wai.Regex(pattern=r"score=(\d) grade=(?P<g>\d)")(row)["reward"] == 0.0
    assert wai.Regex(pattern=r"SCORE", ignore_case=True)({"final_text": "score"})["reward"] == 1.0


@pytest.mark.parametrize("group", [3, "polte"])
def test_a_group_that_the_pattern_lacks_is_an_error(group):
    with pytest.raises(wai.InputError, match="group"):
        wai.Regex(pattern="(a)", group=group)


def test_an_empty_reference_gives_null():
    assert (
        wai.Regex(pattern="a")({"final_text": "a", "privileged": {"reference": ""}})["reward"]
        is None
    )
