"""What an environment costs beside the model: seconds a rollout in process, and how busy it keeps an endpoint.

    python tests/benchmarks/environment.py

Limits: 50 ms a rollout in process; 64 rollouts at once keep an endpoint that answers in 50 ms at least 90 % busy.
The endpoint is the loop's own agent that sleeps 50 ms: what is measured is the environment, not a web server.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import whileai_hf as wai
from whileai_hf.environment.playing import Script

ANSWER_S, AT_ONCE = 0.05, 64


class Slow(Script):
    """Answers each turn of a solution after 50 ms."""

    inline = False
    busy_s = 0.0

    async def respond(self, messages, attempt):
        await asyncio.sleep(ANSWER_S)
        Slow.busy_s += ANSWER_S
        return Script.respond(self, messages, attempt)


async def play(env, tasks, n):
    waiting, gate = iter(range(n)), asyncio.Semaphore(AT_ONCE)

    async def one(i):
        async with gate:
            task = tasks[i % len(tasks)]
            rollout = env.start(task, Slow(task.solution))
            await rollout.play_async(None)
            env.score(task, rollout.messages, rollout.finish_reason)

    await asyncio.gather(*(one(i) for i in waiting))


def main():
    for folder in sorted((Path(__file__).parents[2] / "envs").iterdir()):
        env = wai.load_environment(folder)
        tasks = env.tasks("train")
        start = time.perf_counter()
        for task in tasks:
            env.judge(env.play(task, task.solution))
        each = (time.perf_counter() - start) / len(tasks)
        Slow.busy_s, n = 0.0, 16 * AT_ONCE
        start = time.perf_counter()
        asyncio.run(play(env, tasks, n))
        busy = Slow.busy_s / AT_ONCE / (time.perf_counter() - start)
        print(
            f"{env.name:16} {1000 * each:5.1f} ms a rollout (limit 50), endpoint {busy:.0%} busy at {AT_ONCE} (limit 90 %)"
        )


if __name__ == "__main__":
    main()
