"""Copies the packets of a selection out of the captures that it was made of, into one capture.

Times, bytes and lengths of packets are those of the captures; interfaces that are described alike become one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kwiresniff import __version__
from kwiresniff.capture.fast_path import NEVER
from kwiresniff.capture.packet_formats import SNAP_BYTES, PacketFormat, PcapFormat, PcapngFormat
from kwiresniff.capture.packet_records import PacketRecord
from kwiresniff.capture.pcapng_blocks import Interface
from kwiresniff.errors import ExportError
from kwiresniff.export.output import Output, refuse_capture, split_name
from kwiresniff.model import SYN, Segment
from kwiresniff.packets.anonymous import FrameSpool, Pseudonyms
from kwiresniff.packets.anonymous.rebuilding import rebuilt
from kwiresniff.packets.matching import PacketMatcher
from kwiresniff.packets.selection import Selection
from kwiresniff.packets.source import Source, segments_of

#: How names of pcap files end; all others are pcapng.
PCAP_ENDINGS = ("pcap", "cap", "dmp")
#: Compressions that captures are read with, and not written.
_READ_ONLY_ENDINGS = (".xz", ".bz2", ".lz4")
#: The link type of packets that are built anew, and of a pcap file without a packet.
_ETHERNET = 1


@dataclass(slots=True)
class Written:
    """The packets written, and their bytes."""

    packets: int = 0
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Anonymous:
    """The pseudonyms and frames for an anonymous capture."""

    pseudonyms: Pseudonyms
    frames: FrameSpool


def write_packets(source: Source, selection: Selection, path: str, anonymous: Anonymous | None = None) -> Written:
    """Writes chosen packets into ``path``, as pcap or pcapng by its name, for the owner alone, complete or not at all;
    ``anonymous`` rebuilds them without keys and names. Raises ExportError for an unusable path, a capture, or several
    link types in pcap.
    """
    selection.close()
    check_target(source.files, path)
    with Output(path, private=True) as output:
        return _Copy(source, selection, path, output, anonymous).run()


def check_target(files: Sequence[str], path: str) -> None:
    """Raises ExportError for a target that is one of the captures, or has an ending of a read-only compression."""
    refuse_capture(files, path)
    if path.lower().endswith(_READ_ONLY_ENDINGS):
        raise ExportError(f"{path}: packets are compressed as .gz or .zst; end the name with one of these")


class _Copy:
    """One pass over the captures."""

    def __init__(
        self, source: Source, selection: Selection, path: str, output: Output, anonymous: Anonymous | None
    ) -> None:
        self._source = source
        self._selection = selection
        self._anonymous = anonymous
        self._matcher = PacketMatcher(selection)
        self._path = path
        self._write = output.stream.write
        is_pcap = split_name(path)[0] in PCAP_ENDINGS
        self._pcapng = None if is_pcap else PcapngFormat(f"kwiresniff {__version__}")
        self._format: PacketFormat = self._pcapng or PcapFormat()
        self._interfaces: dict[tuple[int, int, bytes, bytes], int] = {}
        self._written = Written()

    def run(self) -> Written:
        """Writes the file."""
        self._write(self._format.begin())
        if self._pcapng is not None and self._anonymous is None:
            self._write(self._pcapng.names(self._source.names))
            if self._source.key_lines:
                self._write(self._pcapng.secrets(self._source.key_lines))
        for record, segment in self._wanted():
            if self._anonymous is None:
                self._put(record)
            elif record.number == segment[0]:  # else it is a fragment of what is built anew as one
                self._put(self._rebuilt(record, segment, self._anonymous))
        if not self._interfaces and self._pcapng is None:  # a pcap file without a packet has a header all the same
            self._write(self._format.interface(_ETHERNET, SNAP_BYTES))
        return self._written

    def _wanted(self) -> Iterator[tuple[PacketRecord, Segment]]:
        """The packets that are wanted."""
        for record, segment in segments_of(self._source):
            if self._matcher.wants(segment):
                yield record, segment

    def _rebuilt(self, record: PacketRecord, segment: Segment, anonymous: Anonymous) -> PacketRecord:
        """The packet that stands for another; one of TLS has zeros for payload."""
        _, _, flow, seq, _, flags, _, start, end, _ = segment
        chosen = self._matcher.connection_of(flow)
        payload = bytes(end - start)
        if chosen is not None and not self._matcher.is_tls(flow):
            first = seq + (flags & SYN > 0)
            payload = anonymous.frames.payload(chosen.connection.id, flow == chosen.flow, first, end - start)
        data, wire = rebuilt(segment, payload, anonymous.pseudonyms)
        return PacketRecord(record.number, record.timestamp_ns, data, wire, Interface(_ETHERNET, 0, NEVER))

    def _put(self, record: PacketRecord) -> None:
        interface = record.interface
        key = interface.link_type, interface.snap_length or SNAP_BYTES, interface.name, interface.description
        number = self._interfaces.get(key)
        if number is None:
            number = self._add_interface(key)
        comments = [*record.comments, *self._selection.comments.get(record.number, ())]
        self._write(self._format.packet(number, record.timestamp_ns, record.data, record.wire, comments, record.flags))
        self._written.packets += 1
        self._written.size_bytes += len(record.data)

    def _add_interface(self, key: tuple[int, int, bytes, bytes]) -> int:
        if self._pcapng is None and self._interfaces:
            if any(known[0] != key[0] for known in self._interfaces):
                raise ExportError(
                    f"{self._path}: packets of several link types do not fit into pcap; name a .pcapng file"
                )
        else:
            self._write(self._format.interface(*key))
        return self._interfaces.setdefault(key, len(self._interfaces))
