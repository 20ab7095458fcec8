"""A model writes asks that fit their cell, or the template's stay; nothing is written twice."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

import whileai_hf as wai
from whileai_hf.simulate.model_writer import ModelWriter, clean, misses, stated

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@wai.tool
def get_order(order_id: str) -> dict:
    """Look up an order."""


@wai.tool
def refund_order(order_id: str, amount: float) -> dict:
    """Refund an order."""


TOOLS = [get_order, refund_order]


@dataclass
class Completion:
    message: dict
    finish_reason: str = "stop"


@dataclass
class Scripted:
    """A model whose answers are a function of the prompt and of how often it was asked."""

    answer: object
    name: str = "scripted"
    prompts: list = field(default_factory=list)

    async def complete(self, messages, *, tools=None, sampling=None, logprobs=False):
        self.prompts.append((messages, sampling))
        await asyncio.sleep(0)
        text = self.answer(messages[-1]["content"], len(self.prompts))
        return Completion({"role": "assistant", "content": text})


def values_of(prompt):
    line = next(x for x in prompt.splitlines() if x.startswith("Keep the meaning"))
    return line.split("to the letter: ")[1].rstrip(".")


def run(model, **options):
    given = {
        "tools": TOOLS,
        "budget": 40,
        "repeats": 1,
        "progress": False,
        "system_prompt": "Help customers.",
        **options,
    }
    return wai.simulate(wai.seeded_agent(TOOLS, rate=0), simulator=model, **given)


WORDS = [
    "amber",
    "birch",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "harbor",
    "indigo",
    "juniper",
    "kestrel",
    "lagoon",
]


def fitting(prompt, n):
    own = (
        " ".join(WORDS[(n * k) % 12] for k in (1, 5, 7, 11))
        + f" {'x' * (n % 7 + 1)}{WORDS[n % 12]}"
        + "q" * n
    )
    values = values_of(prompt)
    return f'<think>they need {values}</think>"{own}: {values if values != "none" else "you know"} if you can."'


def test_what_fits_is_taken_without_the_thoughts_around_it():
    model = Scripted(fitting)
    data = run(model)
    assert len(data) == 40
    template = run(False)
    assert not set(data["ask"]) & set(template["ask"])
    assert [r["world"] for r in data] == [r["world"] for r in template], (
        "the task stays the template's"
    )
    assert not [ask for ask in data["ask"] if "think" in ask or ask.startswith('"')]
    for row in data.records():
        goal = row["privileged"]["goal"]
        if (
            goal
            and row["situation"]["stance"] != "ambiguous"
            and row["situation"]["chain"] == "none"
        ):
            assert str(goal["arguments"]["order_id"]) in row["ask"]


def test_the_same_run_again_writes_the_same_rows():
    assert list(run(Scripted(lambda p, n: fitting(p, len(p))))) == list(
        run(Scripted(lambda p, n: fitting(p, len(p))))
    )


@pytest.mark.parametrize(
    "answer",
    [lambda p, n: "", lambda p, n: "no values here", lambda p, n: "x" * 10_000, lambda p, n: 1 / 0],
    ids=["empty", "lost", "long", "down"],
)
def test_a_model_that_misses_leaves_the_template_and_a_warning(answer):
    data = run(Scripted(answer), budget=20)
    assert len(data) == 20
    assert sum("stayed as the template wrote them" in w for w in data.warnings) == 1
    assert sum(a == b for a, b in zip(data["ask"], run(False, budget=20)["ask"], strict=True)) >= 15


def test_copies_are_asked_for_again_and_then_refused():
    model = Scripted(
        lambda p, n: (
            f"Always the very same long sentence about {values_of(p)}."
            if values_of(p) != "none"
            else "Hello there, my friend."
        )
    )
    from whileai_hf.simulate.grid import grid
    from whileai_hf.simulate.situations import Writer
    from whileai_hf.world.tools import read_tools

    tools = read_tools(TOOLS)
    situations = list(Writer(grid(tools), tools, seed=0, fault_rate=0.5)(60))
    writer = ModelWriter(model, {t.name: t for t in tools}, threshold=0.5)
    made = list(writer(iter(situations)))
    assert [m.task_id for m in made] == [s.task_id for s in situations]
    assert writer.refusals["a copy of another ask"] > 10
    assert writer.n_written + writer.n_kept == 60


def situation(**values):
    from whileai_hf.simulate.grid import Cell
    from whileai_hf.simulate.situations import Situation

    goal = {"tool": "refund_order", "arguments": {"order_id": "ORD-4821", "amount": 12.5}}
    ask = "Please refund the order ORD-4821, amount 12.5."
    return Situation(
        "task-0000001",
        Cell.of({"tool": "refund_order", **values}),
        ask,
        {"goal": goal},
        "done",
        "en",
        None,
        {"goal": goal},
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Money back for ORD-4821, that is 12.5, please", None), ("Money back for order ord-4821 of 12.5", "a value is missing"), ("", "empty"),
        ("refund_order ORD-4821 12.5", "speaks of the simulation"), ("As an AI I say ORD-4821 and 12.5", "speaks of the simulation"),
        ("ORD-4821, 12.5, for 3 passengers", "an invented value"), ("ORD-4821 12.5 " * 40, "too long"),
    ],
)  # fmt: skip
def test_an_ask_is_checked_against_its_cell(text, problem):
    assert misses(text, situation(), {"refund_order"}) == problem


def test_an_ambiguous_ask_may_not_give_away_what_it_hides():
    vague = situation(stance="ambiguous")
    assert stated(vague) == []
    assert misses("Please refund ORD-4821.", vague) == "a value is given away"
    assert misses("Please refund the one from last week.", vague) is None


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("<think>they want the id</think>Order 4821", "Order 4821"), ('"Order 4821"', "Order 4821"), ("```\nOrder 4821\n```", "Order 4821"),
        ("User: Order 4821", "Order 4821"), ('He said "no" and "yes"', 'He said "no" and "yes"'), ("<thinking>never ends", ""),
    ],
)  # fmt: skip
def test_what_stands_around_a_message_is_taken_off(said, left):
    assert clean(said) == left


def test_an_endpoint_writes_through_the_models_room():
    from chat_server import chat_server

    with chat_server(lambda request, n: fitting(request["messages"][-1]["content"], n)) as server:
        data = run(f"vllm:any@{server.url}", budget=6)
    assert len(data) == 6
    assert len(server.requests) >= 6
    assert not set(data["ask"]) & set(run(False, budget=6)["ask"])
