"""Entities: what the tools are about, as records that hold together.

The catalog reads from the schemas which kinds of entity there are, which fields they have and which
other entities they name. The store invents records on demand, each a function of the seed and its id, so that
what one tool returns another one accepts, and what was deleted is gone for all of them.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from whileai_hf.world.kinds import kind_of, noun_of, references
from whileai_hf.world.tools import Tool
from whileai_hf.world.values import is_reference, new_id, sample

#: Fields that a record takes from the arguments of its tools, at most.
_FIELDS = 6

#: The field that counts the writes of a record; no argument can set it.
COUNTER = "version"

#: Catalogs by the identity of their tools, which they keep alive; the oldest go first.
_CATALOGS: dict[tuple[int, ...], tuple[Catalog, Sequence[Tool]]] = {}
_KEPT_CATALOGS = 256


@dataclass(slots=True)
class Catalog:
    """What a set of tools says about its entities."""

    ids: dict[str, str] = field(default_factory=dict)  #: kind -> name of the field with the id
    #: kind -> field -> its schema and the definitions that this may refer to
    fields: dict[str, dict[str, tuple[Any, Any]]] = field(default_factory=dict)
    links: dict[str, dict[str, str]] = field(default_factory=dict)  #: kind -> field -> other kind
    id_schemas: dict[str, Any] = field(default_factory=dict)  #: name of an id -> its schema
    refs: dict[str, dict[str, str]] = field(default_factory=dict)  #: tool -> argument -> kind
    kinds: dict[str, str] = field(default_factory=dict)  #: tool -> what it does
    about: dict[str, str] = field(default_factory=dict)  #: tool -> kind of its entity
    main: dict[str, str | None] = field(default_factory=dict)  #: tool -> argument with that entity
    required: dict[str, set[str]] = field(default_factory=dict)  #: tool -> required arguments

    @classmethod
    def of(cls, tools: Sequence[Tool]) -> Catalog:
        """Read the catalog of a set of tools; equal tools share it."""
        key = tuple(id(tool.parameters) for tool in tools)
        if key not in _CATALOGS:
            while len(_CATALOGS) >= _KEPT_CATALOGS:
                del _CATALOGS[next(iter(_CATALOGS))]
            made = cls()
            for tool in tools:
                made._add(tool)
            _CATALOGS[key] = (made, tuple(tools))
        return _CATALOGS[key][0]

    def _add(self, tool: Tool) -> None:
        refs, about = references(tool), noun_of(tool.name)
        kind = kind_of(tool.name, tool.description)
        properties = tool.parameters.get("properties", {})
        one = [n for n in refs if _plain_type(properties[n]) != "array"] or list(refs)
        main = next((n for n in one if refs[n] == about), one[0] if one else None)
        if main is not None and kind in ("read", "update", "delete"):
            about = refs[main]
        self.refs[tool.name], self.about[tool.name], self.main[tool.name] = refs, about, main
        self.kinds[tool.name] = kind
        self.required[tool.name] = set(tool.parameters.get("required") or ())
        definitions = tool.parameters.get("$defs") or tool.parameters.get("definitions")
        for name, of in refs.items():
            if of not in self.ids or len(name) < len(self.ids[of]):
                self.ids[of] = name if not name.endswith("s") else name[:-1]
            schema = properties[name]
            plural = _plain_type(schema) == "array"
            self.id_schemas.setdefault(self.ids[of], schema.get("items") if plural else schema)
            if of != about:
                self.links.setdefault(about, {}).setdefault(name, of)
        own = self.fields.setdefault(about, {})
        if self.kinds[tool.name] not in ("search", "compute"):
            for name, schema in properties.items():
                if name not in refs and len(own) < _FIELDS:
                    own.setdefault(name, (schema, definitions))

    def id_field(self, kind: str) -> str:
        """Name of the field that holds the id of a kind of entity."""
        return self.ids.get(kind, f"{kind}_id")

    def reader(self, tool: str) -> tuple[str, dict[str, str]] | None:
        """Find the tool that reads what another one is about, and which argument becomes which."""
        main = self.main[tool]
        if main is None:
            return None
        given = {of: name for name, of in reversed(self.refs[tool].items())} | {
            self.refs[tool][main]: main
        }
        for other, kind in self.kinds.items():
            refs, required = self.refs[other], self.required[other]
            about = self.main[other]
            if other == tool or kind != "read" or about is None or not required <= set(refs):
                continue
            if refs[about] == self.refs[tool][main] and all(refs[n] in given for n in required):
                wanted = required | {about}
                return other, {n: given[refs[n]] for n in refs if n in wanted}
        return None

    def named(self, tool: str, arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
        """List the entities that a call names, each as its kind and its id, in order."""
        found = []
        for name, kind in self.refs[tool].items():
            value = arguments.get(name)
            found += [
                (kind, str(one))
                for one in (value if isinstance(value, list) else [value])
                if isinstance(one, (str, int)) and not isinstance(one, bool)
            ]
        return found


class Store:
    """The records of one world.

    Attributes:
        records: By id; what was deleted is not among them.
        kinds: The kind of each record.
        deleted: Ids that are gone for good.
    """

    def __init__(self, catalog: Catalog, seed: int) -> None:
        self.catalog, self.seed = catalog, seed
        self.records: dict[str, dict[str, Any]] = {}
        self.kinds: dict[str, str] = {}
        self.deleted: set[str] = set()
        self._promised: dict[str, str] = {}  # ids that a record names and nobody has read yet

    def find(self, kind: str, identifier: str) -> dict[str, Any] | None:
        """Return the record of an id if there is one of that kind; a named one comes to be.

        A record of a kind that no tool names is taken for any kind: the schemas do not say what its
        id is good for.
        """
        if self._promised.get(identifier) == kind:
            return self.invent(kind, identifier)
        own = self.kinds.get(identifier)
        if own is not None and (own == kind or own not in self.catalog.ids):
            return self.records[identifier]
        return self.records.get(self._key(kind, identifier))

    def _key(self, kind: str, identifier: str) -> str:
        """Two kinds may share an id (two numbers, mostly); the second one is kept under both names."""
        return f"{kind}:{identifier}"

    def invent(
        self, kind: str, identifier: str, known: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Make a record, a function of seed, kind and id.

        Args:
            kind: What it is.
            identifier: Its id.
            known: Fields that are given and not drawn.
        """
        rng = Random(f"{self.seed}:{kind}:{identifier}")
        taken = self.kinds.get(identifier, kind) != kind
        record: dict[str, Any] = {self.catalog.id_field(kind): self.typed(kind, identifier)}
        record |= {"status": "active", COUNTER: 1}
        for name, (schema, definitions) in self.catalog.fields.get(kind, {}).items():
            if name not in record:
                record[name] = sample(schema, rng, name, definitions)
        links = self.catalog.links.get(kind, {})
        for name, other in links.items():
            several = name.endswith("s")
            made = [self._draw_id(other, rng) for _ in range(2 if several else 1)]
            record[name] = made if several else made[0]
        record["owner"] = sample({"type": "string"}, rng, "customer_name")
        record["updated"] = sample({"type": "string", "format": "date"}, rng, "date")
        record |= known or {}
        for name, other in links.items():
            self._promise(other, record[name])
        self._promised.pop(identifier, None)
        key = self._key(kind, identifier) if taken else identifier
        self.records[key], self.kinds[key] = record, kind
        return record

    def typed(self, kind: str, identifier: str) -> Any:
        """Return an id as the type that the schemas give it."""
        schema = self.catalog.id_schemas.get(self.catalog.id_field(kind))
        number = isinstance(schema, Mapping) and schema.get("type") == "integer"
        return int(identifier) if number and re.fullmatch(r"-?\d+", identifier) else identifier

    def _draw_id(self, kind: str, rng: Random) -> Any:
        name = self.catalog.id_field(kind)
        schema = self.catalog.id_schemas.get(name)
        if not isinstance(schema, Mapping) or schema.get("type") not in ("string", "integer"):
            return new_id(name, rng)
        if schema["type"] == "integer" and "maximum" not in schema:
            return rng.randint(10_000, 99_999)
        return sample(schema, rng, name)

    def _promise(self, kind: str, value: Any) -> None:
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, (str, int)) and str(one) not in self.records:
                self._promised.setdefault(str(one), kind)

    def fresh_id(self, kind: str, number: int) -> str:
        """Make an id that no record has or had."""
        rng = Random(f"{self.seed}:new:{kind}:{number}")
        for _ in range(100):
            made = str(self._draw_id(kind, rng))
            if made not in self.records and made not in self.deleted and made not in self._promised:
                return made
        return f"{made}-{number}"

    def delete(self, kind: str, identifier: str) -> None:
        """Take a record away; its id is never used again."""
        key = identifier if self.kinds.get(identifier) == kind else self._key(kind, identifier)
        self.records.pop(key, None)
        self.kinds.pop(key, None)
        self.deleted.add(identifier)
        for other, record in self.records.items():
            for name, linked in self.catalog.links.get(self.kinds[other], {}).items():
                if linked == kind:
                    record[name] = _without(record.get(name), identifier)

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """List the records of a kind, in the order in which they came to be."""
        return [self.records[key] for key, found in self.kinds.items() if found == kind]

    def snapshot(self) -> tuple[Any, ...]:
        """Copy the state, to go back to it."""
        return copy.deepcopy((self.records, self.kinds, self.deleted, self._promised))

    def restore(self, state: tuple[Any, ...]) -> None:
        """Go back to a state."""
        self.records, self.kinds, self.deleted, self._promised = state


def _plain_type(schema: Any) -> Any:
    return schema.get("type") if isinstance(schema, Mapping) else None


def _without(value: Any, identifier: str) -> Any:
    if isinstance(value, list):
        return [one for one in value if str(one) != identifier]
    return None if str(value) == identifier else value


#: Arguments of a search that shape the answer and say nothing of what is sought.
_PAGING = re.compile(r"limit|page|offset|size|max_|top_|sort|order_by|cursor|count")


def sought(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a search that a record must answer."""
    return {
        name: value
        for name, value in arguments.items()
        if name != COUNTER and not _PAGING.search(name) and value is not None and value != ""
    }


def matches(record: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Tell whether a record answers a search: equal where it has the field, else a word in common."""
    text = ""
    for name, value in wanted.items():
        own = record.get(name)
        if isinstance(own, list) and not isinstance(value, list):
            if value not in own:
                return False
        elif name in record and (not isinstance(value, str) or is_reference(name)):
            if own != value:
                return False
        elif isinstance(value, str):
            text = text or " ".join(str(field).lower() for field in record.values())
            if not any(word in text for word in value.lower().split()):
                return False
    return True
