"""Sample argument values from JSON Schema: valid, typed, and like what a person would say."""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from datetime import date, timedelta
from random import Random
from typing import Any

from whileai_hf.world.dialects import resolve

_NAMES = (
    "Ana Silva",
    "Ben Okafor",
    "Chen Li",
    "Dana Weiss",
    "Elif Kaya",
    "Femi Ade",
    "Grace Kim",
    "Hugo Roy",
    "Ines Costa",
    "Jun Sato",
)
_CITIES = (
    "Lisbon",
    "Oslo",
    "Lima",
    "Nairobi",
    "Kyoto",
    "Toronto",
    "Madrid",
    "Hanoi",
    "Boston",
    "Cairo",
)
_PRODUCTS = (
    "blue kettle",
    "desk lamp",
    "trail shoes",
    "wool scarf",
    "water filter",
    "road bike",
    "phone case",
    "garden hose",
)
_WORDS = (
    "amber",
    "birch",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "harbor",
    "indigo",
    "juniper",
    "kestrel",
    "lagoon",
)
_TOPICS = (
    "the invoice from March",
    "a late delivery",
    "the travel plan",
    "a password reset",
    "the quarterly report",
    "a broken link",
)
_FIRST = date(2026, 1, 5)

#: What an argument name says about its value, the first that fits.
_MEANINGS = (
    (r"email", lambda r: f"{r.choice(_WORDS)}.{r.randint(10, 999)}@example.com"),
    (r"phone|mobile", lambda r: f"+1-202-555-{r.randint(0, 9999):04d}"),
    (r"city|location|origin|destination|place|airport", lambda r: r.choice(_CITIES)),
    (r"country", lambda r: r.choice(("Portugal", "Norway", "Peru", "Kenya", "Japan", "Canada"))),
    (r"zip|postal", lambda r: f"{r.randint(10000, 99999)}"),
    (r"address|street", lambda r: f"{r.randint(1, 240)} {r.choice(_WORDS).title()} Street"),
    (r"date|day|deadline|since|until", lambda r: (_FIRST + timedelta(days=r.randint(0, 700))).isoformat()),
    (r"time|hour", lambda r: f"{r.randint(7, 21):02d}:{r.choice((0, 15, 30, 45)):02d}"),
    (r"currency", lambda r: r.choice(("EUR", "USD", "JPY", "BRL"))),
    (r"url|link|website", lambda r: f"https://example.com/{r.choice(_WORDS)}/{r.randint(1, 999)}"),
    (r"file|path|folder|dir", lambda r: f"{r.choice(_WORDS)}/{r.choice(_WORDS)}-{r.randint(1, 99)}.txt"),
    (r"symbol|ticker", lambda r: "".join(r.choices(string.ascii_uppercase, k=4))),
    (r"product|item(?!_?id)", lambda r: r.choice(_PRODUCTS)),
    (r"first_?name|given_?name", lambda r: r.choice(_NAMES).split()[0]),
    (r"last_?name|family_?name|surname", lambda r: r.choice(_NAMES).split()[1]),
    (r"(user|customer|person|first|last|full|passenger|owner)_?name|^name$|recipient|sender", lambda r: r.choice(_NAMES)),
    (r"reason|note|comment|message|body|content|text|description|summary", lambda r: f"about {r.choice(_TOPICS)}"),
    (r"query|search|keyword|topic|subject|title", lambda r: f"{r.choice(_WORDS)} {r.choice(_WORDS)}"),
    (r"unit", lambda r: r.choice(("metric", "imperial"))),
    (r"language|locale", lambda r: r.choice(("en", "es", "de", "fr"))),
)  # fmt: skip

#: Names of entities: an id by itself, or a word with the ending of one.
_REFERENCE = re.compile(
    r"(?:^|_)(?:id|ids|uuid|sku|username|handle)$"
    r"|[a-z0-9](?:_(?:number|numbers|no|code|codes|key|ref|reference))$|[a-z](?:Id|ID|Ids|IDs)$"
)

#: Names with such an ending that are values and name nothing.
_VALUE = re.compile(
    r"(?:zip|postal|post|country|area|currency|language|lang|state|status|error|color|colour|source|room|"
    r"api|access|private|public|secret|phone|telephone|mobile|fax|house|street|page|line|serial|random|"
    r"max|min|real|complex|whole|first|second|atomic|prime)_(?:number|numbers|no|code|codes|key|ref)$"
)

_ENDING = re.compile(
    r"(?:_?(?:id|ids|number|numbers|no|code|codes|key|ref|reference|uuid)|Ids|IDs|Id|ID)$"
)


def is_reference(name: str) -> bool:
    """Tell whether an argument names an entity: an id, an order number, a booking code."""
    return bool(_REFERENCE.search(name)) and not _VALUE.search(name)


def stem_of(name: str) -> str:
    """Take the ending off the name of a reference: `order_id` gives `order`, `id` nothing."""
    return _ENDING.sub("", name)


def new_id(name: str, rng: Random) -> str:
    """Make an identifier that looks like one of its kind: `order_id` gives `ORD-48213`."""
    letters = re.sub(r"[^A-Za-z]", "", stem_of(name)).upper()[:3] or "REF"
    return f"{letters}-{rng.randint(10000, 99999)}"


def sample(
    schema: Any, rng: Random, name: str = "", definitions: Mapping[str, Any] | None = None,
    *, bound: str = "", depth: int = 0,
) -> Any:  # fmt: skip
    """Sample one value that satisfies a schema.

    Args:
        schema: JSON Schema of the value.
        rng: The dice.
        name: Name of the argument, which says what the value is about.
        definitions: Local definitions that the schema may refer to.
        bound: `"lowest"` or `"highest"` takes the least or the most that is allowed, where a limit
            is stated.
        depth: How deep the value lies; beyond 6 nothing optional is sampled.
    """
    found = resolve(schema, definitions or {})
    if "const" in found:
        return found["const"]
    if found.get("enum"):
        values = [v for v in found["enum"] if v is not None] or found["enum"]
        return (
            {"lowest": values[0], "highest": values[-1]}.get(bound) if bound else rng.choice(values)
        )
    kind = found.get("type")
    if isinstance(kind, list):
        kind = next((k for k in kind if k != "null"), "null")
    if kind == "object" or (kind is None and "properties" in found):
        return _object(found, rng, definitions, bound, depth)
    if kind == "array":
        return _array(found, rng, name, definitions, bound, depth)
    if kind in ("integer", "number"):
        return _number(found, rng, kind, name, bound)
    if kind == "boolean":
        return rng.random() < 0.5
    if kind == "null":
        return None
    return _string(found, rng, name, bound)


def _object(
    found: Mapping[str, Any], rng: Random, definitions: Any, bound: str, depth: int
) -> dict[str, Any]:
    required = list(found.get("required") or [])
    out = {}
    for key, inner in (found.get("properties") or {}).items():
        if key in required or (depth < 6 and rng.random() < 0.5):
            out[key] = sample(inner, rng, key, definitions, bound=bound, depth=depth + 1)
    others = found.get("additionalProperties")
    for key in required:
        if key not in out:
            out[key] = sample(others if isinstance(others, Mapping) else {}, rng, key, definitions)
    if not out and isinstance(found.get("additionalProperties"), Mapping):
        out[rng.choice(_WORDS)] = sample(
            found["additionalProperties"], rng, "", definitions, depth=depth + 1
        )
    return out


def _array(
    found: Mapping[str, Any], rng: Random, name: str, definitions: Any, bound: str, depth: int
) -> list[Any]:
    if found.get("prefixItems"):
        return [
            sample(inner, rng, name, definitions, depth=depth + 1) for inner in found["prefixItems"]
        ]
    low = int(found.get("minItems", 1 if depth < 6 else 0))
    high = int(found.get("maxItems", max(low, 3)))
    n = (
        {"lowest": low, "highest": high}[bound]
        if bound and ("minItems" in found or "maxItems" in found)
        else rng.randint(low, max(low, min(high, low + 2)))
    )
    singular = name[:-1] if name.endswith("s") else name
    out: list[Any] = []
    for _ in range(20 * max(n, 1)):
        if len(out) == n:
            break
        value = sample(
            found.get("items") or {"type": "string"}, rng, singular, definitions, depth=depth + 1
        )
        if not (found.get("uniqueItems") and value in out):
            out.append(value)
    return out


def _number(found: Mapping[str, Any], rng: Random, kind: str, name: str, bound: str) -> float | int:
    step = found.get("multipleOf") or (1 if kind == "integer" else 0.01)
    low = found.get("minimum", found.get("exclusiveMinimum", 1 if step == 1 else step))
    low = low + step if "exclusiveMinimum" in found and "minimum" not in found else low
    span = 20 if re.search(r"count|limit|quantity|guests|passengers|nights", name) else 500
    high = found.get("maximum", found.get("exclusiveMaximum", low + span))
    high = high - step if "exclusiveMaximum" in found and "maximum" not in found else high
    high = max(low, high)
    stated = {"lowest": ("minimum", "exclusiveMinimum"), "highest": ("maximum", "exclusiveMaximum")}
    if bound and any(limit in found for limit in stated[bound]):
        value = low if bound == "lowest" else high
    else:
        first = -(-low // step)
        value = (first + rng.randint(0, max(0, int((high - first * step) // step)))) * step
    value = min(max(value, low), high)
    return int(value) if kind == "integer" else round(float(value), 4)


def _string(found: Mapping[str, Any], rng: Random, name: str, bound: str) -> str:
    if isinstance(found.get("pattern"), str):
        made = from_pattern(found["pattern"], rng)
        if made is not None:
            return made
    day = (_FIRST + timedelta(days=rng.randint(0, 700))).isoformat()
    formats = {
        "date": day, "date-time": f"{day}T09:30:00Z", "time": "09:30:00", "ipv4": f"10.0.{rng.randint(0, 255)}.{rng.randint(1, 254)}",
        "email": f"{rng.choice(_WORDS)}.{rng.randint(10, 999)}@example.com", "uri": f"https://example.com/{rng.choice(_WORDS)}",
        "uuid": "-".join("".join(rng.choices("0123456789abcdef", k=k)) for k in (8, 4, 4, 4, 12)),
    }  # fmt: skip
    text = formats.get(str(found.get("format")))
    if text is None:
        text = new_id(name, rng) if is_reference(name) else _meaning(name, rng)
    low, high = int(found.get("minLength", 0)), int(found.get("maxLength", 10_000))
    if bound == "lowest" and "minLength" in found:
        return (text + "x" * low)[: max(low, 1)]
    if bound == "highest" and "maxLength" in found and high <= 200:
        return (text + " " + " ".join(_WORDS) * (1 + high // 80))[:high]
    return (text + "x" * max(0, low - len(text)))[:high]


def _meaning(name: str, rng: Random) -> str:
    for pattern, make in _MEANINGS:
        if re.search(pattern, name, re.IGNORECASE):
            return str(make(rng))
    return f"{rng.choice(_WORDS)} {rng.choice(_WORDS)}"


def from_pattern(pattern: str, rng: Random) -> str | None:
    """Make a text that a simple regular expression matches, or say that it is not simple."""
    out, rest = "", pattern.strip("^$")
    unit = re.compile(
        r"(\\d|\\w|\\-|\\\.|\[[^\]]+\]|\((?:\?:)?[^()|]+(?:\|[^()|]+)*\)|[^\\\[\](){}|*+?.^$])(\{\d+(?:,\d*)?\}|[*+?])?"
    )
    while rest:
        found = unit.match(rest)
        if not found:
            return None
        rest = rest[found.end() :]
        out += "".join(_unit(found[1], rng) for _ in range(_times(found[2], rng)))
    return out if re.search(pattern, out) else None


def _times(quantifier: str | None, rng: Random) -> int:
    if quantifier is None:
        return 1
    if quantifier in "*+?":
        return {"*": rng.randint(0, 3), "+": rng.randint(1, 4), "?": rng.randint(0, 1)}[quantifier]
    low, _, high = quantifier.strip("{}").partition(",")
    return int(low) if not _ else rng.randint(int(low), int(high) if high else int(low) + 3)


def _unit(unit: str, rng: Random) -> str:
    if unit == "\\d":
        return rng.choice(string.digits)
    if unit == "\\w":
        return rng.choice(string.ascii_letters)
    if unit.startswith("\\"):
        return unit[1:]
    if unit.startswith("("):
        return rng.choice(unit.strip("()").removeprefix("?:").split("|"))
    if unit.startswith("["):
        letters = re.sub(
            r"(.)-(.)", lambda m: "".join(map(chr, range(ord(m[1]), ord(m[2]) + 1))), unit[1:-1]
        )
        letters = letters.replace("\\d", string.digits).replace("\\w", string.ascii_letters)
        return "" if unit.startswith("[^") else rng.choice(letters.replace("\\", "") or "x")
    return unit
