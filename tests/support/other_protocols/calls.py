"""Remote calls, and frames behind a length: those most like Kafka."""

from __future__ import annotations

import json
from random import Random
from struct import pack

from tests.support.encoding.primitives import write_uvarint
from tests.support.other_protocols.making import (
    CLIENT,
    SERVER,
    TURNS,
    Said,
    conversation,
    framed,
    protobuf,
    s16,
    s32,
    word,
)


def _thrift_call(rng: Random, kind: int, number: int) -> bytes:
    name = rng.choice((b"getUser", b"listTopics", b"ping"))
    return pack(">I", 0x80010000 | kind) + s32(name) + pack(">i", number) + b"\x0b\0\x01" + s32(word(rng)) + b"\0"


@conversation("Thrift binary")
def _thrift(rng: Random) -> Said:
    return [(side, _thrift_call(rng, side + 1, n)) for n in range(2 * TURNS) for side in (CLIENT, SERVER)]


@conversation("Thrift framed")
def _thrift_framed(rng: Random) -> Said:
    return [(side, framed(_thrift_call(rng, side + 1, n))) for n in range(2 * TURNS) for side in (CLIENT, SERVER)]


@conversation("Thrift framed, old encoding")
def _thrift_old(rng: Random) -> Said:
    """Without a version: the length of a name comes first, small as an API key."""
    said: Said = []
    for number in range(2 * TURNS):
        for side in (CLIENT, SERVER):
            body = s32(word(rng)) + bytes([side + 1]) + pack(">i", number) + b"\x0b\0\1" + s32(word(rng)) + b"\0"
            said.append((side, framed(body)))
    return said


@conversation("Protobuf behind a length")
def _protobuf_rpc(rng: Random) -> Said:
    said: Said = []
    for number in range(2 * TURNS):
        said.append((CLIENT, framed(protobuf((1, number), (2, b"Service.Get"), (3, word(rng))))))
        said.append((SERVER, framed(protobuf((1, number), (4, 0), (5, word(rng) * 3)))))
    return said


@conversation("Avro RPC")
def _avro(rng: Random) -> Said:
    said: Said = []
    for number in range(2 * TURNS):
        for side in (CLIENT, SERVER):
            parts = [rng.randbytes(16), b"\0\0", bytes([len(word(rng)) * 2]) + word(rng), b""]
            said.append((side, pack(">ii", number, len(parts)) + b"".join(map(s32, parts))))
    return said


@conversation("Netty behind a length: text")
def _netty_text(rng: Random) -> Said:
    return [
        (side, framed(json.dumps({"id": n, "method": word(rng).decode()}).encode()))
        for n in range(2 * TURNS)
        for side in (CLIENT, SERVER)
    ]


@conversation("Netty behind a length: id, kind, name")
def _netty_binary(rng: Random) -> Said:
    """A home-made protocol that resembles Kafka by chance: type, version, id, then a name."""
    said: Said = []
    for number in range(2 * TURNS):
        said.append(
            (CLIENT, framed(pack(">HHI", 500 + rng.randrange(20), 1, number) + s16(word(rng)) + rng.randbytes(9)))
        )
        said.append((SERVER, framed(pack(">HHI", 600, 1, number) + rng.randbytes(20))))
    return said


@conversation("Netty behind a length: small numbers")
def _netty_numbers(rng: Random) -> Said:
    return [
        (side, framed(b"".join(pack(">i", rng.randrange(20)) for _ in range(rng.randrange(3, 12)))))
        for _ in range(3 * TURNS)
        for side in (CLIENT, SERVER)
    ]


@conversation("Hadoop RPC")
def _hadoop(rng: Random) -> Said:
    said: Said = [(CLIENT, b"hrpc\x09\0\0")]
    for number in range(2 * TURNS):
        header = protobuf((1, 2), (2, 0), (3, number), (4, rng.randbytes(16)))
        call = protobuf((1, b"getFileInfo"), (2, b"ClientProtocol"), (3, 1))
        said.append((CLIENT, framed(write_uvarint(len(header)) + header + write_uvarint(len(call)) + call)))
        said.append((SERVER, framed(write_uvarint(len(header)) + header + word(rng))))
    return said


@conversation("Java RMI")
def _rmi(rng: Random) -> Said:
    said: Said = [(CLIENT, b"JRMI\0\x02\x4b"), (SERVER, b"\x4e" + s16(b"10.0.0.1") + pack(">i", 40_000))]
    for _ in range(TURNS):
        said.append((CLIENT, b"\x50\xac\xed\0\x05\x77\x22" + rng.randbytes(22) + b"\x74" + s16(word(rng))))
        said.append((SERVER, b"\x51\xac\xed\0\x05\x77\x0f\x01" + rng.randbytes(14) + b"\x70"))
    return said


@conversation("ONC RPC (NFS)")
def _nfs(rng: Random) -> Said:
    def record(body: bytes) -> bytes:
        return pack(">I", 0x80000000 | len(body)) + body

    said: Said = []
    for _ in range(2 * TURNS):
        xid = rng.randrange(1 << 31)
        said.append((CLIENT, record(pack(">IIIIIIIII", xid, 0, 2, 100003, 3, 1, 0, 0, 0) + s32(rng.randbytes(32)))))
        said.append((SERVER, record(pack(">IIIIIIi", xid, 1, 0, 0, 0, 0, 0) + rng.randbytes(84))))
    return said
