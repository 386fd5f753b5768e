"""Packets as bytes of a capture file: nanosecond pcap, or pcapng with comments, names and TLS keys.

Sources: draft-ietf-opsawg-pcap; draft-ietf-opsawg-pcapng, sections 4.1 (section header), 4.2 (interface description),
4.3 (enhanced packet), 4.5 (name resolution) and 4.7 (decryption secrets). Both are written in little-endian order, with
times in nanoseconds.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from typing import Protocol

from kwiresniff.capture.pcapng_blocks import ENHANCED_PACKET, INTERFACE, SECRETS, SECTION, TLS_KEY_LOG
from kwiresniff.capture.recorded_names import COMMENT, FLAGS, NAME_RESOLUTION

#: tcpdump's: no packet is longer.
SNAP_BYTES = 262_144
#: Bytes of the value of an option: its length is an unsigned number of 16 bits.
MAX_OPTION_BYTES = 65_535

_PCAP_NANOSECONDS = 0xA1B23C4D
_BYTE_ORDER = 0x1A2B3C4D
_NOT_KNOWN = 0xFFFFFFFF_FFFFFFFF
_NANOSECONDS = 9  # the exponent of if_tsresol
_APPLICATION, _NAME, _DESCRIPTION, _RESOLUTION = 4, 2, 3, 9
_IPV4_RECORD, _IPV6_RECORD = 1, 2

_pcap_header = struct.Struct("<IHHiIII").pack
_pcap_record = struct.Struct("<IIII").pack
_section = struct.Struct("<IHHQ").pack
_interface = struct.Struct("<HHI").pack
_packet = struct.Struct("<IIIII").pack
_two = struct.Struct("<II").pack
_short = struct.Struct("<HH").pack


class PacketFormat(Protocol):
    """The bytes of a capture file, piece by piece. Interfaces are numbered from 0, as they are described."""

    def begin(self) -> bytes:
        """The bytes before everything else."""

    def interface(self, link_type: int, snap_bytes: int, name: bytes = b"", description: bytes = b"") -> bytes:
        """The next interface, of a LINKTYPE_ number."""

    def packet(
        self, interface: int, timestamp_ns: int, data: bytes, wire: int, comments: Sequence[bytes] = (), flags: int = 0
    ) -> bytes:
        """A packet that was ``wire`` bytes long. ``comments`` are UTF-8, ``flags`` those of ``epb_flags``."""


class PcapFormat:
    """pcap: one interface, which stands in the file's header, and packets without comments."""

    def begin(self) -> bytes:
        """Nothing: the header tells the link type."""
        return b""

    def interface(self, link_type: int, snap_bytes: int, name: bytes = b"", description: bytes = b"") -> bytes:
        """The header of the file; there is no other interface."""
        return _pcap_header(_PCAP_NANOSECONDS, 2, 4, 0, 0, snap_bytes, link_type)

    def packet(
        self, interface: int, timestamp_ns: int, data: bytes, wire: int, comments: Sequence[bytes] = (), flags: int = 0
    ) -> bytes:
        """One record. Comments and flags have no place."""
        seconds, fraction = divmod(timestamp_ns, 1_000_000_000)
        return _pcap_record(seconds & 0xFFFFFFFF, fraction, len(data), wire) + data


class PcapngFormat:
    """pcapng: one section; ``application`` is who writes it."""

    def __init__(self, application: str) -> None:
        self._application = application.encode()

    def begin(self) -> bytes:
        """The section header, with an unknown section length."""
        return _block(SECTION, _section(_BYTE_ORDER, 1, 0, _NOT_KNOWN), [(_APPLICATION, self._application)])

    def interface(self, link_type: int, snap_bytes: int, name: bytes = b"", description: bytes = b"") -> bytes:
        """An interface description."""
        texts = [(code, text) for code, text in ((_NAME, name), (_DESCRIPTION, description)) if text]
        body = _interface(link_type, 0, snap_bytes)
        return _block(INTERFACE, body, [*texts, (_RESOLUTION, bytes([_NANOSECONDS]))])

    def packet(
        self, interface: int, timestamp_ns: int, data: bytes, wire: int, comments: Sequence[bytes] = (), flags: int = 0
    ) -> bytes:
        """An enhanced packet block."""
        head = _packet(interface, timestamp_ns >> 32 & 0xFFFFFFFF, timestamp_ns & 0xFFFFFFFF, len(data), wire)
        options = [(COMMENT, comment) for comment in comments]
        if flags:
            options.append((FLAGS, flags.to_bytes(4, "little")))
        return _block(ENHANCED_PACKET, head + data + bytes(-len(data) & 3), options)

    def names(self, names: Iterable[tuple[str, str]]) -> bytes:
        """A name resolution block of addresses with their names; nothing where there are none."""
        records = []
        for address, name in names:
            packed = ip_address(address.strip("[]")).packed
            value = packed + name.encode()[: MAX_OPTION_BYTES - len(packed) - 1] + b"\0"
            kind = _IPV4_RECORD if len(packed) == 4 else _IPV6_RECORD
            records.append(_short(kind, len(value)) + value + bytes(-len(value) & 3))
        return _block(NAME_RESOLUTION, b"".join(records) + bytes(4), []) if records else b""

    def secrets(self, lines: bytes) -> bytes:
        """A decryption secrets block with lines of a TLS key log."""
        return _block(SECRETS, _two(TLS_KEY_LOG, len(lines)) + lines + bytes(-len(lines) & 3), [])


def _block(kind: int, body: bytes, options: Sequence[tuple[int, bytes]]) -> bytes:
    """A block; its body is padded to 32 bits already."""
    parts = [body]
    for code, value in options:
        value = value[:MAX_OPTION_BYTES]
        parts.append(_short(code, len(value)) + value + bytes(-len(value) & 3))
    if options:
        parts.append(bytes(4))
    content = b"".join(parts)
    length = len(content) + 12
    return _two(kind, length) + content + length.to_bytes(4, "little")
