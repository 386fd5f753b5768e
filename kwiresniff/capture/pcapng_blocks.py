"""The state of a pcapng section (byte order, interfaces), and how to read the blocks that are not common.

Source: draft-ietf-opsawg-pcapng, sections 4.1 to 4.8. Every block is type, total length, body, total length
again; options are code, length and value, padded to 4 bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final

from kwiresniff.capture.fast_path import Front

SECTION = 0x0A0D0D0A
INTERFACE = 1
OBSOLETE_PACKET = 2
SIMPLE_PACKET = 3
ENHANCED_PACKET: Final = 6
SECRETS = 10
PACKETS = frozenset((OBSOLETE_PACKET, SIMPLE_PACKET, ENHANCED_PACKET))

ORDERS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
#: An enhanced packet block up to its data; an obsolete one is as long.
PACKET_HEADER_BYTES: Final = 28
_SIMPLE_HEADER_BYTES = 12
_SECRETS_HEADER_BYTES = 20  # the length at the block's end included

#: The type of secrets that is a TLS key log: "TLSK".
TLS_KEY_LOG = 0x544C534B

#: Interfaces of one section: each costs memory, and a file can hold millions of their blocks.
MAX_INTERFACES = 65536
#: Memory of key logs that nobody has taken yet; a TLS session takes about 200 bytes of it.
MAX_SECRETS_BYTES = 16 * 1024 * 1024
#: What a block of it takes beside its bytes.
_SECRETS_OBJECT_BYTES = 64

_OPTION_END = 0
_OPTION_NAME = 2
_OPTION_DESCRIPTION = 3
_OPTION_RESOLUTION = 9
_OPTION_OFFSET = 14
#: Bytes of the name and the description of an interface that are kept.
MAX_INTERFACE_TEXT_BYTES = 255


class BadBlock(Exception):
    """A block that contradicts itself or its section; the message says how in half a sentence."""


class Interface:
    """An interface description: a time of ``t`` units is ``t * multiplier // divisor + offset_ns`` nanoseconds;
    ``front`` is the common case on it.
    """

    __slots__ = ("description", "divisor", "front", "link_type", "multiplier", "name", "offset_ns", "snap_length")

    def __init__(self, link_type: int, snap_length: int, front: Front) -> None:
        self.link_type = link_type
        self.snap_length = snap_length
        self.front = front
        self.multiplier, self.divisor = 1000, 1
        self.offset_ns = 0
        self.name = self.description = b""

    def time_ns(self, ticks: int) -> int:
        """A timestamp of ``ticks`` in nanoseconds; how long a tick is, the interface says (``if_tsresol``)."""
        return ticks * self.multiplier // self.divisor + self.offset_ns

    def set_resolution(self, value: int) -> None:
        """``value`` is the exponent of a negative power of 10, or of 2 when its high bit is set."""
        if value & 0x80:
            self.multiplier, self.divisor = 1_000_000_000, 1 << (value & 0x7F)
        elif value <= 9:
            self.multiplier, self.divisor = 10 ** (9 - value), 1
        else:
            self.multiplier, self.divisor = 1, 10 ** (value - 9)


class Section:
    """The section being read, with its ``number`` in the file; it holds the TLS key logs until they are taken."""

    def __init__(self, front: Callable[[int, str], Front]) -> None:
        self.interfaces: list[Interface] = []
        self._key_logs: list[bytes] = []
        self._key_log_bytes = 0
        self._front = front
        self.number = 0  # of sections whose header was read whole
        self.begin("<")

    def begin(self, order: str) -> None:
        """Start a section of byte order ``order`` (``<`` or ``>``); the interfaces of the last one are gone."""
        self.order = order
        self.interfaces.clear()
        #: type, length
        self.block = struct.Struct(order + "II").unpack_from
        #: type, length, interface, timestamp high and low, captured length, length on the wire
        self.enhanced = struct.Struct(order + "7I").unpack_from
        self._obsolete = struct.Struct(order + "8xHH4I").unpack_from
        self._secrets = struct.Struct(order + "8xII").unpack_from
        self._simple = struct.Struct(order + "8xI").unpack_from
        self._description = struct.Struct(order + "8xHHI").unpack_from

    def take(self, kind: int, buffer: bytes, start: int, end: int) -> None:
        """Takes interfaces and TLS keys from a whole block of type ``kind``, ``buffer[start:end]``."""
        if kind == INTERFACE:
            self._take_interface(buffer, start, end)
        elif kind == SECRETS and end - start >= _SECRETS_HEADER_BYTES:
            self._take_secrets(buffer, start, end)

    def packet(self, kind: int, buffer: bytes, start: int, end: int) -> tuple[Interface, int | None, int, int, int]:
        """Read a packet block of type ``kind``: its interface, its timestamp in that interface's units or None, the
        offset of its data, its captured length and its length on the wire. Raises BadBlock.
        """
        if kind == SIMPLE_PACKET:
            number, ticks, data = 0, None, start + _SIMPLE_HEADER_BYTES
            if end - 4 < data:
                raise BadBlock(f"a packet block of {end - start} bytes")
            wire = self._simple(buffer, start)[0]
            captured = min(wire, end - 4 - data)
        else:
            data = start + PACKET_HEADER_BYTES
            if end - 4 < data:
                raise BadBlock(f"a packet block of {end - start} bytes")
            if kind == ENHANCED_PACKET:
                _, _, number, high, low, captured, wire = self.enhanced(buffer, start)
            else:
                number, _, high, low, captured, wire = self._obsolete(buffer, start)
            ticks = high << 32 | low
            if captured > end - 4 - data:
                raise BadBlock(f"a captured length of {captured} bytes in a block of {end - start}")
        if number >= len(self.interfaces):
            raise BadBlock(f"a packet of interface {number}, which the section does not describe")
        interface = self.interfaces[number]
        if kind == SIMPLE_PACKET and interface.snap_length:
            captured = min(captured, interface.snap_length)
        return interface, ticks, data, captured, wire

    def _take_secrets(self, buffer: bytes, start: int, end: int) -> None:
        secrets_type, size = self._secrets(buffer, start)
        data = start + _SECRETS_HEADER_BYTES - 4
        if secrets_type != TLS_KEY_LOG or not 0 < size <= end - 4 - data:
            return
        if self._key_log_bytes + size + _SECRETS_OBJECT_BYTES <= MAX_SECRETS_BYTES:
            self._key_log_bytes += size + _SECRETS_OBJECT_BYTES
            self._key_logs.append(buffer[data : data + size])

    def take_secrets(self) -> list[bytes]:
        """The TLS key logs since this was last called."""
        found, self._key_logs, self._key_log_bytes = self._key_logs, [], 0
        return found

    def _take_interface(self, buffer: bytes, start: int, end: int) -> None:
        if end - start < 20:
            raise BadBlock(f"an interface description of {end - start} bytes")
        if len(self.interfaces) >= MAX_INTERFACES:
            raise BadBlock(f"more than {MAX_INTERFACES} interfaces")
        link_type, _, snap_length = self._description(buffer, start)
        interface = Interface(link_type, snap_length, self._front(link_type, self.order))
        for code, value in options_of(self.order, buffer, start + 16, end - 4):
            if code == _OPTION_RESOLUTION and len(value) == 1:
                interface.set_resolution(value[0])
            elif code == _OPTION_OFFSET and len(value) == 8:
                interface.offset_ns = struct.unpack(self.order + "q", value)[0] * 1_000_000_000
            elif code == _OPTION_NAME:
                interface.name = value[:MAX_INTERFACE_TEXT_BYTES]
            elif code == _OPTION_DESCRIPTION:
                interface.description = value[:MAX_INTERFACE_TEXT_BYTES]
        self.interfaces.append(interface)


def options_of(order: str, buffer: bytes, offset: int, end: int) -> Iterator[tuple[int, bytes]]:
    """The options in ``buffer[offset:end]``, code and value, up to the first that contradicts itself."""
    head = struct.Struct(order + "HH").unpack_from
    while end - offset >= 4:
        code, length = head(buffer, offset)
        offset += 4
        if code == _OPTION_END or length > end - offset:
            return
        yield code, buffer[offset : offset + length]
        offset += length + (-length & 3)
