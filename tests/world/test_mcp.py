"""A real MCP server over stdio: its list becomes tools, and it answers when asked to."""

from __future__ import annotations

import sys
import textwrap

import pytest

import whileai_hf as wai
from whileai_hf.world.mcp import McpServer

pytest.importorskip("mcp")

SERVER = """
from mcp.server import MCPServer

server = MCPServer("shop")
ORDERS = {"ORD-1": {"order_id": "ORD-1", "status": "paid"}}

@server.tool()
def get_order(order_id: str) -> dict:
    '''Look up an order by its id.'''
    return ORDERS[order_id]

@server.tool()
def cancel_order(order_id: str, reason: str = "none") -> str:
    '''Cancel an order.'''
    if order_id not in ORDERS:
        raise ValueError("no such order")
    ORDERS[order_id]["status"] = "cancelled"
    return f"cancelled {order_id}"

server.run("stdio")
"""


@pytest.fixture
def command(tmp_path):
    path = tmp_path / "server.py"
    path.write_text(textwrap.dedent(SERVER), encoding="utf-8")
    return [sys.executable, str(path)]


def test_the_list_of_a_server_is_simulated_without_calling_it(command):
    with wai.McpServer(command) as server:
        assert [t.name for t in server.tools] == ["get_order", "cancel_order"]
        assert server.tools[0].description == "Look up an order by its id."
    data = wai.simulate(
        wai.seeded_agent(server.tools), tools=server.tools, budget=20, repeats=1, progress=False
    )
    assert len(data) == 20
    assert "cancel_order" in {s["tool"] for s in data["situation"]}


def test_a_server_answers_through_the_world_with_its_faults(command):
    with wai.McpServer(command) as server:
        world = wai.World(
            server.tools, execute=server.call, faults=[{"kind": "timeout", "tool": "get_order"}]
        )
        assert world.call("get_order", {"order_id": "ORD-1"})["error"] == "timeout"
        assert world.call("get_order", {"order_id": "ORD-1"})["status"] == "paid"
        assert world.call("get_order", {"order": 1})["error"] == "invalid_arguments"
        assert "cancelled ORD-1" in str(world.call("cancel_order", {"order_id": "ORD-1"}))
        assert world.call("get_order", {"order_id": "ORD-1"})["status"] == "cancelled"
        failed = world.call("cancel_order", {"order_id": "ORD-9"})
        assert failed["error"] == "RuntimeError"
        assert [e["status"] for e in world.log][-1] == "error"
    with pytest.raises(wai.InputError, match="inside `with`"):
        server.call("get_order", {"order_id": "ORD-1"})


def test_a_server_that_does_not_start_is_named(tmp_path):
    with (
        pytest.raises(wai.InputError, match="did not"),
        McpServer([sys.executable, "-c", "raise SystemExit(3)"], timeout=20),
    ):
        pass
    for bad in ("python server.py", [], [1]):
        with pytest.raises(wai.InputError):
            McpServer(bad)
