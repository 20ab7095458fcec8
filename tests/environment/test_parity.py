"""One trajectory, one reward: 200 random ones through simulate and grade, verifiers, and TRL."""

from __future__ import annotations

import asyncio
import copy
import random

import pytest
from environment_scripts import endpoint

import whileai_hf as wai
from whileai_hf.environment import playing

pytestmark = pytest.mark.filterwarnings("ignore")
REPEATS = 5


def trajectory(task, rng):
    """The solution of a task, or something that goes wrong with it on the way."""
    turns = copy.deepcopy(list(task.solution))
    calls = [c for t in turns for c in t.get("tool_calls") or []]
    kind = rng.choice(
        (
            "good",
            "wrong",
            "dropped",
            "unknown",
            "malformed",
            "parallel",
            "cut",
            "silent",
            "loops",
            "markup",
            "twice",
        )
    )
    if kind == "wrong" and calls:
        function = rng.choice(calls)["function"]
        function["arguments"] = {k: f"{v}9" for k, v in function["arguments"].items()}
    elif kind == "dropped" and calls:
        turns = [t for t in turns if not t.get("tool_calls") or rng.random() < 0.5]
    elif kind == "unknown" and calls:
        rng.choice(calls)["function"]["name"] = "no_such_tool"
    elif kind == "malformed" and calls:
        rng.choice(calls)["function"]["arguments"] = rng.choice(
            ['{"order_id": ', "[1]", '"text"', "nonsense"]
        )
    elif kind == "parallel" and calls:
        turns = [
            {"content": "", "tool_calls": calls},
            *[t for t in turns if not t.get("tool_calls")],
        ]
    elif kind == "cut":
        turns[-1] = {**turns[-1], "finish_reason": "length"}
    elif kind == "silent":
        turns[-1] = {"content": ""}
    elif kind == "loops" and calls:
        turns = [{"content": "", "tool_calls": [rng.choice(calls)]}] * 30
    elif kind == "markup":
        turns[-1] = {"content": f"{turns[-1]['content']} <tool_call>{{broken"}
    elif kind == "twice" and calls:
        turns = [t for t in turns for _ in range(2 if t.get("tool_calls") else 1)]
    for i, turn in enumerate(turns):
        turns[i] = {k: v for k, v in turn.items() if v is not None}
    return kind, turns


class Player:
    """Plays the trajectory of a task and a repeat in `simulate`."""

    inline, name = True, "player"

    def __init__(self, played):
        self.played = played

    def respond(self, messages, attempt):
        turns = self.played[attempt.situation.task_id, attempt.repeat][1]
        at = sum(m["role"] == "assistant" for m in messages)
        return playing.Script([turns[at] if at < len(turns) else {"content": ""}]).respond(
            [], attempt
        )


@pytest.mark.slow
def test_200_random_trajectories_earn_the_same_through_every_door(env, module):
    vf = pytest.importorskip("verifiers.v1")
    tasks = env.tasks("train") + env.tasks("holdout")
    rng = random.Random(0)
    played = {(t.id, r): trajectory(t, rng) for t in tasks for r in range(REPEATS)}
    assert len(played) >= 200

    wanted = {}
    for split in ("train", "holdout"):
        made = wai.simulate(Player(played), tasks=env.rows(split), repeats=REPEATS, repeat_policy="fixed",
                            max_turns=env.max_turns, progress=False)  # fmt: skip
        for row in made.grade(env.judge, progress=False).records():
            wanted[row["task_id"], row["repeat"]] = row
    assert wanted.keys() == played.keys()

    policies = {f"{r}": (lambda task, r=r: played[task.id, r][1]) for r in range(REPEATS)}
    with endpoint(env, policies) as server:
        traces = asyncio.run(through_verifiers(vf, server.url, env))
    for key, trace in traces.items():
        row = wanted[key]
        assert (trace.reward if trace.rewards.get("reward") else None) == row["reward"], (
            played[key][0],
            row["reason"],
        )
        assert trace.metrics["truncated"] == row["judge_meta"]["truncated"]

    reward, compared = env.reward_func(), 0
    for key, row in wanted.items():
        task = env.task(key[0])
        said = row["messages"][len(task.prompt) :]
        if any(m["role"] == "user" for m in said) or played[key][0] == "cut":
            continue  # a user who speaks again, and a token limit, are not in TRL's loop
        (got,) = reward([[as_trl(m, task) for m in said]], task_id=[task.id])
        assert got == row["reward"], (played[key][0], row["reason"])
        compared += 1
    assert compared >= 100


def as_trl(message, task):
    """A message as TRL has it: no ids, and its own words where a tool is not known."""
    names = {t["function"]["name"] for t in task.tools}
    if message["role"] == "tool":
        text = message["content"] if message["name"] in names else "{'error': 'unknown'}"
        return {"role": "tool", "name": message["name"], "content": text}
    calls = [
        {"type": "function", "function": c["function"]} for c in message.get("tool_calls") or []
    ]
    return {
        "role": "assistant",
        "content": message["content"],
        **({"tool_calls": calls} if calls else {}),
    }


async def through_verifiers(vf, url, env):
    out = {}
    for split in ("train", "holdout"):
        config = vf.resolve_env_config({"taskset": {"id": env.name, "split": split}})
        loaded = vf.load_environment(config)
        client = vf.EvalClientConfig(base_url=url, api_key_var="NO_KEY")
        async with loaded.serving():
            for task in loaded.taskset:
                waiting = [
                    loaded.run_episode(task, vf.ModelContext(model=str(r), client=client))
                    for r in range(REPEATS)
                ]
                for r, episode in enumerate(await asyncio.gather(*waiting)):
                    out[task.data.task_id, r] = episode.traces[0]
    return out
