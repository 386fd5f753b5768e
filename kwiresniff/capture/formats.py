"""The format of an input, recognised by its first bytes, and what an input is that is no capture."""

from __future__ import annotations

import codecs
from collections.abc import Callable

from kwiresniff.base.address_names import AddressNames
from kwiresniff.capture.compressions import compression_of
from kwiresniff.capture.fast_path import NEVER, Front
from kwiresniff.capture.input_stream import Stream
from kwiresniff.capture.packet_decoder import PacketDecoder
from kwiresniff.capture.pcap import MAGICS, PcapReader
from kwiresniff.capture.sources import Reader, segments_of
from kwiresniff.errors import CaptureError
from kwiresniff.model import Problem, Segment

#: What a pcapng file begins with: the type of its first block, in either byte order.
PCAPNG_MAGIC = b"\n\r\r\n"

#: How much of an input is looked at to say what it is.
_LOOK_BYTES = 512

#: Other capture formats: Wireshark's editcap turns each of them into pcapng.
_OTHER_CAPTURES = {
    b"snoop\0\0\0": "a Solaris snoop capture",
    b"GMBU": "a Microsoft Network Monitor capture",
    b"RTSS": "an old Microsoft Network Monitor capture",
    b"TRSNIFF data": "a Sniffer capture",
    b"btsnoop\0": "a Bluetooth snoop capture",
}
_OTHER_FILES = {
    b"\x7fELF": "an ELF program",
    b"PK\x03\x04": "a ZIP archive",
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"%PDF": "a PDF document",
    b"PAR1": "a Parquet file",
    b"SQLite format 3": "an SQLite database",
    b"\xca\xfe\xba\xbe": "a Java class file",
    b"7z\xbc\xaf": "a 7-Zip archive",
    b"#!": "a script",
    b"<?xml": "XML",
    b"<!DOCTYPE": "HTML",
    b"<html": "HTML",
}
_TEXT_BYTES = frozenset(range(0x20, 0x7F)) | frozenset(b"\t\n\r\f\x1b")


class NotACapture(CaptureError):
    """A file that can be read and is not a capture."""


class _FirstPacket:
    """A decoder that takes every packet for a segment, to see when the first one was captured."""

    def front(self, link_type: int, order: str, /) -> Front:
        return NEVER

    def skip_empty(self, link_type: int, count: int, /) -> None:
        raise NotImplementedError  # the first packet has been taken

    def segment(
        self, packet: int, timestamp_ns: int, link_type: int, buffer: bytes, start: int, end: int, missing: int, /
    ) -> Segment | None:
        return packet, timestamp_ns, b"", 0, 0, 0, buffer, start, start, 0


def open_reader(
    stream: Stream,
    decoder: PacketDecoder,
    reference: int,
    report: Callable[[Problem], None],
    names: AddressNames | None = None,
) -> Reader:
    """The reader for a stream at its start; packets are counted on from ``reference``, the packet reference before the
    first one's. Names of addresses that are recorded in it are added to ``names``.

    Raises NotACapture when it is not a capture, saying what it is instead.
    """
    magic = stream.peek(4)
    if magic in MAGICS:
        return PcapReader(stream, decoder, reference, report)
    if magic == PCAPNG_MAGIC:
        from kwiresniff.capture.pcapng import PcapngReader

        return PcapngReader(stream, decoder, reference, report, names)
    raise NotACapture(f"{stream.name} is not a capture: {_explain(stream)}")


def first_timestamp(stream: Stream) -> int | None:
    """The time of the first packet in nanoseconds since 1970; None when there is none. Consumes the stream."""
    reader = open_reader(stream, _FirstPacket(), 0, lambda problem: None)
    return next((segment[1] for segment in segments_of(reader)), None)


def _explain(stream: Stream) -> str:
    head = stream.peek(_LOOK_BYTES)
    if not head:
        if stream.ending:
            return f"nothing can be read from it ({stream.ending})"
        return f"its {stream.compression} data is empty" if stream.compression else "it is empty (0 bytes)"
    for magic, what in _OTHER_CAPTURES.items():
        if head.startswith(magic):
            return f"it is {what}; convert it with: editcap -F pcapng IN OUT"
    inside = f" inside {stream.compression}" if stream.compression else ""
    return f"it looks like {looks_like(head)}{inside}; pcap and pcapng files are understood"


def looks_like(head: bytes) -> str:
    """What a person would call data that starts with ``head``."""
    for magic, what in _OTHER_FILES.items():
        if head.startswith(magic):
            return what
    if compression := compression_of(head):
        return f"{compression} data"
    if head[257:262] == b"ustar":
        return "a tar archive"
    if _TEXT_BYTES.issuperset(head):
        return "JSON" if head.lstrip()[:1] in (b"{", b"[") else "text"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # which forgives a character cut at the end
    except UnicodeDecodeError:
        return "binary data of no known kind"
    return "binary data of no known kind" if b"\0" in head else "text"
