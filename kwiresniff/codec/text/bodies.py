"""Bodies as JSON text, by a plan.

Every reader here is given a position that is not beyond the end of the frame and returns the one behind what it has
read, or -1 to say that this body is not for it. Reading past the end raises IndexError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, final

import google_crc32c
from librt.strings import BytesWriter, read_i64_be

from kwiresniff.codec.compression import codec_name, decompress
from kwiresniff.codec.primitives import uuid_text
from kwiresniff.codec.record_limits import Budget
from kwiresniff.codec.records import decode_record_set
from kwiresniff.codec.text.plan import (
    BOOLEAN,
    BYTES,
    CONSTANT,
    ERROR_CODE,
    INT8,
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRUCTURE,
    TAG_SECTION,
    TOPIC,
    TOPIC_ID,
    UINT16,
    UINT32,
    UUID,
    Step,
)
from kwiresniff.codec.text.records import RecordWriter
from kwiresniff.errors import DecodeError
from kwiresniff.jsontext import int16, int32, write_number, write_text
from kwiresniff.model import Problem

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Elements of arrays in one message that are written here; more are counted by the decoders.
MAX_ELEMENTS: Final = 100_000
#: A piece of text is handed over when it is as long as this. Larger ones would have to get their memory from the system
#: each time, which takes as long as filling it.
PIECE_BYTES: Final = 64 << 10
#: Room for text beyond this is not kept for the next body.
KEPT_BYTES: Final = 1 << 20

#: The layout of a batch (``kwiresniff.codec.batch``) as constants of this module, which cost nothing when compiled.
HEADER_SIZE: Final = 61
OVERHEAD: Final = 12
MAGIC_AT: Final = 16
ATTRIBUTES_AT: Final = 21
CODEC: Final = 7
APPEND_TIME: Final = 0x08
IS_TRANSACTIONAL: Final = 0x10
IS_CONTROL: Final = 0x20
COMPRESSION: Final = [f',"compression":"{codec_name(codec)}"'.encode() for codec in range(CODEC + 1)]


@final
class BodyWriter:
    """Writes one body after another.

    ``encode`` gives the JSON text of a value, for what is not plain ASCII. ``is_internal`` is asked whether a topic
    id belongs to one of Kafka's own topics, whose records hold messages that are opened elsewhere.
    """

    def __init__(self, encode: Callable[[Any], bytes], is_internal: Callable[[str], bool]) -> None:
        self.encode = encode
        self.is_internal = is_internal
        self.out = BytesWriter()
        self.records = RecordWriter(self.out, encode)
        self.frame = b""
        self.left: i64 = 0
        self.budget: Budget | None = None
        self.pieces: list[bytes] = []
        self._room: i64 = 0  # the most that has been in ``out``
        self._pos: i64 = 0  # behind the varint that was read last

    def text(self, steps: list[Step], frame: bytes, offset: i64) -> list[bytes] | None:
        """The JSON text of the body from ``offset`` to the end of the frame; None for one with anything unusual."""
        if self._room > KEPT_BYTES or len(self.out) > KEPT_BYTES:
            self.out = BytesWriter()
            self.records = RecordWriter(self.out, self.encode)
            self._room = 0
        else:
            self.out.truncate(0)
        self.pieces = []
        self.frame = frame
        self.left = MAX_ELEMENTS
        self.budget = None
        try:
            end: i64 = self._structure(steps, offset)
        except (IndexError, UnicodeDecodeError, DecodeError):
            return None
        if end != len(frame):
            return None
        self._hand_over()
        return self.pieces

    def _hand_over(self) -> None:
        out = self.out
        size: i64 = len(out)
        if size > self._room:
            self._room = size
        self.pieces.append(out.getvalue())
        out.truncate(0)

    def _structure(self, steps: list[Step], pos: i64) -> i64:
        out = self.out
        frame = self.frame
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
                if int16(frame, pos):
                    return -1
                out.append(48)
                pos += 2
            elif kind == STRUCTURE and not step.nullable:
                pos = self._structure(step.steps, pos)
            elif kind == TAG_SECTION:
                if frame[pos]:
                    return -1
                pos += 1
            else:
                pos = self._value(step, kind, pos)
            if pos < 0:
                return -1
        return pos

    def _value(self, step: Step, kind: i64, pos: i64) -> i64:
        """A single value, whether a field or an element of an array."""
        out = self.out
        frame = self.frame
        if kind == INT64:
            write_number(out, read_i64_be(frame, pos))
            return pos + 8
        if kind == INT32:
            write_number(out, int32(frame, pos))
            return pos + 4
        if kind == INT16:
            write_number(out, int16(frame, pos))
            return pos + 2
        if kind == INT8:
            byte: i64 = frame[pos]
            write_number(out, byte - 256 if byte > 127 else byte)
            return pos + 1
        if kind == BOOLEAN:
            out.write(b"true" if frame[pos] else b"false")
            return pos + 1
        if kind == UINT16:
            short: i64 = int16(frame, pos)
            write_number(out, short & 0xFFFF)
            return pos + 2
        if kind == UINT32:
            word: i64 = int32(frame, pos)
            write_number(out, word & 0xFFFFFFFF)
            return pos + 4
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
        return pos + 1 if mark == 255 else -1

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
        length: i64 = 0
        if step.compact:
            length = self._uvarint(pos) - 1
            pos = self._pos
        elif step.short:
            length = int16(frame, pos)
            pos += 2
        else:
            length = int32(frame, pos)
            pos += 4
        if length < 0:
            if length < -1 or not step.nullable:
                return -1
            out.write(b"null")
            return pos
        stop: i64 = pos + length
        if stop > len(frame):
            return -1
        if kind == RECORDS:
            return stop if self._record_set(pos, stop) else -1
        if kind == TOPIC and length > 1 and frame[pos] == 95 and frame[pos + 1] == 95:
            return -1
        size = len(out)
        if not write_text(out, frame, pos, stop):
            out.truncate(size)
            raw = frame[pos:stop]
            out.write(self.encode(raw if kind == BYTES else raw.decode()))
        return stop

    def _uvarint(self, pos: i64) -> i64:
        """An UNSIGNED_VARINT, with the position behind it in ``_pos``; -1 for one of more than 31 bits."""
        frame = self.frame
        number: i64 = frame[pos]
        pos += 1
        if number > 127:
            number &= 127
            shift: i64 = 7
            while True:
                byte: i64 = frame[pos]
                pos += 1
                number |= (byte & 127) << shift
                if byte < 128:
                    break
                shift += 7
                if shift > 28:
                    return -1
            if number > 0x7FFFFFFF:
                return -1
        self._pos = pos
        return number

    def _array(self, step: Step, pos: i64) -> i64:
        out = self.out
        frame = self.frame
        count: i64 = 0
        if step.compact_array:
            count = self._uvarint(pos) - 1
            pos = self._pos
        else:
            count = int32(frame, pos)
            pos += 4
        if count < 0:
            if count < -1 or not step.null_array:
                return -1
            out.write(b"null")
            return pos
        if count * step.least > len(frame) - pos:
            return -1
        self.left -= count
        if self.left < 0:
            return -1
        out.append(91)
        kind: i64 = step.kind
        first = True
        while count:
            count -= 1
            if not first:
                out.append(44)
            first = False
            if kind == STRUCTURE:
                pos = self._structure(step.steps, pos)
            elif kind == ERROR_CODE:
                return -1
            else:
                pos = self._value(step, kind, pos)
            if pos < 0:
                return -1
        out.append(93)
        return pos

    def _record_set(self, pos: i64, end: i64) -> bool:
        """The batches between two positions; False for a problem in one of them."""
        out = self.out
        budget = self.budget
        if budget is None:
            budget = self.budget = Budget()
        out.append(91)
        start: i64 = pos
        while pos < end:
            if pos > start:
                out.append(44)
                if len(out) > PIECE_BYTES:
                    self._hand_over()
            size = len(out)
            stop: i64 = self._batch(pos, end, budget)
            if stop < 0:
                # Cut short, a message set, control records: whatever it is, it is written as the decoder gives it.
                out.truncate(size)
                issues: list[Problem] = []
                batches = decode_record_set(self.frame, pos, end, "full", issues, budget)
                if issues:
                    return False
                out.write(self.encode(batches)[1:-1])
                break
            pos = stop
        out.append(93)
        return True

    def _batch(self, pos: i64, end: i64, budget: Budget) -> i64:
        """A batch of magic 2 with nothing unusual about it, as ``decode_batch`` reads it."""
        out = self.out
        frame = self.frame
        if end - pos < HEADER_SIZE or frame[pos + MAGIC_AT] != 2:
            return -1
        length: i64 = int32(frame, pos + 8)
        stop: i64 = pos + OVERHEAD + length
        attributes: i64 = int16(frame, pos + ATTRIBUTES_AT)
        count: i64 = int32(frame, pos + HEADER_SIZE - 4)
        if (
            length < HEADER_SIZE - OVERHEAD
            or stop > end
            or attributes & IS_CONTROL
            or count < 0
            or count > budget.records
            or budget.take_batch(pos) is not None
        ):
            return -1
        word: i64 = int32(frame, pos + ATTRIBUTES_AT - 4)
        crc: i64 = word & 0xFFFFFFFF
        if crc != google_crc32c.value(frame[pos + ATTRIBUTES_AT : stop]):
            return -1
        codec: i64 = attributes & CODEC
        data = frame
        first: i64 = pos + HEADER_SIZE
        last: i64 = stop
        if codec:
            data = decompress(codec, frame[first:stop], budget.decompress_limit())
            first = 0
            last = len(data)
            budget.decompressed_bytes -= last
        budget.records -= count
        base_offset: i64 = read_i64_be(frame, pos)
        base_timestamp: i64 = read_i64_be(frame, pos + 27)
        max_timestamp: i64 = read_i64_be(frame, pos + 35)
        append_time = attributes & APPEND_TIME != 0
        out.write(b'{"base_offset":')
        write_number(out, base_offset)
        out.write(b',"batch_length":')
        write_number(out, length)
        out.write(b',"partition_leader_epoch":')
        write_number(out, int32(frame, pos + 12))
        out.write(b',"magic":2,"crc":')
        write_number(out, crc)
        out.write(b',"attributes":')
        write_number(out, attributes)
        out.write(b',"last_offset_delta":')
        write_number(out, int32(frame, pos + 23))
        out.write(b',"base_timestamp":')
        write_number(out, base_timestamp)
        out.write(b',"max_timestamp":')
        write_number(out, max_timestamp)
        out.write(b',"producer_id":')
        write_number(out, read_i64_be(frame, pos + 43))
        out.write(b',"producer_epoch":')
        write_number(out, int16(frame, pos + 51))
        out.write(b',"base_sequence":')
        write_number(out, int32(frame, pos + 53))
        out.write(b',"records_count":')
        write_number(out, count)
        out.write(COMPRESSION[codec])
        out.write(b',"timestamp_type":"log_append_time"' if append_time else b',"timestamp_type":"create_time"')
        out.write(b',"is_transactional":true' if attributes & IS_TRANSACTIONAL else b',"is_transactional":false')
        out.write(b',"is_control":false,"size_bytes":')
        write_number(out, stop - pos)
        out.write(b',"uncompressed_size_bytes":')
        write_number(out, last - first)
        out.write(b',"crc_valid":true,"records":')
        if not self.records.write(data, first, last, count, base_offset, base_timestamp, max_timestamp, append_time):
            return -1
        out.append(125)
        return stop
