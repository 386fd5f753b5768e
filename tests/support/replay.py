"""A recorded conversation said again, byte for byte, by real sockets on the loopback interface."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from kwiresniff.capture import open_captures
from kwiresniff.model import ACK, SYN
from tests.support.paths import TESTS

#: Less than a socket buffers, so that one thread can be both sides.
CHUNK_BYTES = 32 * 1024
CERTIFICATE = TESTS / "session" / "data" / "broker.pem"


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
                _hear(hearer, len(chunk))


def say_in_tls(server: socket.socket, conversation: Conversation, version: ssl.TLSVersion, keylog: str | None) -> None:
    """Replays a conversation inside TLS; the client writes its keys to ``keylog`` as it learns them."""
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(CERTIFICATE)
    ours = ssl.create_default_context(cafile=str(CERTIFICATE))
    ours.check_hostname = False
    ours.minimum_version = ours.maximum_version = version
    if keylog is not None:
        ours.keylog_filename = keylog

    def answer() -> None:
        with theirs.wrap_socket(server.accept()[0], server_side=True) as broker:
            for forth, said in conversation.turns:
                if forth:
                    _hear(broker, len(said))
                else:
                    broker.sendall(said)

    answering = threading.Thread(target=answer)
    answering.start()
    with ours.wrap_socket(socket.create_connection(server.getsockname())) as client:
        for forth, said in conversation.turns:
            if forth:
                client.sendall(said)
            else:
                _hear(client, len(said))
    answering.join()


def _hear(hearer: socket.socket, size: int) -> None:
    heard = 0
    while heard < size:
        heard += len(hearer.recv(size - heard))


def _chunks(said: bytes) -> Iterator[bytes]:
    for at in range(0, len(said), CHUNK_BYTES):
        yield said[at : at + CHUNK_BYTES]
