"""The verifiers door: rewards, cuts, failures, verbatim schemas, and nothing private on the wire."""

from __future__ import annotations

import asyncio
import json

import pytest
from environment_scripts import POLICIES, endpoint

import whileai_hf as wai

vf = pytest.importorskip("verifiers.v1")
pytestmark = pytest.mark.filterwarnings("ignore")


def play(env, url, jobs, max_turns=6, split="holdout"):
    """Run (policy, task number) through verifiers; return the traces in that order."""
    config = vf.resolve_env_config(
        {"taskset": {"id": env.name, "split": split}, "agent": {"max_turns": max_turns}}
    )
    loaded = vf.load_environment(config)
    client = vf.EvalClientConfig(base_url=url, api_key_var="NO_KEY")

    async def run():
        async with loaded.serving():
            tasks = list(loaded.taskset)
            waiting = [
                loaded.run_episode(
                    tasks[i % len(tasks)], vf.ModelContext(model=policy, client=client)
                )
                for policy, i in jobs
            ]
            return await asyncio.gather(*waiting)

    return [episode.traces[0] for episode in asyncio.run(run())]


def DONE(env):
    """The place of a task that can be done."""
    return [t.privileged["expected"] for t in env.tasks("holdout")].index("done")


@pytest.fixture(scope="module")
def run(env, module):
    at = DONE(env)
    jobs = [(name, at) for name in POLICIES] + [("broken", at)] + [("gold", i) for i in range(4)]
    with endpoint(env, {**POLICIES, "broken": lambda task: 500}) as server:
        traces = play(env, server.url, jobs)
    return (
        dict(zip([name for name, _ in jobs][: len(POLICIES) + 1], traces, strict=False)),
        traces,
        server,
    )


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_earns_what_the_environment_says(run, env, policy):
    trace = run[0][policy]
    assert trace.ok, trace.errors
    task = env.tasks("holdout")[DONE(env)]
    kept = trace.info["whileai"]
    score = env.score(task, kept["messages"], kept["finish_reason"])
    assert trace.reward == score.reward
    assert trace.metrics == score.metrics
    assert trace.reward == (1.0 if policy in ("gold", "parallel") else 0.0)


def test_a_cut_rollout_is_truncated_for_verifiers_too(run):
    traces = run[0]
    assert traces["loops"].is_truncated
    assert traces["loops"].stop_condition == "max_turns"
    assert traces["cut"].is_truncated
    assert traces["loops"].metrics["truncated"] == traces["cut"].metrics["truncated"] == 1.0


def test_a_failed_provider_is_an_error_and_no_reward(run):
    trace = run[0]["broken"]
    assert not trace.ok
    assert not trace.rewards


def test_the_schemas_are_shown_verbatim_and_nothing_private_is_on_the_wire(run, env):
    hidden = set()
    for task in [*env.tasks("train"), *env.tasks("holdout")]:
        hidden |= {
            task.privileged["outcome"],
            f'"seed": {task.world["seed"]}',
            str(task.world["seed"]),
        }
    for request in run[2].requests:
        assert request["tools"] == env.contexts[0]["tools"]
        text = json.dumps(request, ensure_ascii=False)
        said = json.dumps(
            [m for m in request["messages"] if m["role"] == "assistant"], ensure_ascii=False
        )
        assert not [h for h in hidden if h in text and h not in said]
        for word in ("privileged", "expected", "solution", "faults", "calibration"):
            assert word not in text.lower().replace("unexpected", "")


def test_a_saved_trace_holds_nothing_private_and_reads_back(run, env, tmp_path):
    file = tmp_path / "traces.jsonl"
    lines = [{"traces": [t.to_record()], "ok": t.ok} for t in run[1]]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for task in env.tasks("holdout"):
        assert task.privileged["outcome"] not in file.read_text()
    rows = wai.rollouts_from_traces(file, env=env)
    for row, trace in zip(rows.records(), run[1], strict=True):
        assert row["reward"] == (trace.reward if trace.ok else None)
        assert bool(row["error"]) == (not trace.ok)
    wai.pass_at(rows)
