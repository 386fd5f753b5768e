"""The captures that packets are copied from, or looked at again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from kwiresniff.base.packet_references import PACKET_BITS
from kwiresniff.capture.decode_as import tables_of
from kwiresniff.capture.input_stream import Stream
from kwiresniff.capture.packet_decoder import LayerDecoder
from kwiresniff.capture.packet_records import PacketRecord, PacketRecords
from kwiresniff.capture.spooled import SpoolFile, is_spool
from kwiresniff.errors import CaptureError
from kwiresniff.model import Segment


@dataclass(frozen=True, slots=True)
class Source:
    """The capture files to copy from, in order, with ``decode_as`` rules, ``names`` of addresses and ``key_lines``.

    ``on_read`` is called with the bytes of all files that have been read so far.
    """

    files: Sequence[str]
    decode_as: Sequence[str] = ()
    names: Iterable[tuple[str, str]] = ()
    key_lines: bytes = b""
    on_read: Callable[[int], object] = int


def segments_of(source: Source) -> Iterator[tuple[PacketRecord, Segment]]:
    """The TCP packets with their segments, fragments of a datagram together. Raises CaptureError."""
    before = 0
    for index, file in enumerate(source.files):
        kept = SpoolFile(file, skips=True) if is_spool(file) else None
        with closing(open_stream(file) if kept is None else Stream(file, kept)) as stream:  # type: ignore[arg-type]
            records = PacketRecords(LayerDecoder({}, tables_of(source.decode_as)))
            first = (index << PACKET_BITS) + (0 if kept is None else kept.packets_before)
            seen = 0
            for found in records.read(stream, first):
                if stream.consumed != seen:
                    seen = stream.consumed
                    source.on_read(before + seen)
                yield found
            before += stream.consumed


def open_stream(file: str) -> Stream:
    """A capture file at its start. Raises CaptureError."""
    try:
        return Stream(file, open(file, "rb", buffering=0))
    except OSError as error:
        raise CaptureError(f"{file}: {error.strerror or error}") from None
