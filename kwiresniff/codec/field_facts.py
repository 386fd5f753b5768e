"""What the dissector asks of a definition, made once: how each field lies on the wire, and whether it means more."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from kwiresniff.codec.field_layout import (
    is_records,
    is_string,
    length_prefix,
    may_be_null,
    regular,
    single,
    smallest_size,
    tagged,
)
from kwiresniff.codec.node_types import ARRAY
from kwiresniff.codec.primitives import reader_of
from kwiresniff.schema.types import WireField
from kwiresniff.schema.value_labels import has_meaning
from kwiresniff.schema.wire_types import FIXED

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Structures whose facts are kept: those of all messages of a usual capture.
_KEPT = 4096


class FieldFacts:
    """How a ``field`` lies on the wire. ``size`` is that of a fixed value, which ``unpack`` and ``read`` make;
    ``prefix`` reads a length or count of ``prefix_size`` bytes, None for an UNSIGNED_VARINT; ``smallest`` are its
    fewest bytes.
    """

    __slots__ = (
        "array", "element", "field", "is_records", "is_string", "means", "name", "node_type", "null_length",
        "prefix", "prefix_size", "read", "size", "smallest", "unpack",
    )  # fmt: skip

    def __init__(self, field: WireField, flexible: bool) -> None:
        self.field = field
        self.name = field.name
        self.array = field.array
        self.node_type = ARRAY if field.array else field.type
        self.is_string = is_string(field.type)
        self.is_records = is_records(field.type)
        self.null_length = field.nullable if field.array else may_be_null(field)
        self.smallest: i64 = smallest_size(field, flexible)
        self.means = has_meaning(field)
        self.element: FieldFacts | None = None
        self.unpack: Callable[[bytes, i64], tuple[Any, ...]] | None = None
        self.read: Callable[[Any], Any] | None = None
        self.size: i64 = 0
        if field.type in FIXED:
            self.unpack, self.size, self.read = _fixed(field.type)
        prefix = length_prefix(field, flexible)
        self.prefix_size: i64 = prefix.size if prefix is not None else 0
        self.prefix = struct.Struct(f">{prefix.code}").unpack_from if prefix is not None else None

    def of_element(self, flexible: bool) -> FieldFacts:
        """The facts of an element of this array, made when there is one for the first time."""
        if self.element is None:
            self.element = FieldFacts(single(self.field), flexible)
        return self.element


class StructureFacts:
    """The facts of a structure's ``fields``, kept by their identity."""

    __slots__ = ("fields", "regular", "tagged")

    def __init__(self, fields: tuple[WireField, ...], flexible: bool) -> None:
        self.fields = fields
        self.regular = [FieldFacts(field, flexible) for field in regular(fields)]
        self.tagged = [FieldFacts(field, flexible) for field in tagged(fields)]


_facts: dict[int, StructureFacts] = {}  # by the identity of the fields, twice, one more in flexible messages


def structure_facts(fields: tuple[WireField, ...], flexible: bool) -> StructureFacts:
    """The facts of these fields, made when a message has them for the first time."""
    key = 2 * id(fields) + (1 if flexible else 0)
    found = _facts.get(key)
    if found is None:
        if len(_facts) >= _KEPT:
            _facts.clear()
        found = _facts[key] = StructureFacts(fields, flexible)
    return found


@cache
def _fixed(wire_type: str) -> tuple[Callable[[bytes, i64], tuple[Any, ...]], int, Callable[[Any], Any] | None]:
    """The reader of a fixed-size type: its unpacker, its size, and its conversion."""
    code, size = FIXED[wire_type]
    return struct.Struct(f">{code}").unpack_from, size, reader_of(wire_type)
