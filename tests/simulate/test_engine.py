"""simulate: the same rows whatever the weather, and nothing lost."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from datasets import load_dataset

import whileai_hf as wai

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@wai.tool
def get_order(order_id: str) -> dict:
    """Look up an order."""


@wai.tool
def refund_order(order_id: str, amount: float) -> dict:
    """Refund an order."""


TOOLS = [get_order, refund_order]
PROMPT = "Help customers with orders. Never refund an order twice."


def run(agent=None, **options):
    given = {
        "tools": TOOLS,
        "system_prompt": PROMPT,
        "budget": 24,
        "repeats": 2,
        "progress": False,
        **options,
    }
    return wai.simulate(agent or wai.seeded_agent(TOOLS), **given)


class Slow:
    """The seeded agent, but each answer takes a while, another one each time."""

    name, inline = "seeded", False

    def __init__(self):
        self.agent = wai.seeded_agent(TOOLS)

    async def respond(self, messages, attempt):
        await asyncio.sleep(random.random() * 0.01)
        return self.agent.respond(messages, attempt)


@pytest.mark.parametrize("policy", ["fixed", "successive"])
@pytest.mark.parametrize("concurrency", [1, 3, 32])
def test_the_rows_are_the_same_at_any_concurrency(policy, concurrency):
    options = {"mode": "rl", "repeats": 4, "budget": 40, "repeat_policy": policy}
    assert list(run(Slow(), concurrency=concurrency, **options)) == list(run(**options))


def test_the_rows_are_the_same_in_another_process_with_another_hash_seed():
    code = """
    import hashlib, json, whileai_hf as wai
    def get_order(order_id: str) -> dict:
        '''Look up an order.'''
    data = wai.simulate(wai.seeded_agent([get_order]), tools=[get_order], system_prompt="Be kind to all.", budget=40, repeats=2, progress=False)
    print(hashlib.sha256(json.dumps(list(data), sort_keys=True).encode()).hexdigest())
    """
    marks = {
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)], env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in ("0", "1")
    }  # fmt: skip
    assert len(marks) == 1


def test_every_row_has_the_features_and_its_mask():
    data = run()
    assert data.features == wai.FEATURES
    assert len(data) == 24
    for row in data:
        assert len(row["loss_mask"]) == len(row["messages"])
        assert [m["role"] == "assistant" for m in row["messages"]] == [
            bool(x) for x in row["loss_mask"]
        ]
        assert row["messages"][0]["content"] == PROMPT
        assert row["tools"] == wai.tool_schemas(TOOLS)
    assert len(set(data["rollout_id"])) == 24
    assert len(set(data["task_id"])) == 12


def test_the_budget_is_spent_to_the_last_rollout():
    assert len(run(budget=25, repeats=4)) == 25


def test_faults_are_labelled_and_the_honest_path_solves_the_task():
    data = run(wai.seeded_agent(TOOLS, rate=0.0), budget=300, repeats=1)
    assert not any(data["seeded"][:])
    solved = total = 0
    for row in data.records():
        world = wai.World.from_row(row)
        for call in wai.tool_calls(row):
            world.call(call.name, call.arguments)
        if row["privileged"]["expected"] == "done":
            total += 1
            solved += world.achieved()
        if row["privileged"]["expected"] in ("refuse", "no_call"):
            assert not world.wrote()
    assert total > 50
    assert solved == total
    assert 0.25 < sum(map(bool, run(budget=400, repeats=1)["seeded"][:])) / 400 < 0.45


def test_every_fault_of_the_seeded_agent_occurs():
    data = run(budget=1500, repeats=1, fault_rate=1.0, seed=5)
    names = {name for row in data["seeded"] for name in row}
    from whileai_hf.simulate.seeded_agent import FAULTS

    assert names == set(FAULTS)


def test_the_same_task_is_run_again():
    data = run(budget=8, repeats=2)
    again = wai.simulate(wai.seeded_agent(TOOLS), tasks=data, repeats=3, progress=False)
    assert sorted(set(again["task_id"])) == sorted(set(data["task_id"]))
    assert len(again) == 12
    assert set(again["ask"]) == set(data["ask"])
    assert again[0]["world"] == data[0]["world"]


def test_runs_are_numbered_repetitions_of_one_set():
    data = run(budget=100, repeats=2, runs=2, tasks=run(budget=4, repeats=1, mode="eval"))
    assert sorted(set(data["run"])) == ["0", "1"]
    assert len(data) == 16


def test_asks_of_the_users_own_run_first_and_all():
    asks = [f"My own question number {i}?" for i in range(10)]
    data = run(seeds=asks, budget=30, repeats=2)
    assert data["ask"][:20:2] == asks


def test_a_budget_that_cannot_be_filled_is_said(monkeypatch):
    from whileai_hf.simulate import engine

    @wai.tool
    def ping() -> dict:
        """Ping."""

    one = engine.grid
    monkeypatch.setattr(engine, "grid", lambda *args, **options: one(*args, **options)[:1])
    with pytest.warns(UserWarning, match="was not filled"):
        data = wai.simulate(
            wai.seeded_agent([ping]), tools=[ping], budget=20_000, repeats=1, progress=False
        )
    assert data.report.stopped == "no new situations"
    assert 0 < len(data) < 20_000
    assert len(set(data["ask"])) == len(data)


@pytest.mark.parametrize(
    ("agent", "error"),
    [
        (lambda message: None, "agent: InputError: an agent must return text"),
        (lambda message: {"final": "x"}, "with ['final']"),
        (lambda message: {"steps": ["x"], "final_text": "y"}, "a step must be an object"),
        (lambda message: 1 / 0, "agent: ZeroDivisionError"),
        (lambda messages, tools: 3, "a chat agent must return a message"),
    ],
)
def test_a_broken_agent_is_an_error_on_its_row(agent, error):
    data = run(agent, budget=3, repeats=1)
    assert all(error in text for text in data["error"])
    assert set(data["finish_reason"]) == {"error"}


def test_a_dead_agent_stops_the_run_and_keeps_the_rows():
    data = run(lambda message: 1 / 0, budget=500, repeats=1)
    assert data.report.stopped == "agent failed"
    assert len(data) == 16
    assert "ZeroDivisionError" in data.warnings[0]


def test_an_agent_that_hangs_costs_its_timeout():
    start = time.monotonic()
    data = run(lambda message: time.sleep(5), budget=2, repeats=1, timeout=0.2)
    assert all("no answer in 0.2 s" in text for text in data["error"])
    assert time.monotonic() - start < 4


def test_every_kind_of_agent_plays():
    def steps(message):
        return {
            "steps": [{"tool": "get_order", "arguments": {"order_id": "A"}, "result": {"ok": 1}}],
            "final_text": "done",
        }

    def chat(messages, tools):
        messages.append("mine")
        asked = any(m != "mine" and m["role"] == "tool" for m in messages)
        call = {
            "id": "1",
            "type": "function",
            "function": {"name": tools[0]["function"]["name"], "arguments": '{"order_id": "A"}'},
        }
        return (
            {"content": "done"}
            if asked
            else {"choices": [{"message": {"content": None, "tool_calls": [call]}}]}
        )

    async def later(messages, tools):
        return chat(messages, tools)

    for agent in (steps, chat, later):
        data = run(agent, budget=3, repeats=1)
        assert data["error"][:] == [None] * 3
        assert data["final_text"][:] == ["done"] * 3
        assert wai.tool_calls(data[0])[0].arguments == {"order_id": "A"}
    assert run(lambda message: "hi", budget=2, repeats=1)["final_text"][:] == ["hi", "hi"]


def test_an_agent_that_never_ends_is_cut_and_marked():
    def loop(messages, tools):
        return {
            "content": "",
            "tool_calls": [
                {
                    "id": f"{len(messages)}",
                    "function": {"name": "get_order", "arguments": {"order_id": "A"}},
                }
            ],
        }

    data = run(loop, budget=2, repeats=1, max_turns=3)
    assert set(data["finish_reason"]) == {"max_turns"}
    assert len(wai.tool_calls(data[0])) == 3


def test_a_user_who_is_asked_back_says_what_he_meant():
    data = run(wai.seeded_agent(TOOLS, rate=0.0), budget=200, repeats=1)
    vague = [
        r
        for r in data.records()
        if r["situation"].get("stance") == "ambiguous" and r["privileged"]["goal"]
    ]
    assert vague
    for row in vague:
        assert [m["role"] for m in row["messages"]].count("user") == 2


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"mode": "rll"}, "'rll'"), ({"budget": -5}, "budget"), ({"repeats": 0}, "repeats"), ({"repeat_policy": "all"}, "'all'"),
        ({"fault_rate": 2}, "fault_rate"), ({"tools": None, "system_prompt": None}, "tools, a system prompt"), ({"languages": ("xx",)}, "'xx'"),
        ({"strength": 7}, "strength"), ({"concurrency": 0}, "concurrency"), ({"simulator": "a-model"}, "simulator"), ({"scaffold": "no place"}, "scaffold"), ({"spec": "no/such"}, "spec"), ({"traces": ["x"]}, "graded"), ({"axes": {"tool": ["x"]}}, "axis"),
        ({"tools": [{"parameters": {}}]}, "needs a name"), ({"seeds": [""]}, "seed 0"), ({"tasks": [1]}, "got list"),
    ],
)  # fmt: skip
def test_bad_options_are_refused(options, what):
    agent = lambda message: "x"  # noqa: E731
    with pytest.raises(wai.InputError, match=what):
        run(agent, **options)


def test_a_misspelled_option_is_refused():
    with pytest.raises(TypeError, match="budgett"):
        run(budgett=3)


def test_a_folder_streams_resumes_and_loads(tmp_path):
    whole = run(budget=40)
    first = run(budget=40, output=tmp_path / "run")
    assert list(first) == list(whole)
    assert list(run(budget=40, output=tmp_path / "run")) == list(whole)
    back = load_dataset(str(tmp_path / "run" / "data"), split="train")
    assert list(back) == list(whole)
    with pytest.raises(wai.InputError, match="other options"):
        run(budget=40, seed=9, output=tmp_path / "run")


@pytest.mark.parametrize("agent", [None, Slow], ids=["inline", "waiting"])
def test_a_run_of_many_parts_resumes_whatever_was_finished(tmp_path, monkeypatch, agent):
    from whileai_hf.simulate import store

    monkeypatch.setattr(store, "PART_ROWS", 8)
    whole = run(budget=100)
    for budget_of_parts in (None, 3, 1):
        if budget_of_parts is not None:  # as if the process had died after so many parts
            for part in sorted((tmp_path / "run" / "data").glob("part-*"))[budget_of_parts:]:
                part.unlink()
        made = run(agent() if agent else None, budget=100, concurrency=2, output=tmp_path / "run")
        assert list(made) == list(whole)


KILLED = """
import sys, time, random, asyncio, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, {tests!r})
import whileai_hf as wai
from whileai_hf.simulate import store
store.PART_ROWS = 20
def get_order(order_id: str) -> dict:
    '''Look up an order.'''
class Slow:
    name, inline = "seeded", False
    def __init__(self): self.agent = wai.seeded_agent([get_order])
    async def respond(self, messages, attempt):
        await asyncio.sleep(random.random() * 0.02)
        return self.agent.respond(messages, attempt)
print("ready", flush=True)
data = wai.simulate(Slow(), tools=[get_order], system_prompt="Be kind to all.", budget=120, repeats=3, concurrency=8, output={folder!r}, progress=False)
print(len(data), flush=True)
"""


def test_killed_at_any_moment_it_resumes_to_the_same_rows(tmp_path):
    code = KILLED.format(tests=str(tmp_path), folder=str(tmp_path / "run"))
    rng = random.Random(0)
    for _ in range(4):
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        process.stdout.readline()
        time.sleep(0.3 + rng.random() * 0.5)
        process.send_signal(signal.SIGKILL)
        process.wait()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-1500:]

    def get_order(order_id: str) -> dict:
        """Look up an order."""

    expected = wai.simulate(
        wai.seeded_agent([get_order]),
        tools=[get_order],
        system_prompt="Be kind to all.",
        budget=120,
        repeats=3,
        progress=False,
    )
    back = load_dataset(str(tmp_path / "run" / "data"), split="train")
    assert list(back) == list(expected)


@pytest.mark.slow
def test_a_hundred_thousand_distinct_asks_from_three_tools():
    @wai.tool
    def search_orders(query: str) -> dict:
        """Search the orders."""

    data = wai.simulate(
        wai.seeded_agent([*TOOLS, search_orders]),
        tools=[*TOOLS, search_orders],
        budget=100_000,
        repeats=1,
        progress=False,
    )
    assert len(data) == 100_000
    assert len(set(data["ask"])) == 100_000
