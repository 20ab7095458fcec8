"""The environment proves itself offline: its solutions earn the full reward, and nothing private is shown."""

import asyncio
import json

import pytest

from support_desk import ENVIRONMENT

TASKS = ENVIRONMENT.tasks("train") + ENVIRONMENT.tasks("holdout")


def test_the_solution_of_every_task_earns_one_and_doing_nothing_does_not():
    report = ENVIRONMENT.validate()
    assert report.ok, report


def test_no_task_is_in_both_splits():
    assert len({task.id for task in TASKS}) == len(TASKS)


def test_verifiers_gives_the_solutions_their_reward_and_shows_the_schemas_as_they_are():
    vf = pytest.importorskip("verifiers.v1")
    with ENVIRONMENT.reference_server() as server:
        config = vf.resolve_env_config({"taskset": {"id": "support-desk"}})
        env = vf.load_environment(config)
        client = vf.EvalClientConfig(base_url=server.url, api_key_var="NO_KEY")

        async def play():
            async with env.serving():
                tasks = list(env.taskset)[:4]
                return [await env.run_episode(t, vf.ModelContext(model="reference", client=client)) for t in tasks]

        for episode in asyncio.run(play()):
            (trace,) = episode.traces
            assert trace.ok, trace.errors
            assert trace.reward == 1.0
        for request in server.requests:
            tools = [task.tools for task in TASKS]
            assert tuple(request.get("tools") or ()) in tools
            assert "solution" not in json.dumps(request.get("metadata") or "")
