"""One rollout: a conversation between a user, an agent and a world, written down as a record."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Mapping
from typing import Any

from whileai_hf import messages as chat
from whileai_hf.simulate.agents import Agent, Attempt, Turn
from whileai_hf.world.world import as_text


class Boundary(Exception):
    """A failure inside one rollout, with the boundary at which it happened; it is recorded."""

    def __init__(self, boundary: str, error: BaseException) -> None:
        super().__init__(f"{boundary}: {type(error).__name__}: {error}")


class Rollout:
    """The state of one rollout; `step` makes one turn, `record` writes down what there is."""

    def __init__(
        self, agent: Agent, attempt: Attempt, system_prompt: str | None, max_turns: int
    ) -> None:
        self.agent, self.attempt, self.max_turns = agent, attempt, max_turns
        self.messages: list[dict[str, Any]] = []
        if system_prompt:
            self.messages.append({"role": "system", "content": system_prompt})
        self.messages.append({"role": "user", "content": attempt.situation.ask})
        self.turns: list[Turn] = []
        self.finish_reason: str | None = None
        self.error: str | None = None
        self._answered = False

    def play(self) -> None:
        """Play to the end with an agent that answers at once."""
        while self.finish_reason is None:
            try:
                turn = self.agent.respond(self.messages, self.attempt)
                if not isinstance(turn, Turn):
                    raise TypeError(f"the agent returned {type(turn).__name__}, not a turn")
            except Exception as error:  # noqa: BLE001 - one rollout must not stop its neighbours
                self.fail(Boundary("agent", error))
            else:
                self.take(turn)

    async def play_async(self, timeout: float | None) -> None:
        """Play to the end with an agent that may wait; `timeout` seconds bound each of its answers."""
        limit = None if getattr(self.agent, "keeps_time", False) else timeout
        while self.finish_reason is None:
            try:
                turn = await asyncio.wait_for(self._ask(), limit)
            except TimeoutError:
                self.fail(Boundary("agent", TimeoutError(f"no answer in {timeout:g} s")))
            except Exception as error:  # noqa: BLE001 - one rollout must not stop its neighbours
                self.fail(Boundary(getattr(error, "boundary", "agent"), error))
            else:
                self.take(turn)

    async def _ask(self) -> Turn:
        if inspect.iscoroutinefunction(self.agent.respond):
            turn = await self.agent.respond(self.messages, self.attempt)
        else:
            turn = await in_thread(self.agent.respond, self.messages, self.attempt)
            turn = await turn if inspect.isawaitable(turn) else turn
        if not isinstance(turn, Turn):
            raise TypeError(f"the agent returned {type(turn).__name__}, not a turn")
        return turn

    def fail(self, error: Boundary) -> None:
        """End the rollout with an error; what was said before is kept."""
        self.finish_reason, self.error = "error", str(error)

    def take(self, turn: Turn) -> None:
        """Take one turn of the agent: answer its calls, or end, or let the user speak again."""
        self.turns.append(turn)
        self.messages.extend(turn.messages)
        last = turn.messages[-1]
        calls = last.get("tool_calls") if last["role"] == "assistant" else None
        if calls:
            for call in calls:
                self.messages.append(self._answer(call))
            if len(self.turns) >= self.max_turns:
                self.finish_reason = "max_turns"
        elif not self._user_speaks(last, turn):
            self.finish_reason = (
                turn.finish_reason if turn.finish_reason != "tool_calls" else "stop"
            )

    def _answer(self, call: Mapping[str, Any]) -> dict[str, Any]:
        function = call.get("function") or call
        result = self.attempt.world.call(str(function.get("name")), function.get("arguments"))
        message = {"role": "tool", "name": function.get("name"), "content": as_text(result)}
        if call.get("id") is not None:
            message["tool_call_id"] = call["id"]
        if self.attempt.world.log[-1]["status"] != "ok":
            message["status"] = "error"
        return message

    def _user_speaks(self, last: Mapping[str, Any], turn: Turn) -> bool:
        """Let a user who was asked back answer once, with what the agent needs."""
        reply = self.attempt.situation.follow_up
        asked = "?" in chat.text_of(last.get("content")) or "？" in chat.text_of(
            last.get("content")
        )
        if (
            reply is None
            or self._answered
            or not asked
            or turn.final
            or len(self.turns) >= self.max_turns
        ):
            return False
        self._answered = True
        self.messages.append({"role": "user", "content": reply})
        return True

    def record(self, run: str, sampling: Any, tools: list[dict[str, Any]] | None) -> dict[str, Any]:
        """Return the row of this rollout."""
        attempt, turns = self.attempt, self.turns
        scored = [t for t in turns if t.logprob is not None]
        tokens = [t.n_tokens for t in turns if t.n_tokens is not None]
        listed = [t.token_logprobs for t in turns if t.token_logprobs is not None]
        return {
            **attempt.situation.columns(),
            "tools": tools,
            "rollout_id": f"{attempt.situation.task_id}-{run}-{attempt.repeat}",
            "run": run,
            "repeat": attempt.repeat,
            "messages": self.messages,
            "loss_mask": chat.loss_mask(self.messages),
            "final_text": chat.final_text(self.messages),
            "finish_reason": self.finish_reason,
            "error": self.error,
            "agent": self.agent.name,
            "sampling": sampling,
            "logprob": sum(t.logprob for t in scored if t.logprob is not None) if scored else None,
            "n_tokens": sum(tokens) if tokens else None,
            "token_logprobs": [v for part in listed for v in part] if listed else None,
            "seeded": sorted({name for t in turns for name in t.seeded}),
        }


async def in_thread(function: Any, *args: Any) -> Any:
    """Run a function in a daemon thread, so that one that never returns cannot hold the process."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def finish(result: Any, error: BaseException | None) -> None:
        if not done.done():
            if error is None:
                done.set_result(result)
            else:
                done.set_exception(error)

    def work() -> None:
        outcome: tuple[Any, BaseException | None]
        try:
            outcome = (function(*args), None)
        except Exception as error:  # noqa: BLE001 - handed to whoever waits
            outcome = (None, error)
        if not loop.is_closed():
            loop.call_soon_threadsafe(finish, *outcome)

    threading.Thread(target=work, daemon=True).start()
    return await done
