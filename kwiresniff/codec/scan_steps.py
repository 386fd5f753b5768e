"""The steps by which a body is passed over: what lies there, how long it is, and what of it is asked for.

``kwiresniff.codec.body_scanner`` follows them, and ``kwiresniff.session.record_stripper`` in a response that comes in
pieces. They are made from definitions; fields of fixed size that nobody asks for are one step.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, final

from kwiresniff.codec.field_layout import (
    NUMBERS_SHIFT,
    check_nesting,
    is_records,
    is_string,
    length_prefix,
    may_be_null,
    null_mark,
    regular,
    single,
    smallest_size,
    tagged,
)
from kwiresniff.codec.primitives import reader_of
from kwiresniff.errors import SchemaError
from kwiresniff.schema.types import MessageVersion, WireField
from kwiresniff.schema.wire_types import BY_GUIDE, FIXED

if TYPE_CHECKING:
    from mypy_extensions import i64

JUMP: Final = 0  # ``size`` bytes, of ``nodes`` fields
VALUE: Final = 1  # ``size`` bytes that somebody looks at
OPTIONAL: Final = 2  # a mark, then what is ``inside`` unless it says null
TAGS: Final = 3  # a tag section; ``inside`` are the fields that are looked into
ARRAY: Final = 4  # from here on what has a length or a count, which takes ``size`` bytes
TEXT: Final = 5  # a string that is looked at
BYTES: Final = 6
RECORDS: Final = 7
#: One field of a tag section, by its ``tag``: what is ``inside``.
TAGGED: Final = 8

#: ``size`` of a length that is an UNSIGNED_VARINT of one more, and of an INT16; any other is an INT32.
VARINT: Final = 0
SHORT: Final = 2

#: Elements whose steps are kept; all definitions together have about two thousand arrays.
_KEPT: Final = 4096


@final
class ScanStep:
    """One part of a body to pass over, by its ``kind``.

    ``nullable`` says whether a length or count may stand for null; ``null`` is the mark of a structure that is null.
    ``name`` is what a value is found under, empty where nobody asks for it; ``read`` makes the value of fixed size from
    its bytes. ``is_code`` marks a value that is zero unless something went wrong. Of an array ``least`` is the fewest
    bytes of an element, and one of 2 to the power of ``shift`` elements counts.
    """

    def __init__(self, kind: i64, size: i64 = 0) -> None:
        self.kind: i64 = kind
        self.size: i64 = size
        self.nodes: i64 = 1
        self.tag: i64 = -1
        self.null: i64 = 0
        self.least: i64 = 1
        self.shift: i64 = 0
        self.nullable = False
        self.is_code = False
        self.name = ""
        self.read: Callable[[bytes], Any] | None = None
        self.inside: list[ScanStep] = []


def leaf_steps(message: MessageVersion, leaves: Set[str]) -> list[ScanStep]:
    """The steps up to the last of the leaves whose name, enumeration or entity is in ``leaves``.

    Raises SchemaError for a definition that nests too deep.
    """
    check_nesting(message)
    maker = _Maker(message.flexible, leaves)
    fields = message.fields
    if any(maker.reads(field) for field in tagged(fields)):
        return maker.structure(fields)
    regulars = regular(fields)
    last = max((index for index, field in enumerate(regulars) if maker.reads(field)), default=-1)
    return maker.fields(regulars[: last + 1])


def record_set_steps(message: MessageVersion) -> list[ScanStep]:
    """The steps over all of a message, with the size in bytes of every record set that is not empty as its value.

    Raises SchemaError for a definition that nests too deep.
    """
    check_nesting(message)
    return _Maker(message.flexible, frozenset(), weighs=True).structure(message.fields)


def message_steps(message: MessageVersion) -> list[ScanStep]:
    """The steps over all of a message, strings, tagged fields and error codes looked at."""
    return _Maker(message.flexible).structure(message.fields)


#: The steps of elements by the fields of their structure, which are kept so that no others are taken for them.
_steps: dict[int, tuple[tuple[WireField, ...], list[ScanStep]]] = {}


def element_steps(entry: WireField, flexible: bool) -> list[ScanStep]:
    """The steps over one element of an array (``field_layout.single``), looked at as in ``message_steps``."""
    if not entry.fields:
        return _Maker(flexible).single(entry)
    key = id(entry.fields) << 1 | flexible
    kept = _steps.get(key)
    if kept is None:
        if len(_steps) >= _KEPT:
            _steps.clear()
        kept = _steps[key] = entry.fields, _Maker(flexible).single(entry)
    return kept[1]


class _Maker:
    """Makes steps. Without ``leaves`` everything is looked at that might be wrong, and nothing has a name."""

    def __init__(self, flexible: bool, leaves: Set[str] | None = None, *, weighs: bool = False) -> None:
        self.flexible = flexible
        self.leaves = leaves
        self.weighs = weighs

    def wants(self, field: WireField) -> bool:
        """Whether the field itself, a leaf, is asked for."""
        if self.leaves is None or field.type == "STRUCT" or is_records(field.type):
            return False
        return not self.leaves.isdisjoint((field.name, field.enum or field.name, field.entity or field.name))

    def reads(self, field: WireField) -> bool:
        """Whether the field or anything inside it is asked for."""
        return self.wants(field) or any(self.reads(inner) for inner in field.fields)

    def structure(self, fields: tuple[WireField, ...]) -> list[ScanStep]:
        """The steps of a structure; tagged fields are looked into where one of them is asked for, or all are."""
        steps = self.fields(regular(fields))
        if not self.flexible:
            return steps
        section = ScanStep(TAGS)
        late = tagged(fields)
        if self.leaves is None or any(self.reads(field) for field in late):
            for field in late:
                inner = ScanStep(TAGGED)
                inner.tag = field.tag if field.tag is not None else -1
                inner.inside = self.steps(field)
                section.inside.append(inner)
        return [*steps, section]

    def fields(self, fields: list[WireField]) -> list[ScanStep]:
        """The steps of fields one after the other."""
        steps: list[ScanStep] = []
        for field in fields:
            steps += self.steps(field)
        return joined(steps)

    def steps(self, field: WireField) -> list[ScanStep]:
        """The steps of one field."""
        if not field.array:
            return self.single(field)
        prefix = length_prefix(field, self.flexible)
        entry = single(field)
        step = ScanStep(ARRAY, prefix.size if prefix else VARINT)
        step.nullable = field.nullable
        step.inside = self.single(entry)
        step.least = smallest_size(entry, self.flexible)
        step.shift = NUMBERS_SHIFT if field.type in FIXED else 0
        return [step]

    def single(self, field: WireField) -> list[ScanStep]:
        """The steps of a value that is no array."""
        if field.type == "STRUCT":
            return self.struct(field)
        wanted = self.wants(field)
        is_code = self.leaves is None and field.name.endswith("error_code")
        if field.type in FIXED:
            step = ScanStep(VALUE if wanted or is_code else JUMP, FIXED[field.type].size)
            step.is_code = is_code
            if wanted:
                step.read = _reader(field.type)
        else:
            prefix = length_prefix(field, self.flexible)
            kind = BYTES
            if is_records(field.type):
                kind = RECORDS
                wanted = self.weighs
            elif is_string(field.type) and (wanted or self.leaves is None):
                kind = TEXT
            step = ScanStep(kind, prefix.size if prefix else VARINT)
            step.nullable = may_be_null(field)
        if wanted:
            step.name = field.name
        return [step]

    def struct(self, field: WireField) -> list[ScanStep]:
        """The steps of a structure, which is a field itself where fields are counted."""
        inside = self.structure(field.fields)
        if not field.nullable:
            return inside if self.leaves is not None else joined([ScanStep(JUMP), *inside])
        step = ScanStep(OPTIONAL)
        step.null = null_mark(field) & 0xFF
        step.inside = inside
        return [step]


def joined(steps: list[ScanStep]) -> list[ScanStep]:
    """Steps with jumps that follow each other made one."""
    found: list[ScanStep] = []
    for step in steps:
        if step.kind == JUMP and found and found[-1].kind == JUMP:
            last = found.pop()
            both = ScanStep(JUMP, last.size + step.size)
            both.nodes = last.nodes + step.nodes
            found.append(both)
        else:
            found.append(step)
    return found


def _reader(wire_type: str) -> Callable[[bytes], Any]:
    """What makes the value of a type of fixed size from its bytes, big-endian; the decoder's value."""
    unpack = Struct(f">{FIXED[wire_type].code}").unpack
    if not BY_GUIDE[wire_type].reader:
        return lambda raw: unpack(raw)[0]
    convert = reader_of(wire_type)
    assert convert is not None
    return lambda raw: convert(unpack(raw)[0])


def stripping_steps(message: MessageVersion) -> list[ScanStep] | None:
    """The steps over all of a message to its record sets; None where it has none, or nests too deep."""
    try:
        check_nesting(message)
    except SchemaError:
        return None
    steps = _Maker(message.flexible, frozenset()).structure(message.fields)
    return steps if has_records(steps) else None


def has_records(steps: list[ScanStep]) -> bool:
    """Whether there is a record set among steps or inside them."""
    return any(step.kind == RECORDS or has_records(step.inside) for step in steps)
