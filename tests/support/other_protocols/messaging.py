"""Messages and queues."""

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


def _mqtt_packet(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + write_uvarint(len(body)) + body


def _mqtt(rng: Random, level: int) -> Said:
    extra = b"\0" if level == 5 else b""
    said: Said = [
        (CLIENT, _mqtt_packet(0x10, s16(b"MQTT") + bytes([level, 2, 0, 60]) + extra + s16(b"billing-service")))
    ]
    said.append((SERVER, _mqtt_packet(0x20, b"\0\0" + extra)))
    for number in range(1, TURNS):
        said.append((CLIENT, _mqtt_packet(0x32, s16(word(rng)) + pack(">H", number) + extra + word(rng) * 9)))
        said.append((SERVER, _mqtt_packet(0x40, pack(">H", number))))
    return said


@conversation("MQTT 3.1.1")
def _mqtt3(rng: Random) -> Said:
    return _mqtt(rng, 4)


@conversation("MQTT 5")
def _mqtt5(rng: Random) -> Said:
    return _mqtt(rng, 5)


@conversation("AMQP 0-9-1")
def _amqp0(rng: Random) -> Said:
    def frame(kind: int, channel: int, payload: bytes) -> bytes:
        return pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"

    said: Said = [(CLIENT, b"AMQP\0\0\x09\x01")]
    said.append(
        (SERVER, frame(1, 0, pack(">HHBB", 10, 10, 0, 9) + s32(b"\x07productS" + s32(b"RabbitMQ")) + s32(b"PLAIN")))
    )
    said.append((CLIENT, frame(1, 0, pack(">HH", 10, 11) + s32(b"") + b"\x05PLAIN" + s32(b"\0guest\0guest"))))
    for _ in range(TURNS):
        publish = frame(1, 1, pack(">HHH", 60, 40, 0) + b"\0\x06orders\0") + frame(2, 1, pack(">HHQH", 60, 0, 9, 0))
        said.append((CLIENT, publish + frame(3, 1, word(rng) * 5)))
        said.append((SERVER, frame(1, 1, pack(">HHQB", 60, 80, rng.randrange(99), 0))))
    return said


@conversation("AMQP 1.0")
def _amqp1(rng: Random) -> Said:
    def frame(channel: int, body: bytes) -> bytes:
        return pack(">IBBH", 8 + len(body), 2, 0, channel) + body

    said: Said = [(CLIENT, b"AMQP\0\x01\0\0"), (SERVER, b"AMQP\0\x01\0\0")]
    for number in range(TURNS):
        transfer = (
            b"\0\x53\x14\xc0\x0b\x04\x43\x52" + bytes([number]) + b"\xa0\x01\x00" + b"\0\x53\x77\xa1\x09" + b"some text"
        )
        said.append((CLIENT, frame(0, transfer + word(rng))))
        said.append((SERVER, frame(0, b"\0\x53\x15\xc0\x06\x05\x41\x52" + bytes([number]) + b"\x40\x41")))
    return said


@conversation("STOMP")
def _stomp(rng: Random) -> Said:
    said: Said = [
        (CLIENT, b"CONNECT\naccept-version:1.2\nhost:broker\n\n\0"),
        (SERVER, b"CONNECTED\nversion:1.2\n\n\0"),
    ]
    for _ in range(TURNS):
        said.append((CLIENT, b"SEND\ndestination:/queue/a\n\n" + word(rng) + b"\0"))
        said.append((SERVER, b"RECEIPT\nreceipt-id:7\n\n\0"))
    return said


@conversation("NATS")
def _nats(rng: Random) -> Said:
    said: Said = [(SERVER, b'INFO {"server_id":"NA","version":"2.10","max_payload":1048576}\r\n')]
    said.append((CLIENT, b'CONNECT {"verbose":false,"name":"c-1"}\r\nPING\r\n'))
    for _ in range(TURNS):
        text = word(rng) * 4
        said += [(SERVER, b"PONG\r\n"), (CLIENT, b"PUB orders %d\r\n%s\r\nPING\r\n" % (len(text), text))]
    return said


@conversation("Pulsar")
def _pulsar(rng: Random) -> Said:
    def command(kind: int, body: bytes, payload: bytes = b"") -> bytes:
        inner = protobuf((1, kind), (kind, body))
        return framed(pack(">i", len(inner)) + inner + payload)

    said: Said = [(CLIENT, command(2, protobuf((1, b"2.11"), (4, 19))))]
    said.append((SERVER, command(3, protobuf((1, b"Pulsar Server"), (2, 19)))))
    for number in range(TURNS):
        said.append((CLIENT, command(6, protobuf((1, 0), (2, number)), b"\x0e\x01" + rng.randbytes(4) + word(rng) * 6)))
        said.append((SERVER, command(7, protobuf((1, 0), (2, number)))))
        said += [(SERVER, command(18, b"")), (CLIENT, command(19, b""))]
    return said


@conversation("RocketMQ")
def _rocketmq(rng: Random) -> Said:
    def command(code: int, opaque: int, flag: int, body: bytes) -> bytes:
        header = json.dumps({"code": code, "flag": flag, "language": "JAVA", "opaque": opaque, "version": 399}).encode()
        return framed(pack(">I", len(header)) + header + body)

    said: Said = []
    for number in range(TURNS):
        said += [(CLIENT, command(105, number, 0, b"")), (SERVER, command(0, number, 1, b'{"brokerDatas":[]}'))]
        said.append((CLIENT, command(310, number, 0, word(rng) * 9)))
    return said


@conversation("RabbitMQ streams")
def _rabbitmq_streams(rng: Random) -> Said:
    """RabbitMQ's stream protocol (rabbitmq_stream/docs/PROTOCOL.adoc): length, key, version and correlation id are
    where Kafka has them, and keys and versions are some that Kafka has, too; no client id follows.
    """

    def asked(key: int, number: int, body: bytes) -> tuple[int, bytes]:
        return CLIENT, framed(pack(">HHI", key, 1, number) + body)

    def answered(key: int, number: int, body: bytes = b"") -> tuple[int, bytes]:
        return SERVER, framed(pack(">HHIH", key | 0x8000, 1, number, 1) + body)

    properties = pack(">i", 2) + s16(b"product") + s16(b"RabbitMQ Stream") + s16(b"version") + s16(b"0.15.0")
    tune = framed(pack(">HHII", 20, 1, 1 << 20, 60))
    said = [asked(17, 0, properties), answered(17, 0, properties), asked(18, 1, b"")]
    said += [answered(18, 1, pack(">i", 1) + s16(b"PLAIN")), asked(19, 2, s16(b"PLAIN") + s32(b"\0guest\0guest"))]
    said += [answered(19, 2), (SERVER, tune), (CLIENT, tune), asked(21, 3, s16(b"/")), answered(21, 3, pack(">i", 0))]
    said += [asked(1, 4, b"\0" + s16(b"") + s16(word(rng))), answered(1, 4)]
    for number in range(TURNS):
        published = pack(">HHBIq", 2, 1, 0, 1, number) + s32(b"\0Su\xa0\5hello")
        said += [(CLIENT, framed(published)), (SERVER, framed(pack(">HHBIq", 3, 1, 0, 1, number)))]
        if number % 4 == 0:
            said += [asked(15, 5 + number, pack(">i", 1) + s16(word(rng))), answered(15, 5 + number, bytes(8))]
    return said


@conversation("ActiveMQ OpenWire")
def _openwire(rng: Random) -> Said:
    said: Said = [
        (CLIENT, framed(b"\x01ActiveMQ" + pack(">i", 12) + b"\x01" + s32(b"\0\0\0\1\x05\0\x0cCacheEnabled\x01\x01")))
    ]
    said.append((SERVER, said[0][1]))
    for number in range(TURNS):
        said.append((CLIENT, framed(b"\x03" + pack(">iB", number, 1) + b"\x01" + s16(word(rng)))))
        said.append((SERVER, framed(b"\x1e" + pack(">iBi", number, 0, number))))
    return said


@conversation("NSQ")
def _nsq(rng: Random) -> Said:
    def frame(kind: int, body: bytes) -> bytes:
        return framed(pack(">i", kind) + body)

    said: Said = [(CLIENT, b"  V2IDENTIFY\n" + s32(b'{"client_id":"c-1","hostname":"h"}')), (SERVER, frame(0, b"OK"))]
    for number in range(TURNS):
        text = word(rng) * 3
        said.append((SERVER, frame(2, pack(">qH", 10**18 + number, 1) + b"0123456789abcdef" + text)))
        said += [(CLIENT, b"FIN 0123456789abcdef\n"), (SERVER, frame(0, b"_heartbeat_")), (CLIENT, b"NOP\n")]
    return said


@conversation("IBM MQ")
def _ibm_mq(rng: Random) -> Said:
    said: Said = []
    for number in range(TURNS):
        body = word(rng).ljust(48) + pack(">ii", number, 0)
        for side in (CLIENT, SERVER):
            said.append((side, b"TSH " + pack(">iBBBB8sii", 28 + len(body), 1, 1, 0x30, 0, b"\0" * 8, 273, 819) + body))
    return said


@conversation("ZeroMQ")
def _zeromq(rng: Random) -> Said:
    greeting = b"\xff" + b"\0" * 8 + b"\x7f\x03\0NULL" + b"\0" * 48
    said: Said = [(CLIENT, greeting), (SERVER, greeting)]
    for _ in range(TURNS):
        text = word(rng)
        said += [(CLIENT, bytes([0, len(text)]) + text), (SERVER, bytes([0, len(text)]) + text)]
    return said
