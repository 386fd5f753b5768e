"""The stream that tshark decrypts: a pcapng file of the TLS connections alone, with made-up addresses.

A connection's client is at 10.x.y.z with a number of the connection's in it, its server at 11.0.0.1 and always the
same port; sequence numbers and payloads are the real ones.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator
from struct import Struct, pack
from typing import BinaryIO, TypeAlias

from kwiresniff.base.flows import reverse
from kwiresniff.base.sequence_numbers import SEQ_MASK
from kwiresniff.base.tls_record import CLIENT_HELLO, HANDSHAKE, SERVER_HELLO
from kwiresniff.capture.capture_set import CaptureSet
from kwiresniff.capture.pcapng_blocks import TLS_KEY_LOG
from kwiresniff.model import SYN, Segment

#: The server's port in the stream; not one that a dissector of tshark's claims.
DATA_PORT = 45_999
_CLIENT_PORT = 45_998
_SERVER = bytes((11, 0, 0, 1))

#: TLS connections followed at once; beyond it the ones that began first are left out.
MAX_CONVERSATIONS = 65_536
#: Payload of a frame: what an IPv4 packet may hold. Captures of offloaded segments have more in one.
MAX_PAYLOAD_BYTES = 65_000

_LINKTYPE_RAW = 101

#: block type and length; interface, time high and low, captured length, length on the wire
_packet_block = Struct("<7I").pack
_secrets_block = Struct("<4I").pack
#: version, length, ttl and protocol, addresses
_ip = Struct(">BxHxxxxBBxx4s4s").pack
#: ports, sequence numbers, header length, flags, window
_tcp = Struct(">HHIIBBHxxxx").pack
_HEADERS_BYTES = 40

#: What the stream begins with.
PREFIX = (
    pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)  # section header
    + pack("<IIHHII", 1, 20, _LINKTYPE_RAW, 0, 0, 20)  # interface description
)


#: One side of a TLS connection: its client's address in the stream, and whether the side is the client.
Side: TypeAlias = tuple[bytes, bool]


class TlsConversations:
    """The TLS connections among all others: those that begin with a hello."""

    def __init__(self) -> None:
        self._sides: dict[bytes, Side] = {}
        self._count = 0

    def side(self, segment: Segment) -> Side | None:
        """The side a segment comes from; None when it belongs to no TLS connection."""
        _, _, flow, _, _, flags, buffer, start, end, _ = segment
        side = self._sides.get(flow)
        if side is not None and flags & SYN:
            self.forget(flow)
            side = None
        if side is None and end - start >= 6 and buffer[start] == HANDSHAKE and buffer[start + 1] == 3:
            return self._begin(flow, buffer[start + 5])
        return side

    def _begin(self, flow: bytes, message: int) -> Side | None:
        if message not in (CLIENT_HELLO, SERVER_HELLO):
            return None
        sides = self._sides
        while len(sides) >= 2 * MAX_CONVERSATIONS:
            self.forget(next(iter(sides)))
        client = b"\x0a" + (self._count & 0xFFFFFF).to_bytes(3, "big")
        self._count += 1
        by_client = message == CLIENT_HELLO
        sides[flow] = client, by_client
        sides[reverse(flow)] = client, not by_client
        return sides[flow]

    def forget(self, flow: bytes) -> None:
        """Stops following the connection of which ``flow`` is one direction."""
        self._sides.pop(flow, None)
        self._sides.pop(reverse(flow), None)


class StreamFeeder:
    """Writes the stream; ``references`` gets the packet of each frame before the frame is written."""

    def __init__(self, captures: CaptureSet, references: deque[int]) -> None:
        self._captures = captures
        self._references = references
        self._conversations = TlsConversations()

    def write(self, out: BinaryIO) -> None:
        """Reads the captures to their end, or until nothing reads the output any more."""
        with contextlib.suppress(BrokenPipeError), out:
            out.write(PREFIX)
            self._write(out)

    def _write(self, out: BinaryIO) -> None:
        captures, references, side_of = self._captures, self._references, self._conversations.side
        captures.on_secrets = lambda secret: out.write(secrets_block(secret))
        for segment in captures:
            side = side_of(segment)
            if side is not None:
                for block in segment_blocks(side, segment):
                    references.append(segment[0])
                    out.write(block)


def segment_blocks(side: Side, segment: Segment) -> Iterator[bytes]:
    """A segment as one frame, or several when it is larger than an IPv4 packet."""
    _, _, _, seq, ack, flags, buffer, start, end, missing = segment
    for at in range(start, max(end, start + 1), MAX_PAYLOAD_BYTES):
        to = min(at + MAX_PAYLOAD_BYTES, end)
        yield frame_block(side, seq + at - start, ack, flags, buffer[at:to], missing if to == end else 0)


def frame_block(side: Side, seq: int, ack: int, flags: int, payload: bytes, missing: int) -> bytes:
    """An enhanced packet block (pcapng) with one IPv4 packet; ``missing`` bytes of its payload are not there."""
    client, by_client = side
    size = _HEADERS_BYTES + len(payload)
    wire = size + missing
    ends = (client, _SERVER) if by_client else (_SERVER, client)
    ports = (_CLIENT_PORT, DATA_PORT) if by_client else (DATA_PORT, _CLIENT_PORT)
    headers = _ip(0x45, min(wire, 0xFFFF), 64, 6, *ends) + _tcp(*ports, seq & SEQ_MASK, ack, 0x50, flags & 0xFF, 0xFFFF)
    return _packet(headers + payload, wire)


def _packet(data: bytes, wire: int) -> bytes:
    padding = -len(data) & 3
    length = 32 + len(data) + padding
    return b"".join(
        (
            _packet_block(6, length, 0, 0, 0, len(data), wire),
            data,
            bytes(padding),
            length.to_bytes(4, "little"),
        )
    )


def secrets_block(secret: bytes) -> bytes:
    """A decryption secrets block (pcapng) that holds a TLS key log."""
    padding = -len(secret) & 3
    length = 20 + len(secret) + padding
    return _secrets_block(10, length, TLS_KEY_LOG, len(secret)) + secret + bytes(padding) + length.to_bytes(4, "little")
