"""One environment for the tests of this room, made once."""

from __future__ import annotations

import importlib
import sys

import pytest

import whileai_hf as wai


@wai.tool
def get_order(order_id: str) -> dict:
    """Look up an order.

    Args:
        order_id: Id of the order.
    """
    return {}


@wai.tool
def cancel_order(order_id: str, reason: str) -> dict:
    """Cancel an order.

    Args:
        order_id: Id of the order.
        reason: Why it is cancelled.
    """
    return {}


TOOLS = [get_order, cancel_order]


@pytest.fixture(scope="session")
def rollouts():
    made = wai.simulate(
        wai.seeded_agent(TOOLS, rate=0.5), tools=TOOLS, system_prompt="Help customers with orders.",
        mode="rl", repeats=4, repeat_policy="fixed", budget=160, progress=False,
    )  # fmt: skip
    return made.grade(wai.task_checklist, progress=False)


@pytest.fixture(scope="session")
def exported(rollouts, tmp_path_factory):
    path = tmp_path_factory.mktemp("envs") / "desk_case"
    return wai.export_environment(rollouts, path, name="desk_case", band=(0.0, 1.0))


@pytest.fixture(scope="session")
def env(exported):
    return wai.load_environment(exported.path)


@pytest.fixture(scope="session")
def module(exported):
    sys.path.insert(0, str(exported.path))
    importlib.invalidate_caches()
    yield importlib.import_module("desk_case")
    sys.path.remove(str(exported.path))
