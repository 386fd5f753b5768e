"""Elements of arrays jumped over: how long each is, and whether there is anything in it to report.

The annotating dissector shows a few elements of an array and counts the others. A message may have as many of them as
it has bytes, and nodes for all would take twenty times as long as reading ordinary traffic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from kwiresniff.base.fastint import i16, i32
from kwiresniff.codec.field_layout import (
    is_records,
    is_string,
    length_prefix,
    may_be_null,
    null_mark,
    regular,
    single,
    smallest_size,
    smallest_struct,
    tagged,
)
from kwiresniff.codec.primitives import MAX_TAGS
from kwiresniff.schema.types import MessageVersion, WireField
from kwiresniff.schema.wire_types import FIXED

if TYPE_CHECKING:
    from mypy_extensions import i64

_JUMP: Final = 0  # ``size`` bytes, of ``nodes`` fields
_CODE: Final = 1  # ``size`` bytes that are all zero unless something went wrong
_STRUCT: Final = 2
_TAGS: Final = 3  # a tag section; ``inside`` are the fields that are known
_TEXT: Final = 4  # from here on what has a length or a count
_BYTES: Final = 5
_RECORDS: Final = 6
_ARRAY: Final = 7

#: Bytes that the length or the count takes on the wire.
_VARINT: Final = 0
_SHORT: Final = 2

#: What may be in an element, as ``ElementSkipper.run`` is asked for; see there.
FAILED: Final = 1
GARBLED: Final = 2
LOADED: Final = 4
RECORDED: Final = 8

#: Elements whose steps are kept; all definitions together have about two thousand arrays.
_KEPT: Final = 4096


@final
class SkipStep:
    """One part of an element to jump over, by its ``kind``; ``null`` is the mark of a null structure, -1 where none may
    be null.
    """

    def __init__(self, kind: i64, size: i64 = 0) -> None:
        self.kind: i64 = kind
        self.size: i64 = size
        self.nodes: i64 = 1
        self.tag: i64 = -1
        self.null: i64 = -1
        self.nullable = False
        self.inside: list[SkipStep] = []


#: The steps of elements by the fields of their structure, which are kept so that no others are taken for them.
_steps: dict[int, tuple[tuple[WireField, ...], SkipStep]] = {}


def steps_of(entry: WireField, flexible: bool) -> SkipStep:
    """The step that jumps over one element of an array (``field_layout.single``)."""
    if not entry.fields:
        return _single(entry._replace(name=""), flexible)
    key = id(entry.fields) << 1 | flexible
    kept = _steps.get(key)
    if kept is None:
        if len(_steps) >= _KEPT:
            _steps.clear()
        kept = _steps[key] = entry.fields, _single(entry, flexible)
    return kept[1]


def _single(field: WireField, flexible: bool) -> SkipStep:
    """A value that is no array."""
    if field.type == "STRUCT":
        step = SkipStep(_STRUCT)
        step.inside = _structure(field.fields, flexible)
        if field.nullable:
            step.null = null_mark(field) & 0xFF
    elif field.type in FIXED:
        step = SkipStep(_CODE if field.name.endswith("error_code") else _JUMP, FIXED[field.type].size)
    else:
        prefix = length_prefix(field._replace(array=False), flexible)
        kind = _TEXT if is_string(field.type) else _RECORDS if is_records(field.type) else _BYTES
        step = SkipStep(kind, prefix.size if prefix else _VARINT)
        step.nullable = may_be_null(field)
    return step


def _step(field: WireField, flexible: bool) -> SkipStep:
    if not field.array:
        return _single(field, flexible)
    prefix = length_prefix(field, flexible)
    entry = single(field)
    step = SkipStep(_ARRAY, prefix.size if prefix else _VARINT)
    step.nullable = field.nullable
    step.inside = [_single(entry._replace(name=""), flexible)]
    step.nodes = smallest_size(entry, flexible)
    return step


def _structure(fields: tuple[WireField, ...], flexible: bool) -> list[SkipStep]:
    steps: list[SkipStep] = []
    for field in regular(fields):
        step = _step(field, flexible)
        if step.kind == _JUMP and steps and steps[-1].kind == _JUMP:
            steps[-1].size += step.size
            steps[-1].nodes += 1
        else:
            steps.append(step)
    if flexible:
        section = SkipStep(_TAGS)
        for field in tagged(fields):
            inner = _step(field, flexible)
            inner.tag = field.tag if field.tag is not None else -1
            section.inside.append(inner)
        steps.append(section)
    return steps


@final
class ElementSkipper:
    """Jumps over one element after another of a ``frame``.

    What it says is about the last one: ``end`` is the place behind it, ``nodes`` how many fields it has, itself
    included; ``failed`` whether an error code in it is not zero; ``garbled`` whether a string is not UTF-8; ``loaded``
    whether there are bytes in it that may hold something, ``recorded`` whether there are records.
    """

    def __init__(self, frame: bytes) -> None:
        self._frame = frame
        self._end: i64 = len(frame)
        self._at: i64 = 0
        self.end: i64 = 0
        self.nodes: i64 = 0
        self.failed = False
        self.garbled = False
        self.loaded = False
        self.recorded = False

    def run(self, step: SkipStep, offset: i64, count: int, most: int, found: int) -> int:
        """How many of ``count`` elements from ``offset`` on are skipped until one has anything of what is ``found``.

        That is a sum of ``FAILED`` and the like. They have ``nodes`` fields, ``most`` at the most, and end at ``end``.
        """
        nodes: i64 = 0
        limit: i64 = most
        stops: i64 = found
        number = 0
        while number < count:
            at: i64 = self.skip(step, offset)
            if at < 0 or nodes + self.nodes > limit or self._has(stops):
                break
            nodes += self.nodes
            offset = at
            number += 1
        self.nodes = nodes
        self.end = offset
        return number

    def _has(self, stops: i64) -> bool:
        return (
            (self.failed and stops & FAILED != 0)
            or (self.garbled and stops & GARBLED != 0)
            or (self.loaded and stops & LOADED != 0)
            or (self.recorded and stops & RECORDED != 0)
        )

    def skip(self, step: SkipStep, offset: i64) -> int:
        """The place behind the element at ``offset``; -1 for one that does not read as its definition says."""
        self.nodes = 0
        self.failed = self.garbled = self.loaded = self.recorded = False
        try:
            at = self._value(step, offset)
        except IndexError:
            return -1
        self.end = at
        return at if at <= self._end else -1

    def _value(self, step: SkipStep, at: i64) -> i64:
        kind = step.kind
        if kind == _JUMP:
            self.nodes += step.nodes
            return at + step.size
        if kind == _TAGS:
            if self._frame[at] == 0:
                return at + 1
            return self._tag_section(step, at)
        if kind == _ARRAY:
            return self._array(step, at)
        self.nodes += 1
        if kind == _STRUCT:
            return self._struct(step, at)
        if kind == _CODE:
            stop = at + step.size
            while at < stop:
                if self._frame[at]:
                    self.failed = True
                at += 1
            return at
        return self._sized(step, kind, at)

    def _struct(self, step: SkipStep, at: i64) -> i64:
        if step.null >= 0:
            mark: i64 = self._frame[at]
            at += 1
            if mark == step.null:
                return at
            if mark != 1:
                return -1
        for inner in step.inside:
            at = self._value(inner, at)
            if at < 0:
                return -1
        return at

    def _sized(self, step: SkipStep, kind: i64, at: i64) -> i64:
        length = self._length(step, at)
        at = self._at
        if length <= 0:
            return at if length == 0 or (length == -1 and step.nullable) else -1
        stop = at + length
        if stop > self._end:
            return -1
        if kind == _TEXT:
            if not self.garbled and not self._is_text(at, stop):  # once is enough: an exception takes a microsecond
                self.garbled = True
        elif kind == _BYTES:
            self.loaded = True
        else:
            self.recorded = True
        return stop

    def _is_text(self, at: i64, stop: i64) -> bool:
        text = self._frame[at:stop]
        if text.isascii():
            return True
        try:
            text.decode()
        except UnicodeDecodeError:
            return False
        return True

    def _array(self, step: SkipStep, at: i64) -> i64:
        self.nodes += 1
        count = self._length(step, at)
        at = self._at
        if count <= 0:
            return at if count == 0 or (count == -1 and step.nullable) else -1
        if count * step.nodes > self._end - at:  # as many as there cannot be
            return -1
        (entry,) = step.inside
        if entry.kind == _JUMP:
            self.nodes += count
            return at + count * entry.size
        while count > 0:
            count -= 1
            at = self._value(entry, at)
            if at < 0:
                return -1
        return at

    def _tag_section(self, section: SkipStep, at: i64) -> i64:
        count = self._varint(at)
        if count < 0 or count > MAX_TAGS or count * 2 > self._end - self._at:
            return -1
        while count > 0:
            count -= 1
            tag = self._varint(self._at)
            size = self._varint(self._at) if tag >= 0 else -1
            at = self._at
            stop = at + size
            if size < 0 or stop > self._end:
                return -1
            known: SkipStep | None = None
            for inner in section.inside:
                if inner.tag == tag:
                    known = inner
            if known is None:
                self.nodes += 1
            elif self._value(known, at) != stop:
                return -1
            self._at = stop
        return self._at

    def _length(self, step: SkipStep, at: i64) -> i64:
        """A length or a count, -1 for null; what is less is none. ``_at`` is then behind it."""
        if step.size == _VARINT:
            return self._varint(at) - 1
        self._at = at + step.size
        return i16(self._frame, at) if step.size == _SHORT else i32(self._frame, at)

    def _varint(self, at: i64) -> i64:
        """An UNSIGNED_VARINT of up to 32 bits, -1 for one of more."""
        number: i64 = 0
        shift: i64 = 0
        while shift < 35:
            byte: i64 = self._frame[at]
            at += 1
            number |= (byte & 127) << shift
            if byte < 128:
                self._at = at
                return number if number <= 0xFFFFFFFF else -1
            shift += 7
        return -1


@final
class MessageSkipper:
    """Finds out of whole messages whether they can be decoded, without decoding them."""

    def __init__(self, message: MessageVersion) -> None:
        self._step = steps_of(WireField(message.name, "STRUCT", fields=message.fields), message.flexible)
        self._least: int = smallest_struct(message.fields, message.flexible) if self._step.inside else 0

    def skip(self, frame: bytes, offset: int) -> int:
        """The place behind the message that begins at ``offset``; -1 for bytes that no decoder would take."""
        if len(frame) - offset < self._least:
            return -1
        skipper = ElementSkipper(frame)
        end = skipper.skip(self._step, offset)
        return -1 if skipper.garbled else end


@final
class ContentSkipper:
    """Tells of bytes whether they are one of several messages, each behind its version as an INT16."""

    def __init__(self, formats: list[tuple[int, list[MessageSkipper]]]) -> None:
        """``formats`` are the lowest version of each message and its skippers, in the order of versions."""
        self._formats = formats

    def claims(self, raw: bytes) -> bool:
        """Whether the bytes begin with a version that one of the messages could have."""
        for low, _ in self._formats:  # noqa: SIM110 - compiled, a generator is dear
            if len(raw) >= 2 and i16(raw, 0) >= low:
                return True
        return False

    def fits(self, raw: bytes) -> bool:
        """Whether one of the messages ends where the bytes do; one newer than known may have more at its end."""
        for low, skippers in self._formats:
            at: i64 = i16(raw, 0) - low if len(raw) >= 2 else -1
            if at >= 0:
                is_known = at < len(skippers)
                end = skippers[at if is_known else -1].skip(raw, 2)
                if end == len(raw) or (end >= 0 and not is_known):
                    return True
        return False
