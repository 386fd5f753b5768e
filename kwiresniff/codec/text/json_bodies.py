"""Bodies as JSON text straight from bytes, by a plan: ``-o jsonl`` and ``export`` take 2.6 times as long from dicts.

Every reader here is given a position that is not beyond the end of the frame and returns the one behind what it has
read, or -1 to say that this body is not for it. Reading past the end raises IndexError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, final

from librt.strings import BytesWriter

from kwiresniff.base.body_members import UNKNOWN_TAGS
from kwiresniff.base.json_text import write_number, write_text
from kwiresniff.codec.body_reader import BodyReader, int16, int32
from kwiresniff.codec.plan import (
    BOOLEAN,
    BYTES,
    CONSTANT,
    ERROR_CODE,
    INT32,
    INT64,
    RECORDS,
    STRUCTURE,
    TAG_SECTION,
    TOPIC,
    TOPIC_ID,
    UUID,
    Step,
)
from kwiresniff.codec.primitives import uuid_text
from kwiresniff.codec.record_limits import RecordBudget
from kwiresniff.codec.text.json_batches import RecordSetWriter
from kwiresniff.codec.text.json_records import hand_over
from kwiresniff.errors import DecodeError

if TYPE_CHECKING:
    from mypy_extensions import i64

_UNKNOWN: Final = b'"%s":' % UNKNOWN_TAGS.encode()
#: Room for text beyond this is not kept for the next body.
KEPT_BYTES: Final = 1 << 20


@final
class BodyWriter(BodyReader):
    """Writes the JSON text of bodies; ``encode`` that of values beyond ASCII. ``is_internal`` says of a topic id that
    its records are opened elsewhere.
    """

    def __init__(self, encode: Callable[[Any], bytes], is_internal: Callable[[str], bool]) -> None:
        super().__init__()
        self.encode = encode
        self.is_internal = is_internal
        self.out = BytesWriter()
        self.record_sets = RecordSetWriter(self.out, encode)
        self.budget: RecordBudget | None = None
        self.pieces: list[bytes] = []
        self._longest = 0  # the most that has been in ``out``

    def text(
        self, steps: list[Step], frame: bytes, offset: i64, errors: list[tuple[str, int]] | None = None
    ) -> list[bytes] | None:
        """The JSON text of the body from ``offset`` on, with where it ends in ``pos``; None for one with anything
        unusual but bytes behind it. An error code is nothing unusual where ``errors`` gets its path and itself.
        """
        if max(self._longest, len(self.out)) > KEPT_BYTES:
            self.out = BytesWriter()
            self.record_sets = RecordSetWriter(self.out, self.encode)
            self._longest = 0
        else:
            self.out.truncate(0)
        self.pieces = []
        self.begin(frame, errors)
        self.budget = None
        try:
            end: i64 = self._structure(steps, offset)
        except (IndexError, UnicodeDecodeError, DecodeError):
            return None
        if end < 0 or end > len(frame):
            return None
        self.pos = end
        hand_over(self.out, self.pieces)
        for piece in self.pieces:
            self._longest = max(self._longest, len(piece))
        return self.pieces

    def _structure(self, steps: list[Step], pos: i64) -> i64:
        out = self.out
        frame = self.frame
        unknown: list[tuple[i64, bytes]] | None = None
        for step in steps:
            out.write(step.lead)
            kind: i64 = step.kind
            if kind == CONSTANT:
                continue
            if step.array:
                pos = self._array(step, pos)
            elif kind == INT32:
                write_number(out, int32(frame, pos))
                pos += 4
            elif kind == ERROR_CODE:
                code = int16(frame, pos)
                if not code:
                    out.append(48)
                elif self.errors is not None:
                    self.errors.append((step.name, code))
                    write_number(out, code)
                else:
                    return -1
                pos += 2
            elif kind == STRUCTURE:
                first: i64 = self.error_count()
                pos = self._nullable_structure(step, pos) if step.nullable else self._structure(step.steps, pos)
                if pos >= 0 and self.error_count() > first:
                    self.place_errors(first, step.name)
            elif kind == TAG_SECTION:
                if frame[pos]:
                    unknown = self.unknown_tags(step, pos)
                    pos = self.pos if unknown is not None else -1
                else:
                    pos += 1
            else:
                pos = self._value(step, kind, pos)
            if pos < 0:
                return -1
        if unknown is not None:
            self._add_unknown(unknown, steps[-1].lead == b"{}")
        return pos

    def _add_unknown(self, fields: list[tuple[i64, bytes]], alone: bool) -> None:
        """Writes unknown tagged fields into the structure just closed, which is empty with ``alone``."""
        out = self.out
        out.truncate(len(out) - 1)
        out.write(_UNKNOWN if alone else b"," + _UNKNOWN)
        lead = b'{"'
        for tag, raw in fields:
            out.write(lead)
            write_number(out, tag)
            out.write(b'":')
            self._bytes(raw, 0, len(raw))
            lead = b',"'
        out.write(b"}}")

    def _bytes(self, data: bytes, start: i64, stop: i64) -> None:
        """Bytes: text where they are UTF-8."""
        out = self.out
        size = len(out)
        if not write_text(out, data, start, stop):
            out.truncate(size)
            out.write(self.encode(data[start:stop]))

    def _value(self, step: Step, kind: i64, pos: i64) -> i64:
        """A single value, whether a field or an element of an array."""
        out = self.out
        if kind <= INT64 and kind >= BOOLEAN:
            number: i64 = self.number(kind, pos)
            if kind != BOOLEAN:
                write_number(out, number)
            else:
                out.write(b"true" if number else b"false")
            return self.pos
        if kind in (UUID, TOPIC_ID):
            return self._uuid(kind, pos)
        if kind == STRUCTURE:
            return self._nullable_structure(step, pos)
        return self._sized(step, kind, pos)

    def _nullable_structure(self, step: Step, pos: i64) -> i64:
        mark: i64 = self.frame[pos]
        if mark == 1:
            return self._structure(step.steps, pos + 1)
        self.out.write(b"null")
        return pos + 1 if mark == step.null else -1

    def _uuid(self, kind: i64, pos: i64) -> i64:
        if pos + 16 > len(self.frame):
            return -1
        text = uuid_text(self.frame[pos : pos + 16])
        if kind == TOPIC_ID and self.is_internal(text):
            return -1
        out = self.out
        out.append(34)
        out.write(text.encode())
        out.append(34)
        return pos + 16

    def _sized(self, step: Step, kind: i64, pos: i64) -> i64:
        """A string, bytes or a record set, behind its length."""
        out = self.out
        frame = self.frame
        length: i64 = self.length_of(step, pos)
        pos = self.pos
        if length < 0:
            if length == -1:
                out.write(b"null")
            return pos if length == -1 else -1
        stop: i64 = pos + length
        if kind == RECORDS:
            if self.budget is None:
                self.budget = RecordBudget(len(frame))
            return stop if self.record_sets.write(frame, pos, stop, self.budget, self.pieces) else -1
        if kind == TOPIC and self.starts_like_internal(pos, length):
            return -1
        if kind == BYTES:
            self._bytes(frame, pos, stop)
            return stop
        if step.explains and length and self.quotes_secret(pos, stop):
            return -1
        size = len(out)
        if not write_text(out, frame, pos, stop):
            out.truncate(size)
            out.write(self.encode(frame[pos:stop].decode()))
        return stop

    def _array(self, step: Step, pos: i64) -> i64:
        out = self.out
        count: i64 = self.count_of(step, pos)
        pos = self.pos
        if count < 0:
            if count == -1:
                out.write(b"null")
            return pos if count == -1 else -1
        out.append(91)
        kind: i64 = step.kind
        known: i64 = self.error_count()
        index: i64 = 0
        while index < count:
            if index:
                out.append(44)
            if kind == STRUCTURE:
                pos = self._structure(step.steps, pos)
            elif kind == ERROR_CODE:
                return -1
            else:
                pos = self._value(step, kind, pos)
            if pos < 0:
                return -1
            if self.errors is not None and len(self.errors) > known:
                known = self.place_errors(known, f"{step.name}[{index}]")
            index += 1
        out.append(93)
        return pos
