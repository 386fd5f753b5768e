"""Bodies passed over, with an eye on a few fields: to decode them, as ``stats`` would, takes five times as long.

It gives error codes, names, single numbers and the sizes of record sets, of a message that breaks off as far as it
goes. Of elements of arrays it says where they end and whether there is anything in them to report: a tree shows twelve
elements of an array of thousands, and nodes for all take twenty times as long as reading ordinary traffic.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Any, Final, final

from kwiresniff.base.fastint import i16, i32
from kwiresniff.base.utf8 import first_fault
from kwiresniff.codec.field_layout import MAX_ENTRIES, MAX_TAGS, smallest_struct
from kwiresniff.codec.scan_steps import (
    ARRAY,
    BYTES,
    JUMP,
    OPTIONAL,
    SHORT,
    TAGS,
    TEXT,
    VALUE,
    VARINT,
    ScanStep,
    message_steps,
)
from kwiresniff.schema.types import MessageVersion

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Bodies after which a quick scan is made, which takes as long as passing over some hundred of them.
QUICK_AFTER = 32

#: What may be in an element, as ``ElementSkipper.run`` is asked for; see there.
FAILED: Final = 1
GARBLED: Final = 2
LOADED: Final = 4
RECORDED: Final = 8

_int16 = Struct(">h").unpack_from
_int32 = Struct(">i").unpack_from

#: The sum of entries that nobody counts.
_UNCOUNTED: Final = 1 << 62


class Scan:
    """What is passed over, and what was seen: all that has a name, in wire order, in ``found``.

    ``nodes`` is how many fields there were. ``failed`` tells of an error code that is not zero, ``garbled`` of a string
    that is not UTF-8, ``loaded`` of bytes that may hold something, ``recorded`` of records, ``tagged`` of tagged
    fields.
    """

    def __init__(self) -> None:
        self._frame = b""
        self._end: i64 = 0
        self._announced: i64 = 0  # the end of the frame as it was on the wire
        self._left: i64 = _UNCOUNTED  # of the values that a message may be made of
        self._at: i64 = 0
        self.found: list[tuple[str, Any]] = []
        self.nodes: i64 = 0
        self.failed = False
        self.garbled = False
        self.loaded = False
        self.recorded = False
        self.tagged = False

    def _pass(self, steps: list[ScanStep], at: i64) -> i64:
        """Where the bytes behind ``steps`` begin, or -1 for bytes that do not read as the definition says.

        One long function: it is called for every structure of every response, and a call for each kind of step would
        cost more than the step. What it returns may lie behind the end of the frame.
        """
        data = self._frame
        end: i64 = self._end
        nodes: i64 = 0
        for step in steps:
            kind: i64 = step.kind
            if kind == JUMP:
                at += step.size
                nodes += step.nodes
                continue
            if at >= end:
                return -1
            if kind == TAGS:
                if data[at] == 0:
                    at += 1
                    continue
                at = self._tag_section(step, at)
                if at < 0:
                    return -1
                continue
            nodes += 1
            if kind == VALUE:
                stop: i64 = at + step.size
                if stop > end:
                    return -1
                while at < stop:
                    if data[at]:
                        self._value(step, data[stop - step.size : stop])
                        at = stop
                        break
                    at += 1
                continue
            if kind == OPTIONAL:
                mark: i64 = data[at]
                at += 1
                if mark == 1:
                    at = self._pass(step.inside, at)
                    if at < 0:
                        return -1
                elif mark != step.null:
                    return -1
                continue
            count: i64 = 0
            if step.size == VARINT:
                count = data[at]
                at += 1
                if count > 127:
                    count = self._varint(at - 1)
                    if count < 0:
                        return -1
                    at = self._at
                count -= 1
            elif step.size == SHORT:
                if at + 2 > end:
                    return -1
                count = i16(data, at)
                at += 2
            else:
                if at + 4 > end:
                    return -1
                count = i32(data, at)
                at += 4
            if count <= 0:
                if count and (count < -1 or not step.nullable):
                    return -1
                continue
            if kind != ARRAY:
                if count > end - at:
                    return -1
                if step.name or kind != BYTES:
                    if not self._sized(step, kind, data, at, count):
                        return -1
                else:
                    self.loaded = True
                at += count
                continue
            if count * step.least > self._announced - at:  # as many as there cannot be
                return -1
            self._left -= count >> step.shift
            if self._left < 0:
                return -1
            inside = step.inside
            if len(inside) == 1 and inside[0].kind == JUMP:
                at += count * inside[0].size
                nodes += count * inside[0].nodes
                continue
            while count > 0:
                at = self._pass(inside, at)
                if at < 0:
                    return -1
                count -= 1
        self.nodes += nodes
        return at

    def _value(self, step: ScanStep, raw: bytes) -> None:
        """Look at a value of fixed size that has a byte which is not zero."""
        if step.is_code:
            self.failed = True
        if step.read is not None:
            self.found.append((step.name, step.read(raw)))

    def _sized(self, step: ScanStep, kind: i64, data: bytes, at: i64, length: i64) -> bool:
        """Look at a string, bytes or a record set of so many bytes; False for a string that was asked for and is not
        UTF-8.
        """
        if kind == TEXT:
            raw = data[at : at + length]
            if not (self.garbled and not step.name) and first_fault(raw) >= 0:  # once is enough
                self.garbled = True
                return not step.name
            if step.name:
                self.found.append((step.name, raw.decode()))
        elif kind == BYTES:
            self.found.append((step.name, data[at : at + length]))
        else:
            self.recorded = True
            if step.name:
                self.found.append((step.name, length))
        return True

    def _tag_section(self, section: ScanStep, at: i64) -> i64:
        self.tagged = True
        count = self._varint(at)
        self._left -= count
        if count < 0 or count > MAX_TAGS or count * 2 > self._end - self._at or self._left < 0:
            return -1
        while count > 0:
            count -= 1
            tag = self._varint(self._at)
            size = self._varint(self._at) if tag >= 0 else -1
            at = self._at
            stop = at + size
            if size < 0 or stop > self._end:
                return -1
            known: ScanStep | None = None
            for inner in section.inside:
                if inner.tag == tag:
                    known = inner
            if known is None:
                self.nodes += 1
            elif self._pass(known.inside, at) != stop:
                return -1
            self._at = stop
        return self._at

    def _varint(self, at: i64) -> i64:
        """An UNSIGNED_VARINT, ``_at`` being behind it then; -1 for one of more than 32 bits or that is cut short."""
        number: i64 = 0
        shift: i64 = 0
        while shift < 35 and at < self._end:
            byte: i64 = self._frame[at]
            at += 1
            number |= (byte & 127) << shift
            if byte < 128:
                self._at = at
                return number if number <= 0xFFFFFFFF else -1
            shift += 7
        return -1


@final
class BodyScanner(Scan):
    """Looks through one body after another of the same definition."""

    def __init__(self, steps: list[ScanStep]) -> None:
        super().__init__()
        self._steps = steps

    def scan(self, frame: bytes, offset: i64, size_bytes: i64 = 0) -> bool:
        """Whether the body that begins at ``offset`` reads as its definition says, as far as anything is asked for.

        What is asked for is in ``found`` then, or else what there is of it before the bytes that do not fit; what is
        zero, empty or null is left out. ``size_bytes`` is what the frame should have: an array may count on what is
        missing of it.
        """
        self.tagged = False
        if self.found:
            self.found = []
        end: i64 = len(frame)
        self._frame = frame
        self._end = end
        self._announced = size_bytes if size_bytes > end else end
        self._left = MAX_ENTRIES
        at: i64 = self._pass(self._steps, offset)
        return 0 <= at <= end


@final
class ElementSkipper(Scan):
    """Jumps over one element after another of a ``frame``; what it says is about the last one, which ends at ``end``.

    ``nodes`` counts the element itself.
    """

    def __init__(self, frame: bytes) -> None:
        super().__init__()
        self._frame = frame
        self._end = self._announced = len(frame)
        self.end: i64 = 0

    def run(self, steps: list[ScanStep], offset: i64, count: int, most: int, found: int) -> int:
        """How many of ``count`` elements from ``offset`` on are skipped until one has anything of what is ``found``.

        That is a sum of ``FAILED`` and the like. They have ``nodes`` fields, ``most`` at the most, and end at ``end``;
        where there are none, ``nodes`` and ``end`` are those of the element that has something, -1 for one that does
        not read as its definition says.
        """
        nodes: i64 = 0
        limit: i64 = most
        stops: i64 = found
        number = 0
        heedless = stops & GARBLED == 0
        while number < count:
            at: i64 = self._over(steps, offset, heedless)
            if at < 0 or nodes + self.nodes > limit or self._has(stops):
                break
            nodes += self.nodes
            offset = at
            number += 1
        if number:
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

    def skip(self, steps: list[ScanStep], offset: i64) -> int:
        """The place behind the element at ``offset``; -1 for one that does not read as its definition says."""
        return self._over(steps, offset, False)

    def _over(self, steps: list[ScanStep], offset: i64, garbled: bool) -> i64:
        """The place behind an element, or -1; where it is ``garbled`` anyway its texts are not looked at."""
        self.nodes = 0
        self.failed = self.loaded = self.recorded = False
        self.garbled = garbled
        at = self._pass(steps, offset)
        if at > self._end:
            at = -1
        self.end = at
        return at


@final
class MessageSkipper:
    """Finds out of whole messages whether they can be decoded, without decoding them."""

    def __init__(self, message: MessageVersion) -> None:
        self._steps = message_steps(message)
        self._least: int = smallest_struct(message.fields, message.flexible) if self._steps else 0

    def skip(self, frame: bytes, offset: int) -> int:
        """The place behind the message that begins at ``offset``; -1 for bytes that no decoder would take."""
        if len(frame) - offset < self._least:
            return -1
        skipper = ElementSkipper(frame)
        end = skipper.skip(self._steps, offset)
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
