"""A quick scan for the error codes of responses: ``stats`` takes 1.25 times as long with the scanners alone.

Most responses hold none. It finds the sizes of record sets, too. What it passes
over, step by step, is what ``kwiresniff.session.record_stripper`` passes over in a response that comes in pieces.

Written to be compiled: interpreted, the scanners that are generated from the definitions are faster. Like them it reads
as far as the last error code can be. It is sure or it says so: a tag section that is not empty, a null where none may
be, a count or length that does not fit all mean that the scanner has to look.
"""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING, Final

from kwiresniff.base.fastint import i16, i32
from kwiresniff.codec.field_layout import (
    STRING_LENGTH,
    check_nesting,
    is_records,
    length_prefix,
    may_be_null,
    regular,
    tagged,
)
from kwiresniff.errors import SchemaError
from kwiresniff.schema.types import MessageVersion, WireField
from kwiresniff.schema.wire_types import FIXED

if TYPE_CHECKING:
    from mypy_extensions import i64

#: More entries or codes than that are the scanner's business, which counts all of a message.
MAX_ENTRIES: Final = 1 << 20
MAX_CODES: Final = 1 << 12

JUMP: Final = 0  # ``size`` bytes
CODE: Final = 1  # an error code, an INT16
SIZED_16: Final = 2  # an INT16 length and as many bytes
SIZED_32: Final = 3  # the same with an INT32
SIZED_COMPACT: Final = 4  # the same with an UNSIGNED_VARINT of length + 1
ARRAY_32: Final = 5  # an INT32 count and as many times what is ``inside``
ARRAY_COMPACT: Final = 6  # the same with an UNSIGNED_VARINT of count + 1
TAGS: Final = 7  # a tag section, which must be empty
OPTIONAL: Final = 8  # an INT8: 1 and what is ``inside``, or -1


class ScanStep:
    """One part of a message to pass over, by its ``kind``. ``nullable`` says whether a length or count may stand for
    null, ``records`` that it is a record set, ``size`` that the length of that is wanted.
    """

    def __init__(
        self,
        kind: int,
        size: int = 0,
        nullable: bool = False,
        inside: list[ScanStep] | None = None,
        *,
        records: bool = False,
    ) -> None:
        self.kind: i64 = kind
        self.size: i64 = size
        self.nullable = nullable
        self.records = records
        self.inside: list[ScanStep] = inside if inside is not None else []


class Skimmer:
    """A quick search for error codes: ``codes(frame, body_offset)``."""

    def __init__(self, steps: list[ScanStep]) -> None:
        self._steps = steps

    def codes(self, data: bytes, offset: int) -> list[int] | None:
        """The error codes that are not zero, in wire order; None where it is not certain that the body fits, so that a
        scanner has to look.
        """
        end: i64 = len(data)
        start: i64 = offset
        found: list[int] = []
        return found if 0 <= _pass(self._steps, data, start, end, found) <= end else None


def skimmer(message: MessageVersion, leaves: Set[str]) -> Skimmer | None:
    """The skimmer for error codes, the leaves whose name or enumeration is in ``leaves``; None where they are not
    plain INT16 fields. Raises SchemaError for a definition that nests too deep."""
    check_nesting(message)
    maker = _Maker(message.flexible, leaves)
    fields = regular(message.fields)
    codes = [index for index, field in enumerate(fields) if maker.holds_code(field)]
    if any(maker.holds_code(field) for field in tagged(message.fields)):
        steps = maker.structure(message.fields)
    else:
        steps = maker.fields(fields[: codes[-1] + 1] if codes else [])
    return None if maker.odd else Skimmer(steps)


def whole(message: MessageVersion) -> list[ScanStep] | None:
    """Steps over all of a message, to its last byte; None where it nests too deep."""
    try:
        check_nesting(message)
    except SchemaError:
        return None
    return _Maker(message.flexible, frozenset()).structure(message.fields)


def weigher(message: MessageVersion) -> Skimmer | None:
    """The reader of the sizes in bytes of all record sets that are not empty; None where the
    definition nests too deep.
    """
    check_nesting(message)
    return Skimmer(_Maker(message.flexible, frozenset(), weighs=True).structure(message.fields))


class _Maker:
    def __init__(self, flexible: bool, leaves: Set[str], *, weighs: bool = False) -> None:
        self.flexible = flexible
        self.leaves = leaves
        self.weighs = weighs
        self.odd = False  # a code is something else than an INT16

    def is_code(self, field: WireField) -> bool:
        return field.type != "STRUCT" and (field.name in self.leaves or field.enum in self.leaves)

    def holds_code(self, field: WireField) -> bool:
        return self.is_code(field) or any(self.holds_code(inner) for inner in field.fields)

    def structure(self, fields: tuple[WireField, ...]) -> list[ScanStep]:
        steps = self.fields(regular(fields))
        return [*steps, ScanStep(TAGS)] if self.flexible else steps

    def fields(self, fields: list[WireField]) -> list[ScanStep]:
        steps: list[ScanStep] = []
        for field in fields:
            for step in self.steps(field):
                if step.kind == JUMP and steps and steps[-1].kind == JUMP:
                    steps[-1] = ScanStep(JUMP, int(steps[-1].size) + int(step.size))
                else:
                    steps.append(step)
        return steps

    def steps(self, field: WireField) -> list[ScanStep]:
        if self.is_code(field) and (field.array or field.type != "INT16"):
            self.odd = True
        if field.array:
            entry = WireField(field.name, field.type, nullable="NULLABLE" in field.type, fields=field.fields)
            kind = ARRAY_COMPACT if self.flexible else ARRAY_32
            return [ScanStep(kind, nullable=field.nullable, inside=self.steps(entry))]
        if field.type == "STRUCT":
            inside = self.structure(field.fields)
            return [ScanStep(OPTIONAL, inside=inside)] if field.nullable else inside
        if field.type in FIXED:
            return [ScanStep(CODE) if self.is_code(field) else ScanStep(JUMP, FIXED[field.type].size)]
        prefix = length_prefix(field, self.flexible)
        kind = SIZED_COMPACT if prefix is None else SIZED_16 if prefix is STRING_LENGTH else SIZED_32
        records = is_records(field.type)
        return [ScanStep(kind, int(records and self.weighs), may_be_null(field), records=records)]


def _pass(steps: list[ScanStep], data: bytes, at: i64, end: i64, found: list[int]) -> i64:
    """Where the bytes behind ``steps`` begin, or -1 when it is not certain which error codes there are.

    One long function: it is called for every structure of every response, and a call for each kind of step would cost
    more than the step.
    """
    for step in steps:
        kind: i64 = step.kind
        if kind == JUMP:
            at += step.size
            continue
        if at >= end:
            return -1
        if kind == CODE:
            if at + 2 > end:
                return -1
            if data[at] or data[at + 1]:
                if len(found) == MAX_CODES:
                    return -1
                found.append(i16(data, at))
            at += 2
            continue
        if kind == TAGS:
            if data[at]:
                return -1
            at += 1
            continue
        if kind == OPTIONAL:
            mark: i64 = data[at]
            at += 1
            if mark == 1:
                at = _pass(step.inside, data, at, end, found)
                if at < 0:
                    return -1
            elif mark != 255:
                return -1
            continue
        count: i64 = 0
        if kind == SIZED_16:
            if at + 2 > end:
                return -1
            count = i16(data, at)
            at += 2
        elif kind == SIZED_COMPACT or kind == ARRAY_COMPACT:  # noqa: SIM109 - two comparisons when compiled
            shift: i64 = 0
            while True:
                if at >= end or shift > 28:
                    return -1
                byte: i64 = data[at]
                at += 1
                count |= (byte & 0x7F) << shift
                if byte < 0x80:
                    break
                shift += 7
            count -= 1
        else:
            if at + 4 > end:
                return -1
            count = i32(data, at)
            at += 4
        if count < 0:
            if count < -1 or not step.nullable:
                return -1
            continue
        if count > end - at:  # an entry takes a byte at least
            return -1
        if kind < ARRAY_32:
            at += count
            if step.size and count:
                if len(found) == MAX_CODES:
                    return -1
                found.append(count)
            continue
        if count > MAX_ENTRIES:
            return -1
        inside = step.inside
        while count > 0:
            at = _pass(inside, data, at, end, found)
            if at < 0 or at > end:
                return -1
            count -= 1
    return at
