"""No verifier raises, leaves [0, 1], returns NaN or hangs, whatever the text, from any thread."""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import whileai_hf as wai

VERIFIERS = {
    "ExactMatch": (wai.ExactMatch(), ["yes", "42", ["a", "b"]]),
    "Includes": (wai.Includes(), ["yes", "42"]),
    "Numeric": (wai.Numeric(), ["42", 3.5, "1/3", "35%"]),
    "MathEqual": (
        wai.MathEqual(timeout=2.0),
        ["42", r"\frac{1}{2}", "x^2+1", "[0,1)", r"\text{no}", "1,2"],
    ),
    "MultipleChoice": (wai.MultipleChoice(choices=("red", "green", "blue")), ["B", "A,B", 2]),
    "Regex": (wai.Regex(pattern=r"(?:\w+\s?)+:\s*(\d+)$"), ["7", None]),
    "JSONValid": (wai.JSONValid(), [None]),
    "JSONSchema": (
        wai.JSONSchema(
            schema={
                "type": "object",
                "properties": {"a": {"type": "string", "format": "date", "pattern": "^(a+)+$"}},
            }
        ),
        [None],
    ),
    "JSONField": (wai.JSONField(path="a.0.b"), [1, "x", None]),
    "ToolCalls": (wai.ToolCalls(), [[["f", {"x": 1}]], "not calls"]),
}

_PIECES = st.sampled_from(
    ["\\boxed{", "}", "{", "$", "\\frac", "\\sqrt", "^", "_", "(", ")", "[", "]", ",", "and", "or", "the answer is ",
     "Answer:", "#### ", "42", "-7", "3.5", "1/2", "%", "x", "=", "<", "\\le", "\\pm", "\\text{", "\\cup", "∞", "½", "10^", "!",
     "9^{9^{9}}", "```json\n", "```", '"a":', "null", "NaN", "<think>", "</think>", "A", "(B)", "not ", "wait, ", "\n", " ", "🙂",
     "٣", "一", "\x00", "\ud800", "\\", "e", "\\begin{pmatrix}", "&", "1,234", ".", "|"]
)  # fmt: skip
TEXTS = st.one_of(st.text(max_size=200), st.lists(_PIECES, max_size=25).map("".join))


def check(name, text):
    verifier, references = VERIFIERS[name]
    for reference in references:
        start = time.monotonic()
        found = verifier(
            {"final_text": text, "messages": None, "privileged": {"reference": reference}}
        )
        assert time.monotonic() - start < 10
        reward = found["reward"]
        assert reward is None or (
            isinstance(reward, float) and math.isfinite(reward) and 0 <= reward <= 1
        )
        assert "failed" not in found["reason"], (text, reference, found)


@pytest.mark.parametrize("name", sorted(VERIFIERS))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=TEXTS)
def test_any_text_gets_a_verdict(name, text):
    check(name, text)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(VERIFIERS))
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=TEXTS)
def test_ten_thousand_texts_each_get_a_verdict(name, text):
    check(name, text)


@pytest.mark.parametrize("name", sorted(VERIFIERS))
@pytest.mark.parametrize(
    "text",
    ["a" * 300_000, "1" * 100_000, "(" * 50_000, "{" * 50_000, "\\boxed{" * 5_000, "$" * 20_001, "x=" * 20_000,
     "the answer is " * 5_000, "1,2," * 20_000, "\\frac" * 5_000, '{"a":' * 20_000, "A or " * 10_000, "9 " * 50_000],
    ids=lambda text: f"{text[:8]}*{len(text)}",
)  # fmt: skip
def test_long_texts_take_no_longer_than_they_may(name, text):
    check(name, text)


def test_verdicts_are_the_same_from_many_threads():
    texts = ["The answer is 42.", "\\boxed{\\frac{84}{2}}", "$x+x$", "43", '{"a": 1}', "(B)"] * 8
    jobs = [
        (verifier, text, reference)
        for verifier, refs in VERIFIERS.values()
        for reference in refs
        for text in texts[:6]
    ]

    def run(job):
        verifier, text, reference = job
        row = {"final_text": text, "messages": None, "privileged": {"reference": reference}}
        return verifier(row)["reward"]

    serial = [run(job) for job in jobs]
    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(run, jobs * 3)) == serial * 3
