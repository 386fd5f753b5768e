"""The bytes of one direction of a TLS connection to records (RFC 8446, section 5.1; RFC 5246, 6.2.1).

A gap inside a record costs that record. Behind a gap that took a header the next record is found by a header that is
followed by another one, or whose record ends with a segment.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final

from kwiresniff.base.tls_record import MAX_RECORD_BYTES, RECORD_HEADER_BYTES
from kwiresniff.session.tls_record_layer import is_record, record_length
from kwiresniff.stream.frame_handler import LOST_GAP

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Bytes that are searched for a header: what it takes to see the end of the largest record, and the next header.
MAX_SEARCHED_BYTES: Final = 2 * (RECORD_HEADER_BYTES + MAX_RECORD_BYTES)

_HEADER: Final = re.compile(rb"[\x14-\x17]\x03[\x01-\x03]")


class Record:
    """A record between two packets. A lost one has no header: ``span`` bytes on the wire, ``missing`` of them for the
    reason ``code``, of several records unless ``known``.
    """

    __slots__ = ("body", "code", "first_ns", "first_packet", "header", "known", "missing", "ns", "packet", "span")

    def __init__(
        self,
        first_packet: i64,
        first_ns: int,
        packet: i64,
        ns: int,
        header: bytes,
        body: bytes,
        span: i64 = 0,
        known: bool = True,
        missing: i64 = 0,
        code: str = LOST_GAP,
    ) -> None:
        self.first_packet = first_packet
        self.first_ns = first_ns
        self.packet = packet
        self.ns = ns
        self.header = header
        self.body = body
        self.span = span
        self.known = known
        self.missing = missing
        self.code = code

    def members(self) -> tuple[int, int, int, int, bytes, bytes, int, bool, int, str]:
        """The record as a tuple."""
        first = self.first_packet, self.first_ns, self.packet, self.ns
        return (*first, self.header, self.body, self.span, self.known, self.missing, self.code)


class RecordReader:
    """Cuts a direction's bytes into records; ``held_bytes`` are of an incomplete one, or under search."""

    STATE: ClassVar[tuple[str, ...]] = (
        "_body_left", "_code", "_first_ns", "_first_packet", "_marks", "_missing", "_parts", "_searching", "_span",
        "held_bytes",
    )  # fmt: skip
    __slots__ = STATE

    def __init__(self) -> None:
        self.held_bytes = 0
        self._parts: list[bytes] = []  # of the current record, header included; when searching, of what is searched
        self._body_left = 0  # what the current record still lacks, once its header is there
        self._span = 0  # bytes since the end of the last record, when bytes of this one are missing
        self._missing = 0
        self._code = LOST_GAP
        self._first_packet = 0
        self._first_ns = 0
        self._searching = False
        self._marks: list[tuple[int, int, int]] = []  # when searching: where segments begin, their packets and times

    def feed(self, packet: i64, ns: int, buffer: bytes, start: i64, end: i64) -> list[Record]:
        """Takes ``buffer[start:end]``, the next bytes in order; returns the records that they complete."""
        found: list[Record] = []
        if self._searching:
            self._search(packet, ns, buffer[start:end], found)
            return found
        if self._parts or self._body_left:
            start = self._continue(packet, ns, buffer, start, end, found)
        while start < end and not self._searching:
            body = start + RECORD_HEADER_BYTES
            if end < body:
                self._begin(packet, ns, buffer[start:end], 0)
                break
            if not is_record(buffer, start):
                self._lose_place()
                self._search(packet, ns, buffer[start:end], found)
                break
            stop = body + record_length(buffer, start)
            if stop > end:
                self._begin(packet, ns, buffer[start:end], stop - end)
                break
            found.append(Record(packet, ns, packet, ns, buffer[start:body], buffer[body:stop]))
            start = stop
        return found

    def _begin(self, packet: int, ns: int, data: bytes, left: int) -> None:
        self._first_packet, self._first_ns = packet, ns
        self._parts = [data]
        self._body_left = left
        self.held_bytes = len(data)

    def _continue(self, packet: i64, ns: int, buffer: bytes, start: i64, end: i64, found: list[Record]) -> i64:
        """Takes more of the current record; returns where the next one begins."""
        if not self._body_left:
            head = b"".join(self._parts)
            more = min(RECORD_HEADER_BYTES - len(head), end - start)
            head += buffer[start : start + more]
            self._parts = [head]
            self.held_bytes = len(head)
            start += more
            if len(head) < RECORD_HEADER_BYTES:
                return end
            if not is_record(head, 0):
                self._lose_place()
                self._search(packet, ns, head + buffer[start:end], found)
                return end
            self._body_left = record_length(head, 0)
        more = min(self._body_left, end - start)
        if not self._missing:
            self._parts.append(buffer[start : start + more])
            self.held_bytes += more
        self._body_left -= more
        start += more
        if not self._body_left:
            if self._missing:
                self._end_lost(packet, ns, found, True)
            else:
                whole = b"".join(self._parts)
                body = whole[RECORD_HEADER_BYTES:]
                header = whole[:RECORD_HEADER_BYTES]
                found.append(Record(self._first_packet, self._first_ns, packet, ns, header, body))
            self._parts = []
            self.held_bytes = 0
        return start

    def _end_lost(self, packet: int, ns: int, found: list[Record], known: bool) -> None:
        """Ends a loss."""
        first = (self._first_packet, self._first_ns) if known else (packet, ns)
        found.append(Record(*first, packet, ns, b"", b"", self._span, known, self._missing, self._code))
        self._span = self._missing = 0

    def gap(self, packet: int, ns: int, missing: int, code: str) -> list[Record]:
        """The next ``missing`` bytes are not in the capture; returns the lost record that they complete, if any."""
        found: list[Record] = []
        if self._missing and code != self._code:
            code = LOST_GAP
        self._code = code
        if self._searching:
            self._span += sum(map(len, self._parts)) + missing
            self._missing += missing
            self._parts, self._marks = [], []
            self.held_bytes = 0
            return found
        if not self._body_left or missing > self._body_left:
            before = self._span - self._body_left if self._missing else sum(map(len, self._parts))
            self._lose_place()
            self._span, self._missing = before + missing, self._missing + missing
            return found
        if not self._missing:
            size = sum(map(len, self._parts))
            self._span = size + self._body_left
            self._parts = []
            self.held_bytes = 0
        self._missing += missing
        self._body_left -= missing
        if not self._body_left:
            self._end_lost(packet, ns, found, True)
        return found

    # -- behind a gap -------------------------------------------------------------------------------------------

    def _lose_place(self) -> None:
        """It is no longer known where records begin."""
        if not self._missing:
            self._span = 0
        self._searching = True
        self._parts, self._marks, self._body_left = [], [], 0
        self.held_bytes = 0

    def _search(self, packet: int, ns: int, data: bytes, found: list[Record]) -> None:
        """Looks for a record in what has come since the place was lost, and goes on from there."""
        before = b"".join(self._parts)
        whole = before + data
        self._marks.append((len(before), packet, ns))
        ends = {mark[0] for mark in self._marks[1:]} | {len(whole)}
        at = 0
        while True:
            match = _HEADER.search(whole, at)
            if match is None:
                at = max(len(whole) - RECORD_HEADER_BYTES + 1, at)
                break
            at = match.start()
            stop = at + RECORD_HEADER_BYTES + (record_length(whole, at) if is_record(whole, at) else 0)
            if len(whole) - at < RECORD_HEADER_BYTES:
                break
            if not is_record(whole, at):
                at += 1
            elif stop in ends or is_record(whole, stop):
                self._resume(at, whole, found)
                return
            elif stop + RECORD_HEADER_BYTES > len(whole):
                break  # more has to come before it is believed
            else:
                at += 1
        self._keep(whole, max(at, len(whole) - MAX_SEARCHED_BYTES))

    def _keep(self, whole: bytes, at: int) -> None:
        self._span += at
        rest = whole[at:]
        self._parts = [rest] if rest else []
        marks = [(max(start - at, 0), packet, ns) for start, packet, ns in self._marks]
        inside = [index for index, mark in enumerate(marks) if mark[0] == 0]
        self._marks = marks[inside[-1] :] if inside else marks
        if not rest:
            self._marks = []
        self.held_bytes = len(rest)

    def _resume(self, at: int, whole: bytes, found: list[Record]) -> None:
        marks = self._marks
        self._span += at
        self._searching = False
        self._parts, self._marks = [], []
        self.held_bytes = 0
        begin = max(index for index, mark in enumerate(marks) if mark[0] <= at)
        self._end_lost(marks[begin][1], marks[begin][2], found, False)
        stops = [mark[0] for mark in marks[begin + 1 :]] + [len(whole)]
        for (start, packet, ns), stop in zip(marks[begin:], stops, strict=True):
            found += self.feed(packet, ns, whole, max(start, at), stop)
