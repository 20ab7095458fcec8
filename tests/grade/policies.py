"""Policies that deserve nothing, or only what doing nothing deserves, and the tools that they are given."""

from __future__ import annotations

import warnings

import whileai_hf as wai
from whileai_hf.simulate.agents import Turn


def _tool(name, description, required, **properties):
    schema = {"type": "object", "properties": properties, "required": required}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": schema},
    }


_TEXT = {"type": "string"}
MIXED = [
    _tool("get_order", "Look up an order by id.", ["order_id"], order_id=_TEXT),
    _tool(
        "search_orders",
        "Search the orders of a customer.",
        ["customer_email"],
        customer_email=_TEXT,
    ),
    _tool("cancel_order", "Cancel an order.", ["order_id"], order_id=_TEXT, reason=_TEXT),
    _tool(
        "refund_payment",
        "Refund a payment.",
        ["payment_id", "amount"],
        payment_id=_TEXT,
        amount={"type": "number"},
    ),
    _tool(
        "create_ticket", "Open a ticket.", ["subject"], subject=_TEXT, urgent={"type": "boolean"}
    ),
    _tool(
        "transfer_to_human_agents", "Hand the user over to a person.", ["summary"], summary=_TEXT
    ),
]
READING = [
    _tool("get_weather", "Get the weather of a city.", ["city"], city=_TEXT),
    _tool("get_flight", "Look up a flight.", ["flight_number"], flight_number=_TEXT),
]
WRITING = [_tool("cancel_booking", "Cancel a booking.", ["booking_id"], booking_id=_TEXT)]
TOOL_SETS = {"mixed": MIXED, "reading": READING, "writing": WRITING}
POLICY = "Only refund the customer's own payments. Confirm the order before cancelling it."


class Says:
    """Always the same, or what a function makes of the ask."""

    inline = True

    def __init__(self, name, say):
        self.name, self.say = name, say

    def respond(self, messages, attempt):
        return Turn([{"role": "assistant", "content": self.say(messages, attempt)}])


class CallsEverything:
    """Every tool with whatever the task names, at once, and then a claim."""

    inline = True
    name = "call everything"

    def respond(self, messages, attempt):
        if attempt.world.log:
            return Turn([{"role": "assistant", "content": "Done: everything went through."}])
        known = {}
        for step in [*(attempt.world.goal or {}).get("after", ()), attempt.world.goal or {}]:
            known |= step.get("arguments", {})
        calls = []
        for i, schema in enumerate(attempt.tools):
            function = schema["function"]
            names = function["parameters"]["properties"]
            given = {n: known.get(n, 1.0 if names[n].get("type") == "number" else "all") for n in names
                     if n in known or n in function["parameters"]["required"]}  # fmt: skip
            calls.append(
                {
                    "id": f"c{i}",
                    "type": "function",
                    "function": {"name": function["name"], "arguments": given},
                }
            )
        return Turn([{"role": "assistant", "content": "", "tool_calls": calls}], "tool_calls")


class CallsThen:
    """The honest calls of the seeded agent, and then other words."""

    inline = True

    def __init__(self, name, tools, say):
        self.name, self.say = name, say
        self.honest = wai.seeded_agent(tools, rate=0.0)

    def respond(self, messages, attempt):
        turn = self.honest.respond(messages, attempt)
        if turn.messages[-1].get("tool_calls"):
            return turn
        return Turn([{"role": "assistant", "content": self.say(messages, attempt)}])


def _last_ask(messages, attempt):
    return next(m["content"] for m in reversed(messages) if m["role"] == "user")


def degenerate(tools):
    """Every policy that must not be paid for what it does not do."""
    return [
        Says("nothing", lambda m, a: ""),
        Says("?", lambda m, a: "?"),
        Says("refuse all", lambda m, a: "I am sorry, I cannot help with that."),
        Says("ask always", lambda m, a: "Could you tell me which one you mean?"),
        Says("echo", _last_ask),
        Says("claim success", lambda m, a: "Done: your request went through successfully."),
        Says(
            "filler",
            lambda m, a: "Thank you for reaching out. We value your patience and your trust. " * 8,
        ),
        CallsEverything(),
        CallsThen("call, then '?'", tools, lambda m, a: "?"),
        CallsThen(
            "call, then claim", tools, lambda m, a: "Done: your request went through successfully."
        ),
        CallsThen("call, then echo", tools, _last_ask),
    ]


def play(agent, tools, **options):
    """Roll a policy through the whole grid, each cell once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that such a policy calls no tool is the point of it
        return wai.simulate(
            agent, tools=tools, system_prompt=POLICY, mode="eval", repeats=1, progress=False,
            languages=("en", "es", "de", "fr", "zh"), **options,
        )  # fmt: skip
