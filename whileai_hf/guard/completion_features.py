"""What a completion looks like, as named numbers: the features that a training run is watched by.

Every name reads as plain words, because it is what an alarm says. None of them is a judgment: a
length, a word or a delimiter is a hack only if it earns what gold does not give.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Mapping
from typing import Any

from whileai_hf import messages as chat

#: Words of any script that spaces separate; a character of one that they do not is a word alone.
_WORD = re.compile(r"[^\W\d_]+|\d+", re.UNICODE)
_SPACELESS = re.compile(r"[぀-ヿ㐀-鿿가-힯฀-๿]")
#: Characters whose presence is a feature: delimiters, brackets, markup.
_SIGN = re.compile(r"[^\w\s]", re.UNICODE)
#: Text beyond this many characters is read no further.
_MAX_CHARS = 20_000


def completion_features(completion: Any) -> dict[str, float]:
    """Describe one completion.

    Args:
        completion: Text, or the messages of a conversational completion.

    Returns:
        Numbers by name: sizes as they are, presence as 1.0; a word that is absent is left out.
    """
    out = dict(_text_features(completion_text(completion)[:_MAX_CHARS]))
    turns = _turns(completion)
    if turns:
        out |= _call_features(turns)
    return out


@functools.lru_cache(maxsize=512)
def _text_features(text: str) -> dict[str, float]:
    """Describe a text; the attempts at a task are often the same word for word."""
    words = _words(text)
    pairs = set(itertools.pairwise(words))
    out: dict[str, float] = {"the length in characters": float(len(text))}
    out |= dict.fromkeys(map(_word, words), 1.0)
    out |= dict.fromkeys(map(_phrase, pairs), 1.0)
    out |= dict.fromkeys(map(_sign, _SIGN.findall(text)), 1.0)
    out["the number of lines"] = text.count("\n") + 1.0
    out["the number of digits"] = float(sum(map(str.isdigit, text)))
    if len(words) > 1:
        out["repeated pairs of words"] = 1.0 - len(pairs) / (len(words) - 1)
    letters = sum(map(str.isalpha, text))
    if letters:
        out["the share of capitals"] = sum(map(str.isupper, text)) / letters
    if words:
        out[f"the first word {words[0]!r}"] = out[f"the last word {words[-1]!r}"] = 1.0
    return out


# Names are made once: a policy says the same words again and again.


@functools.lru_cache(maxsize=1 << 16)
def _word(word: str) -> str:
    return f"the word {word!r}"


@functools.lru_cache(maxsize=1 << 16)
def _phrase(pair: tuple[str, str]) -> str:
    return f"the phrase {' '.join(pair)!r}"


@functools.lru_cache(maxsize=1 << 12)
def _sign(sign: str) -> str:
    return f"the sign {sign!r}"


def _call_features(turns: list[Mapping[str, Any]]) -> dict[str, float]:
    calls = chat.tool_calls(turns)
    out = {"the number of tool calls": float(len(calls))}
    out |= {
        f"calls of {name}": float(sum(c.name == name for c in calls))
        for name in {c.name for c in calls}
    }
    out["unanswered tool calls"] = float(sum(call.result is None for call in calls))
    out["failed tool calls"] = float(sum(call.status == "error" for call in calls))
    return out


def completion_text(completion: Any) -> str:
    """Return what the policy wrote: its text and its calls, without the results it was given."""
    if not isinstance(completion, (Mapping, list, tuple)):
        return str(completion)
    agent = (turn for turn in _turns(completion) if turn.get("role") == "assistant")
    return "\n".join(part for turn in agent for part in _turn_parts(turn) if part)


def _turns(completion: Any) -> list[Mapping[str, Any]]:
    if isinstance(completion, Mapping):
        return [completion]
    if isinstance(completion, (list, tuple)):
        return [turn for turn in completion if isinstance(turn, Mapping)]
    return []


def _turn_parts(turn: Mapping[str, Any]) -> list[str]:
    parts = [chat.text_of(turn.get("content"))]
    for call in turn.get("tool_calls") or []:
        function = call.get("function") or call
        arguments = function.get("arguments")
        written = arguments if isinstance(arguments, str) else json.dumps(arguments, default=str)
        parts.append(f"{function.get('name')}({written})")
    return parts


def _words(text: str) -> list[str]:
    if not _SPACELESS.search(text):
        return _WORD.findall(text.lower())
    words: list[str] = []
    for word in _WORD.findall(text.lower()):
        words.extend(word if _SPACELESS.search(word) else (word,))
    return words
