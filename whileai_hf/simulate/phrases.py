"""Phrases: a tool and its arguments in the words of a language.

The name of a tool gives the verb, its catalog the noun; values are stated as they are, because the
agent must be able to use them to the letter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

from whileai_hf.simulate.languages import Bank
from whileai_hf.world.entities import Catalog
from whileai_hf.world.kinds import singular, words_of
from whileai_hf.world.tools import Tool
from whileai_hf.world.values import is_reference, stem_of

#: Verbs that say the same, by the one that the banks list.
_SAME = {
    same: verb
    for verb, others in {
        "get": "fetch read show view retrieve lookup look display track describe inspect ls cat",
        "search": "find list query filter browse discover", "check": "verify count compare",
        "book": "reserve", "update": "modify change edit set apply reset", "delete": "remove rm drop erase",
        "send": "post share", "submit": "register issue", "create": "make mkdir touch open insert",
        "compute": "calculate convert estimate sum solve", "move": "mv", "close": "suspend disable",
        "cancel": "revoke unsubscribe",
    }.items()
    for same in others.split()
}  # fmt: skip

#: The verb where the name of a tool has none, by what the tool does.
_BY_KIND = {
    "read": "get",
    "search": "search",
    "compute": "compute",
    "create": "create",
    "delete": "delete",
}

#: What texture may not touch: quotations, ids, numbers, addresses, anything with a sign inside.
_KEPT = (
    r"\"[^\"]*\"|«[^»]*»|„[^“]*“|“[^”]*”"
    r"|\S*[\d@/_{}\[\]]\S*|\b[A-Z]{2,}\b"
)

TEXTURES = ("plain", "lowercase", "unpunctuated", "typo")


def said(value: Any, lines: Bank) -> str:
    """Say a value so that it can be read back to the letter."""
    if isinstance(value, bool):
        return lines.yes if value else lines.no
    if isinstance(value, (dict, list)):
        if (
            isinstance(value, list)
            and value
            and all(isinstance(v, (str, int, float)) for v in value)
        ):
            return lines.joiner.join(said(v, lines) for v in value)
        return json.dumps(value, ensure_ascii=False)
    text = str(value)
    if isinstance(value, str) and (" " in text or not text):
        return f"{lines.quotes[0]}{text}{lines.quotes[1]}"
    return text


def label(name: str, lines: Bank) -> str:
    """Name an argument: by the noun of what it identifies, by its own word, or as it is written."""
    words = " ".join(words_of(name))
    if words in lines.labels:
        return lines.labels[words]
    if is_reference(name):
        noun = lines.nouns.get(singular((words_of(stem_of(name)) or [""])[-1]))
        if noun is not None:
            return _bare(noun)
    last = words.split(" ")[-1]
    return lines.labels[last] if len(words.split()) == 1 and last in lines.labels else words


def _bare(noun: str) -> str:
    """Take the article off a noun."""
    return re.sub(r"^(?:el|la|los|las|le|les|der|die|das|den|the) |^l'", "", noun)


def facts(arguments: Mapping[str, Any], lines: Bank) -> str:
    """State arguments, one after the other."""
    return lines.joiner.join(
        lines.fact.format(name=label(name, lines), value=said(value, lines))
        for name, value in arguments.items()
    )


def action(
    tool: Tool, catalog: Catalog, arguments: Mapping[str, Any], lines: Bank, rng: Random
) -> str:
    """Say what a tool does to the entity that the arguments name, if they name one.

    Args:
        tool: The tool.
        catalog: What its tool set says about entities.
        arguments: Those that may be named; none leaves the entity open.
        lines: The language.
        rng: The dice that choose among phrasings.
    """
    words = words_of(tool.name)
    verb = next((w for w in words if _SAME.get(w, w) in lines.verbs), None)
    base = _SAME.get(verb, verb) if verb else _BY_KIND.get(catalog.kinds[tool.name])
    main = catalog.main[tool.name]
    named = said(arguments[main], lines) if main in arguments and main is not None else ""
    about = catalog.about[tool.name]
    if base is None or base not in lines.verbs:
        # a name without a verb: what it is about, to be looked after
        return _spaced(lines.action.format(tool=" ".join(words)), named, lines)
    what = _what(words[words.index(verb) + 1 :] if verb else words, about, named, lines)
    return rng.choice(lines.verbs[base]).format(what=what)


def _what(words: list[str], about: str, named: str, lines: Bank) -> str:
    if lines.nouns:  # another language: the noun of the entity, in its own word
        noun = lines.nouns.get(about) or f"{lines.quotes[0]}{about}{lines.quotes[1]}"
        return _spaced(noun, named, lines)
    phrase = " ".join(w for w in words if w not in ("id", "the")) or about
    if not named:
        return phrase if phrase.startswith(("all ", "my ")) else f"the {phrase}"
    if singular(phrase.split(" ")[-1]) in (about, "details", "detail", "info", "status"):
        return (
            f"the {phrase} {named}"
            if singular(phrase.split(" ")[-1]) == about
            else f"the {phrase} of {named}"
        )
    return f"the {phrase} of {about} {named}"


def _spaced(phrase: str, named: str, lines: Bank) -> str:
    return f"{phrase}{lines.space}{named}" if named else phrase


def textured(text: str, texture: str, rng: Random | None = None, keep: Iterable[str] = ()) -> str:
    """Write a text as people type: small letters, no punctuation, or a slip; values stay as they are.

    Args:
        text: The text.
        texture: One of `TEXTURES`.
        rng: The dice for the slip.
        keep: Values to keep to the letter, beside quotations and whatever looks like an id.
    """
    if texture == "plain":
        return text
    values = sorted({re.escape(v) for v in keep if v}, key=len, reverse=True)
    kept = re.compile("|".join([*values, _KEPT]))
    if texture == "typo":
        return _slip(text, kept, rng or Random(text))
    out, end = [], 0
    for found in [*kept.finditer(text), None]:
        part = text[end : found.start()] if found else text[end:]
        after = text[found.start() :] if found else ""
        out.append(_typed(part, texture, after))
        if found:
            out.append(found[0])
            end = found.end()
    return "".join(out)


def _typed(part: str, texture: str, after: str) -> str:
    if texture == "lowercase":
        return part.lower()
    return re.sub(r" ?[.,!;:](?=\s|$)" if not after else r" ?[.,!;:](?=\s)", "", part)


def _slip(text: str, kept: re.Pattern[str], rng: Random) -> str:
    """Swap two letters inside one plain word."""
    taken = {i for found in kept.finditer(text) for i in range(*found.span())}
    words = [
        found for found in re.finditer(r"[a-zäöüéèàñ]{5,}", text)
        if not taken.intersection(range(*found.span()))
    ]  # fmt: skip
    if not words:
        return text
    word = rng.choice(words)
    at = rng.randrange(word.start() + 1, word.end() - 2)
    return text[:at] + text[at + 1] + text[at] + text[at + 2 :]
