"""How each wire type lies on the wire: its struct code and size, or the prefix that holds its length.

Everything is big-endian. Sources: the protocol guide's "Protocol Primitive Types"; KIP-482 for the compact
forms and tagged fields; KIP-893 for nullable structures.
"""

from __future__ import annotations

from typing import Any, Final

from kwiresniff.errors import SchemaError
from kwiresniff.schema.types import MessageVersion, WireField
from kwiresniff.schema.wire_types import BY_DEFINITION, BY_GUIDE, FIXED, Fixed

#: Structures inside structures; Kafka's own messages nest at most 6 deep.
MAX_NESTING = 9

#: Values of one message: structures, strings, tags, eight numbers of an array. A million dicts are 200 to 400 MB.
MAX_ENTRIES: Final = 1_000_000
#: Numbers in an array that weigh as much as one structure, as a shift.
NUMBERS_SHIFT = 3

#: Tagged fields of one structure. Kafka's own have at most five; every one of them costs a dict entry.
MAX_TAGS: Final = 1024

#: The field whose record set may begin and end inside a batch (FetchSnapshot, KIP-630).
UNALIGNED = "unaligned_records"


#: The length of a string.
STRING_LENGTH = BY_DEFINITION["string"].layout
#: The length of bytes and of a record set, and the count of an array.
INT32_LENGTH = FIXED["INT32"]
NULLABLE_STRUCT_MARK = Fixed("b", 1)
#: The first, and mostly the only, byte of an UNSIGNED_VARINT.
VARINT_BYTE = Fixed("B", 1)


def null_mark(field: WireField) -> int:
    """The mark of a null structure; 1 marks any other. KIP-893 has an INT8 of -1, Kafka's classes an UNSIGNED_VARINT of
    0 in a tagged field (ConsumerGroupMemberMetadataValue).
    """
    return -1 if field.tag is None else 0


def is_compact(wire_type: str) -> bool:
    """Whether the length is an UNSIGNED_VARINT of length + 1, 0 for null."""
    return wire_type.startswith("COMPACT_")


def is_string(wire_type: str) -> bool:
    """Whether a wire type is a string, nullable, compact or neither."""
    return wire_type.endswith("STRING")


def is_records(wire_type: str) -> bool:
    """Whether a wire type is a record set."""
    return wire_type.endswith("RECORDS")


def length_prefix(field: WireField, flexible: bool) -> Fixed | None:
    """The length of a string, byte array or record set, or the count of an array; None for an UNSIGNED_VARINT."""
    if flexible if field.array else is_compact(field.type):
        return None
    return STRING_LENGTH if is_string(field.type) and not field.array else INT32_LENGTH


def may_be_null(field: WireField) -> bool:
    """Whether a single value of the field may be null (for an array: whether an element may)."""
    return "NULLABLE" in field.type or (field.nullable and not field.array)


def single(field: WireField) -> WireField:
    """One entry of an array field, as a field."""
    # By position: the dissector calls this for every array, and names would take four times as long.
    nullable = "NULLABLE" in field.type
    return WireField(field.name, field.type, False, nullable, None, None, field.fields, field.entity, field.enum)


def regular(fields: tuple[WireField, ...]) -> list[WireField]:
    """The fields that are always on the wire, in wire order."""
    return [field for field in fields if field.tag is None]


def tagged(fields: tuple[WireField, ...]) -> list[WireField]:
    """The tagged fields, in the order of their tags."""
    return [field for field in fields if field.tag is not None]


def smallest_size(field: WireField, flexible: bool) -> int:
    """The fewest bytes the field can take, for bounding array counts by the bytes that are there."""
    if field.type == "STRUCT" and not field.array:
        return NULLABLE_STRUCT_MARK.size if field.nullable else smallest_struct(field.fields, flexible)
    if field.type in FIXED and not field.array:
        return FIXED[field.type].size
    return (length_prefix(field, flexible) or VARINT_BYTE).size


def smallest_struct(fields: tuple[WireField, ...], flexible: bool) -> int:
    """The fewest bytes a structure with these fields can take, never less than one."""
    return max(1, flexible + sum(smallest_size(field, flexible) for field in regular(fields)))


def default_value(field: WireField) -> Any:
    """The value that a tagged field has when it is not on the wire, as the decoder gives it."""
    if field.array:
        return None if field.default is None and field.nullable else list(field.default or ())
    if field.type == "STRUCT":
        if field.default is None and field.nullable:
            return None
        given = field.default if isinstance(field.default, dict) else {}
        return {
            child.name: given[child.name] if child.name in given else default_value(child) for child in field.fields
        }
    if field.type in FIXED:
        return BY_GUIDE[field.type].zero if field.default is None else field.default
    if field.default is None and may_be_null(field):
        return None
    if is_string(field.type):
        return str(field.default or "")
    return b"" if not is_records(field.type) else []


def check_nesting(message: MessageVersion) -> None:
    """Raise SchemaError for a definition that nests deeper than MAX_NESTING."""
    level = [message.fields]
    for _ in range(MAX_NESTING + 1):
        level = [field.fields for fields in level for field in fields if field.fields]
        if not level:
            return
    raise SchemaError(f"{message.name} v{message.version} nests structures more than {MAX_NESTING} deep")
