"""A message definition with all its versions, and its fields at one of them.

``Message`` and ``Field`` hold ranges of versions, as the definition files do. ``Message.at(version)`` leaves nothing
open: it gives a ``FieldAtVersion`` for every field of that version in wire order, tagged ones last by tag. Everything
else in this room is made from those: the codec's ``MessageVersion``, the merging of releases, the comparison with
Kafka's own definitions.

Sources: KIP-482 (flexible versions, tagged fields); the README beside Kafka's message definitions.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kwiresniff.errors import SchemaError
from kwiresniff.schema.wire_types import BY_DEFINITION, STRUCT_DEFINITION

#: Types of a value as the definitions name them; ``struct`` has fields of its own.
TYPES = frozenset({*BY_DEFINITION, STRUCT_DEFINITION})


class Versions(NamedTuple):
    """An inclusive range of versions; ``low > high`` when it is empty."""

    low: int
    high: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.low <= version <= self.high

    def __bool__(self) -> bool:
        return self.low <= self.high

    def within(self, other: Versions) -> Versions:
        """The versions both ranges have."""
        return Versions(max(self.low, other.low), min(self.high, other.high))


NO_VERSIONS = Versions(0, -1)

#: Kafka writes ``3+`` for "from version 3 on". A version is an INT16 on the wire, so no range goes further.
MAX_VERSION = 32767


class FieldAtVersion(NamedTuple):
    """One field at one version; ``default`` is in JSON form (bytes as ``bytes``), ``compact`` that of its length."""

    name: str
    type: str
    array: bool
    nullable: bool
    tag: int | None
    default: Any
    compact: bool
    entity: str
    map_key: bool
    fields: tuple[FieldAtVersion, ...]


class Field(NamedTuple):
    """One line of a definition; several may have one name in different versions. A null ``default`` may be explicit
    (``explicit_default``); ``aliases`` are older names.
    """

    name: str
    type: str
    versions: Versions
    array: bool = False
    nullable: Versions = NO_VERSIONS
    tag: int | None = None
    tagged: Versions = NO_VERSIONS
    default: Any = None
    explicit_default: bool = False
    flexible: Versions | None = None
    entity: str = ""
    map_key: bool = False
    fields: tuple[Field, ...] = ()
    aliases: tuple[str, ...] = ()

    def at(self, version: int, flexible: bool) -> FieldAtVersion:
        fields = shapes(self.fields, version, flexible) if self.type == "struct" else ()
        default = self.default if self.explicit_default else zero(self.type, self.array, fields)
        # By position: names cost as much as all the rest.
        return FieldAtVersion(
            self.name,
            self.type,
            self.array,
            version in self.nullable,
            self.tag if version in self.tagged else None,
            default,
            flexible if self.flexible is None else version in self.flexible,
            self.entity,
            self.map_key,
            fields,
        )


def shapes(fields: tuple[Field, ...], version: int, flexible: bool) -> tuple[FieldAtVersion, ...]:
    """The fields that a version has, in wire order: regular ones as they stand, then tagged ones by tag."""
    present = [field.at(version, flexible) for field in fields if version in field.versions]
    tagged = [shape for shape in present if shape.tag is not None]
    if not tagged:
        return tuple(present)
    tagged.sort(key=lambda shape: shape.tag or 0)
    return (*(shape for shape in present if shape.tag is None), *tagged)


def zero(type_name: str, array: bool, fields: tuple[FieldAtVersion, ...]) -> Any:
    """The value of a field of this type when its definition gives no default."""
    if array:
        return []
    if type_name == STRUCT_DEFINITION:
        return {field.name: field.default for field in fields}
    return BY_DEFINITION[type_name].zero


class Record(NamedTuple):
    """The record type that a message is, and its ``role``: ``metadata``, ``coordinator-key`` or ``-value``."""

    role: str
    number: int


#: What a message can be in a record of an internal topic.
ROLES = frozenset({"metadata", "coordinator-key", "coordinator-value"})


class Message(NamedTuple):
    """One message in all versions: its API's name, ``request`` or ``response`` for a header, or its own. Requests have
    ``listeners`` and ``aliases``; ``record`` says what it is in Kafka's own logs.
    """

    name: str
    kind: str
    versions: Versions
    flexible: Versions
    fields: tuple[Field, ...]
    api_key: int = -1
    listeners: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    record: Record | None = None

    @property
    def title(self) -> str:
        """The name to use when speaking of the message: ``Fetch request``."""
        return self.name if self.kind == "data" else f"{self.name} {self.kind}"

    def at(self, version: int) -> tuple[FieldAtVersion, ...]:
        """The message's fields at ``version``; raises SchemaError when it does not have that version."""
        if version not in self.versions:
            low, high = self.versions
            raise SchemaError(f"{self.title} has no version {version}, it has {low} to {high}")
        return shapes(self.fields, version, version in self.flexible)
