"""The laws of the world: what one tool says another one keeps, and nothing happens without a trace."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from toolsets import DOMAINS, agentdojo, tau2

import whileai_hf as wai
from whileai_hf.simulate.axes import Axes, states
from whileai_hf.simulate.goals import goal_of, reader_of
from whileai_hf.world.faults import FAULTS, register_fault
from whileai_hf.world.tools import read_tools
from whileai_hf.world.world import STATES

STRING, NUMBER = {"type": "string"}, {"type": "number"}


def schema(name: str, **properties) -> dict:
    return {
        "name": name,
        "parameters": {"type": "object", "properties": properties, "required": list(properties)},
    }


SHOP = read_tools([
    schema("get_order", order_id=STRING), schema("update_order_note", order_id=STRING, note=STRING),
    schema("refund_order", order_id=STRING, amount=NUMBER), schema("delete_order", order_id=STRING),
    schema("create_order", user_id=STRING, note=STRING), schema("search_orders", query=STRING),
    schema("list_user_orders", user_id=STRING), schema("get_user", user_id=STRING), schema("delete_user", user_id=STRING),
])  # fmt: skip
GOAL = {"tool": "refund_order", "arguments": {"order_id": "ORD-1", "amount": 5.0}}
SCHEDULE = st.lists(
    st.builds(
        dict, kind=st.sampled_from(sorted(FAULTS)), tool=st.sampled_from([None, *(t.name for t in SHOP)]),
        first=st.integers(0, 3), times=st.none() | st.integers(1, 2),
    ),
    max_size=3,
)  # fmt: skip


class Shop(RuleBasedStateMachine):
    """Calls in any order, in any state, under any faults; a plain dictionary is the witness."""

    @initialize(seed=st.integers(0, 2**31), state=st.sampled_from(STATES), faults=SCHEDULE)
    def open(self, seed, state, faults):
        self.world = wai.World(SHOP, seed=seed, state=state, goal=GOAL, faults=faults)
        self.notes: dict[str, str] = {}
        self.gone: set[str] = set()
        self.created: set[str] = set()
        self.seen = {"ORD-1"}

    def call(self, name, **arguments):
        before = json.dumps(self.world.records, default=str, sort_keys=True)
        result = self.world.call(name, arguments)
        entry = self.world.log[-1]
        after = json.dumps(self.world.records, default=str, sort_keys=True)
        if entry["status"] in ("invalid", "error"):
            assert before == after, "a refused call changes nothing"
        if entry["status"] == "fault" and entry["fault"] != "partial_write":
            assert before == after, "a fault that takes no effect changes nothing"
        if entry["effect"]:
            assert before != after, "a write that took effect can be seen"
            assert self.world._writes(name)
        return result, entry["status"] == "ok"

    def orders(self):
        return sorted(self.seen)

    @rule(data=st.data())
    def read(self, data):
        identifier = data.draw(st.sampled_from(self.orders()))
        result, good = self.call("get_order", order_id=identifier)
        if not good:
            return
        assert identifier not in self.gone
        record = result["matches"][0] if "matches" in result else result
        assert record["order_id"] == identifier
        if identifier in self.notes:
            assert record["note"] == self.notes[identifier]
        owner = record["user_id"]
        if owner is not None and not any(
            f.hits("get_user", self.world._calls.get("get_user", 0)) for f in self.world.faults
        ):
            found, _ = self.call("get_user", user_id=owner)
            assert found["user_id"] == owner, "who an order names can be read"

    @rule(data=st.data(), note=st.text("abc", max_size=4))
    def write(self, data, note):
        identifier = data.draw(st.sampled_from(self.orders()))
        _, good = self.call("update_order_note", order_id=identifier, note=note)
        if good:
            assert identifier not in self.gone
            self.notes[identifier] = note
            _, twice = self.call("update_order_note", order_id=identifier, note=note)
            assert not twice, "the same write is not done twice"
            _, other = self.call("update_order_note", order_id=identifier, note=note + "d")
            if other:
                _, back = self.call("update_order_note", order_id=identifier, note=note)
                self.notes[identifier] = note if back else note + "d"
                assert back or self.world.log[-1]["status"] == "fault", "an edit may be taken back"

    @rule(note=st.text("abc", max_size=4), user=st.sampled_from(["USE-1", "USE-2"]))
    def create(self, note, user):
        # a user whom nobody has named does not exist
        _, good = self.call("create_order", user_id=user, note=note)
        assert not good

    @rule(note=st.text("abc", max_size=4), data=st.data())
    def create_for_a_known_user(self, note, data):
        users = sorted(
            {
                r["user_id"]
                for r in self.world.records.values()
                if r.get("order_id") and r.get("user_id")
            }
        )
        if users:
            result, good = self.call(
                "create_order", user_id=data.draw(st.sampled_from(users)), note=note
            )
            if good:
                assert result["id"] not in self.seen | self.gone, "an id is never given twice"
                self.seen.add(result["id"])
                self.created.add(result["id"])
                self.notes[result["id"]] = note

    @rule(data=st.data())
    def delete(self, data):
        identifier = data.draw(st.sampled_from(self.orders()))
        _, good = self.call("delete_order", order_id=identifier)
        if good:
            assert identifier not in self.gone
            self.gone.add(identifier)

    @rule(query=st.sampled_from(["amber", "birch cedar"]))
    def search(self, query):
        result, good = self.call("search_orders", query=query)
        if not good:
            return
        again, still = self.call("search_orders", query=query)
        if still:
            assert again == result, "a search without a write between finds the same"
        for record in result["results"]:
            assert record["order_id"] not in self.gone
            self.seen.add(record["order_id"])
            if record["order_id"] in self.notes:
                assert record["note"] == self.notes[record["order_id"]]

    @rule(data=st.data())
    def orders_of_a_user(self, data):
        users = sorted(
            {
                r["user_id"]
                for r in self.world.records.values()
                if r.get("order_id") and r.get("user_id")
            }
        )
        if users:
            user = data.draw(st.sampled_from(users))
            result, good = self.call("list_user_orders", user_id=user)
            if good:
                assert all(record["user_id"] == user for record in result["results"])
                self.seen |= {record["order_id"] for record in result["results"]}

    @rule(data=st.data())
    def delete_a_user(self, data):
        users = sorted({r["user_id"] for r in self.world.records.values() if r.get("user_id")})
        if users:
            user = data.draw(st.sampled_from(users))
            _, good = self.call("delete_user", user_id=user)
            if good:
                assert user not in {r.get("user_id") for r in self.world.records.values()}, (
                    "nothing names who is gone"
                )

    @rule()
    def refund(self):
        _, good = self.call("refund_order", **GOAL["arguments"])
        assert good <= ("ORD-1" not in self.gone)
        assert self.world.achieved() >= good

    @invariant()
    def replays_exactly(self):
        if not hasattr(self, "world"):
            return
        spec = json.loads(json.dumps(self.world.spec))
        log = json.loads(json.dumps(self.world.log, default=str))
        again = wai.World(SHOP, **spec).replay(log)
        assert json.dumps(again.log, default=str) == json.dumps(self.world.log, default=str)
        assert again.records == self.world.records
        assert again.achieved() == self.world.achieved()


TestShop = Shop.TestCase
TestShop.settings = settings(max_examples=25, stateful_step_count=15, deadline=None)

SETS = {
    "shop": SHOP,
    **{d: read_tools(tau2(d)) for d in DOMAINS},
    "agentdojo": read_tools(agentdojo()),
}


def honest_answers(tools, goal, **options):
    """What an agent meets that reads, acts, and acts again."""
    world = wai.World(tools, goal=goal, seed=4, **options)
    by_name = {t.name: t for t in tools}
    reader = reader_of(by_name, goal["tool"], goal["arguments"])
    steps = [(goal["tool"], goal["arguments"]), *([reader] if reader else [])]
    return [world.call(*step) for step in (*steps, steps[0], steps[-1], steps[0])]


def goals(tools):
    import random

    by_name = {t.name: t for t in tools}
    for tool in tools:
        yield tool, goal_of({"tool": tool.name}, by_name, random.Random(tool.name))


@pytest.mark.parametrize("name", SETS)
def test_every_state_that_a_tool_can_meet_changes_an_answer(name):
    tools, met = SETS[name], set()
    for tool, goal in goals(tools):
        plain = honest_answers(tools, goal)
        for state in states(tool, tools):
            if state != "exists":
                met.add(state)
                assert honest_answers(tools, goal, state=state) != plain, (tool.name, state)
    assert met == set(STATES) - {"exists"} or name in ("agentdojo", "telecom")


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("kind", FAULTS)
def test_every_fault_of_every_tool_changes_an_answer_and_a_retry_succeeds_after_it(name, kind):
    tools = SETS[name]
    for tool, goal in goals(tools):
        plain = wai.World(tools, goal=goal, seed=4)
        faulty = wai.World(
            tools, goal=goal, seed=4, faults=[{"kind": kind, "tool": tool.name, "times": 2}]
        )
        first = plain.call(goal["tool"], goal["arguments"])
        assert plain.achieved()
        assert faulty.expected() == "done"
        for tries in range(3):
            result = faulty.call(goal["tool"], goal["arguments"])
            assert (result == first) == (tries == 2) or tries == 2, (tool.name, kind)
            assert faulty.achieved() == (tries == 2), "only who tries again succeeds"


def test_a_timeout_that_took_effect_shows_as_a_double_execution():
    @register_fault("lost_answer")
    def lost_answer(result, context):
        return {"error": "timeout", "message": "no answer"}, True

    try:
        world = wai.World(SHOP, goal=GOAL, faults=[{"kind": "lost_answer", "tool": "refund_order"}])
        world.call("refund_order", GOAL["arguments"])
        assert world.log[0]["effect"]
        assert world.call("refund_order", GOAL["arguments"])["error"] == "already_done"
        assert world.repeated_writes() == 1
        assert "lost_answer" in Axes.of(SHOP).factors["tool_condition"]
    finally:
        del FAULTS["lost_answer"]


def test_a_fault_never_makes_a_write_of_the_users_own_function():
    made = []
    world = wai.World(
        SHOP, execute=lambda name, arguments: made.append(name) or {"done": name},
        faults=[{"kind": kind, "tool": "refund_order", "first": i} for i, kind in enumerate(sorted(FAULTS))],
    )  # fmt: skip
    for _ in FAULTS:
        world.call("refund_order", GOAL["arguments"])
    assert made == []
    assert world.call("refund_order", GOAL["arguments"]) == {"done": "refund_order"}


def test_a_chain_is_achieved_in_its_order_only():
    goal = {**GOAL, "after": [{"tool": "get_order", "arguments": {"order_id": "ORD-1"}}]}
    right, wrong = wai.World(SHOP, goal=goal), wai.World(SHOP, goal=goal)
    steps = [("get_order", {"order_id": "ORD-1"}), ("refund_order", GOAL["arguments"])]
    for step in steps:
        right.call(*step)
    for step in reversed(steps):
        wrong.call(*step)
    assert (right.achieved(), wrong.achieved()) == (True, False)
    assert wai.World(SHOP, **json.loads(json.dumps(right.spec))).goal == goal


def test_a_search_finds_what_the_goal_is_about():
    goal = {**GOAL, "after": [{"tool": "search_orders", "arguments": {"query": "amber birch"}}]}
    world = wai.World(SHOP, goal=goal, seed=9)
    assert [
        r["order_id"] for r in world.call("search_orders", {"query": "amber birch"})["results"]
    ] == ["ORD-1"]
    missing = wai.World(SHOP, goal=goal, seed=9, state="missing")
    assert missing.call("search_orders", {"query": "amber birch"}) == {"results": [], "total": 0}


def test_an_id_of_another_kind_is_not_found():
    world = wai.World(SHOP, goal=GOAL)
    owner = world.call("get_order", {"order_id": "ORD-1"})["user_id"]
    assert world.call("get_order", {"order_id": owner})["error"] == "not_found"
    assert world.call("get_user", {"user_id": "ORD-1"})["error"] == "not_found"


@pytest.mark.parametrize(("kind", "verbs"), [("read", "get"), ("read", "stock")])
def test_an_argument_of_a_read_never_becomes_its_answer(kind, verbs):
    tools = read_tools(schema(verbs, sku=STRING, quantity={"type": "integer"}))
    worlds = [
        wai.World(tools, goal={"tool": verbs, "arguments": {"sku": "T1", "quantity": 500}})
        for _ in range(2)
    ]
    asked, other = (
        w.call(verbs, {"sku": "T1", "quantity": n}) for w, n in zip(worlds, (500, 3), strict=True)
    )
    assert asked["quantity"] == other["quantity"]


def test_numbers_and_lists_as_ids_are_entities_too():
    tools = read_tools([
        schema("get_item", item_id={"type": "integer"}),
        schema("exchange_items", order_id=STRING, item_ids={"type": "array", "items": {"type": "integer"}}),
    ])  # fmt: skip
    goal = {"tool": "exchange_items", "arguments": {"order_id": "O-1", "item_ids": [4, 5]}}
    world = wai.World(tools, goal=goal)
    assert world.call("get_item", {"item_id": 5})["item_id"] == 5
    assert world.call("get_item", {"item_id": 6})["error"] == "not_found"
    assert (
        world.call("exchange_items", {"order_id": "O-1", "item_ids": [4, 6]})["error"]
        == "not_found"
    )
    assert world.call(*goal.values())["ok"]


def test_two_kinds_may_share_a_number():
    tools = read_tools([schema("get_user", user_id={"type": "integer"}), schema("pay_order", user_id={"type": "integer"},
                        order_id={"type": "integer"}), schema("get_order", order_id={"type": "integer"})])  # fmt: skip
    world = wai.World(tools, goal={"tool": "pay_order", "arguments": {"user_id": 1, "order_id": 1}})
    assert world.call("get_user", {"user_id": 1})["user_id"] == 1
    assert world.call("get_order", {"order_id": 1})["order_id"] == 1
    assert world.call("pay_order", {"user_id": 1, "order_id": 1})["ok"]


def test_worlds_of_other_seeds_differ():
    found = [
        wai.World(SHOP, goal=GOAL, seed=s).call("get_order", {"order_id": "ORD-1"})
        for s in range(5)
    ]
    assert all(a != b for a, b in itertools.combinations(found, 2))
