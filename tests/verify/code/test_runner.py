"""`run`: nothing wrong is paid, at every level; what is not served is null."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from whileai_hf.errors import InputError
from whileai_hf.verify.code.extraction import program
from whileai_hf.verify.code.runner import best_level, run

DATA = Path(__file__).parents[2] / "data"


def cases(name: str) -> list:
    rows = [json.loads(line) for line in (DATA / name).read_text().splitlines()]
    return [pytest.param(r, id=r["id"]) for r in rows if isinstance(r["tests"], str)]


@pytest.mark.parametrize("level", ["namespaces", "landlock"])
@pytest.mark.parametrize("case", cases("code_attacks.jsonl"))
def test_no_attack_is_paid_beyond_the_inherent_ones(case, level):
    result = run(
        program(case["candidate"]),
        case["tests"],
        entry=case.get("entry"),
        trusted=case.get("trusted") or "",
        timeout=1,
        isolation=level,
    )
    assert result.reward != 1 or case.get("inherent")
    assert result.guarantee == level


def test_a_right_program_is_paid_and_a_wrong_one_is_not():
    assert run("def f(a): return a + 1", "assert f(1) == 2").reward == 1
    assert run("def f(a): return a + 2", "assert f(1) == 2").reward == 0


def test_the_best_level_is_never_the_one_that_needs_asking():
    assert best_level() != "rlimit"


def test_tests_without_a_check_give_null():
    assert run("x = 1", "y = x").reward is None


def test_an_unknown_isolation_is_refused():
    with pytest.raises(InputError, match="isolation"):
        run("x = 1", "assert x", isolation="docker")
