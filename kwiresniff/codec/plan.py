"""Plans: the definition of a message laid out as steps, which all writers of text follow."""

from __future__ import annotations

from json import dumps
from typing import TYPE_CHECKING, Any, Final, final

from kwiresniff.base.secret_texts import EXPLANATIONS
from kwiresniff.codec.field_layout import (
    NUMBERS_SHIFT,
    check_nesting,
    default_value,
    is_compact,
    is_records,
    is_string,
    may_be_null,
    regular,
    single,
    smallest_size,
    tagged,
)
from kwiresniff.errors import SchemaError
from kwiresniff.schema.types import MessageVersion, WireField
from kwiresniff.schema.wire_types import FIXED

if TYPE_CHECKING:
    from mypy_extensions import i64

#: What a step reads. The lead is all there is of a CONSTANT; the steps of a TAG_SECTION are the fields it may hold.
CONSTANT: Final = 0
TAG_SECTION: Final = 1
STRUCTURE: Final = 2
BOOLEAN: Final = 3
INT8: Final = 4
INT16: Final = 5
UINT16: Final = 6
INT32: Final = 7
UINT32: Final = 8
INT64: Final = 9
UUID: Final = 10
STRING: Final = 11
BYTES: Final = 12
RECORDS: Final = 13
#: An INT16 that must be zero, because somebody has to tell which error it is otherwise.
ERROR_CODE: Final = 14
#: A STRING and a UUID that may name a topic whose records have to be opened.
TOPIC: Final = 15
TOPIC_ID: Final = 16
#: Fields that are passed over (``kwiresniff.codec.digest_roles``).
JUMP: Final = 17

#: Types of fixed size that the writers know, by the names of ``kwiresniff.schema.wire_types``. FLOAT64, which is in no
#: message that is written often, and any type that is added later are refused.
FIXED_KINDS: Final = {
    "BOOLEAN": BOOLEAN, "INT8": INT8, "INT16": INT16, "UINT16": UINT16, "INT32": INT32, "UINT32": UINT32,
    "INT64": INT64, "UUID": UUID,
}  # fmt: skip
#: Bytes of each kind that has a fixed size.
SIZES: Final = {ERROR_CODE: 2, TOPIC_ID: 16, **{kind: FIXED[name].size for name, kind in FIXED_KINDS.items()}}


@final
class Step:
    """One field of a structure, or what stands between fields, by its ``kind``: a plain record.

    ``compact_array`` and ``compact`` say that the count and the length are an UNSIGNED_VARINT of one more.
    ``short`` says that the length is an INT16, and ``explains`` that a broker explains itself there. ``steps`` are
    those of the structure, or of one element of an array of them. ``least`` is the fewest bytes of an element, and
    ``shift`` says that so many elements count as one value: two to the power of it. ``lead`` is the JSON text
    before the value; ``field`` is what the definition says, None for what is no field. ``role`` is filled in for
    digests (``kwiresniff.codec.digest_roles``).
    """

    def __init__(self, lead: bytes, kind: i64, field: WireField | None = None) -> None:
        self.lead = lead
        self.kind: i64 = kind
        self.field = field
        self.name = field.name if field is not None else ""
        self.tag = field.tag if field is not None and field.tag is not None else -1
        self.array = False
        self.null_array = False
        self.compact_array = False
        self.compact = False
        self.short = False
        self.nullable = False
        self.least: i64 = 1
        self.shift: i64 = 0
        self.steps: list[Step] = []
        self.role: i64 = 0
        self.explains = False


def plan(message: MessageVersion, *, leads: bool = True) -> list[Step]:
    """The steps of a message. Raises SchemaError for one that cannot be written this way.

    Without ``leads`` there is no JSON text before the values, nor steps that are nothing but such a text: for readers
    that write none.
    """
    check_nesting(message)
    return _structure(message.fields, message.flexible, leads)


def _structure(fields: tuple[WireField, ...], flexible: bool, leads: bool) -> list[Step]:
    steps = []
    before = "{"
    for field in regular(fields):
        steps.append(_step(f"{before}{_quoted(field.name)}:" if leads else "", field, flexible, leads))
        before = ","
    if flexible:
        section = Step(b"", TAG_SECTION)
        section.steps = [_step("", field, flexible, leads) for field in tagged(fields)]
        steps.append(section)
    if leads:
        for field in tagged(fields) if flexible else ():
            steps.append(Step(f"{before}{_quoted(field.name)}:{_quoted(default_value(field))}".encode(), CONSTANT))
            before = ","
        steps.append(Step(b"{}" if before == "{" else b"}", CONSTANT))
    return steps


def _step(lead: str, field: WireField, flexible: bool, leads: bool) -> Step:
    step = Step(lead.encode(), _kind(field), field)
    step.array = field.array
    step.null_array = field.array and field.nullable
    step.compact_array = flexible
    step.nullable = may_be_null(field)
    step.compact = is_compact(field.type)
    step.short = is_string(field.type)
    step.explains = step.short and field.name.endswith(EXPLANATIONS)
    step.least = smallest_size(single(field), flexible)
    step.shift = NUMBERS_SHIFT if field.type in FIXED else 0
    step.steps = _structure(field.fields, flexible, leads) if field.type == "STRUCT" else []
    return step


def _kind(field: WireField) -> int:
    if field.type == "STRUCT":
        return STRUCTURE
    if field.enum == "error_code" and field.type == "INT16":
        return ERROR_CODE
    if is_string(field.type):
        return TOPIC if field.entity == "topicName" else STRING
    if is_records(field.type):
        return RECORDS
    if field.type.endswith("BYTES"):
        return BYTES
    if field.name == "topic_id":
        return TOPIC_ID
    kind = FIXED_KINDS.get(field.type)
    if kind is None:
        raise SchemaError(f"{field.type} is not written as text")
    return kind


def _quoted(value: Any) -> str:
    """The JSON text of a name or of a default value."""
    if isinstance(value, str) and value.isascii() and value.isidentifier():
        return f'"{value}"'
    if value is None:
        return "null"
    if type(value) is int:
        return str(value)
    return dumps(value, ensure_ascii=False, separators=(",", ":"), default=bytes.decode)
