"""Protocols of the web."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from struct import pack

from tests.support.other_protocols.making import CLIENT, SERVER, TURNS, Said, conversation, protobuf, s32, word


@conversation("HTTP/1.1")
def _http1(rng: Random) -> Said:
    said: Said = []
    for _ in range(TURNS):
        body = json.dumps({"id": rng.randrange(10**6), "topic": word(rng).decode()}).encode()
        head = b"POST /%s HTTP/1.1\r\nHost: api:9092\r\nContent-Length: %d\r\n\r\n" % (word(rng), len(body))
        said.append((CLIENT, head + body))
        said.append((SERVER, b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)))
    return said


def _http2_frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return pack(">I", len(payload))[1:] + bytes([kind, flags]) + pack(">I", stream) + payload


def _http2(rng: Random, message: Callable[[Random], bytes]) -> Said:
    settings = _http2_frame(4, 0, 0, pack(">HIHI", 3, 100, 4, 65535))
    said: Said = [
        (CLIENT, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings),
        (SERVER, settings + _http2_frame(4, 1, 0, b"")),
    ]
    for turn in range(TURNS):
        headers = bytes([0x83, 0x86, 0x44, 12]) + b"/pkg.Svc/Get" + bytes([0x41, 4]) + b"host"
        stream = 2 * turn + 1
        said.append((CLIENT, _http2_frame(1, 4, stream, headers) + _http2_frame(0, 1, stream, message(rng))))
        said.append((SERVER, _http2_frame(1, 4, stream, b"\x88") + _http2_frame(0, 1, stream, message(rng))))
    return said


@conversation("HTTP/2")
def _http2_text(rng: Random) -> Said:
    return _http2(rng, lambda r: word(r) * r.randrange(1, 40))


def _grpc_message(rng: Random) -> bytes:
    body = protobuf((1, word(rng)), (2, rng.randrange(1 << 20)))
    return b"\0" + s32(body)


@conversation("gRPC")
def _grpc(rng: Random) -> Said:
    return _http2(rng, _grpc_message)


@conversation("Kubernetes watch")
def _kubernetes(rng: Random) -> Said:
    said: Said = [(CLIENT, b"GET /api/v1/pods?watch=1 HTTP/1.1\r\nHost: kubernetes\r\n\r\n")]
    said.append((SERVER, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"))
    for version in range(60):
        line = json.dumps({"type": "MODIFIED", "object": {"kind": "Pod", "v": version, "n": word(rng).decode()}})
        said.append((SERVER, b"%x\r\n%s\n\r\n" % (len(line) + 1, line.encode())))
    return said


@conversation("etcd")
def _etcd(rng: Random) -> Said:
    return _http2(rng, lambda r: b"\0" + s32(protobuf((1, b"/registry/" + word(r)), (3, r.randrange(1 << 30)))))


@conversation("WebSocket")
def _websocket(rng: Random) -> Said:
    said: Said = [(CLIENT, b"GET /chat HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")]
    said.append((SERVER, b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"))
    for _ in range(TURNS):
        text = word(rng) * 3
        mask = rng.randbytes(4)
        said.append(
            (CLIENT, b"\x81" + bytes([0x80 | len(text)]) + mask + bytes(b ^ mask[i & 3] for i, b in enumerate(text)))
        )
        said.append((SERVER, b"\x81" + bytes([len(text)]) + text))
    return said
