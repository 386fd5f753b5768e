"""A recorded conversation said again, byte for byte, by real sockets on the loopback interface."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass, field

from kwiresniff.capture import open_captures
from kwiresniff.model import ACK, SYN

#: Less than a socket buffers, so that one thread can be both sides.
CHUNK_BYTES = 32 * 1024


@dataclass
class Conversation:
    """Who said what in which order: ``(True, bytes)`` is the client, ``(False, bytes)`` the broker."""

    turns: list[tuple[bool, bytes]] = field(default_factory=list)


def conversations(path: str) -> list[Conversation]:
    """The conversations of a lossless capture that have their beginning in it, in order."""
    found: dict[bytes, Conversation] = {}
    clients: set[bytes] = set()
    expected: dict[bytes, int] = {}
    for _, _, flow, seq, _, flags, buffer, start, end, missing in open_captures([path]):
        assert not missing
        half = len(flow) // 2 - 2
        back = flow[half : 2 * half] + flow[:half] + flow[-2:] + flow[-4:-2]
        if flags & SYN:
            expected[flow] = seq + 1
            if not flags & ACK:
                clients.add(flow)
                found[flow] = Conversation()
        elif start < end and flow in expected and seq == expected[flow] & 0xFFFFFFFF:
            expected[flow] = seq + end - start
            forth = flow in clients
            turns = found[flow if forth else back].turns
            if turns and turns[-1][0] is forth:
                turns[-1] = (forth, turns[-1][1] + buffer[start:end])
            else:
                turns.append((forth, buffer[start:end]))
    return [one for one in found.values() if one.turns]


def listener() -> socket.socket:
    """A broker's socket on a port of its own."""
    return socket.create_server(("127.0.0.1", 0))


def say(server: socket.socket, conversation: Conversation) -> None:
    """One connection to ``server``, on which everything is said, each turn when the one before has been heard."""
    with socket.create_connection(server.getsockname()) as client, server.accept()[0] as broker:
        for side in (client, broker):
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for forth, said in conversation.turns:
            speaker, hearer = (client, broker) if forth else (broker, client)
            for chunk in _chunks(said):
                speaker.sendall(chunk)
                heard = 0
                while heard < len(chunk):
                    heard += len(hearer.recv(len(chunk)))


def _chunks(said: bytes) -> Iterator[bytes]:
    for at in range(0, len(said), CHUNK_BYTES):
        yield said[at : at + CHUNK_BYTES]
