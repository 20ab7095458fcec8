"""The public reports about grid, writer and world, each built as the situation it describes."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest
from reports import public_reports

import whileai_hf as wai
from whileai_hf.simulate.aim import condition_of
from whileai_hf.simulate.grid import Cell
from whileai_hf.simulate.model_writer import clean, misses
from whileai_hf.simulate.phrases import TEXTURES, textured
from whileai_hf.simulate.situations import Situation

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@wai.tool
def get_order(order_id: str) -> dict:
    """Look up an order."""


@wai.tool
def refund_order(order_id: str, amount: float) -> dict:
    """Refund an order."""


TOOLS = [get_order, refund_order]


def invented_fact(given, expected):
    task = given["task"]
    goal = {"tool": "book_flight", "arguments": {"flight_id": "FLI-1"}}
    draft = "Please book the flight FLI-1."  # passengers are not stated
    situation = Situation(
        "task-0000001",
        Cell.of({"tool": "book_flight"}),
        draft,
        {"goal": goal},
        "done",
        "en",
        None,
        {"goal": goal},
    )
    claimed = f"Please book the flight FLI-1 for {task['expected']} passenger."
    assert "invented" in misses(claimed, situation)
    assert misses("Could you book flight FLI-1 for me?", situation) is None


def do_nothing_baseline(given, expected):
    data = wai.simulate(
        lambda message: "I cannot help", tools=TOOLS, budget=80, repeats=1, progress=False
    )
    share = wai.dataset_report(data).do_nothing
    by_hand = [r["privileged"]["expected"] in ("refuse", "no_call") for r in data.records()]
    assert share.value == pytest.approx(sum(by_hand) / 80)
    assert "do-nothing agent" in str(wai.dataset_report(data))


def dead_tool(given, expected):
    name = given["tool"]
    call = {"id": "1", "type": "function", "function": {"name": name, "arguments": "{}"}}
    logs = [
        {"messages": [{"role": "user", "content": f"ask {i} of many"}, {"role": "assistant", "content": None, "tool_calls": [call]},
                      {"role": "tool", "tool_call_id": "1", "content": '{"error": "down"}'}]} for i in range(given["calls"])
    ]  # fmt: skip
    assert wai.dataset_report(wai.from_chats(logs)).dead_tools == (expected["dead_tool"],)


def result_from_the_record(given, expected):
    call = given["call"]
    schema = {"name": call["name"], "parameters": {"type": "object", "required": ["sku"], "properties": {
        "sku": {"type": "string"}, "quantity": {"type": "integer", "minimum": 0, "maximum": 90}}}}  # fmt: skip
    del schema["parameters"]["properties"]["quantity"]["maximum"]
    worlds = [
        wai.World([schema], goal={"tool": call["name"], "arguments": {"sku": "T1"}})
        for _ in range(2)
    ]
    asked = worlds[0].call(call["name"], call["arguments"])
    plain = worlds[1].call(call["name"], {"sku": "T1"})
    assert asked["quantity"] == plain["quantity"] != call["arguments"]["quantity"]


def a_result_that_is_no_fault(given, expected):
    import json

    assert (condition_of(json.dumps(given["result"])) is not None) == expected["fault"]


def an_id_survives_texture(given, expected):
    for texture in (given["texture"], *TEXTURES):
        for seed in range(20):
            assert expected["id_kept"] in textured(given["user_line"], texture, random.Random(seed))


def the_same_rows_in_any_process(given, expected):
    code = (
        "import hashlib, json, warnings, whileai_hf as wai\nwarnings.simplefilter('ignore')\n"
        "ts = [{'name': n, 'parameters': {'type': 'object', 'required': ['order_id'], 'properties': {'order_id': {'type': 'string'},"
        " 'speed': {'enum': ['slow', 'fast']}}}} for n in ('get_order', 'ship_order', 'search_orders')]\n"
        f"d = wai.simulate(wai.seeded_agent(ts), tools=ts, system_prompt='Be kind to all.', seed={given['seed']}, budget=120, repeats=2,"
        " languages=('en', 'de', 'zh'), progress=False)\n"
        "print(hashlib.sha256(json.dumps(list(d), sort_keys=True).encode()).hexdigest())"
    )
    marks = {
        subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": str(seed)}, capture_output=True,
                       text=True, check=True).stdout for seed in given["PYTHONHASHSEED"]
    }  # fmt: skip
    assert len(marks) == 1


def thoughts_are_taken_off(given, expected):
    assert clean(given["user_reply"]) == expected["user_turn"]


def silence_is_degraded(given, expected):
    with pytest.warns(UserWarning, match=expected["warning"]):
        data = wai.simulate(
            lambda message: "Sure.", tools=TOOLS, budget=given["rows"], repeats=1, progress=False
        )
    assert data.report.degraded is expected["degraded"]
    assert any(expected["warning"] in warning for warning in data.warnings)


#: What each feature's situation is; the reports about a simulated user are tested with the engine.
BUILT = {
    ("simulate", "task"): invented_fact,
    ("task-set checks", "agent"): do_nothing_baseline,
    ("world checks", "tool"): dead_tool,
    ("mock world", "call"): result_from_the_record,
    ("trace import", "result"): a_result_that_is_no_fault,
    ("situation writer", "user_line"): an_id_survives_texture,
    ("reproducibility", "seed"): the_same_rows_in_any_process,
    ("simulate", "user_reply"): thoughts_are_taken_off,
    ("simulate", "rows"): silence_is_degraded,
}


def _built(case):
    return next(
        (b for (f, key), b in BUILT.items() if case["feature"] == f and key in case["input"]), None
    )


CASES = [p for p in public_reports("simulate") if _built(p.values[0])]


def test_most_reports_are_built():
    assert len(CASES) >= 9


@pytest.mark.parametrize("case", CASES)
def test_a_public_report_about_simulation_holds(case):
    _built(case)(case["input"], case["expected"])
