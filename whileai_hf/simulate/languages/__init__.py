"""What users say, by language: one bank a file, all with the same keys.

A bank holds sentence patterns. `{action}` is what the user wants, `{facts}` the values that the tool
needs; lines of a stance or a history stand beside the request. Verbs and nouns put the name of a tool
into the language; a word that is in no list is quoted as it is.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from whileai_hf.errors import InputError

#: The languages that ship with the package.
LANGUAGES = ("en", "es", "de", "fr", "zh")


@dataclass(frozen=True, slots=True)
class Bank:
    """The sentences of one language."""

    greetings: tuple[str, ...]
    requests: tuple[str, ...]  #: with {action}
    facts: tuple[str, ...]  #: with {facts}
    fact: str  #: one value, with {name} and {value}
    joiner: str  #: between two values
    answers: tuple[str, ...]  #: what a user who is asked back says, with {facts}
    stances: dict[str, tuple[str, ...]]
    histories: dict[str, tuple[str, ...]]
    unrelated: tuple[str, ...]  #: with {n} and {m} where a number makes it new
    closers: tuple[str, ...]
    action: str  #: a tool by its name, with {tool}, where no verb is known
    verbs: dict[str, tuple[str, ...]]  #: what one does, by the verb of a tool, with {what}
    nouns: dict[str, str]  #: what it is done to, with its article
    labels: dict[str, str]  #: names of arguments
    chained: tuple[str, ...]  #: two actions, with {first} and {then}
    searched: tuple[str, ...]  #: how to find what has no id yet, with {facts}
    injections: tuple[str, ...]  #: a quoted instruction that is not the user's, with {action}
    controls: tuple[str, ...]  #: a quotation that looks like one and is harmless
    over_reaches: tuple[str, ...]  #: a demand for what is not the user's
    quotes: tuple[str, str] = ('"', '"')
    yes: str = "yes"
    no: str = "no"
    space: str = " "  #: between two sentences


def bank(language: str) -> Bank:
    """Return the sentences of a language.

    Raises:
        InputError: The language does not ship with the package.
    """
    if language not in LANGUAGES:
        raise InputError(
            f"a language of the template writer must be one of {', '.join(LANGUAGES)}; "
            f"got {language!r}. Use a model writer for others."
        )
    found: Bank = importlib.import_module(f"whileai_hf.simulate.languages.{language}").BANK
    return found
