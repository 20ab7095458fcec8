"""Endpoint: what passes is tried again, what does not says why, and nothing hangs."""

from __future__ import annotations

import asyncio
import time

import pytest
from chat_server import chat_server, response

import whileai_hf as wai
from whileai_hf.models.endpoint import Endpoint
from whileai_hf.models.model import Model, as_model

ASK = [{"role": "user", "content": "hello"}]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch):
    monkeypatch.setattr("whileai_hf.models.endpoint._FIRST_PAUSE", 0.02)


def ask(server, messages=ASK, **options):
    names = ("tools", "sampling", "logprobs")
    given = {k: options.pop(k) for k in names if k in options}
    model = Endpoint(server.url, "any", **options)
    return asyncio.run(model.complete(messages, **given)), model


def script_of(*answers):
    return lambda request, n: answers[min(n, len(answers) - 1)]


def test_an_answer_its_tokens_and_its_reason():
    with chat_server(script_of("fine day")) as server:
        done, model = ask(server, sampling={"temperature": 0.5, "top_k": 3, "seed": 7})
    assert isinstance(model, Model)
    assert done.message == {"role": "assistant", "content": "fine day"}
    assert (done.finish_reason, done.n_tokens, done.prompt_tokens) == ("stop", 2, 10)
    (request,) = server.requests
    assert request["temperature"] == 0.5
    assert request["top_k"] == 3
    assert str(model.usage) == "1 answers, 10 + 2 tokens, 0 retries, 0 failures"


def test_calls_go_out_as_text_and_come_back_as_objects():
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}
    messages = [
        *ASK,
        {"role": "assistant", "content": None, "status": None, "tool_calls": [{"id": "c0", "function": {"name": "f", "arguments": {"x": 0}}}]},
        {"role": "tool", "tool_call_id": "c0", "name": "f", "content": "1", "status": "error"},
    ]  # fmt: skip
    with chat_server(
        script_of({"role": "assistant", "content": None, "tool_calls": [call]})
    ) as server:
        done, _ = ask(server, messages, tools=[TOOL])
    assert done.finish_reason == "tool_calls"
    assert done.message["tool_calls"][0]["function"]["arguments"] == {"x": 1}
    sent = server.requests[0]
    assert sent["tools"] == [TOOL]
    assert sent["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"x": 0}'
    assert set(sent["messages"][2]) == {"role", "tool_call_id", "name", "content"}


def test_log_probabilities_are_read():
    answer = response("a b")
    answer["choices"][0]["logprobs"] = {
        "content": [
            {"token": t, "logprob": v, "bytes": None, "top_logprobs": []}
            for t, v in (("a", -0.5), ("b", -0.25))
        ]
    }
    with chat_server(script_of(answer)) as server:
        done, _ = ask(server, logprobs=True)
    assert done.token_logprobs == [-0.5, -0.25]
    assert done.logprob == pytest.approx(-0.75)


@pytest.mark.parametrize(
    "bad",
    [
        (429, {"error": {"message": "slow down"}}),
        (500, {"error": "x"}),
        (503, {}),
        "drop",
        "half",
        "garbage",
        {"choices": []},
    ],
)
def test_what_passes_is_tried_again(bad):
    with chat_server(script_of(bad, bad, "well")) as server:
        done, model = ask(server)
    assert done.message["content"] == "well"
    assert model.usage.retries == 2


def test_a_server_that_asks_for_patience_gets_it():
    limit = (429, {"error": {"message": "limit"}}, {"retry-after": "0.4"})
    with chat_server(script_of(limit, "well")) as server:
        start = time.monotonic()
        ask(server)
    assert time.monotonic() - start >= 0.4


def test_a_request_that_hangs_costs_its_timeout_and_is_tried_again():
    with chat_server(script_of("stall", "well")) as server:
        start = time.monotonic()
        done, _ = ask(server, timeout=0.5)
    assert done.message["content"] == "well"
    assert time.monotonic() - start < 5


@pytest.mark.parametrize(("status", "words"), [(401, "401"), (404, "404"), (400, "400")])
def test_what_does_not_pass_fails_at_once_with_its_reason(status, words):
    with chat_server(script_of((status, {"error": {"message": "no such model"}}))) as server:
        with pytest.raises(wai.AgentFailed, match=words) as caught:
            ask(server)
        assert len(server.requests) == 1
    assert caught.value.boundary == "provider"
    assert "no such model" in str(caught.value)


def test_a_limit_on_retries_holds():
    with chat_server(script_of((500, {}))) as server:
        with pytest.raises(wai.AgentFailed, match="500"):
            ask(server, retries=2)
        assert len(server.requests) == 3


def test_an_endpoint_that_never_answered_is_dead_after_some_failures():
    model = Endpoint("http://127.0.0.1:9", "any", retries=0)
    for _ in range(8):
        with pytest.raises(wai.AgentFailed, match="did not answer"):
            asyncio.run(model.complete(ASK))
    with pytest.raises(wai.AgentFailed, match="is dead: APIConnectionError"):
        asyncio.run(model.complete(ASK))


def test_one_endpoint_serves_many_loops():
    with chat_server(script_of("well")) as server:
        model = Endpoint(server.url, "any")
        said = [asyncio.run(model.complete(ASK)).message["content"] for _ in range(3)]
    assert said == ["well"] * 3


def test_requests_are_spaced_and_costs_add_up():
    with chat_server(script_of("one two")) as server:
        model = Endpoint(server.url, "any", requests_per_minute=600, price=(1.0, 2.0))

        async def many():
            await asyncio.gather(*(model.complete(ASK) for _ in range(5)))

        start = time.monotonic()
        asyncio.run(many())
    assert time.monotonic() - start >= 0.4
    assert model.usage.cost == pytest.approx(5 * (10 * 1.0 + 2 * 2.0) / 1e6)


def test_the_key_is_sent_and_shown_nowhere():
    with chat_server(script_of("well")) as server:
        _, model = ask(server, key="secret-key")
    assert server.headers[0]["authorization"] == "Bearer secret-key"
    assert "secret" not in repr(model)
    assert "secret" not in model.name


@pytest.mark.parametrize(
    "options",
    [
        {"url": "localhost", "model": "m"},
        {"url": "http://x", "model": ""},
        {"url": "http://x", "model": "m", "timeout": 0},
    ],
)
def test_options_out_of_range_are_errors(options):
    with pytest.raises(wai.InputError):
        Endpoint(**options)


def test_names_become_models(monkeypatch):
    model = as_model("vllm:org/name@http://localhost:1234/v1")
    assert (model.url, model.model, model.name) == (
        "http://localhost:1234/v1",
        "org/name",
        "vllm:org/name",
    )
    assert as_model("ollama:llama3").url.endswith(":11434/v1")
    monkeypatch.setenv("HF_TOKEN", "t")
    assert as_model("hf:org/name:cheapest").model == "org/name:cheapest"
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(wai.InputError, match="OPENAI_API_KEY"):
        as_model("openai:gpt")
    for spec in ("polte:x", "openai:", "gpt", 3):
        with pytest.raises(wai.InputError, match="start with one of"):
            as_model(spec)
    assert as_model(model) is model
