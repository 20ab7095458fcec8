"""The world keeps its own laws: states and faults have consequences, and every run replays."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whileai_hf as wai
from whileai_hf.world.faults import FAULTS
from whileai_hf.world.world import STATES, kind_of


@wai.tool
def get_order(order_id: str) -> dict:
    """Look up an order."""


@wai.tool
def refund_order(order_id: str, amount: float) -> dict:
    """Refund an order."""


@wai.tool
def create_ticket(subject: str) -> dict:
    """Open a ticket."""


@wai.tool
def search_orders(query: str) -> dict:
    """Search the orders."""


TOOLS = [get_order, refund_order, create_ticket, search_orders]
GOAL = {"tool": "refund_order", "arguments": {"order_id": "ORD-1", "amount": 5.0}}
READ, REFUND = ("get_order", {"order_id": "ORD-1"}), (GOAL["tool"], GOAL["arguments"])
PROBES = [READ, REFUND, READ, REFUND, ("search_orders", {"query": "x"})]


def world(**options):
    return wai.World(TOOLS, **{"seed": 3, "goal": GOAL, **options})


def results(made, calls=PROBES):
    return [made.call(*call) for call in calls]


@pytest.mark.parametrize("state", [s for s in STATES if s != "exists"])
def test_every_state_changes_what_calls_return(state):
    assert results(world(state=state)) != results(world(state="exists"))


@pytest.mark.parametrize("kind", FAULTS)
def test_every_fault_changes_what_calls_return_and_transient_ones_pass(kind):
    made, clean = world(faults=[{"kind": kind, "tool": "get_order", "times": 1}]), world()
    assert made.call(*READ) != clean.call(*READ)
    assert made.call(*READ) == clean.call(*READ)
    assert [e["status"] for e in made.log] == ["fault", "ok"]


@pytest.mark.parametrize("kind", FAULTS)
def test_retrying_after_a_transient_fault_succeeds_and_giving_up_does_not(kind):
    made = world(faults=[{"kind": kind, "tool": "refund_order", "times": 2}])
    for expected in (False, False, True):
        made.call(*REFUND)
        assert made.achieved() is expected
    assert made.expected() == "done"


def test_a_permanent_fault_never_passes_and_must_be_reported():
    made = world(faults=[{"kind": "timeout", "times": None}])
    results(made, [REFUND] * 5)
    assert not made.achieved()
    assert made.expected() == "report_fault"


def test_a_fault_can_begin_after_n_calls_and_spare_other_tools():
    made = world(faults=[{"kind": "timeout", "tool": "get_order", "first": 1, "times": 1}])
    found = results(made, [READ, REFUND, READ, READ])
    assert [isinstance(r, dict) and r.get("error") == "timeout" for r in found] == [
        False,
        False,
        True,
        False,
    ]


def test_writes_are_remembered_and_not_done_twice():
    made = world()
    assert made.call(*REFUND)["ok"]
    assert made.call(*READ)["status"] == "done"
    assert made.call(*REFUND)["error"] == "already_done"
    assert made.repeated_writes() == 1


def test_what_was_created_can_be_read_and_twice_is_two():
    made = world()
    first, second = (made.call("create_ticket", {"subject": "s"}) for _ in range(2))
    assert first["id"] != second["id"]
    assert made.call("get_order", {"order_id": first["id"]})["subject"] == "s"


def test_the_quantity_comes_from_the_record_and_not_from_the_call():
    made = world()
    record = made.call(*READ)
    assert made.call("get_order", {"order_id": "ORD-1"})["amount"] == record["amount"]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (("nope", {}), "unknown_tool"), (("get_order", {}), "invalid_arguments"), (("get_order", {"order": "x"}), "invalid_arguments"),
        (("refund_order", {"order_id": "ORD-1", "amount": "5"}), "invalid_arguments"), (("get_order", '{"order_id": '), "invalid_arguments"),
        (("get_order", [1]), "invalid_arguments"), (("get_order", {"order_id": "ORD-9"}), "not_found"), (("get_order", None), "invalid_arguments"),
    ],
)  # fmt: skip
def test_a_bad_call_gets_its_reason_and_changes_nothing(call, error):
    made = world()
    assert made.call(*call)["error"] == error
    assert made.wrote() == []


CALLS = st.lists(
    st.one_of(
        st.sampled_from(
            [
                READ,
                REFUND,
                ("search_orders", {"query": "q"}),
                ("create_ticket", {"subject": "s"}),
                ("nope", {}),
            ]
        ),
        st.tuples(
            st.sampled_from(["get_order", "refund_order"]),
            st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=2),
        ),
    ),
    max_size=8,
)
SCHEDULES = st.lists(
    st.builds(
        dict,
        kind=st.sampled_from(sorted(FAULTS)),
        tool=st.sampled_from([None, "get_order", "refund_order"]),
        first=st.integers(0, 2),
        times=st.none() | st.integers(1, 2),
    ),
    max_size=2,
)


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(STATES), SCHEDULES, CALLS)
def test_any_run_replays_from_its_specification_and_its_log(seed, state, faults, calls):
    made = wai.World(TOOLS, seed=seed, state=state, goal=GOAL, faults=faults)
    for call in calls:
        made.call(*call)
    spec = json.loads(json.dumps(made.spec))
    again = wai.World.from_row({"tools": wai.tool_schemas(TOOLS), "world": spec}).replay(
        json.loads(json.dumps(made.log, default=str))
    )
    assert json.dumps(again.log, default=str) == json.dumps(made.log, default=str)
    assert again.records == made.records
    assert made.achieved() == again.achieved()


def test_a_function_of_the_user_answers_instead_and_may_fail():
    made = wai.World([get_order], execute=lambda name, arguments: {"mine": arguments["order_id"]})
    assert made.call("get_order", {"order_id": "x"}) == {"mine": "x"}
    broken = wai.World([get_order], execute=lambda name, arguments: 1 / 0)
    assert broken.call("get_order", {"order_id": "x"})["error"] == "ZeroDivisionError"


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"state": "gone"}, "state"),
        ({"goal": {"tool": "nope", "arguments": {}}}, "'nope'"),
        ({"faults": [{"kind": "flood"}]}, "'flood'"),
        ({"faults": [{"kind": "timeout", "times": 0}]}, "times"),
    ],
)
def test_a_world_that_cannot_be_is_refused(options, what):
    with pytest.raises(wai.InputError, match=what):
        world(**options)


def test_a_row_without_its_world_says_how_to_keep_it():
    with pytest.raises(wai.InputError, match="privileged=True"):
        wai.World.from_row({"rollout_id": "r", "world": None})


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("get_order", "read"),
        ("searchFlights", "search"),
        ("cancel_order", "delete"),
        ("send_email", "create"),
        ("frobnicate", "update"),
        ("calculate_tip", "compute"),
    ],
)
def test_a_tool_is_known_by_its_verb_and_may_write_if_unknown(name, kind):
    assert kind_of(name) == kind
