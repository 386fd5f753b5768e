"""The stream that tshark decrypts: a pcapng file of the TLS connections alone, in a form of our own.

A connection's client is at 10.x.y.z with a number of the connection's in it, its server at 11.0.0.1 and always the
same port; sequence numbers and payloads are the real ones.
"""

from __future__ import annotations

import contextlib
from collections import deque
from struct import Struct, pack
from typing import BinaryIO

from kwiresniff.capture.captures import Captures
from kwiresniff.model import SYN

#: The server's port in the stream; not one that a dissector of tshark's claims.
DATA_PORT = 45_999
_CLIENT_PORT = 45_998
_SERVER = bytes((11, 0, 0, 1))

#: TLS connections followed at once; beyond it the ones that began first are left out.
MAX_CONVERSATIONS = 65_536
#: Payload of a frame: what an IPv4 packet may hold. Captures of offloaded segments have more in one.
MAX_PAYLOAD_BYTES = 65_000

_HANDSHAKE, _CLIENT_HELLO, _SERVER_HELLO = 22, 1, 2
_TLS_KEY_LOG = 0x544C534B
_LINKTYPE_RAW = 101

#: block type and length; interface, time high and low, captured length, length on the wire
_packet_block = Struct("<7I").pack
_secrets_block = Struct("<4I").pack
#: version, length, ttl and protocol, addresses
_ip = Struct(">BxHxxxxBBxx4s4s").pack
#: ports, sequence numbers, header length, flags, window
_tcp = Struct(">HHIIBBHxxxx").pack
_HEADERS_BYTES = 40

_PREFIX = (
    pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)  # section header
    + pack("<IIHHII", 1, 20, _LINKTYPE_RAW, 0, 0, 20)  # interface description
)


class Feed:
    """Writes the stream; ``references`` gets the packet of each frame before the frame is written."""

    def __init__(self, captures: Captures, references: deque[int]) -> None:
        self._captures = captures
        self._references = references
        self._conversations: dict[bytes, tuple[bytes, bool]] = {}
        self._count = 0

    def write(self, out: BinaryIO) -> None:
        """Read the captures to their end, or until nobody takes what is written."""
        with contextlib.suppress(BrokenPipeError), out:
            out.write(_PREFIX)
            self._write(out)

    def _write(self, out: BinaryIO) -> None:
        captures, references = self._captures, self._references
        conversations = self._conversations
        for packet, _, flow, seq, ack, flags, buffer, start, end, missing in captures:
            if captures.secrets:
                for secret in captures.take_secrets():
                    out.write(secrets_block(secret))
            conversation = conversations.get(flow)
            if conversation is not None and flags & SYN:
                self._forget(flow)
                conversation = None
            if conversation is None:
                if end - start < 6 or buffer[start] != _HANDSHAKE or buffer[start + 1] != 3:
                    continue
                conversation = self._begin(flow, buffer[start + 5])
                if conversation is None:
                    continue
            for at in range(start, max(end, start + 1), MAX_PAYLOAD_BYTES):
                to = min(at + MAX_PAYLOAD_BYTES, end)
                lost = missing if to == end else 0
                references.append(packet)
                out.write(frame_block(conversation, seq + at - start, ack, flags, buffer[at:to], lost))

    def _begin(self, flow: bytes, message: int) -> tuple[bytes, bool] | None:
        if message not in (_CLIENT_HELLO, _SERVER_HELLO):
            return None
        conversations = self._conversations
        while len(conversations) >= 2 * MAX_CONVERSATIONS:
            self._forget(next(iter(conversations)))
        client = b"\x0a" + (self._count & 0xFFFFFF).to_bytes(3, "big")
        self._count += 1
        by_client = message == _CLIENT_HELLO
        conversations[flow] = client, by_client
        conversations[_reverse(flow)] = client, not by_client
        return conversations[flow]

    def _forget(self, flow: bytes) -> None:
        self._conversations.pop(flow, None)
        self._conversations.pop(_reverse(flow), None)


def frame_block(
    conversation: tuple[bytes, bool], seq: int, ack: int, flags: int, payload: bytes, missing: int
) -> bytes:
    """An enhanced packet block with one IPv4 packet; ``missing`` bytes of its payload are not there."""
    client, by_client = conversation
    size = _HEADERS_BYTES + len(payload)
    wire = size + missing
    ends = (client, _SERVER) if by_client else (_SERVER, client)
    ports = (_CLIENT_PORT, DATA_PORT) if by_client else (DATA_PORT, _CLIENT_PORT)
    padding = -size & 3
    length = 32 + size + padding
    return b"".join(
        (
            _packet_block(6, length, 0, 0, 0, size, wire),
            _ip(0x45, min(wire, 0xFFFF), 64, 6, *ends),
            _tcp(*ports, seq & 0xFFFFFFFF, ack, 0x50, flags & 0xFF, 0xFFFF),
            payload,
            bytes(padding),
            length.to_bytes(4, "little"),
        )
    )


def secrets_block(secret: bytes) -> bytes:
    """A decryption secrets block that holds a TLS key log."""
    padding = -len(secret) & 3
    length = 20 + len(secret) + padding
    return (
        _secrets_block(10, length, _TLS_KEY_LOG, len(secret)) + secret + bytes(padding) + length.to_bytes(4, "little")
    )


def _reverse(flow: bytes) -> bytes:
    address = (len(flow) - 4) // 2
    ports = 2 * address
    return flow[address:ports] + flow[:address] + flow[ports + 2 :] + flow[ports : ports + 2]
