"""The grid covers what can be, names what cannot, and keeps its cells where nothing changed."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whileai_hf as wai
from whileai_hf.simulate.axes import UNRELATED, Axes, argument_choices
from whileai_hf.simulate.grid import MAX_RULES, clauses, grid
from whileai_hf.world.tools import read_tools


@wai.tool
def get_order(order_id: str) -> dict:
    """Look up an order."""


@wai.tool
def refund_order(order_id: str, amount: float, note: str = "", express: bool = False) -> dict:
    """Refund an order."""


@wai.tool
def search_orders(query: str, limit: int = 10) -> dict:
    """Search the orders."""


TOOLS = read_tools([get_order, refund_order, search_orders])
RULES = [
    "Never refund an order twice.",
    "Always confirm the amount first.",
    "Answer in one paragraph only.",
]
PROMPT = "You are a clerk. " + " ".join(RULES)


def combinations_by_hand(axes: Axes, strength: int):
    """Every combination of values that some whole situation can have, by trying each completion."""
    names = list(axes.factors)
    for chosen in itertools.combinations(names, strength):
        for values in itertools.product(*(axes.factors[n] for n in chosen)):
            partial = dict(zip(chosen, values, strict=True))
            if _completes(axes, partial):
                yield tuple(partial.items())


def _completes(axes: Axes, partial: dict[str, str]) -> bool:
    """Search a completion tool by tool; only tool, family and stance are bound to one another."""
    for tool in [partial["tool"]] if "tool" in partial else axes.by_tool:
        own = axes.by_tool[tool]
        fits = all(v in own[a] for a, v in partial.items() if a in own)
        family = [partial["family"]] if "family" in partial else own["family"]
        stance = [partial["stance"]] if "stance" in partial else axes.factors["stance"]
        civil = any(
            f != "over_reach" or s not in ("ambiguous", "adversarial")
            for f in family
            for s in stance
        )
        if fits and civil:
            return True
    return False


@pytest.mark.parametrize("strength", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_every_combination_that_can_be_is_met_and_no_other(strength):
    axes = Axes.of(TOOLS)
    wanted = set(combinations_by_hand(axes, strength))
    met = {
        tuple((n, cell.values[n]) for n in chosen)
        for cell in grid(TOOLS, strength=strength)
        for chosen in itertools.combinations(axes.factors, strength)
    }
    assert met == wanted


@pytest.mark.parametrize(
    ("tools", "most"), [([], 60), (TOOLS[:1], 90), (TOOLS, 110)], ids=["none", "one", "three"]
)
def test_the_array_is_near_its_lower_bound(tools, most):
    sizes = sorted((len(v) for v in Axes.of(tools).factors.values()), reverse=True)
    assert sizes[0] * sizes[1] * 0.6 < len(grid(tools)) <= most


def test_a_grid_covers_its_own_pairs_rules_included_and_names_what_never_occurs():
    cells = grid(TOOLS, PROMPT)
    found = wai.coverage([c.values for c in cells], TOOLS, PROMPT)
    assert found.missing == ()
    assert found.share == 1.0
    assert found.impossible == len(found.never) <= 100
    assert ("tool", UNRELATED, "world_state", "missing") in found.never
    less = wai.coverage([c.values for c in cells[:10]], TOOLS, PROMPT)
    assert 0.1 < less.share < 0.9
    assert less.missing


def test_the_axes_are_read_from_the_schemas():
    assert argument_choices(TOOLS[0]) == ["required"]
    assert argument_choices(TOOLS[1]) == [
        "required",
        "all",
        "with note",
        "with express",
        "express=true",
        "express=false",
    ]
    own = Axes.of(TOOLS).by_tool
    assert own["refund_order"]["chain"] == {"none", "get_order", "search_orders"}
    assert own["get_order"]["chain"] == {"none", "search_orders"}
    assert own["search_orders"]["world_state"] == {"exists", "missing"}
    assert "duplicate" in own["refund_order"]["world_state"]
    assert "duplicate" not in Axes.of(TOOLS[1:2]).by_tool["refund_order"]["world_state"]
    bounded = {"name": "set_heat", "parameters": {"type": "object", "required": ["level"], "properties": {
        "level": {"type": "integer", "minimum": 1, "maximum": 9}, "mode": {"enum": ["eco", "fast"]}}}}  # fmt: skip
    assert {"lowest", "highest", "mode=eco", "mode=fast"} <= set(
        argument_choices(read_tools(bounded)[0])
    )


def test_an_edit_of_one_clause_changes_only_its_cells():
    before = {c.id: c for c in grid(TOOLS, PROMPT)}
    after = {c.id: c for c in grid(TOOLS, PROMPT.replace("the amount first", "the amount twice"))}
    gone, new = before.keys() - after.keys(), after.keys() - before.keys()
    assert {before[i].values["rule"] for i in gone} == {RULES[1]}
    assert {after[i].values["rule"] for i in new} == {"Always confirm the amount twice."}
    dropped = {c.id for c in grid(TOOLS, "You are a clerk. " + " ".join(RULES[1:]))}
    assert {before[i].values["rule"] for i in before.keys() - dropped} == {RULES[0]}
    assert not dropped - before.keys()


def test_a_small_budget_meets_every_rule():
    assert {c.values["rule"] for c in grid(TOOLS, PROMPT)[:12]} == {"none", *RULES}


def test_axes_of_the_users_own_are_covered():
    cells = grid(TOOLS, extra={"channel": ["mail", "phone"], "tier": ["gold", "none"]})
    assert {(c.values["channel"], c.values["tier"]) for c in cells} == set(
        itertools.product(["mail", "phone"], ["gold", "none"])
    )
    for bad in ({"tool": ["x"]}, {"rule": ["x"]}, {"mine": []}, {"mine": "abc"}):
        with pytest.raises(wai.InputError, match="new name"):
            grid(TOOLS, extra=bad)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.text("abcdefgh ij", min_size=9, max_size=40), max_size=5))
def test_any_prompt_makes_a_grid_whose_ids_name_their_values(texts):
    cells = grid(TOOLS[:1], "\n".join(texts))
    assert len({c.id for c in cells}) == len(cells)
    assert {c.values["rule"] for c in cells} == {"none", *clauses("\n".join(texts))}


def test_clauses_beyond_the_limit_are_counted_and_not_lost_silently():
    prompt = "\n".join(f"Rule number {i} holds always." for i in range(MAX_RULES + 3))
    found = wai.coverage([], TOOLS[:1], prompt)
    assert found.rules_left_out == 3
    assert "3 clauses left out" in str(found)


def test_the_cells_are_the_same_under_any_hash_seed():
    code = (
        "import hashlib\nfrom whileai_hf.simulate.grid import grid\nfrom whileai_hf.world.tools import read_tools\n"
        "ts = read_tools([{'name': n, 'parameters': {'type': 'object', 'properties': {'a_id': {'type': 'string'},"
        " 'k': {'enum': ['x', 'y']}}}} for n in ('get_a', 'pay_a')])\n"
        "print(hashlib.sha256(repr([c.id for c in grid(ts, 'Be kind to all. Never pay twice a day.')]).encode()).hexdigest())"
    )
    marks = {
        subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed},
                       capture_output=True, text=True, check=True).stdout for seed in ("0", "1", "7")
    }  # fmt: skip
    assert len(marks) == 1
