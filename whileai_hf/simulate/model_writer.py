"""A model as writer: it says in its own words what a template said, and is checked against the cell.

The template fixes the task: its goal, its world, its right end. The model only rewrites the ask, and
what it writes counts if it still states the values that the tool needs, hides what the cell hides, speaks of
nothing that a user cannot know, and is no near copy of an ask before. After a few tries the template's ask stays.
"""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from whileai_hf import defaults
from whileai_hf import messages as chat
from whileai_hf.errors import InputError
from whileai_hf.models.model import as_model
from whileai_hf.simulate.languages import bank
from whileai_hf.simulate.near import NearCopies
from whileai_hf.simulate.phrases import said
from whileai_hf.simulate.situations import Situation

#: Situations that are written at once; the next lot is written while this one is played.
_LOT = 32

_LANGUAGES = {"en": "English", "es": "Spanish", "de": "German", "fr": "French", "zh": "Chinese"}

#: Words of the simulation that no user says.
_INSIDE = re.compile(
    r"world[_ ]state|tool[_ ]condition|\bstance\b|tool call|function call|as an ai|language model|simulat|<\|",
    re.IGNORECASE,
)

_TASK = """Write the first message that a user sends to an assistant. Write only the message, in {language}.

What the user says, in plain words:
{draft}

Keep the meaning and the tone. State these values to the letter: {values}.
{hidden}Do not mention tools, functions or tests. Vary the wording; at most {words} words."""


def read_model(spec: Any) -> Any:
    """Take a model: an object with an asynchronous `complete`, or a string such as `openai:gpt-5-mini`."""
    if hasattr(spec, "complete"):
        return spec
    if not isinstance(spec, str) or ":" not in spec:
        raise InputError(
            f"simulator must be False, a model, or a string such as 'openai:<model>'; got {spec!r:.60}. "
            "False writes from templates, without a model."
        )
    return as_model(spec)


class ModelWriter:
    """Rewrite the asks of situations with a model.

    Args:
        model: It has `async complete(messages, *, tools, sampling)`.
        tools: Names of the tools, which no ask may hold.
        sampling: How it samples.
        tries: How often it is asked again for an ask that misses its cell.
        threshold: Similarity at which an ask is a copy of one before.

    Attributes:
        n_written: Asks of the model that were taken.
        n_kept: Asks of the template that stayed, because the model missed the cell each time.
        refusals: Why asks of the model were not taken, counted.
        failure: The first error of the model, or null.
    """

    def __init__(
        self, model: Any, tools: Mapping[str, Any] | None = None, *,
        sampling: Mapping[str, Any] | None = None, tries: int = defaults.WRITER_TRIES,
        threshold: float = defaults.WRITER_COPY,
    ) -> None:  # fmt: skip
        self.model, self.tools, self.tries = model, set(tools or ()), tries
        self.sampling = dict(sampling or {"temperature": 1.0, "max_tokens": 300})
        self.copies = NearCopies(threshold)
        self.n_written = self.n_kept = 0
        self.failure: str | None = None
        self.refusals: dict[str, int] = {}

    def __call__(self, situations: Iterator[Situation]) -> Iterator[Situation]:
        """Write lot by lot, one ahead of what is played."""
        with ThreadPoolExecutor(1) as pool:
            waiting: Future[list[Situation]] | None = None
            while lot := list(itertools.islice(situations, _LOT)):
                following = pool.submit(asyncio.run, self._lot(lot))
                if waiting is not None:
                    yield from waiting.result()
                waiting = following
            if waiting is not None:
                yield from waiting.result()

    async def _lot(self, lot: list[Situation]) -> list[Situation]:
        drafts = await asyncio.gather(*(self._ask(s, 0) for s in lot))
        return [await self._settle(s, d) for s, d in zip(lot, drafts, strict=True)]

    async def _settle(self, situation: Situation, text: str) -> Situation:
        """Take an ask that fits, in the order of the situations, so that copies are always the same."""
        for attempt in range(1, self.tries + 1):
            problem = misses(text, situation, self.tools)
            if problem is None and self.copies.add(text):
                problem = "a copy of another ask"
            if problem is None:
                self.n_written += 1
                return replace(situation, ask=text)
            self.refusals[problem] = self.refusals.get(problem, 0) + 1
            if attempt < self.tries:
                text = await self._ask(situation, attempt)
        self.n_kept += 1
        return situation

    async def _ask(self, situation: Situation, attempt: int) -> str:
        values = ", ".join(stated(situation)) or "none"
        hidden = "The user does not say which record is meant.\n" if _hides(situation) else ""
        prompt = _TASK.format(
            language=_LANGUAGES.get(situation.language, situation.language), draft=situation.ask,
            values=values, hidden=hidden, words=max(40, 2 * len(situation.ask.split())),
        )  # fmt: skip
        sampling = {**self.sampling, "seed": int(situation.task_id[-7:], 16) + attempt}
        try:
            done = await self.model.complete(
                [{"role": "user", "content": prompt}], tools=None, sampling=sampling
            )
        except Exception as error:  # noqa: BLE001 - a failing writer must not lose the run
            self.failure = self.failure or f"{type(error).__name__}: {error}"
            return ""
        return clean(chat.text_of(done.message.get("content")))

    def note(self) -> str | None:
        """Say what to know of the writing, or null where the model wrote everything."""
        if not self.n_kept:
            return None
        why = ", ".join(f"{n} times {reason}" for reason, n in sorted(self.refusals.items()))
        failed = f"; its first error: {self.failure}" if self.failure else ""
        return (
            f"{self.n_kept} of {self.n_kept + self.n_written} asks stayed as the template wrote them, because "
            f"the model missed the cell each time ({why}){failed}. Use a stronger model."
        )


def clean(text: str) -> str:
    """Take what a model says around a message off it: its thoughts, fences, quotation marks, a role."""
    text = re.sub(
        r"<think(?:ing)?>.*?(?:</think(?:ing)?>|$)", "", text, flags=re.DOTALL | re.IGNORECASE
    )
    text = re.sub(r"^```\w*\n|\n?```$", "", text.strip())
    text = re.sub(r"^(?:user|message|customer)\s*:\s*", "", text.strip(), flags=re.IGNORECASE)
    pairs = {'"': '"', "“": "”", "„": "“", "«": "»"}
    if len(text) > 1 and pairs.get(text[0]) == text[-1] and text.count(text[-1]) <= 2:
        text = text[1:-1]
    return text.strip()


def _hides(situation: Situation) -> bool:
    return situation.cell.values.get("stance") == "ambiguous"


def stated(situation: Situation) -> list[str]:
    """List the values that the ask of a situation must state: those of the goal that its draft says."""
    goal = situation.privileged.get("goal") or situation.world.get("goal")
    if goal is None or _hides(situation):
        return []
    lines = bank(situation.language) if situation.language in _LANGUAGES else bank("en")
    values = [v for step in [*goal.get("after", ()), goal] for v in step["arguments"].values()]
    texts = (said(v, lines).strip("".join(lines.quotes)) for v in values if not isinstance(v, bool))
    return list(dict.fromkeys(text for text in texts if text and text in situation.ask))


def misses(text: str, situation: Situation, tools: Collection[str] = ()) -> str | None:
    """Say how an ask misses its cell, or null."""
    if not text:
        return "empty"
    if len(text) > 40 + 4 * len(situation.ask):
        return "too long"
    if _INSIDE.search(text) or any("_" in tool and tool in text for tool in tools):
        return "speaks of the simulation"
    lost = [value for value in stated(situation) if value not in text]
    if lost:
        return "a value is missing"
    goal = situation.privileged.get("goal") or {}
    if _hides(situation) and any(
        isinstance(v, str) and len(v) > 3 and v in text for v in goal.get("arguments", {}).values()
    ):
        return "a value is given away"
    known = numbers(situation.ask)
    return "an invented value" if numbers(text) - known else None


def numbers(text: str) -> set[str]:
    """Return the ids and numbers of a text, without the signs around them."""
    found = re.findall(r"[A-Za-z]*[-#]?\d[\w.:/-]*", text)
    return {n.strip(".,:;-/").lower() for n in found}
