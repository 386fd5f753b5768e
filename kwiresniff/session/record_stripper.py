"""A response that comes in pieces, kept without its record sets.

Who asks for error codes and topic names alone does not need the megabytes of records between them. A
:class:`RecordStripper` walks a response as its bytes come, keeps all but the record sets, and says how many bytes of
one are still to come, so that nobody has to keep or copy those. What is kept reads as the same response with empty
record sets.

Written to be compiled, and never wrong: what does not look as its definition says ends the stripping (``plain``), and
the rest of the frame is kept as it comes, for others to judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwiresniff.base.fastint import i16, i32
from kwiresniff.codec.plan import ARRAY, JUMP, RECORDS, STRUCTURE, TAG_SECTION, Step
from kwiresniff.stream.frame_buffer import JOINED_BYTES, SMALL_PIECE_BYTES
from kwiresniff.stream.frame_handler import FrameFilter

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Record sets shorter than this are kept: passing them over would cost more.
MIN_PASSED_BYTES = 1024
#: When so much was kept of a frame, what remains of it is kept whole.
MAX_STRIPPED_BYTES = 64 << 10

_EMPTY = b"\x00\x00\x00\x00"
_EMPTY_COMPACT = b"\x01"


class RecordStripper(FrameFilter):
    """Strips the body at ``body_offset`` of one frame by ``codec.stripping_plan``; see :class:`FrameFilter`."""

    def __init__(self, steps: list[Step], body_offset: i64) -> None:
        super().__init__()
        self._steps = steps
        self._index: i64 = 0  # of the next step
        self._count: i64 = 1  # how often these steps are still to be taken, this time included
        self._outer: list[tuple[list[Step], i64, i64]] = []  # the same of what is around them
        self._jump: i64 = body_offset  # bytes before the next step
        self._head = b""  # of a length whose rest is still to come
        self._length = b""  # that of the record set which is being passed over, and that of an empty one
        self._empty = b""
        self._kept: i64 = 0

    def _keep(self, data: bytes, at: i64, end: i64) -> None:
        if at < end:
            parts = self.parts
            if end - at < SMALL_PIECE_BYTES and parts and len(parts[-1]) < JOINED_BYTES:
                parts[-1] += data[at:end]
            else:
                parts.append(data[at:end])
            self._kept += end - at

    def finish(self) -> None:
        """Called when the frame is complete."""
        self.parts.append(self._head or self._empty)

    def broken(self, within: bool) -> None:
        """Notes that bytes of the frame are missing: a record set that is not all there keeps its length."""
        self.parts.append(self._head or (self._length if within else self._empty))

    def feed(self, data: bytes, at: i64, end: i64, left: i64) -> i64:
        """Strips ``data[at:end]``, of ``left`` bytes still to come. One function, because its state is machine
        integers.
        """
        if self._length:
            self.parts.append(self._empty)
            self._length = self._empty = b""
        elif self._head:
            data = self._head + data[at:end]
            left += len(self._head)
            self._head = b""
            at, end = 0, len(data)
        left -= end - at  # that come behind these bytes
        kept_to = at
        at += self._jump
        steps, index, count = self._steps, self._index, self._count
        passed: i64 = 0
        while at < end:
            if index == len(steps):
                if count > 1:
                    count -= 1
                    index = 0
                elif self._outer:
                    steps, index, count = self._outer.pop()
                else:
                    self.plain = True
                    break
                continue
            step = steps[index]
            kind = step.kind
            if kind == JUMP:
                at += step.size
                index += 1
                continue
            if kind == TAG_SECTION or kind == STRUCTURE:  # noqa: SIM109 - two comparisons when compiled
                mark: i64 = data[at]
                at += 1
                index += 1
                if kind == TAG_SECTION:
                    if mark:
                        self.plain = True
                        break
                elif mark == 1:
                    self._outer.append((steps, index, count))
                    steps, index, count = step.steps, 0, 1
                elif mark != step.null:
                    self.plain = True
                    break
                continue
            size: i64 = 0
            after = at
            is_array = kind == ARRAY
            is_compact = step.compact_array if is_array else step.compact
            if is_compact:
                shift: i64 = 0
                byte: i64 = 0x80
                while byte & 0x80 and after < end and shift <= 28:
                    byte = data[after]
                    after += 1
                    size |= (byte & 0x7F) << shift
                    shift += 7
                if byte & 0x80:
                    if shift > 28:
                        self.plain = True
                        break
                    after = end + 1
                size -= 1
            elif step.short and not is_array:
                after += 2
                if after <= end:
                    size = i16(data, at)
            else:
                after += 4
                if after <= end:
                    size = i32(data, at)
            if after > end:
                self._head = data[at:end]
                end = at
                break
            index += 1
            if size < 0:
                if size < -1 or not (step.null_array if is_array else step.nullable):
                    self.plain = True
                    break
                at = after
            elif size > left + end - after:
                self.plain = True
                break
            elif is_array:
                at = after
                if size and step.steps:
                    self._outer.append((steps, index, count))
                    steps, index, count = step.steps, 0, size
            elif kind == RECORDS and size >= MIN_PASSED_BYTES:
                self._keep(data, kept_to, at)
                empty = _EMPTY_COMPACT if is_compact else _EMPTY
                if size > end - after:
                    self._length, self._empty = data[at:after], empty
                    passed = size - (end - after)
                    at = kept_to = end
                else:
                    self.parts.append(empty)
                    at = kept_to = after + size
            else:
                at = after + size
        self._jump = at - end
        self._steps, self._index, self._count = steps, index, count
        self._keep(data, kept_to, end)
        if self._kept > MAX_STRIPPED_BYTES and not self.plain and not passed:
            self.plain = True
            self.parts.append(self._head)
        return passed
