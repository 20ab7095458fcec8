"""MathEqual: notation does not matter, value does, and nothing takes longer than it may."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from datasets import Dataset
from reports import public_reports

import whileai_hf as wai
from whileai_hf.verify import math_pool
from whileai_hf.verify.math_worker import compare


def judged(text, reference, **options):
    return wai.MathEqual(**options)({"final_text": text, "privileged": {"reference": reference}})


def batch(pairs):
    return Dataset.from_list(
        [
            {"task_id": f"t{i}", "final_text": text, "reference": reference}
            for i, (text, reference) in enumerate(pairs)
        ]
    )


@pytest.mark.parametrize(
    "case",
    [
        c
        for c in public_reports("math_equal")
        if "final_text" in c.values[0]["input"] and "rows" not in c.values[0]["input"]
    ],
)
def test_the_public_reports(case):
    start = time.monotonic()
    found = judged(case["input"]["final_text"], case["input"]["reference"])
    assert found["reward"] == case["expected"]["reward"]
    assert time.monotonic() - start < case["expected"].get("max_seconds", 10)


def test_a_report_of_many_threads_and_one_slow_row():
    (case,) = [c.values[0] for c in public_reports("math_equal") if c.values[0]["id"] == "M31"]
    given = case["input"]
    pairs = [(given["final_text"], given["reference"])] * given["rows"]
    pairs[100] = (given["one_row_final_text"], given["reference"])
    with ThreadPoolExecutor(given["threads"]) as threads:
        rewards = list(threads.map(lambda pair: judged(*pair)["reward"], pairs))
    assert rewards == [float(i != 100) for i in range(given["rows"])]


@pytest.mark.filterwarnings("ignore:every reward is 1")
def test_a_report_of_waiting_rows_that_are_no_timeouts():
    """Each row computes; two workers are waited for longer than the time of one row."""
    pairs = [(f"$\\\\frac{{{i}}}{{7}}+x$".replace("\\\\", "\\"), f"x+{i}/7") for i in range(200)]
    scored = wai.grade(
        batch(pairs), wai.MathEqual(timeout=3.0, field="reference"), concurrency=8, progress=False
    )
    assert scored["reward"][:] == [1.0] * 200


def test_a_report_of_a_batch_with_answers_that_hold_nothing():
    (case,) = [c.values[0] for c in public_reports("math_equal") if c.values[0]["id"] == "M35"]
    given = case["input"]
    rewards = wai.MathEqual().reward_func()(
        prompts=[""] * 5, completions=given["final_texts"], reference=given["references"]
    )
    assert rewards == case["expected"]["rewards"]


RIGHT = [
    ("\\boxed{\\frac{3}{4}}", "0.75"),
    ("$x = 5$", "5"),
    ("x=5", "x=5"),
    ("\\boxed{x^2+2x+1}", "(x+1)^2"),
    ("\\boxed{(x+1)(x-1)}", "x^2-1"),
    ("\\boxed{2\\sqrt{3}}", "\\sqrt{12}"),
    ("\\boxed{(1, 2)}", "(1,2)"),
    ("\\boxed{\\{1,2,3\\}}", "\\{3,2,1\\}"),
    ("\\boxed{\\text{Evelyn}}", "\\text{Evelyn}"),
    ("The answer is Evelyn.", "\\text{Evelyn}"),
    (
        "\\boxed{\\begin{pmatrix}1 & 2\\\\3 & 4\\end{pmatrix}}",
        "\\begin{pmatrix} 1&2\\\\3&4\\end{pmatrix}",
    ),
    ("\\boxed{90^\\circ}", "90"),
    ("\\boxed{90^\\circ}", "90^\\circ"),
    ("\\boxed{\\$5.00}", "5"),
    ("\\boxed{10\\%}", "0.1"),
    ("\\boxed{1{,}000{,}000}", "10^6"),
    ("\\boxed{10^{6}}", "1000000"),
    ("\\boxed{2^{10}}", "1024"),
    ("\\boxed{e^{i\\pi}}", "-1"),
    ("\\boxed{y=2x+1}", "y = 2x + 1"),
    ("\\boxed{2x+1}", "y=2x+1"),
    ("\\boxed{x\\in(-\\infty,3]}", "(-\\infty,3]"),
    ("$x \\le 3$", "(-\\infty,3]"),
    ("\\boxed{1 \\pm \\sqrt{2}}", "1+\\sqrt2, 1-\\sqrt2"),
    ("\\boxed{\\frac{1}{2} \\text{ or } 3}", "3, \\frac12"),
    ("\\boxed{-\\frac{1}{2}}", "-0.5"),
    ("\\boxed{\\dfrac{-1}{2}}", "-\\frac{1}{2}"),
    ("\\boxed{0.5}", "\\frac{1}{2}"),
    ("\\boxed{\\frac{x}{2}}", "0.5x"),
    ("\\boxed{\\sin^2 x + \\cos^2 x}", "1"),
    ("\\boxed{11_2}", "11_2"),
    ("\\boxed{n!}", "n!"),
    ("\\boxed{120}", "5!"),
    ("\\boxed{\\binom{5}{2}}", "10"),
    ("\\boxed{\\text{no solution}}", "no solution"),
    ("There is no solution.", "\\text{no solution}"),
    ("\\boxed{3x+2y=6}", "6x+4y=12"),
    ("\\boxed{\\frac{\\pi}{4}}", "\\pi/4"),
    ("\\boxed{i}", "i"),
    ("\\boxed{3+4i}", "4i+3"),
    ("\\boxed{\\infty}", "\\infty"),
    ("\\boxed{\\sqrt[3]{8}}", "2"),
    ("The answer is 0.3333", "0.333"),
    ("\\boxed{\\frac{14}{3}}", "4\\frac{2}{3}"),
    ("\\boxed{5\\text{ cm}^2}", "5\\text{ cm}^2"),
    ("\\boxed{5\\text{ cm}^2}", "5"),
    ("Therefore, the sum is $3+4=7$.", "7"),
    ("3 + 4 = 7", "7"),
    ("The answer is $-x^2$", "-x^2"),
    ("\\boxed{A}", "A"),
    ("(B)", "B"),
    ("\\boxed{[1,2]}", "[1,2]"),
    ("\\boxed{(-\\infty, -1) \\cup (1, \\infty)}", "(1,\\infty)\\cup(-\\infty,-1)"),
    ("\\boxed{x=1 \\text{ or } x=2}", "1,2"),
    ("\\boxed{x = 1, 2}", "\\{1,2\\}"),
    ("The solutions are $x=1$ and $x=-2$.", "1,-2"),
    ("#### 72", "72"),
    ("\\boxed{3:2}", "3:2"),
    ("\\boxed{\\frac{2}{4}}", "\\frac{1}{2}"),
    ("\\boxed{1.50}", "1.5"),
    ("\\boxed{f(x)=x^2}", "x^2"),
    ("\\boxed{a_n = 2n+1}", "2n+1"),
    ("\\boxed{2n+1}", "a_n=2n+1"),
    ("\\boxed{6 \\cdot 7}", "42"),
    ("\\boxed{6\\times 10^{3}}", "6000"),
    ("\\boxed{7/2}", "3.5"),
    ("\\boxed{-(-3)}", "3"),
    ("\\boxed{|{-3}|}", "3"),
    ("\\boxed{\\lfloor 3.7 \\rfloor}", "3"),
    ("Answer: $\\mathbf{42}$", "42"),
    ("**Answer: 42**", "42"),
    ("The answer is $x^{2}+1$, which is positive for all $x$.", "x^2+1"),
    ("\\boxed{1,\\!234}", "1234"),
    ("\\boxed{2\\frac14}", "2.25"),
    ("\\boxed{\\tan 45^\\circ}", "1"),
    ("\\boxed{p^2-p}", "p(p-1)"),
    ("$\\boxed{5}$ or maybe $\\boxed{6}$? I'd say \\boxed{6}", "6"),
    ("\\boxed{0.1+0.2}", "0.3"),
    ("\\boxed{1e3}", "1000"),
    ("\\boxed{\\frac{a^2-b^2}{a-b}}", "a+b"),
]
WRONG = [
    ("$.$", "42"),
    ("\\boxed{\\pi}", "3.14"),
    ("\\boxed{3.14}", "\\pi"),
    ("\\boxed{(1,2)}", "(2,1)"),
    ("\\boxed{1,2}", "1,2,3"),
    (
        "\\boxed{\\begin{pmatrix}1 & 2\\\\3 & 5\\end{pmatrix}}",
        "\\begin{pmatrix} 1&2\\\\3&4\\end{pmatrix}",
    ),
    ("\\boxed{10}", "10\\%"),
    ("$x<3$", "(-\\infty,3]"),
    ("\\boxed{DNE}", "does not exist"),
    ("\\boxed{3x+2y=7}", "6x+4y=12"),
    ("The final answer is $\\frac{1}{3}$.", "0.333"),
    ("\\boxed{5 \\text{ cm}}", "5\\text{ m}"),
    ("C", "B"),
    ("\\boxed{(1,2]}", "(1,2)"),
    ("\\boxed{}", "3"),
    ("\\boxed{\\frac{}{}}", "3"),
    ("", "3"),
    ("\\boxed{10000000000000000001}", "10000000000000000000"),
    ("\\boxed{\\sqrt{x^2}}", "x"),
]


@pytest.mark.parametrize(("text", "reference"), RIGHT)
def test_the_same_value_in_another_notation_is_right(text, reference):
    assert judged(text, reference)["reward"] == 1.0


@pytest.mark.parametrize(("text", "reference"), WRONG)
def test_another_value_is_wrong(text, reference):
    assert judged(text, reference)["reward"] == 0.0


@pytest.mark.parametrize("reference", [None, "", "  ", "see the figure", True, []])
def test_a_reference_that_cannot_be_read_gives_null(reference):
    assert judged("42", reference)["reward"] is None


def test_percent_is_a_switch():
    assert judged("35", r"35\%")["reward"] == 0.0
    assert judged("35", r"35\%", percent="lenient")["reward"] == 1.0
    assert judged("35%", "35")["reward"] == 1.0


def test_several_references_are_alternatives():
    assert judged("7", ["6", "7"])["reward"] == 1.0
    assert judged("8", ["6", "7"])["reward"] == 0.0


def test_a_reason_never_quotes_the_reference():
    assert "91" not in judged("$3$", "9191")["reason"]


def test_an_expression_that_never_ends_costs_its_timeout_and_leaves_the_pool_working():
    start = time.monotonic()
    found = judged(r"\boxed{x^{(10^9)!}+1}", "x+1", timeout=2.0)
    assert found["reward"] == 0.0
    assert time.monotonic() - start < 8
    assert judged(r"\boxed{\frac{x}{2}}", "0.5x")["reward"] == 1.0


def test_a_worker_that_is_killed_is_replaced():
    assert judged(r"$x+x$", "2x")["reward"] == 1.0
    worker = math_pool.pool().free.get()
    os.kill(worker.process.pid, 9)
    worker.process.wait()
    math_pool.pool().free.put(worker)
    assert judged(r"$x+x$", "3x")["reward"] == 0.0
    assert judged(r"$x+x$", "2x")["reward"] == 1.0


def test_it_works_outside_the_main_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(judged(r"$\sqrt{12}$", r"$2\sqrt{3}$")))
    thread.start()
    thread.join()
    assert found[0]["reward"] == 1.0


@pytest.mark.parametrize("option", [{"percent": "polte"}, {"timeout": 0}])
def test_a_wrong_option_is_an_error(option):
    with pytest.raises(wai.InputError, match="percent must be one of"):
        wai.MathEqual(**option)


def test_the_comparison_is_relative_and_exact():
    assert compare("10^{-40}", "2 \\cdot 10^{-40}", "expression") is False
    assert compare("\\sqrt{2}", "1.41421356237", "expression") is False
    assert compare("\\sqrt{x^2}", "x", "expression") is False
    assert compare("(x+1)^{20}-(x+1)^{20}", "0", "expression") is True


def test_plain_datasets_are_judged_by_a_named_column():
    data = Dataset.from_dict({"task_id": ["a"], "final_text": ["So $x=3$."], "solution": ["3"]})
    scored = wai.grade(data, wai.MathEqual(field="solution"), progress=False)
    assert scored["reward"][:] == [1.0]
