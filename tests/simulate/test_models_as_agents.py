"""Endpoints and local models as agents: seeded, bounded by themselves, never a lost row."""

from __future__ import annotations

import pytest
import tiny
from chat_server import chat_server

import whileai_hf as wai

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@wai.tool
def get_order(order_id: str) -> dict:
    """Look up an order by id."""


def simulate(agent, **options):
    return wai.simulate(agent, tools=[get_order], progress=False, **{"budget": 12, **options})


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr("whileai_hf.models.endpoint._FIRST_PAUSE", 0.02)


def calling(request, n):
    """Look the order up that the user names, then report it."""
    last = request["messages"][-1]
    if last["role"] == "tool":
        return f"Here: {last['content']}"
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "get_order", "arguments": '{"order_id": "ORD-1"}'},
    }
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def test_a_named_endpoint_plays_and_its_rows_do_not_depend_on_concurrency():
    with chat_server(calling) as server:
        spec = f"vllm:scripted@{server.url}"
        rows = [simulate(spec, concurrency=c, sampling={"temperature": 0.5}) for c in (1, 8)]
    assert list(rows[0].records()) == list(rows[1].records())
    assert set(rows[0]["agent"][:]) == {"vllm:scripted"}
    assert all(any(m.get("tool_calls") for m in messages) for messages in rows[0]["messages"][:])
    assert rows[0]["n_tokens"][0] > 0
    seeds = {request["seed"] for request in server.requests}
    assert len(seeds) == 12
    assert {request["temperature"] for request in server.requests} == {0.5}


def test_every_way_of_failing_in_passing_loses_no_row():
    weather = [
        "drop",
        "half",
        "garbage",
        (500, {}),
        (429, {}, {"retry-after": "0"}),
        {"choices": []},
    ]

    def script(request, n):
        return weather[n % len(weather)] if n % 2 == 0 and n < 60 else calling(request, n)

    with chat_server(script) as server:
        stormy = simulate(f"vllm:scripted@{server.url}")
    with chat_server(calling) as server:
        calm = simulate(f"vllm:scripted@{server.url}")
    assert stormy["error"][:] == [None] * 12
    assert stormy["final_text"][:] == calm["final_text"][:]


def test_an_endpoint_that_dies_in_the_middle_stops_the_run_and_keeps_the_rows():
    def script(request, n):
        return calling(request, n) if n < 20 else (401, {"error": {"message": "key expired"}})

    with chat_server(script) as server:
        data = simulate(f"vllm:scripted@{server.url}", budget=400, concurrency=4)
    errors = data["error"][:]
    assert errors.count(None) >= 8
    assert len(data) < 100
    assert data.report.stopped == "agent failed"
    assert any("key expired" in note for note in data.warnings)
    assert all(e is None or e.startswith("provider: AgentFailed") for e in errors)


def test_a_pause_that_the_server_asks_for_is_no_hang():
    def script(request, n):
        return (429, {}, {"retry-after": "0.6"}) if n == 0 else calling(request, n)

    with chat_server(script) as server:
        data = simulate(f"vllm:scripted@{server.url}", budget=1, timeout=0.3)
    assert data["error"][:] == [None]


def test_a_local_model_plays_and_each_repeat_draws_its_own_answer():
    words = tiny.tokenizer()
    agent = wai.LocalModel(tiny.model(words), words, name="tiny")
    options = {
        "budget": 4,
        "repeats": 2,
        "mode": "rl",
        "repeat_policy": "fixed",
        "sampling": {"temperature": 1.0, "max_tokens": 8},
        "logprobs": True,
    }
    first, again = simulate(agent, **options), simulate(agent, concurrency=1, **options)
    assert first["final_text"][:] == again["final_text"][:]
    assert first["messages"][0] != first["messages"][1]
    row = first[0]
    assert row["n_tokens"] == len(row["token_logprobs"])
    assert row["logprob"] == pytest.approx(sum(row["token_logprobs"]))


@pytest.mark.parametrize("spec", ["polte:x", "openai:", "gpt-5"])
def test_a_name_without_a_provider_is_an_error(spec):
    with pytest.raises(wai.InputError, match="start with one of"):
        simulate(spec)
