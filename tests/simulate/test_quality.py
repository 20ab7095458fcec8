"""The report says what there is, the plan follows from the grid, and a gap is named."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest
from toolsets import tau2, tau2_policy

import whileai_hf as wai
from whileai_hf.simulate.quality import distinct, hashed, similarity

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@wai.tool
def get_order(order_id: str) -> dict:
    """Look up an order."""


@wai.tool
def refund_order(order_id: str, amount: float) -> dict:
    """Refund an order.

    Args:
        order_id: Which one.
        amount: How much.
    """


TOOLS = [get_order, refund_order]
PROMPT = "You are a clerk. Never refund an order twice. Always confirm the amount before a refund."


@pytest.fixture(scope="module")
def data():
    return wai.simulate(
        wai.seeded_agent(TOOLS, rate=0),
        tools=TOOLS,
        system_prompt=PROMPT,
        budget=240,
        repeats=2,
        progress=False,
    )


def test_the_report_counts_tasks_and_not_attempts(data):
    found = wai.dataset_report(data)
    assert (found.n_rollouts, found.n_tasks, found.n_asks) == (240, 120, 120)
    assert found.coverage.share > 0.9
    assert found.resolved.value == 1.0
    assert found.resolved.n < 120
    assert found.near_copies.n == 120
    assert 0 < found.do_nothing.value < 0.4
    assert sum(found.stances.values()) == 120
    assert found.warnings == ()
    text = str(found)
    assert "distinct-1/2/3" in text
    assert f"values resolve    1.00 [{found.resolved.interval.low:.2f}..1.00]" in text
    assert found.to_dict()["do_nothing"]["method"] == "wilson"
    assert "<pre>" in found._repr_html_()


def test_distinct_n_is_what_counting_by_hand_gives():
    one, two, three = distinct(["a b a", "A b!"])
    assert (one, two, three) == (2 / 5, 2 / 3, 1.0)
    assert distinct([""]) == (0, 0, 0)


def test_similarity_is_the_mean_cosine_of_pairs():
    texts = ["a b c", "a b d", "x y z", "a b c"]
    vectors = hashed(texts)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    by_hand = np.mean([unit[i] @ unit[j] for i in range(4) for j in range(4) if i != j])
    mean, nearest = similarity(texts)
    assert mean == pytest.approx(by_hand)
    assert nearest > mean
    assert similarity(["one"]) == (None, None)
    assert similarity(texts, lambda given: np.eye(len(given))) == (0.0, 0.0)
    with pytest.raises(wai.InputError, match="one vector"):
        similarity(texts, lambda given: [[1.0]])


def test_rows_that_name_nothing_are_not_measured_and_never_zero():
    rows = wai.rows(["hi", "ho"], ["a", "b"])
    found = wai.dataset_report(rows)
    assert found.coverage is found.resolved is found.do_nothing is None
    assert str(found).count("not measured") == 5
    with pytest.raises(wai.InputError, match="needs rows"):
        wai.dataset_report(rows.select(range(0)))


def test_a_tool_that_never_succeeds_is_dead(data):
    def call(i, result):
        made = {"id": "1", "type": "function", "function": {"name": "run_query", "arguments": "{}"}}
        return {"messages": [{"role": "user", "content": f"ask {i} of this kind"}, {"role": "assistant", "content": None, "tool_calls": [made]},
                             {"role": "tool", "tool_call_id": "1", "content": result}]}  # fmt: skip

    bad = wai.from_chats([call(i, '{"error": "no connection"}') for i in range(10)])
    assert wai.dataset_report(bad).dead_tools == ("run_query",)
    assert "run_query" in wai.dataset_report(bad).warnings[0]
    good = wai.from_chats([call(i, '{"error": null, "rows": [1]}') for i in range(10)])
    assert wai.dataset_report(good).dead_tools == ()


def test_an_agent_that_calls_nothing_is_said():
    silent = wai.simulate(lambda message: "hi", tools=TOOLS, budget=12, repeats=1, progress=False)
    assert silent.report.degraded
    assert any("no tool calls" in w for w in wai.dataset_report(silent).warnings)


def test_preflight_says_what_the_simulator_cannot_see():
    found = wai.preflight(
        [{"name": "refund_order", "parameters": {"type": "object", "properties": {"order_id": {}}}}]
    )
    text = str(found)
    for said in ("no description", "may be anything", "no required argument", "no system prompt"):
        assert said in text
    assert not found.ok
    fine = wai.preflight(TOOLS, PROMPT + " Speak plainly and say what was done. " * 5)
    assert fine.ok, str(fine)
    assert fine.to_dict()["tools"][1]["about"] == "order"
    assert wai.preflight([refund_order]).tools[0].issues == (
        "no tool reads the order that it changes",
    )
    assert "hardly states a policy" in str(wai.preflight(TOOLS, "Be kind to all."))
    with pytest.raises(wai.InputError, match="neither"):
        wai.preflight([])


def test_a_recommendation_follows_from_the_grid():
    cells = wai.preflight(TOOLS, PROMPT).n_cells
    rl = wai.recommend(TOOLS, PROMPT)
    assert (rl.repeats, rl.situations, rl.budget) == (
        8,
        max(2 * cells, 200),
        8 * max(2 * cells, 200),
    )
    assert wai.recommend(TOOLS, PROMPT, mode="sft").budget >= 2400
    assert wai.recommend(TOOLS, PROMPT, mode="eval", repeats=4).situations == cells
    assert wai.recommend(TOOLS, PROMPT, target=80_000, mixed_rate=0.1).situations == 100_000
    assert "mixed rate of 0.5" in str(rl)
    for options in (
        {"mode": "rll"},
        {"mixed_rate": 0},
        {"repeats": 0},
        {"target": -1},
        {"repeats": True},
    ):
        with pytest.raises(wai.InputError):
            wai.recommend(TOOLS, PROMPT, **options)


def test_the_asks_of_the_simulator_leave_no_gap_and_a_few_leave_many(data):
    full = wai.coverage_gap(data, tools=TOOLS, system_prompt=PROMPT)
    assert full.untested_tools == ()
    assert full.untested_stances == ()
    few = wai.coverage_gap(
        ["Please look up order ORD-1.", "Hello?"], tools=TOOLS, system_prompt=PROMPT
    )
    assert few.untested_tools == ("refund_order",)
    assert "Never refund an order twice." in few.untested_rules
    assert few.unplaced == 1
    assert "adversarial" in few.untested_stances
    for bad in ([], "one", [3]):
        with pytest.raises(wai.InputError):
            wai.coverage_gap(bad, tools=TOOLS)


def test_asks_are_placed_where_the_grid_put_them(data):
    from whileai_hf.simulate.gap import stance_cues, stance_of, tool_of
    from whileai_hf.world.tools import read_tools

    cues, tools = stance_cues(), read_tools(TOOLS)
    rows = [
        r for r in data.records() if r["privileged"]["goal"] and r["situation"]["family"] == "plain"
    ]
    stances = [stance_of(r["ask"], cues) == r["situation"]["stance"] for r in rows]
    right = [
        tool_of(r["ask"], tools) == r["situation"]["tool"]
        for r in rows
        if r["situation"]["chain"] == "none"
    ]
    assert np.mean(stances) > 0.8
    assert np.mean(right) > 0.8


def test_a_rule_under_which_everything_fails_alike_is_named(data):
    judged = data.grade(
        judge=lambda row: {
            "reward": int(row["situation"]["rule"] != "Never refund an order twice."),
            "failure_class": "double",
        },
        progress=False,
    )
    gap = wai.coverage_gap(data, tools=TOOLS, system_prompt=PROMPT, rows=judged)
    assert gap.failing_rules == {"Never refund an order twice.": "double"}


def _asks():
    path = Path(__file__).parents[1] / "benchmarks" / "asks.py"
    spec = importlib.util.spec_from_file_location("asks_benchmark", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("domain", ["retail", "airline"])
def test_no_measure_is_worse_than_the_peers(domain):
    """`PEER_PYTHON` names a Python that has whileai 0.131; without it only tau2-bench is compared."""
    python, asks = os.environ.get("PEER_PYTHON"), _asks()
    if python:
        found = asks.table(python, domain)
        own, peer = found["whileai_hf"], found["whileai"]
        for higher in (
            "distinct asks",
            "distinct-1",
            "distinct-2",
            "distinct-3",
            "values stated",
            "hard stances",
            "pairs met",
        ):
            assert own[higher] >= peer[higher], higher
        for lower in ("self-similarity", "nearest", "near copies"):
            assert own[lower] <= peer[lower], lower
    tools = {t.name: t for t in asks.read_tools(tau2(domain))}
    users = asks.tau2_asks(domain)
    own = asks.measure(
        asks.own_asks([t.schema for t in tools.values()], tau2_policy(domain), 400),
        tools,
        len(users),
    )
    real = asks.measure(users, tools, len(users))
    assert own["self-similarity"] <= real["self-similarity"]
    assert own["values stated"] >= real["values stated"]
    assert own["near copies"] <= real["near copies"]
