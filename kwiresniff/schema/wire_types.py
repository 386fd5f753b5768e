"""The one table of wire types: everything that is made of a message's definition takes from here what a type is.

The definition language, the importer of Kafka's definitions, the decoder, the dissector,
the plan of the text writers: a type that is added to the table is known to all of them. Those that are compiled and
know only some types by number refuse the others by name (``kwiresniff.codec.plan``), and the decoders do their
work. All numbers are big-endian. Sources: the protocol guide's "Protocol Primitive Types"; KIP-482 for compact forms.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kwiresniff.base.known_ids import ZERO_UUID


class Fixed(NamedTuple):
    """A fixed size: its ``struct`` code and bytes."""

    code: str
    size: int


class WireType(NamedTuple):
    """One type of value that a field can have.

    ``definition`` is its name in message definitions, ours and Kafka's, ``guide`` that in the protocol guide. ``json``
    is what Kafka's definitions have for a default: ``boolean``, ``integer``, ``number`` or ``text``. ``zero`` is what a
    field holds when its definition gives no default. ``layout`` is the value itself when ``is_fixed``, else the length
    that leads it, unless that is compact. ``nullable_name`` says that the guide has a name of its own for the type when
    it may be null. ``reader`` names what makes the value of what ``struct`` gives
    (``kwiresniff.codec.primitives``); without it that is the value already.
    """

    definition: str
    guide: str
    json: str
    zero: Any
    layout: Fixed
    is_fixed: bool = True
    nullable_name: bool = False
    reader: str = ""

    @property
    def range(self) -> tuple[int, int]:
        """The lowest and the highest value of a whole number."""
        bits = 8 * self.layout.size
        return (0, 2**bits - 1) if self.layout.code.isupper() else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


WIRE_TYPES = (
    WireType("bool", "BOOLEAN", "boolean", False, Fixed("?", 1)),
    WireType("int8", "INT8", "integer", 0, Fixed("b", 1)),
    WireType("int16", "INT16", "integer", 0, Fixed("h", 2)),
    WireType("uint16", "UINT16", "integer", 0, Fixed("H", 2)),
    WireType("int32", "INT32", "integer", 0, Fixed("i", 4)),
    WireType("uint32", "UINT32", "integer", 0, Fixed("I", 4)),
    WireType("int64", "INT64", "integer", 0, Fixed("q", 8)),
    WireType("float64", "FLOAT64", "number", 0.0, Fixed("d", 8), reader="float_value"),
    WireType("uuid", "UUID", "text", ZERO_UUID, Fixed("16s", 16), reader="uuid_text"),
    WireType("string", "STRING", "text", "", Fixed("h", 2), is_fixed=False, nullable_name=True),
    WireType("bytes", "BYTES", "text", b"", Fixed("i", 4), is_fixed=False, nullable_name=True),
    WireType("records", "RECORDS", "text", b"", Fixed("i", 4), is_fixed=False),
)

#: By the name in definitions.
BY_DEFINITION = {wire_type.definition: wire_type for wire_type in WIRE_TYPES}
#: Of fixed size, by the guide's name.
BY_GUIDE = {wire_type.guide: wire_type for wire_type in WIRE_TYPES if wire_type.is_fixed}
#: The layout of those.
FIXED = {name: wire_type.layout for name, wire_type in BY_GUIDE.items()}
#: The values of those that are whole numbers, both ends included.
INTEGER_RANGES = {name: wire_type.range for name, wire_type in BY_GUIDE.items() if wire_type.json == "integer"}

#: What a structure is called, which has fields of its own.
STRUCT_DEFINITION, STRUCT = "struct", "STRUCT"


def guide_name(definition: str, *, nullable: bool, compact: bool) -> str:
    """The guide's name of a type, which for what has a length says whether it may be null, and is compact."""
    if definition == STRUCT_DEFINITION:
        return STRUCT
    wire_type = BY_DEFINITION[definition]
    name = wire_type.guide
    if wire_type.is_fixed:
        return name
    if nullable and wire_type.nullable_name:
        name = f"NULLABLE_{name}"
    return f"COMPACT_{name}" if compact else name
