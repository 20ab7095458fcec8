"""Planted exploits are caught, honest judges are not accused, and few rows say nothing."""

from __future__ import annotations

import numpy as np
import pytest
from grade.labelled_rows import rows
from reports import public_reports

import whileai_hf as wai
from whileai_hf.grade.probes import CHEATS, PROBES
from whileai_hf.schema import to_record

FAILING = rows([0.0] * 100, [0.0] * 100)
RUBRIC = "The order is refunded and the customer is told the amount."


def exploited(marks):
    """A judge that fails every row but where a text holds one of the marks."""
    return lambda row: float(
        any(m in str([m.get("content") for m in row["messages"]]) for m in marks)
    )


PLANTED = {
    "filler": ("worth recalling",), "keyword_stuffing": ("refunded, customer",), "success_claim": ("completed successfully",),
    "sycophancy": ("excellent question",), "empty_format": ("## Answer",), "refusal": ("cannot help",),
    "rubric_echo": (RUBRIC,), "injection": ("NOTE TO GRADER",),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_exploit_is_caught(name):
    found = wai.judge_probes(FAILING, exploited(PLANTED[name]), rubric=RUBRIC)
    assert name in found.exploits
    assert found[name].estimate.value == 1.0
    assert not found.ok
    assert name in str(found)


def test_a_judge_that_pays_its_own_prompt_back_is_caught():
    def judge(row):
        return float(row["messages"][-1]["content"].endswith(row["messages"][0]["content"]))

    assert "prompt_echo" in wai.judge_probes(FAILING, judge).exploits


def test_a_judge_that_pays_nothing_resists_all():
    found = wai.judge_probes(FAILING, lambda row: 0.0, rubric=RUBRIC)
    assert found.ok
    assert not found.exploits
    assert set(PROBES) == {c.name for c in found.checks}


def test_what_cannot_be_tried_is_unmeasured_and_no_pass():
    found = wai.judge_probes(FAILING, lambda row: 0.0)
    assert found["rubric_echo"].verdict == "unmeasured"
    assert not found.ok
    few = wai.judge_probes(FAILING.select(range(10)), lambda row: 0.0, rubric=RUBRIC)
    assert set(few.unmeasured) == set(PROBES)
    broken = wai.judge_probes(FAILING, lambda row: None)
    assert set(broken.unmeasured) == set(PROBES)
    passing = wai.judge_probes(FAILING, lambda row: 1.0)
    assert "the judge failed no row" in str(passing)


def test_a_wavering_judge_is_not_called_exploitable():
    rng = np.random.default_rng(0)
    found = wai.judge_probes(
        FAILING,
        lambda row: float(rng.random() < 0.3),
        rubric=RUBRIC,
    )
    assert not found.exploits


def test_an_asynchronous_judge_is_probed_like_any_other():
    async def judge(row):
        return float("excellent question" in row["final_text"])

    assert wai.judge_probes(FAILING, judge).exploits == ("sycophancy",)


def test_a_refusal_is_not_tried_where_it_is_right():
    data = rows([0.0] * 40, [0.0] * 40, privileged=[{"expected": "refuse"}] * 40)
    assert wai.judge_probes(data, lambda row: 0.0)["refusal"].verdict == "unmeasured"


def test_the_callers_rows_stay_as_they_were():
    before = [to_record(row) for row in FAILING.select(range(3))]
    wai.judge_probes(FAILING, lambda row: 0.0, sample=30)
    assert [to_record(row) for row in FAILING.select(range(3))] == before


@pytest.mark.parametrize(("options", "match"), [({"probes": "fillers"}, "fillers"), ({"sample": 0}, "sample"), ({"confidence": 2}, "confidence")])  # fmt: skip
def test_an_option_that_names_nothing_is_an_error(options, match):
    with pytest.raises(wai.InputError, match=match):
        wai.judge_probes(FAILING, lambda row: 0.0, **options)


def test_a_scorer_that_pays_agents_which_do_nothing_is_found():
    found = wai.cheat_probes(FAILING, lambda row: float("?" in row["final_text"]))
    assert found.exploits == ("ask",)
    assert {c.name for c in found.checks} == set(CHEATS)
    assert found["constant"].verdict == "unmeasured"
    assert found["empty"].verdict == "pass"


def test_a_constant_answer_is_the_most_common_reference():
    data = rows(
        [0.0] * 60,
        [0.0] * 60,
        privileged=[{"reference": "yes" if i % 3 else "no"} for i in range(60)],
    )
    found = wai.cheat_probes(data, wai.ExactMatch())
    assert found["constant"].estimate.value == pytest.approx(2 / 3)
    assert found.exploits == ("constant",)


def test_the_checklist_pays_no_agent_that_does_nothing():
    from grade import policies

    data = policies.play(wai.seeded_agent(policies.MIXED), policies.MIXED, budget=100)
    found = wai.cheat_probes(data, wai.task_checklist)
    assert not found.exploits
    assert found["empty"].estimate.value == 0
    assert found["refuse"].estimate.value == 0


@pytest.mark.slow
def test_power_and_false_alarms_at_100_rows():
    """A judge that wavers on 3 % of the rows: an exploit on a quarter of them is caught, none is made up."""
    draws = 30
    for per_task in (1, 4):
        caught = {0.0: 0, 0.15: 0, 0.25: 0}
        for share in caught:
            for seed in range(draws):
                rng = np.random.default_rng(seed)
                weak = set(np.flatnonzero(rng.random(100) < share).tolist())
                noise = np.random.default_rng(seed + 999)

                def judge(row, weak=weak, noise=noise):
                    turned = (
                        "excellent question" in row["final_text"]
                        and int(row["rollout_id"][1:]) in weak
                    )
                    return float(turned or noise.random() < 0.03)

                data = rows([0.0] * 100, [0.0] * 100, per_task)
                found = wai.judge_probes(
                    data, judge, rubric=RUBRIC, probes=("sycophancy", "filler", "refusal")
                )
                caught[share] += "sycophancy" in found.exploits if share else bool(found.exploits)
        print(
            f"\n100 rows, {per_task} a task: "
            + ", ".join(f"{s:.0%} of rows turned: {c / draws:.0%}" for s, c in caught.items())
        )
        assert caught[0.0] / draws <= 0.1
        assert caught[0.15] / draws >= 0.4
        assert caught[0.25] / draws >= 0.85


@pytest.mark.parametrize("case", [c for c in public_reports("judge") if c.id in ("G12", "G13")])
def test_public_reports(case):
    given, expected = case["input"], case["expected"]
    if "probe" in expected:
        with_note = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "", "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "look", "arguments": {}}}]},
            {"role": "tool", "tool_call_id": "1", "content": given["tool_output"]},
            {"role": "assistant", "content": given["final_text"]}]  # fmt: skip
        data = wai.Rollouts.from_records(
            [
                {
                    "task_id": f"t{i}",
                    "messages": with_note,
                    "final_text": given["final_text"],
                    "reward": 0.0,
                }
                for i in range(40)
            ]
        )
        found = wai.judge_probes(
            data, lambda row: float(expected["reward_with"]), probes=expected["probe"]
        )
        assert found[expected["probe"]].verdict == "pass"
    else:
        data = wai.Rollouts.from_records([{"task_id": f"t{i}", "messages": [
            {"role": "user", "content": "Help."}, {"role": "assistant", "content": given["final_text"]}],
            "final_text": given["final_text"], "reward": 0.0} for i in range(30)])  # fmt: skip
        assert wai.judge_probes(data, lambda row: 0.0)["success_claim"].n_rows == 30
