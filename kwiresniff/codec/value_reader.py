"""The decoder: a message read field by field by its definition into plain dicts.

A dict has the fields in wire order, then the tagged fields by tag, those not on the wire with their defaults. Where a
value lies and what is wrong with it, the dissector says.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct, unpack_from
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from kwiresniff.base.body_members import UNKNOWN_TAGS
from kwiresniff.codec import decode_errors
from kwiresniff.codec.body_reader import BodyReader, int16, int32
from kwiresniff.codec.field_layout import (
    MAX_ENTRIES,
    NUMBERS_SHIFT,
    UNALIGNED,
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
from kwiresniff.codec.plan import BOOLEAN, BYTES, FIXED_KINDS, INT64, JUMP, RECORDS, STRING, STRUCTURE, UUID
from kwiresniff.codec.primitives import check_tag_count, read_tags, read_uvarint, reader_of, uuid_text
from kwiresniff.codec.record_limits import RecordBudget
from kwiresniff.codec.tagged_structure import with_tagged
from kwiresniff.errors import SchemaError
from kwiresniff.model import Body, Problem, RecordsMode
from kwiresniff.schema.types import MessageVersion, WireField
from kwiresniff.schema.wire_types import FIXED

if TYPE_CHECKING:
    from mypy_extensions import i64

#: ``body, end = decode(frame, body_offset, issues)``
Decoder: TypeAlias = Callable[[bytes, int, list[Problem]], tuple[Body, int]]
#: ``batches = decode(frame, start, end, mode, issues, budget, unaligned=...)``, see ``records.decode_record_set``.
RecordSetDecoder: TypeAlias = Callable[..., Any]


@final
class _Field:
    """One field of a structure; ``path`` leads to it from the message, ``shift`` is the weight of elements (see
    ``field_layout.NUMBERS_SHIFT``), ``least`` the fewest bytes of one.
    """

    def __init__(self, field: WireField, flexible: bool, path: str) -> None:
        self.field: Final = field
        self.name: Final = field.name
        name = f"{field.name}[]" if field.array else field.name
        self.path: Final = f"{path}.{name}" if path else name
        self.kind: Final[i64] = _kind(field)
        self.array: Final = field.array
        self.null_array: Final = field.array and field.nullable
        self.compact_array: Final = flexible
        self.compact: Final = is_compact(field.type)
        self.short: Final = is_string(field.type)
        entry = single(field) if field.array else field
        self.nullable: Final = may_be_null(entry)
        self.null: Final[i64] = null_mark(entry)
        self.tag: Final[i64] = -1 if field.tag is None else field.tag
        fixed = FIXED.get(field.type)
        self.least: Final[i64] = smallest_size(entry, flexible)
        self.shift: Final[i64] = NUMBERS_SHIFT if fixed is not None else 0
        self.read: Final = reader_of(field.type) if fixed is not None else None
        self.unpack: Final = Struct(f">{fixed.code}").unpack_from if fixed is not None else None
        self.code: Final = fixed.code if fixed is not None else ""
        self.structure: Final = _Structure(field.fields, flexible, self.path) if field.fields else _NO_FIELDS


@final
class _Structure:
    """The fields of a structure: those that are always on the wire, and those with a tag."""

    def __init__(self, fields: tuple[WireField, ...], flexible: bool, path: str) -> None:
        self.path: Final = path
        self.flexible: Final = flexible
        self.regular: Final = [_Field(field, flexible, path) for field in regular(fields)]
        self.tagged: Final = [_Field(field, flexible, path) for field in tagged(fields)]


_NO_FIELDS: Final = _Structure((), False, "")


def message_decoder(
    message: MessageVersion,
    records: RecordsMode = "full",
    record_set_decoder: Callable[[], RecordSetDecoder] | None = None,
) -> Decoder:
    """Returns the decoder of one message, which raises DecodeError alone; ``record_set_decoder`` returns the function
    that opens record sets. Raises SchemaError for an unusable definition.
    """
    check_nesting(message)
    structure = _Structure(message.fields, message.flexible, "")
    opens: RecordSetDecoder | None = None
    if records != "skip" and _holds_records(message.fields):
        if record_set_decoder is None:
            raise SchemaError(f"{message.name} v{message.version} holds record sets, which nothing opens here")
        opens = record_set_decoder()

    def decode(frame: bytes, offset: int, issues: list[Problem]) -> tuple[Body, int]:
        return _ValueReader(frame, issues, records, opens).message(structure, offset)

    return decode


def element_decoder(
    entry: WireField, flexible: bool, records: RecordsMode, opens: RecordSetDecoder
) -> Callable[[bytes, int, int], list[Any]]:
    """Returns ``values = read(frame, offset, count)`` for elements of an array that are known to fit."""
    field = _Field(entry, flexible, "")

    def read(frame: bytes, offset: int, count: int) -> list[Any]:
        reader = _ValueReader(frame, [], records, None if records == "skip" else opens)
        reader.pos = offset
        return [reader.value(field) for _ in range(count)]

    return read


@final
class _ValueReader(BodyReader):
    """Reads one message; ``pos`` is behind what was read last."""

    def __init__(
        self, frame: bytes, issues: list[Problem], records: RecordsMode, opens: RecordSetDecoder | None
    ) -> None:
        super().__init__()
        self.begin(frame)
        self.end: i64 = len(frame)
        self.issues = issues
        self.records: RecordsMode = records
        self.opens = opens
        self.budget: RecordBudget | None = None

    def message(self, structure: _Structure, offset: i64) -> tuple[Body, int]:
        """The body at an offset, and where it ends."""
        self.pos = offset
        try:
            body = self.fields(structure)
        except IndexError:
            raise decode_errors.truncated() from None
        if self.pos > self.end:
            raise decode_errors.truncated("", self.pos - self.end)
        return body, self.pos

    def fields(self, structure: _Structure) -> Body:
        """A structure."""
        found: Body = {}
        for field in structure.regular:
            found[field.name] = self.elements(field) if field.array else self.value(field)
        if not structure.flexible:
            return found
        for field in structure.tagged:
            found[field.name] = default_value(field.field)
        count: i64 = self.frame[self.pos]
        self.pos += 1
        return self.tag_section(structure, found, count) if count else found

    def tag_section(self, structure: _Structure, found: Body, count: i64) -> Body:
        """The structure with its tagged fields that are on the wire; ``count`` is the first byte of their number."""
        self.take(count)
        if not structure.tagged:
            unknown, self.pos = read_tags(self.frame, self.pos, count)
            if unknown:
                found[UNKNOWN_TAGS] = unknown
            return found
        self.pos -= 1
        count = self.length_prefix()
        path = f"{structure.path}.{UNKNOWN_TAGS}" if structure.path else UNKNOWN_TAGS
        check_tag_count(count, self.end - self.pos, path)
        while count:
            count -= 1
            tag: i64 = self.length_prefix()
            size: i64 = self.length_prefix()
            stop: i64 = self.pos + size
            if stop > self.end:
                raise decode_errors.truncated(structure.path, stop - self.end)
            for field in structure.tagged:
                if field.tag == tag:
                    found = with_tagged(found, field.name, self.elements(field) if field.array else self.value(field))
                    if self.pos != stop:
                        used: i64 = self.pos - stop + size
                        raise decode_errors.bad_tag_size(field.path, size, used, self.end - self.pos)
                    break
            else:
                found.setdefault(UNKNOWN_TAGS, {})[tag] = self.frame[self.pos : stop]
                self.pos = stop
        return found

    def take(self, count: i64) -> None:
        """Takes so many values off those that a message may be made of."""
        self.left -= count
        if self.left < 0:
            raise decode_errors.too_many_entries(MAX_ENTRIES)

    def length_prefix(self) -> i64:
        """An UNSIGNED_VARINT."""
        byte: i64 = self.frame[self.pos]
        if byte < 128:
            self.pos += 1
            return byte
        number, self.pos = read_uvarint(self.frame, self.pos)
        return number

    def value(self, field: _Field) -> Any:
        """A single value, a field or an element of an array."""
        kind = field.kind
        if kind == STRUCTURE:
            if field.nullable:
                byte: i64 = self.frame[self.pos]
                self.pos += 1
                mark: i64 = byte - 256 if byte > 127 else byte
                if mark == field.null:
                    return None
                if mark != 1:
                    raise decode_errors.bad_mark(mark, field.null, field.path)
            return self.fields(field.structure)
        if kind >= BOOLEAN and kind <= INT64:
            number: i64 = self.number(kind, self.pos)
            return number != 0 if kind == BOOLEAN else number
        if kind == UUID:
            raw = self.frame[self.pos : self.pos + 16]
            if len(raw) < 16:
                raise decode_errors.truncated()
            self.pos += 16
            return uuid_text(raw)
        return self.other(field) if kind == JUMP else self.sized(field, kind)

    def other(self, field: _Field) -> Any:
        """A value of fixed size that is no integer."""
        size = field.least
        if self.pos + size > self.end:
            raise decode_errors.truncated()
        assert field.unpack is not None
        (value,) = field.unpack(self.frame, self.pos)
        self.pos += size
        return value if field.read is None else field.read(value)

    def sized(self, field: _Field, kind: i64) -> Any:
        """A string, byte array or record set: its length, then so many bytes."""
        length: i64 = 0
        if field.compact:
            length = self.length_prefix() - 1
            if length < 0 and not field.nullable:
                raise decode_errors.null_value(field.path)
        else:
            if field.short:
                length = int16(self.frame, self.pos)
                self.pos += 2
            else:
                length = int32(self.frame, self.pos)
                self.pos += 4
            if length < -1 or (length < 0 and not field.nullable):
                raise decode_errors.bad_length(length, field.path)
        if length < 0:
            return None
        start: i64 = self.pos
        stop: i64 = start + length
        if stop > self.end:
            raise decode_errors.truncated("", stop - self.end)
        self.pos = stop
        if kind == RECORDS:
            return self.record_set(field, start, stop)
        raw = self.frame[start:stop]
        if kind == BYTES:
            return raw
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise decode_errors.invalid_utf8() from None

    def record_set(self, field: _Field, start: i64, stop: i64) -> Any:
        """The batches between two positions."""
        if self.opens is None:
            return {"size_bytes": stop - start}
        if self.budget is None:
            self.budget = RecordBudget(len(self.frame))
        unaligned = field.name == UNALIGNED
        return self.opens(self.frame, start, stop, self.records, self.issues, self.budget, unaligned=unaligned)

    def elements(self, field: _Field) -> list[Any] | None:
        """An array."""
        count: i64 = 0
        if field.compact_array:
            count = self.length_prefix() - 1
            if count < 0 and not field.null_array:
                raise decode_errors.null_value(field.path)
        else:
            count = int32(self.frame, self.pos)
            self.pos += 4
        left: i64 = self.end - self.pos
        if count < -1 or (count < 0 and not field.null_array) or count * field.least > left:
            raise decode_errors.bad_count(count, left, field.path)
        if count < 0:
            return None
        self.take(count >> field.shift)
        if field.shift and field.read is None and count:
            values = unpack_from(f">{count}{field.code}", self.frame, self.pos)
            self.pos += count * field.least
            return list(values)
        found: list[Any] = []
        while count > 0:
            count -= 1
            found.append(self.value(field))
        return found


def _holds_records(fields: tuple[WireField, ...]) -> bool:
    """Whether any of the fields, or one inside them, is a record set."""
    return any(is_records(field.type) or _holds_records(field.fields) for field in fields)


def _kind(field: WireField) -> int:
    """The kind of a field; JUMP for a fixed-size type that is no integer."""
    if field.type == "STRUCT":
        return STRUCTURE
    if field.type in FIXED:
        return FIXED_KINDS.get(field.type, JUMP)
    if is_string(field.type):
        return STRING
    return RECORDS if is_records(field.type) else BYTES
