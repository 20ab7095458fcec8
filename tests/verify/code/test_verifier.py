"""`CodeExec` reads programs out of answers and rewards them."""

from __future__ import annotations

from whileai_hf.verify.code.verifier import CodeExec


def row(answer: str, tests: str | None) -> dict:
    return {"final_text": answer, "messages": None, "privileged": {"reference": tests}}


def test_a_fenced_right_program_is_paid_and_the_isolation_named():
    verdict = CodeExec()(row("Here:\n```python\ndef f(): return 1\n```\nDone.", "assert f() == 1"))
    assert verdict["reward"] == 1
    assert "isolation: " in verdict["reason"]


def test_a_cut_fence_runs_to_the_end():
    assert CodeExec()(row("```python\ndef f(): return 1", "assert f() == 1"))["reward"] == 1


def test_a_row_without_tests_is_null():
    assert CodeExec()(row("def f(): return 1", None))["reward"] is None


def test_the_trl_reward_reads_a_column_of_tests():
    reward = CodeExec(field="tests").reward_func()
    answers = ["def f(): return 1", "def f(): return 2"]
    assert reward(["p", "p"], answers, tests=["assert f() == 1"] * 2) == [1.0, 0.0]
