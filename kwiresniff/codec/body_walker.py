"""Bodies passed over by a plan, with an eye on what is asked for: to decode them, as ``stats`` would, takes five times
as long.

A walker gives error codes with their paths, names, single numbers and the sizes of record sets, of a message that
breaks off as far as it goes, and says what else there would be to tell; ``kwiresniff.codec.digests`` makes digests of
what it passes. Of elements of arrays it says where they end: a tree shows twelve elements of an array of thousands, and
nodes for all take twenty times as long as reading ordinary traffic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from kwiresniff.base.fastint import i16
from kwiresniff.base.utf8 import first_fault
from kwiresniff.codec.body_reader import BodyReader, int16
from kwiresniff.codec.field_layout import MAX_TAGS, smallest_struct
from kwiresniff.codec.plan import (
    ARRAY,
    BYTES,
    ERROR_CODE,
    JUMP,
    RECORDS,
    STRING,
    STRUCTURE,
    TAG_SECTION,
    TOPIC,
    TOPIC_ID,
    UUID,
    Step,
    passing_plan,
)
from kwiresniff.codec.primitives import uuid_text
from kwiresniff.schema.types import MessageVersion

if TYPE_CHECKING:
    from mypy_extensions import i64

#: What may be in an element, as ``ElementSkipper.run`` is asked for; see there.
FAILED: Final = 1
GARBLED: Final = 2
LOADED: Final = 4
RECORDED: Final = 8

#: Added to the role of a text in a list: of those the empty one counts as well.
LISTED: Final = 16

#: The UUID that stands for none.
NO_ID: Final = bytes(16)

#: The sum of entries that nobody counts.
_UNCOUNTED: Final = 1 << 62


class BodyWalker(BodyReader):
    """Passes over one body after another. Values that have a role are in ``found``, in wire order, each with its name;
    zeros, nulls and what is empty are left out.

    ``nodes`` is how many fields there were. ``failed`` tells of an error code that is not zero, ``garbled`` of a string
    that is not UTF-8, ``loaded`` of bytes that may hold something, ``recorded`` of records, ``tagged`` of tagged
    fields. A derived class takes what has a role by the ``take`` methods.
    """

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, Any]] = []
        self.nodes: i64 = 0
        self.failed = False
        self.garbled = False
        self.loaded = False
        self.recorded = False
        self.tagged = False

    def walk(self, steps: list[Step], pos: i64) -> i64:
        """Where the bytes behind ``steps`` begin, which may be beyond the end of the frame, or -1 for bytes that do not
        read as the definition says.
        """
        try:
            return self._pass(steps, pos)
        except (IndexError, UnicodeDecodeError):
            return -1

    def _pass(self, steps: list[Step], pos: i64) -> i64:
        frame = self.frame
        for step in steps:
            kind: i64 = step.kind
            self.nodes += step.nodes
            if kind == JUMP:
                pos += step.size
                continue
            if kind == ARRAY:
                pos = self._array(step, pos)
            elif kind == ERROR_CODE:
                code = int16(frame, pos)
                if code:
                    self.failed = True
                    if self.errors is not None:
                        self.errors.append((step.name, code))
                pos += 2
            elif kind == TAG_SECTION:
                if frame[pos] == 0:
                    pos += 1
                else:
                    pos = self._tag_section(step, pos)
            elif kind == STRING or kind == TOPIC or kind == BYTES or kind == RECORDS:  # noqa: SIM109 - comparisons when compiled
                pos = self._sized(step, kind, pos)
            elif kind == STRUCTURE:
                pos = self._nullable_structure(step, pos)
            elif kind == UUID or kind == TOPIC_ID:  # noqa: SIM109
                pos = pos + 16 if pos + 16 <= len(frame) and self.take_id(step, frame[pos : pos + 16]) else -1
            else:
                self.take_number(step, self.number(kind, pos))
                pos = self.pos
            if pos < 0:
                return -1
        return pos

    def take_number(self, step: Step, number: i64) -> None:
        """Takes a number."""
        if number:
            self.found.append((step.name, number))

    def take_text(self, step: Step, raw: bytes) -> bool:
        """Takes a text; False for one with which this body is not for the walker. Raises UnicodeDecodeError."""
        self.found.append((step.name, raw.decode()))
        return True

    def take_id(self, step: Step, raw: bytes) -> bool:
        """Takes a UUID; False for one with which this body is not for the walker."""
        if raw != NO_ID:
            self.found.append((step.name, uuid_text(raw)))
        return True

    def take_records(self, step: Step, pos: i64, stop: i64) -> i64:
        """Takes a record set; where the bytes behind it begin, or -1."""
        if step.role:
            self.found.append((step.name, stop - pos))
        return stop

    def begin_element(self, role: i64) -> None:
        """Begins an element of an array that has a role."""

    def end_elements(self, role: i64) -> None:
        """Ends an array that has a role."""

    def takes_tag(self) -> bool:
        """Whether a tagged field that is known is for the walker."""
        return True

    def _nullable_structure(self, step: Step, pos: i64) -> i64:
        mark: i64 = self.frame[pos]
        if mark != 1:
            return pos + 1 if mark == step.null else -1
        first: i64 = self.error_count()
        pos = self.walk(step.steps, pos + 1)
        if self.error_count() > first:
            self.place_errors(first, step.name)
        return pos

    def _sized(self, step: Step, kind: i64, pos: i64) -> i64:
        """What has a length; where the bytes behind it begin, or -1."""
        length: i64 = self.length_of(step, pos)
        pos = self.pos
        if length <= 0:
            if length == 0 and step.role > LISTED and not self.take_text(step, b""):
                return -1
            return pos if length > -2 else -1
        stop: i64 = pos + length
        if kind == RECORDS:
            self.recorded = True
            return self.take_records(step, pos, stop)
        if kind == BYTES:
            self.loaded = True
            return stop
        if step.role:
            return stop if self.take_text(step, self.frame[pos:stop]) else -1
        if not self.garbled and first_fault(self.frame[pos:stop]) >= 0:  # once is enough
            self.garbled = True
        return stop

    def _array(self, step: Step, pos: i64) -> i64:
        count: i64 = self.count_of(step, pos)
        pos = self.pos
        if count <= 0:
            return pos if count > -2 else -1
        inside = step.steps
        if len(inside) == 1 and inside[0].kind == JUMP:
            self.nodes += count * inside[0].nodes
            return pos + count * inside[0].size
        role: i64 = step.role
        known: i64 = self.error_count()
        index: i64 = 0
        while index < count and pos >= 0:
            if role:
                self.begin_element(role)
            pos = self.walk(inside, pos)
            if self.error_count() > known:
                known = self.place_errors(known, f"{step.name}[{index}]")
            index += 1
        if role:
            self.end_elements(role)
        return pos

    def _tag_section(self, section: Step, pos: i64) -> i64:
        self.tagged = True
        count: i64 = self.uvarint(pos)
        self.left -= count
        if count < 0 or count > MAX_TAGS or count * 2 > len(self.frame) - self.pos or self.left < 0:
            return -1
        pos = self.pos
        while count > 0:
            count -= 1
            tag: i64 = self.uvarint(pos)
            size: i64 = self.uvarint(self.pos) if tag >= 0 else -1
            pos = self.pos
            if size < 0 or size > len(self.frame) - pos:
                return -1
            stop: i64 = pos + size
            known: Step | None = None
            for inner in section.steps:
                if inner.tag == tag:
                    known = inner
            if known is None:
                self.nodes += 1
            elif not self.takes_tag() or self.walk(known.steps, pos) != stop:
                return -1
            pos = stop
        return pos


@final
class BodyScanner(BodyWalker):
    """Looks through one body after another of the same definition."""

    def __init__(self, steps: list[Step]) -> None:
        super().__init__()
        self._steps = steps

    def scan(self, frame: bytes, offset: i64, size_bytes: i64 = 0, errors: list[tuple[str, int]] | None = None) -> bool:
        """Whether the body that begins at ``offset`` reads as its definition says, as far as anything is asked for.

        What is asked for is in ``found`` then, and error codes in ``errors`` with their paths, or else what there is of
        it before the bytes that do not fit. ``size_bytes`` is what the frame should have: an array may count on what is
        missing of it.
        """
        self.tagged = self.failed = False
        if self.found:
            self.found = []
        self.begin(frame, errors, size_bytes)
        return 0 <= self.walk(self._steps, offset) <= len(frame)


@final
class NumberReader(BodyWalker):
    """Reads one number of one body after another of the same definition: the first with a role that is not zero."""

    def __init__(self, steps: list[Step]) -> None:
        super().__init__()
        self._steps = steps
        self._number: i64 = 0

    def take_number(self, step: Step, number: i64) -> None:
        if self._number == 0:
            self._number = number

    def read(self, frame: bytes, offset: i64, unreadable: i64) -> i64:
        """The number in the body that begins at ``offset``: 0 where it has none, ``unreadable`` where the frame ends
        before it or does not read as the definition says.
        """
        self._number = 0
        self.begin(frame)
        return self._number if 0 <= self.walk(self._steps, offset) <= len(frame) else unreadable


@final
class ElementSkipper(BodyWalker):
    """Jumps over one element after another of a ``frame``; what it says is about the last one, which ends at ``end``.

    ``nodes`` counts the element itself.
    """

    def __init__(self, frame: bytes) -> None:
        super().__init__()
        self.begin(frame)
        self.end: i64 = 0

    def run(self, steps: list[Step], offset: i64, count: int, most: int, found: int) -> int:
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

    def skip(self, steps: list[Step], offset: i64) -> int:
        """The place behind the element at ``offset``; -1 for one that does not read as its definition says."""
        return self._over(steps, offset, False)

    def _over(self, steps: list[Step], offset: i64, garbled: bool) -> i64:
        """The place behind an element, or -1; where it is ``garbled`` anyway its texts are not looked at."""
        self.nodes = 0
        self.left = _UNCOUNTED
        self.failed = self.loaded = self.recorded = False
        self.garbled = garbled
        at = self.walk(steps, offset)
        if at > len(self.frame):
            at = -1
        self.end = at
        return at


@final
class MessageSkipper:
    """Finds out of whole messages whether they can be decoded, without decoding them."""

    def __init__(self, message: MessageVersion) -> None:
        self._steps = passing_plan(message, errors=True, texts=True)
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
