"""What a tool does and what it is about, read from its name, its description and its arguments.

Nothing here is a model: verbs decide the kind (read, search, create, update, delete, compute), the
noun and the reference arguments decide the entity.
"""

from __future__ import annotations

import functools
import re

from whileai_hf.world.tools import Tool
from whileai_hf.world.values import is_reference, stem_of

#: What a tool does, by its verbs, the first that fits.
_KINDS = (
    ("search", r"search|list|find|query|filter|browse|discover|lookup_all"),
    ("compute", r"calculate|calc|compute|convert|estimate|sum|solve|translate|think|factorial|mean|average"),
    ("read", r"get|look|lookup|fetch|read|show|view|check|describe|display|track|retrieve|verify|count|inspect|"
             r"is|has|can|compare|ls|cat|pwd|grep|wc|du|tail|head|diff|sort"),
    ("delete", r"delete|remove|cancel|close|drop|revoke|unsubscribe|rm|rmdir|clear|erase|discard|void"),
    ("create", r"create|add|new|open|book|place|register|submit|send|post|make|schedule|order|reserve|upload|"
               r"write|invite|mkdir|touch|insert|issue|generate|share|enrol|enroll"),
    ("update", r"update|modify|change|edit|set|move|rename|apply|return|exchange|refund|pay|transfer|assign|"
               r"approve|reset|toggle|enable|disable|suspend|resume|resolve|mv|cp|cd|echo|lock|unlock|swap"),
)  # fmt: skip

_KIND_OF_VERB = {verb: kind for kind, verbs in _KINDS for verb in verbs.split("|")}

#: Nouns that a tool is named after when it only tells something: `stock`, `order_status`.
_TOLD = frozenset(
    [
        "status",
        "info",
        "information",
        "detail",
        "details",
        "data",
        "history",
        "balance",
        "price",
        "prices",
        "stock",
        "inventory",
        "weather",
        "forecast",
        "availability",
        "quote",
        "rate",
        "rates",
        "profile",
        "summary",
        "record",
        "records",
        "report",
        "log",
        "statistics",
    ]
)

#: Verbs that are nouns as often: `order_status` reads, `order_pizza` does not.
_TWOFOLD = frozenset(
    [
        "order",
        "book",
        "post",
        "schedule",
        "return",
        "change",
        "transfer",
        "place",
        "share",
        "sort",
        "can",
        "issue",
    ]
)

#: Names of one kind of entity.
_ALIASES = {"username": "user", "handle": "user", "customer": "user", "reservation": "booking"}

#: Words of a name after which it no longer says what the tool is about.
_TURNS = frozenset(["by", "for", "of", "from", "with", "in", "on", "at", "to", "using", "via"])


def words_of(name: str) -> list[str]:
    """Split the name of a tool or an argument into small words."""
    apart = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", re.split(r"[.:/]", name)[-1])
    return [word for word in re.split(r"[^a-z0-9]+", apart.lower()) if word]


def kind_of(name: str, description: str = "") -> str:
    """Say what a tool does: read, search, create, update, delete or compute.

    Args:
        name: Its name; the first verb decides, unless the name ends in what is only told.
        description: Asked where the name holds no verb. What neither tells is an update: a tool
            that is not known to read may write.
    """
    words = words_of(name)
    for word in words:
        kind = _KIND_OF_VERB.get(word)
        if kind is not None and not (word in _TWOFOLD and words[-1] in _TOLD):
            return kind
    if words and words[-1] in _TOLD:
        return "read"
    first = words_of(description.strip().split(" ")[0]) if description.strip() else []
    for word in first:
        for form in (word, word.removesuffix("s"), word.removesuffix("es")):
            if form in _KIND_OF_VERB:
                return _KIND_OF_VERB[form]
    return "update"


def writes(name: str, description: str = "") -> bool:
    """Tell whether a tool changes the world."""
    return kind_of(name, description) in ("create", "update", "delete")


def singular(word: str) -> str:
    """Take the plural off an English noun, near enough to compare two."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if re.search(r"(?:ss|sh|ch|x|z)es$", word):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


@functools.lru_cache(maxsize=8192)
def noun_of(name: str) -> str:
    """Say what a tool is about by its name: `search_orders` and `get_order_details` give `order`."""
    words = words_of(name)
    verb = next((i for i, word in enumerate(words) if word in _KIND_OF_VERB), -1)
    rest = []
    for word in words[verb + 1 :]:
        if word in _TURNS:
            break
        rest.append(word)
    rest = [w for w in rest if w not in _TOLD and w not in ("id", "ids", "all", "the", "my")]
    rest = rest or [w for w in words if w not in _TOLD] or words or ["record"]
    noun = singular(rest[-1])
    return _ALIASES.get(noun, noun)


@functools.lru_cache(maxsize=8192)
def entity_of(argument: str, tool_name: str) -> str:
    """Say which kind of entity an argument names: `order_id` an order, `id` what the tool is about."""
    stem = stem_of(argument)
    if not stem:
        return noun_of(tool_name)
    last = singular((words_of(stem) or ["record"])[-1])
    return _ALIASES.get(last, last)


def references(tool: Tool) -> dict[str, str]:
    """Return the arguments of a tool that name entities, each with the kind of its entity."""
    found = {}
    for name, schema in tool.parameters.get("properties", {}).items():
        shape = schema if isinstance(schema, dict) else {}
        if is_reference(name) and not shape.get("enum") and shape.get("type") not in (
            "number", "boolean", "object",
        ):  # fmt: skip
            found[name] = entity_of(name, tool.name)
    return found
