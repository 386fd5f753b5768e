"""Packets of capture files as they lie there, for whoever copies some of them: bytes, time, interface, comments.

They are counted as the readers count them (``pcap``, ``pcapng``), and end where those end: at the end of the file or at
the first record that contradicts itself, which the reader reports.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from kwiresniff.capture.fast_path import NEVER
from kwiresniff.capture.file_problems import MAX_PACKET_BYTES
from kwiresniff.capture.input_stream import Stream
from kwiresniff.capture.pcap import FILE_HEADER_BYTES, MAGICS
from kwiresniff.capture.pcapng import MAGIC, MAX_BLOCK_BYTES
from kwiresniff.capture.pcapng_blocks import (
    ENHANCED_PACKET,
    ORDERS,
    PACKETS,
    SECTION,
    BadBlock,
    Interface,
    Section,
    options_of,
)
from kwiresniff.capture.recorded_names import COMMENT, FLAGS

_BLOCK_HEAD_BYTES = 8
_SMALLEST_BLOCK = 12


@dataclass(slots=True)
class PacketRecord:
    """One packet: its number in the file, from 1, its time, its bytes, and how many they were on the wire.

    ``interface`` is an object of its own for each interface of each section. ``comments`` and ``flags`` are those of
    pcapng (``opt_comment``, ``epb_flags``).
    """

    number: int
    timestamp_ns: int
    data: bytes
    wire: int
    interface: Interface
    comments: list[bytes] = field(default_factory=list)
    flags: int = 0


class PacketRecords:
    """Iterates over the packets of one capture, of which ``before`` are missing at its beginning."""

    def __init__(self, stream: Stream, before: int = 0) -> None:
        self._stream = stream
        self._before = before
        self._section = Section(lambda link_type, order: NEVER)

    def __iter__(self) -> Iterator[PacketRecord]:
        magic = self._stream.peek(4)
        if magic in MAGICS:
            return self._pcap()
        return self._pcapng() if magic == MAGIC else iter(())

    def _pcap(self) -> Iterator[PacketRecord]:
        stream = self._stream
        header = stream.exactly(FILE_HEADER_BYTES)
        if len(header) < FILE_HEADER_BYTES:
            return
        order, unit_ns, record_bytes, extra = MAGICS[header[:4]]
        stream.exactly(extra)
        interface = Interface(struct.unpack(order + "I", header[20:])[0] & 0xFFFF, 0, NEVER)
        unpack = struct.Struct(order + "IIII").unpack_from
        number = 0
        while len(head := stream.exactly(record_bytes)) == record_bytes:
            seconds, fraction, captured, wire = unpack(head)
            if captured > MAX_PACKET_BYTES or (seconds and not captured and head[:4] in MAGICS):
                return
            data = stream.exactly(captured)
            if len(data) < captured:
                return
            number += 1
            yield PacketRecord(number, seconds * 1_000_000_000 + fraction * unit_ns, data, wire, interface)

    def _pcapng(self) -> Iterator[PacketRecord]:
        section, number, last_ns = self._section, self._before, 0
        while block := self._block():
            kind = section.block(block, 0)[0]
            try:
                if kind not in PACKETS:
                    section.take(kind, block, 0, len(block))
                    continue
                interface, ticks, start, captured, wire = section.packet(kind, block, 0, len(block))
            except BadBlock:
                return
            number += 1
            if ticks is not None:
                last_ns = interface.time_ns(ticks)
            record = PacketRecord(number, last_ns, block[start : start + captured], wire, interface)
            if kind == ENHANCED_PACKET:
                _add_options(record, section.order, block, start + captured + (-captured & 3))
            yield record

    def _block(self) -> bytes:
        """The next whole block, empty where there is none."""
        stream, section = self._stream, self._section
        head = stream.exactly(_BLOCK_HEAD_BYTES)
        if len(head) < _BLOCK_HEAD_BYTES:
            return b""
        if section.block(head, 0)[0] == SECTION:
            head += stream.exactly(4)
            order = ORDERS.get(head[_BLOCK_HEAD_BYTES:])
            if order is None:
                return b""
            section.begin(order)
        length = section.block(head, 0)[1]
        if length & 3 or not max(_SMALLEST_BLOCK, len(head)) <= length <= MAX_BLOCK_BYTES:
            return b""
        block = head + stream.exactly(length - len(head))
        return block if len(block) == length else b""


def _add_options(record: PacketRecord, order: str, block: bytes, start: int) -> None:
    for code, value in options_of(order, block, start, len(block) - 4):
        if code == COMMENT:
            record.comments.append(value)
        elif code == FLAGS and len(value) == 4:
            record.flags = struct.unpack(order + "I", value)[0]
