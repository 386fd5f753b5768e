"""Plans: the definition of a message laid out as steps, in wire order, which every compiled reader of bodies follows.

A plan is never changed. A plan for JSON text (``plan``) has a step for every field; one to pass over a message
(``passing_plan``) joins fields of fixed size that nobody asks for, and says what each other field is to whoever asks.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from kwiresniff.base.secret_texts import EXPLANATIONS
from kwiresniff.codec.field_layout import (
    NUMBERS_SHIFT,
    check_nesting,
    default_value,
    is_compact,
    is_records,
    is_string,
    may_be_null,
    null_mark,
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
#: An INT16 that is zero unless something went wrong.
ERROR_CODE: Final = 14
#: A STRING and a UUID that may name a topic whose records have to be opened.
TOPIC: Final = 15
TOPIC_ID: Final = 16
#: ``size`` bytes, of ``nodes`` fields, that are passed over.
JUMP: Final = 17
#: An array that is passed over, whatever its elements are.
ARRAY: Final = 18

#: Types of fixed size whose values are read, by the names of ``kwiresniff.schema.wire_types``. FLOAT64, which is in no
#: message that is written often, and any type that is added later are refused.
FIXED_KINDS: Final = {
    "BOOLEAN": BOOLEAN, "INT8": INT8, "INT16": INT16, "UINT16": UINT16, "INT32": INT32, "UINT32": UINT32,
    "INT64": INT64, "UUID": UUID,
}  # fmt: skip

#: What a field is to who asks, 0 for nothing: ``role(field, parent, outermost)``, by the field, the name of the
#: structure or array that it is in, and whether it is in none. The role of a list of values is that of each.
Role: TypeAlias = Callable[[WireField, str, bool], int]

#: The enumeration of error codes.
_ERROR_CODE: Final = "error_code"

#: Elements whose plans are kept; all definitions together have about two thousand arrays.
_KEPT: Final = 4096


@final
class Step:
    """One field of a structure, or what stands between fields, by its ``kind``.

    ``compact_array`` and ``compact`` say that the count and the length are an UNSIGNED_VARINT of one more.
    ``short`` says that the length is an INT16, and ``explains`` that a broker explains itself there. ``null`` is the
    mark of a structure that is null. ``steps`` are those of the structure, or of one element of an array. ``least`` is
    the fewest bytes of an element, and ``shift`` says that so many elements count as one value: two to the power of
    it. ``lead`` is the JSON text before the value, ``role`` what the value is to who asks.
    """

    def __init__(
        self,
        kind: i64,
        field: WireField | None = None,
        flexible: bool = False,
        steps: list[Step] | None = None,
        *,
        name: str = "",
        lead: bytes = b"",
        role: i64 = 0,
        size: i64 = 0,
        nodes: i64 = 1,
    ) -> None:
        self.kind: Final[i64] = kind
        self.name: Final = name
        self.lead: Final = lead
        self.role: Final[i64] = role
        self.size: Final[i64] = size
        self.nodes: Final[i64] = nodes
        self.steps: Final[list[Step]] = steps if steps is not None else []
        self.tag: Final[i64] = field.tag if field is not None and field.tag is not None else -1
        self.null: Final[i64] = null_mark(field) & 0xFF if field is not None else 0
        self.array: Final = field is not None and field.array
        self.null_array: Final = field is not None and field.array and field.nullable
        self.compact_array: Final = flexible
        self.compact: Final = field is not None and is_compact(field.type)
        self.short: Final = field is not None and is_string(field.type)
        self.nullable: Final = field is not None and may_be_null(field)
        self.explains: Final = field is not None and self.short and field.name.endswith(EXPLANATIONS)
        self.least: Final[i64] = smallest_size(single(field), flexible) if field is not None and field.array else 1
        self.shift: Final[i64] = NUMBERS_SHIFT if field is not None and field.type in FIXED else 0


def plan(message: MessageVersion) -> list[Step]:
    """The steps by which a message is written as JSON text. Raises SchemaError for one that cannot be written so."""
    check_nesting(message)
    return _written(message.fields, message.flexible)


def _written(fields: tuple[WireField, ...], flexible: bool) -> list[Step]:
    steps = []
    before = "{"
    for field in regular(fields):
        steps.append(_written_field(f"{before}{_quoted(field.name)}:", field, flexible))
        before = ","
    if flexible:
        late = tagged(fields)
        steps.append(Step(TAG_SECTION, steps=[_written_field("", field, flexible) for field in late]))
        for field in late:
            lead = f"{before}{_quoted(field.name)}:{_quoted(default_value(field))}"
            steps.append(Step(CONSTANT, lead=lead.encode()))
            before = ","
    steps.append(Step(CONSTANT, lead=b"{}" if before == "{" else b"}"))
    return steps


def _written_field(lead: str, field: WireField, flexible: bool) -> Step:
    kind = _kind(field)
    if kind == JUMP:
        raise SchemaError(f"{field.type} is not written as text")
    inside = _written(field.fields, flexible) if kind == STRUCTURE else []
    return Step(kind, field, flexible, inside, name=field.name, lead=lead.encode())


def passing_plan(
    message: MessageVersion, role: Role | None = None, *, errors: bool = False, texts: bool = False, front: bool = False
) -> list[Step]:
    """The steps by which a message is passed over, each with its ``role``; without, nothing is asked for.

    With ``errors`` error codes are looked at, with ``texts`` all strings are; with ``front`` there are no steps behind
    the last field that is asked for. Raises SchemaError for a definition that nests too deep, and for a role of a type
    whose values no plan reads.
    """
    check_nesting(message)
    return _Passing(message.flexible, role, errors, texts).message(message.fields, front)


def leaf_plan(message: MessageVersion, leaves: Set[str], *, whole: bool = False) -> list[Step]:
    """The steps over a ``whole`` message, or up to the last of the ``leaves``: names of fields, entities
    (``topicName``), and ``error_code`` for error codes. No record set is one.
    """

    names = leaves - {_ERROR_CODE}

    def role(field: WireField, parent: str, outermost: bool) -> int:
        if field.enum == _ERROR_CODE or field.type == "STRUCT" or is_records(field.type):
            return 0
        return int(field.name in names or field.entity in names)

    return passing_plan(message, role, errors=_ERROR_CODE in leaves, front=not whole)


#: Plans of elements by the fields of their structure, which are kept so that no others are taken for them.
_elements: dict[int, tuple[tuple[WireField, ...], list[Step]]] = {}


def element_plan(entry: WireField, flexible: bool) -> list[Step]:
    """The steps over one element of an array (``field_layout.single``); error codes and texts are looked at."""
    if not entry.fields:
        return _Passing(flexible, None, True, True).single(entry, "", False)
    key = id(entry.fields) << 1 | flexible
    kept = _elements.get(key)
    if kept is None:
        if len(_elements) >= _KEPT:
            _elements.clear()
        kept = _elements[key] = entry.fields, _Passing(flexible, None, True, True).single(entry, "", False)
    return kept[1]


class _Passing:
    """Makes plans to pass over messages."""

    def __init__(self, flexible: bool, role: Role | None, errors: bool, texts: bool) -> None:
        self.flexible = flexible
        self.role = role
        self.errors = errors
        self.texts = texts

    def message(self, fields: tuple[WireField, ...], front: bool) -> list[Step]:
        """The steps of a whole message, or up to the last field that is asked for."""
        late = tagged(fields)
        if not front or any(self.asks(field, "", True) for field in late):
            return self.structure(fields, "", "", True)
        regulars = regular(fields)
        last = max((index for index, field in enumerate(regulars) if self.asks(field, "", True)), default=-1)
        return self.fields(regulars[: last + 1], "", "", True)

    def asks(self, field: WireField, parent: str, outermost: bool) -> bool:
        """Whether the field or anything inside it is asked for."""
        if self.errors and field.enum == _ERROR_CODE:
            return True
        if self.role is not None and self.role(field, parent, outermost):
            return True
        return any(self.asks(inner, field.name, False) for inner in field.fields)

    def structure(self, fields: tuple[WireField, ...], parent: str, place: str, outermost: bool) -> list[Step]:
        """The steps of a structure; ``place`` stands before the names of its fields in paths of errors."""
        steps = self.fields(regular(fields), parent, place, outermost)
        if self.flexible:
            late = [
                Step(TAG_SECTION, field, nodes=0, steps=self.field(field, parent, place, outermost))
                for field in tagged(fields)
            ]
            steps.append(Step(TAG_SECTION, steps=late, nodes=0))
        return steps

    def fields(self, fields: list[WireField], parent: str, place: str, outermost: bool) -> list[Step]:
        """The steps of fields one after the other, jumps that follow each other made one."""
        return _joined([step for field in fields for step in self.field(field, parent, place, outermost)])

    def field(self, field: WireField, parent: str, place: str, outermost: bool) -> list[Step]:
        """The steps of one field, of a structure those of its fields."""
        if not field.array:
            return self.single(field, parent, outermost, place)
        inside = _joined(self.single(single(field), parent, outermost, of=field))
        role = self.role_of(field, parent, outermost) if field.type == "STRUCT" else 0
        return [Step(ARRAY, field, self.flexible, inside, name=place + field.name, role=role)]

    def single(
        self, field: WireField, parent: str, outermost: bool, place: str = "", of: WireField | None = None
    ) -> list[Step]:
        """The steps of a value that is no array; those ``of`` an array are called nothing."""
        kind = _kind(field)
        name = place + field.name if of is None else ""
        if kind == STRUCTURE:
            if field.nullable:
                inside = self.structure(field.fields, field.name, "", False)
                return [Step(STRUCTURE, field, self.flexible, inside, name=name)]
            # A structure is a field itself where fields are counted.
            inside = self.structure(field.fields, field.name, f"{name}." if name else "", False)
            return _joined([Step(JUMP), *inside]) if self.texts else inside
        role = self.role_of(of or field, parent, outermost)
        if field.type in FIXED and not role and not (kind == ERROR_CODE and self.errors):
            return [Step(JUMP, size=FIXED[field.type].size)]
        if kind == JUMP:
            raise SchemaError(f"{field.type} is not read by a plan")
        if kind in (STRING, TOPIC) and not role and not self.texts:
            kind = BYTES
        return [Step(kind, field, self.flexible, name=(of or field).name if role else name, role=role)]

    def role_of(self, field: WireField, parent: str, outermost: bool) -> int:
        return self.role(field, parent, outermost) if self.role is not None else 0


def _joined(steps: list[Step]) -> list[Step]:
    found: list[Step] = []
    for step in steps:
        if step.kind == JUMP and found and found[-1].kind == JUMP:
            last = found.pop()
            step = Step(JUMP, size=last.size + step.size, nodes=last.nodes + step.nodes)
        found.append(step)
    return found


def has_records(steps: list[Step]) -> bool:
    """Whether there is a record set among steps or inside them."""
    return any(step.kind == RECORDS or has_records(step.steps) for step in steps)


def _kind(field: WireField) -> int:
    """What a field is read as, JUMP for one of fixed size whose value no plan reads."""
    if field.type == "STRUCT":
        return STRUCTURE
    if field.enum == _ERROR_CODE and field.type == "INT16":
        return ERROR_CODE
    if is_string(field.type):
        return TOPIC if field.entity == "topicName" else STRING
    if is_records(field.type):
        return RECORDS
    if field.type.endswith("BYTES"):
        return BYTES
    if field.name == "topic_id" and field.type == "UUID":
        return TOPIC_ID
    return FIXED_KINDS.get(field.type, JUMP)


def _quoted(value: Any) -> str:
    """The JSON text of a name or of a default value."""
    if isinstance(value, str) and value.isascii() and value.isidentifier():
        return f'"{value}"'
    if value is None:
        return "null"
    if type(value) is int:
        return str(value)
    from json import dumps

    return dumps(value, ensure_ascii=False, separators=(",", ":"), default=bytes.decode)
