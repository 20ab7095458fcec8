"""coverage_gap: which tools, rules and stances the asks of one's own evaluation never touch.

Asks are placed on the grid by their words: the names and descriptions of tools, the clauses of the
prompt, and the lines that the template writer has for each stance, in every language. It is a rough
placing; an ask that nothing places is counted, not guessed.
"""

from __future__ import annotations

import html
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from datasets import Dataset

from whileai_hf import columns, schema
from whileai_hf import messages as chat
from whileai_hf.errors import InputError
from whileai_hf.simulate.axes import STANCES
from whileai_hf.simulate.grid import MAX_RULES, clauses
from whileai_hf.simulate.languages import LANGUAGES, bank
from whileai_hf.simulate.quality import words
from whileai_hf.world.kinds import singular, words_of
from whileai_hf.world.tools import Tool, read_tools

#: Words that say nothing of what an ask is about.
_EMPTY = frozenset(
    (
        "a", "an", "the", "of", "to", "for", "in", "on", "by", "and", "or", "is", "are", "be", "it", "this",
        "that", "with", "from", "my", "your", "me", "you", "i", "please", "can", "could", "would", "do", "not",
        "if", "at", "as", "we", "will", "have", "has", "id", "all", "any", "no", "never", "always", "must",
        "user", "customer", "tool", "use", "when", "get", "before", "after",
    )
)  # fmt: skip

#: Cues of a stance beside the lines of the banks.
_CUES = {
    "adversarial": (
        "ignore your",
        "ignore all",
        "system prompt",
        "jailbreak",
        "pretend you",
        "do it anyway",
    ),
    "hurried": ("asap", "urgent", "right now", "hurry", "immediately"),
    "unsure": ("not sure", "maybe", "i think", "do not know"),
    "retry": ("again", "second time", "tried", "still"),
    "exploratory": ("what else", "options", "curious", "how does"),
}


@dataclass(frozen=True, slots=True)
class CoverageGap:
    """What a set of asks leaves untested; `print(gap)` is the text to quote."""

    n_asks: int
    tools: dict[str, int]  #: tool -> asks placed on it
    rules: dict[str, int]  #: clause -> asks that share its words
    stances: dict[str, int]
    unplaced: int  #: asks that no tool claims
    failing_rules: dict[str, str]  #: clause -> the one failure that all of its graded rows ended in

    @property
    def untested_tools(self) -> tuple[str, ...]:
        """Tools that no ask is about."""
        return tuple(name for name, n in self.tools.items() if n == 0)

    @property
    def untested_rules(self) -> tuple[str, ...]:
        """Clauses that no ask touches."""
        return tuple(rule for rule, n in self.rules.items() if n == 0)

    @property
    def untested_stances(self) -> tuple[str, ...]:
        """Stances that no ask takes."""
        return tuple(stance for stance, n in self.stances.items() if n == 0)

    def __str__(self) -> str:
        lines = [
            f"{self.n_asks} asks; {self.unplaced} name no tool",
            f"  untested tools    {', '.join(self.untested_tools) or 'none'}",
            f"  untested rules    {'; '.join(repr(r) for r in self.untested_rules) or 'none'}",
            f"  untested stances  {', '.join(self.untested_stances) or 'none'}",
        ]
        lines += [
            f"  every graded row of {rule!r} ended in {why}"
            for rule, why in self.failing_rules.items()
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, for a log."""
        return {name: getattr(self, name) for name in self.__slots__}


def coverage_gap(
    asks: Iterable[str] | Dataset,
    *,
    tools: Any,
    system_prompt: str | None = None,
    rows: Dataset | None = None,
) -> CoverageGap:
    """Place asks on the grid by their words, and say what none of them touches.

    Args:
        asks: Texts, or rollouts whose asks are read.
        tools: The tools of the agent.
        system_prompt: Its clauses are the rules.
        rows: Graded rollouts, to name the rules under which every row failed in the same way.

    Raises:
        InputError: There is no ask, or one that is no text.
    """
    given = _texts(asks)
    known = read_tools(tools)
    rules = clauses(system_prompt)[:MAX_RULES]
    by_tool = dict.fromkeys((t.name for t in known), 0)
    by_rule = dict.fromkeys(rules, 0)
    by_stance = dict.fromkeys(STANCES, 0)
    unplaced = 0
    cues = stance_cues()
    for ask in given:
        tool = tool_of(ask, known)
        if tool is None:
            unplaced += 1
        else:
            by_tool[tool] += 1
        for rule in rules:
            by_rule[rule] += _touches(ask, rule)
        by_stance[stance_of(ask, cues)] += 1
    failing = {} if rows is None else _failing(rows, rules)
    return CoverageGap(len(given), by_tool, by_rule, by_stance, unplaced, failing)


def _texts(asks: Iterable[str] | Dataset) -> list[str]:
    if isinstance(asks, Dataset):
        columns.check_columns(asks, ["messages"], "coverage_gap")
        return list(dict.fromkeys(chat.first_ask(messages) for messages in asks["messages"][:]))
    if isinstance(asks, str):
        raise InputError(
            f"asks must be a list of texts; got one text {asks!r:.60}. Put it into a list."
        )
    found = list(asks)
    if not found or not all(isinstance(ask, str) for ask in found):
        odd = next((ask for ask in found if not isinstance(ask, str)), found)
        raise InputError(f"asks must be a non-empty list of texts; got {odd!r:.60}. Leave it out.")
    return found


def _content(text: str) -> set[str]:
    return {singular(w) for w in words(text)} - _EMPTY


def tool_of(ask: str, tools: Sequence[Tool]) -> str | None:
    """Say which tool an ask is about: the one that shares most with it, words of its name twice."""
    said = _content(ask)
    best, most = None, 1
    for tool in tools:
        name = {singular(w) for w in words_of(tool.name)} - _EMPTY
        score = 2 * len(said & name) + len(said & (_content(tool.description) - name))
        if score > most:
            best, most = tool.name, score
    return best


def _touches(ask: str, rule: str) -> bool:
    """Tell whether an ask shares enough of a rule's words: two, or all where it has fewer."""
    needed = _content(rule)
    return bool(needed) and len(needed & _content(ask)) >= min(2, len(needed))


def stance_cues() -> dict[str, tuple[str, ...]]:
    """Return phrases of each stance: those of the banks in every language, and some of common use."""
    cues: dict[str, list[str]] = defaultdict(list)
    for language in LANGUAGES:
        for stance, lines in bank(language).stances.items():
            cues[stance] += [line.lower().rstrip(".!。") for line in lines if line]
    for stance, more in _CUES.items():
        cues[stance] += more
    return {stance: tuple(lines) for stance, lines in cues.items()}


def stance_of(ask: str, cues: Mapping[str, Sequence[str]]) -> str:
    """Say in which stance an ask is made; without a cue it is ordinary."""
    text = ask.lower()
    found = {
        stance: max((len(c) for c in lines if c in text), default=0)
        for stance, lines in cues.items()
    }
    best = max(found, key=lambda stance: found[stance], default="ordinary")
    return best if found.get(best) else "ordinary"


def _failing(rows: Dataset, rules: Sequence[str]) -> dict[str, str]:
    """Name the rules whose graded rows all failed, all in one way."""
    columns.check_columns(rows, ["messages", "reward"], "coverage_gap(rows)")
    ends: dict[str, Counter[str | None]] = defaultdict(Counter)
    for batch in columns.batches(rows):
        for values in zip(*batch.values(), strict=True):
            row = schema.to_record(dict(zip(batch, values, strict=True)))
            if row.get("reward") is None:
                continue
            own = (row.get("situation") or {}).get("rule")
            ask = str(row.get("ask") or chat.first_ask(row["messages"]))
            for rule in rules:
                if own == rule or (own is None and _touches(ask, rule)):
                    passed = row["reward"] >= 1
                    ends[rule][None if passed else str(row.get("failure_class") or "failure")] += 1
    return {r: next(iter(c)) or "" for r, c in ends.items() if len(c) == 1 and None not in c}
