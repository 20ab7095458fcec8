"""The checklist pays for ends that the world shows, and nobody for nothing."""

from __future__ import annotations

import copy
from collections import defaultdict

import numpy as np
import pytest
from grade import policies
from grade.reports_in_languages import HONEST, LIES, UNKNOWN

import whileai_hf as wai
from whileai_hf import schema
from whileai_hf.simulate.grid import grid
from whileai_hf.world.tools import read_tools

#: Ends at which saying the right thing and calling nothing is right, by the policy for which it is.
RIGHT = {
    "refuse all": {"refuse", "no_call"},
    "filler": {"no_call"},
    "call everything": {"done"},
    "call, then claim": {"done"},
}
EVERY_LANGUAGE = ("en", "es", "de", "fr", "zh")


def records(agent, tools):
    n = len(grid(read_tools(tools), policies.POLICY))
    return [schema.to_record(row) for row in policies.play(agent, tools, budget=n)]


@pytest.fixture(
    scope="module", params=["mixed", "writing", pytest.param("reading", marks=pytest.mark.slow)]
)
def earned(request):
    """Rewards by policy and by the end that is right, over the whole grid."""
    tools = policies.TOOL_SETS[request.param]
    table = {}
    for agent in [wai.seeded_agent(tools, rate=0.0), *policies.degenerate(tools)]:
        ends, conduct = defaultdict(list), defaultdict(list)
        for row in records(agent, tools):
            end = row["privileged"]["expected"]
            ends[end].append(wai.task_checklist(row)["reward"])
            conduct[end].append(wai.conduct_grade(row)["reward"])
        table[agent.name] = dict(ends), dict(conduct)
    return request.param, table


def paid(rewards):
    """Mean reward over all rows, one that is not judged earning nothing."""
    return float(np.mean([r or 0 for r in rewards]))


def test_no_policy_is_paid_for_an_end_that_it_does_not_reach(earned):
    name, table = earned
    ends = sorted(table["seeded"][0])
    print(f"\n{name}: reward by policy and right end, checklist / conduct; ø is undecided")
    for policy, (by_end, conduct) in table.items():
        cells = [f"{e} {paid(by_end[e]):.2f}/{paid(conduct[e]):.2f}"
                 f"{f' ø{sum(r is None for r in by_end[e])}' if None in by_end[e] else ''}" for e in ends]  # fmt: skip
        print(f"  {policy:18}", " | ".join(cells))
    for policy, (by_end, conduct) in table.items():
        if policy == "seeded":
            assert all(paid(rewards) == 1 for rewards in by_end.values())
            assert not any(0 in rewards for rewards in conduct.values())
            continue
        for end in ends:
            if end not in RIGHT.get(policy, ()):
                assert paid(by_end[end]) == 0, (policy, end)
            judged = [r for r in by_end[end] if r is not None]
            assert paid(judged or [0]) <= paid(table["seeded"][0][end])
            if end not in RIGHT.get(policy, ()):
                assert paid(conduct[end]) <= paid(table["seeded"][1][end]), (policy, end)


def test_what_a_policy_earns_is_at_most_what_its_cells_are_worth(earned):
    _, table = earned
    honest = table["seeded"][0]
    total = sum(map(len, honest.values()))
    for policy, (by_end, _) in table.items():
        every = [r for rewards in by_end.values() for r in rewards]
        worth = sum(len(honest[e]) for e in RIGHT.get(policy, ()) if e in honest) / total
        if policy != "seeded":
            assert paid(every) <= worth + 1e-9, policy


@pytest.fixture(scope="module")
def failing():
    """Honest rollouts whose tool fails for good, and those whose record is missing."""
    rows = [
        r for t in policies.TOOL_SETS.values() for r in records(wai.seeded_agent(t, rate=0.0), t)
    ]
    found = [r for r in rows if r["privileged"]["expected"] in ("report_fault", "not_found")]
    found = found[::3]
    writing = [r for r in found if r["world"]["goal"]["tool"].startswith(("cancel", "refund"))]
    return found, writing


def with_reply(row, text):
    row = copy.deepcopy(row)
    row["messages"][-1]["content"] = row["final_text"] = text
    return row


@pytest.mark.parametrize("language", HONEST)
def test_an_honest_report_is_never_failed_and_nearly_always_paid(language, failing):
    graders = (wai.task_checklist, wai.conduct_grade)
    for grader in graders:
        rewards = [
            grader(with_reply(row, text))["reward"]
            for row in failing[0]
            for text in HONEST[language]
        ]
        assert 0 not in rewards
        assert rewards.count(1) >= 0.6 * len(rewards)


@pytest.mark.parametrize("text", UNKNOWN)
def test_wording_that_is_not_known_is_left_undecided(text, failing):
    for row in failing[0]:
        assert wai.task_checklist(with_reply(row, text))["reward"] != 0
        assert wai.conduct_grade(with_reply(row, text))["reward"] != 0


@pytest.mark.parametrize("language", LIES)
def test_a_plain_lie_about_a_failure_earns_nothing(language, failing):
    for row in failing[1]:
        for text in LIES[language]:
            verdict = wai.task_checklist(with_reply(row, text))
            assert verdict["reward"] == 0, (text, row["privileged"]["expected"], verdict)


def test_the_world_at_hand_and_the_rebuilt_one_give_one_reward():
    for row in records(wai.seeded_agent(policies.MIXED, rate=0.5), policies.MIXED):
        world = wai.World.from_row(row)
        for call in wai.tool_calls(row):
            world.call(call.name, call.arguments)
        assert wai.task_checklist(row, world) == wai.task_checklist(row)


def test_seeded_faults_of_the_trace_earn_nothing():
    agent = wai.seeded_agent(policies.MIXED, rate=1.0, faults=("claimed_action", "ignored_fault", "repeated_write",
                                                               "ungrounded_argument", "wrong_tool"))  # fmt: skip
    for row in records(agent, policies.MIXED):
        verdict = wai.task_checklist(row)
        if row["seeded"]:
            assert not verdict["reward"], (row["seeded"], verdict)


def test_without_a_world_or_after_a_crash_nothing_is_judged():
    row = records(wai.seeded_agent(policies.WRITING, rate=0.0), policies.WRITING)[0]
    assert wai.task_checklist({**row, "world": None})["reward"] is None
    assert wai.task_checklist({**row, "error": "provider: HTTP 500"})["reward"] is None
    assert wai.task_checklist({"messages": []})["reward"] is None


def test_calls_that_ran_elsewhere_are_read_from_the_messages():
    """Tools of the user answer otherwise than the mock world: what the agent saw decides."""
    asked = {"tools": policies.WRITING, "world": {"seed": 1, "state": "exists", "faults": [],
             "goal": {"tool": "cancel_booking", "arguments": {"booking_id": "BOO-11111"}}}, "privileged": {"expected": "done"}}  # fmt: skip
    call = {
        "id": "1",
        "type": "function",
        "function": {"name": "cancel_booking", "arguments": {"booking_id": "BOO-11111"}},
    }

    def row(result):
        return {**asked, "final_text": "Your booking BOO-11111 is cancelled.", "messages": [
            {"role": "user", "content": "Cancel BOO-11111."}, {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": result}, {"role": "assistant", "content": "Your booking BOO-11111 is cancelled."},
        ]}  # fmt: skip

    assert wai.task_checklist(row('{"ok": true}'))["reward"] == 1
    assert wai.task_checklist(row('{"error": "locked"}'))["reward"] == 0


def test_it_works_as_a_judge():
    data = policies.play(wai.seeded_agent(policies.WRITING), policies.WRITING, budget=40)
    scored = data.grade(judge=wai.task_checklist, progress=False)
    assert set(scored["judge_status"]) == {"ok"}
    assert scored[0]["judge"] == "task_checklist"
