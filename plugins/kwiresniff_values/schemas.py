"""A schema as a source has it, and what a source is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from kwiresniff_values.limits import MAX_REFERENCES
from kwiresniff_values.problems import Unusable


def nothing(name: str) -> Schema | None:
    """Knows no other schemas."""
    return None


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema by the ``name`` that people know it by; ``kind`` is AVRO, PROTOBUF or JSON.

    ``text`` is what its language says; of Protobuf a .proto file, or bytes: a serialized FileDescriptorSet or
    FileDescriptorProto. ``references`` are the names of the schemas that it needs, as far as they are told;
    ``referred`` finds them, and others, by name: a full name in Avro, a path of an import in Protobuf, a URI in JSON
    Schema. ``message`` is the full name of a Protobuf message, else the first of the file is meant. ``origin`` keeps
    those apart that may refer to others by the same names.
    """

    name: str
    kind: str
    text: str | bytes
    references: tuple[str, ...] = ()
    referred: Callable[[str], Schema | None] = field(default=nothing, compare=False)
    message: str | None = None
    origin: int = 0


class Source(Protocol):
    """A source of schemas: a folder, a registry, the capture itself."""

    def by_id(self, by: str, id: str) -> Schema | None:
        """The schema with an id of a kind (see ``framing.Claim``), or None; raises Unusable."""

    def by_name(self, name: str) -> Schema | None:
        """The schema of a subject, or the file of that name; raises Unusable."""


def with_references(schema: Schema) -> list[tuple[str, Schema]]:
    """The schemas that a schema needs, with their names, dependencies first. Raises Unusable."""
    found: dict[str, Schema] = {}
    done: dict[str, Schema] = {}
    todo: list[tuple[str, Schema, bool]] = [
        (name, _required(schema, name), False) for name in reversed(schema.references)
    ]
    while todo:
        name, one, ready = todo.pop()
        if ready:
            done.setdefault(name, one)
        elif name not in found:
            found[name] = one
            if len(found) > MAX_REFERENCES:
                raise Unusable(f"schema {schema.name} refers to more than {MAX_REFERENCES} others")
            todo.append((name, one, True))
            todo += [(other, _required(one, other), False) for other in reversed(one.references) if other not in found]
    return list(done.items())


def _required(schema: Schema, name: str) -> Schema:
    found = schema.referred(name)
    if found is None:
        raise Unusable(f"schema {schema.name} refers to {name}, which is in no source")
    return found
