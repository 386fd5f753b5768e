"""Databases, caches and directories."""

from __future__ import annotations

from random import Random
from struct import pack

from tests.support.other_protocols.making import CLIENT, SERVER, TURNS, Said, conversation, framed, s16, s32, word


def _resp(*parts: bytes) -> bytes:
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


@conversation("Redis RESP2")
def _redis2(rng: Random) -> Said:
    said: Said = []
    for _ in range(TURNS):
        said += [(CLIENT, _resp(b"SET", word(rng), rng.randbytes(30))), (SERVER, b"+OK\r\n")]
        said += [(CLIENT, _resp(b"GET", word(rng))), (SERVER, b"$12\r\nhello, world\r\n")]
    return said


@conversation("Redis RESP3")
def _redis3(rng: Random) -> Said:
    said: Said = [
        (CLIENT, _resp(b"HELLO", b"3")),
        (SERVER, b"%2\r\n$6\r\nserver\r\n$5\r\nredis\r\n$5\r\nproto\r\n:3\r\n"),
    ]
    for _ in range(TURNS):
        said += [(CLIENT, _resp(b"HGETALL", word(rng))), (SERVER, b"%1\r\n$1\r\na\r\n,1.5\r\n")]
    return said


@conversation("memcached text")
def _memcached(rng: Random) -> Said:
    said: Said = []
    for _ in range(TURNS):
        said += [(CLIENT, b"set %s 0 60 5\r\nhello\r\n" % word(rng)), (SERVER, b"STORED\r\n")]
        said += [(CLIENT, b"get orders\r\n"), (SERVER, b"VALUE orders 0 5\r\nhello\r\nEND\r\n")]
    return said


def _memcached_packets(rng: Random, codes: tuple[int, ...]) -> Said:
    said: Said = []
    for number in range(2 * TURNS):
        key, value = word(rng), rng.randbytes(rng.randrange(40))
        code = rng.choice(codes)
        said.append((CLIENT, pack(">BBHBBHIIQ", 0x80, code, len(key), 0, 0, 7, len(key), number, 0) + key))
        said.append((SERVER, pack(">BBHBBHIIQ", 0x81, code, 0, 4, 0, 0, 4 + len(value), number, 9) + b"\0" * 4 + value))
    return said


@conversation("memcached binary")
def _memcached_binary(rng: Random) -> Said:
    return _memcached_packets(rng, (0, 1, 4, 9))


@conversation("Couchbase")
def _couchbase(rng: Random) -> Said:
    return _memcached_packets(rng, (0x1F, 0x20, 0x89, 0xB5))


@conversation("PostgreSQL")
def _postgresql(rng: Random) -> Said:
    def message(kind: bytes, body: bytes) -> bytes:
        return kind + pack(">i", len(body) + 4) + body

    parameters = b"user\0billing\0database\0orders\0\0"
    said: Said = [(CLIENT, pack(">ii", 8 + len(parameters), 0x30000) + parameters)]
    said.append((SERVER, message(b"R", pack(">i", 0)) + message(b"Z", b"I")))
    for number in range(TURNS):
        said.append((CLIENT, message(b"Q", b"select * from %s\0" % word(rng))))
        row = pack(">H", 2) + s32(b"%d" % number) + s32(word(rng))
        said.append((SERVER, message(b"D", row) * 5 + message(b"C", b"SELECT 5\0") + message(b"Z", b"I")))
    return said


@conversation("PostgreSQL asking for TLS")
def _postgresql_tls(rng: Random) -> Said:
    return [(CLIENT, pack(">ii", 8, 80877103)), (SERVER, b"N"), *_postgresql(rng)]


@conversation("MySQL")
def _mysql(rng: Random) -> Said:
    def packet(number: int, body: bytes) -> bytes:
        return pack("<I", len(body))[:3] + bytes([number]) + body

    said: Said = [
        (SERVER, packet(0, b"\x0a8.0.36\0" + pack("<I", 77) + b"abcdefgh\0" + b"\xff\xff\x21\x02\0" + b"\0" * 13))
    ]
    said.append((CLIENT, packet(1, pack("<IIB", 0x85A6, 1 << 24, 33) + b"\0" * 23 + b"root\0\0orders\0")))
    said.append((SERVER, packet(2, b"\0\0\0\x02\0\0\0")))
    for _ in range(TURNS):
        said.append((CLIENT, packet(0, b"\x03select 1 from " + word(rng))))
        said.append((SERVER, packet(1, b"\x01") + packet(2, b"\x03def" + word(rng)) + packet(3, b"\x011")))
    return said


@conversation("MS-TDS")
def _tds(rng: Random) -> Said:
    def packet(kind: int, body: bytes) -> bytes:
        return pack(">BBHHBB", kind, 1, 8 + len(body), 0, 1, 0) + body

    said: Said = [
        (CLIENT, packet(0x12, bytes.fromhex("00001a0006010020000102002100010300220004040026 0001ff".replace(" ", ""))))
    ]
    said.append(
        (SERVER, packet(4, bytes.fromhex("00001a0006010020000102002100010300220000040022 0001ff".replace(" ", ""))))
    )
    for _ in range(TURNS):
        said.append((CLIENT, packet(1, pack("<IIH", 22, 18, 2) + ("select " + word(rng).decode()).encode("utf-16-le"))))
        said.append(
            (SERVER, packet(4, b"\x81\x01\0\0\0\0\0\x09\0" + word(rng) + b"\xfd\x10\0\xc1\0\1\0\0\0\0\0\0\0\0\0"))
        )
    return said


@conversation("Oracle TNS")
def _tns(rng: Random) -> Said:
    def packet(kind: int, body: bytes) -> bytes:
        return pack(">HHBBH", 8 + len(body), 0, kind, 0, 0) + body

    connect = b"(DESCRIPTION=(CONNECT_DATA=(SERVICE_NAME=orders)))"
    said: Said = [
        (CLIENT, packet(1, pack(">HHHHHHHHHH", 312, 300, 0, 2048, 32767, 8, 0, 1, len(connect), 58) + connect))
    ]
    said.append((SERVER, packet(2, pack(">HHHHHH", 312, 0, 2048, 32767, 1, 0))))
    for _ in range(TURNS):
        said.append((CLIENT, packet(6, b"\0\0\x03\x5e" + bytes([rng.randrange(256)]) + b"\x61\x80" + word(rng) * 4)))
        said.append((SERVER, packet(6, b"\0\0\x10\x17" + rng.randbytes(20) + word(rng))))
    return said


@conversation("MongoDB")
def _mongodb(rng: Random) -> Said:
    def message(number: int, to: int, document: bytes) -> bytes:
        body = pack("<iB", 0, 0) + document
        return pack("<iiii", 16 + len(body), number, to, 2013) + body

    said: Said = []
    for number in range(TURNS):
        name = word(rng)
        document = b"\x02find\0" + pack("<i", len(name) + 1) + name + b"\0\x10limit\0\x01\0\0\0\0"
        document = pack("<i", len(document) + 4) + document
        said += [(CLIENT, message(number, 0, document)), (SERVER, message(900 + number, number, document * 2))]
    return said


@conversation("Cassandra CQL")
def _cql(rng: Random) -> Said:
    def frame(version: int, stream: int, opcode: int, body: bytes) -> bytes:
        return pack(">BBhB", version, 0, stream, opcode) + s32(body)

    said: Said = [(CLIENT, frame(4, 0, 5, b"")), (SERVER, frame(0x84, 0, 6, pack(">H", 1) + s16(b"CQL_VERSION")))]
    for number in range(TURNS):
        said.append((CLIENT, frame(4, number, 7, s32(b"SELECT * FROM " + word(rng)) + b"\0\1\0")))
        said.append((SERVER, frame(0x84, number, 8, pack(">iii", 2, 1, 2) + s16(b"ks") + s16(word(rng)))))
    return said


@conversation("ZooKeeper")
def _zookeeper(rng: Random) -> Said:
    said: Said = [(CLIENT, framed(pack(">iqiqi", 0, 0, 30_000, 0, 16) + b"\0" * 16))]
    said.append((SERVER, framed(pack(">iiqi", 0, 30_000, 0x1000123, 16) + rng.randbytes(16))))
    for xid in range(1, 2 * TURNS):
        kind = rng.choice((3, 4, 8, 12, 14))
        said.append((CLIENT, framed(pack(">ii", xid, kind) + s32(b"/brokers/" + word(rng)) + b"\0")))
        said.append(
            (SERVER, framed(pack(">iqi", xid, 0x5000 + xid, 0) + s32(word(rng)) + pack(">qqqqii", 1, 1, 2, 2, 0, 0)))
        )
        said += [(CLIENT, framed(pack(">ii", -2, 11))), (SERVER, framed(pack(">iqi", -2, 0x5000 + xid, 0)))]
    return said


@conversation("ZooKeeper quorum")
def _zookeeper_quorum(rng: Random) -> Said:
    said: Said = []
    for zxid in range(1, 2 * TURNS):
        said.append((SERVER, pack(">iq", 2, zxid) + s32(word(rng) * 3) + pack(">i", -1)))
        said += [(CLIENT, pack(">iqii", 3, zxid, -1, -1)), (SERVER, pack(">iqii", 4, zxid, -1, -1))]
    return said


@conversation("Aerospike")
def _aerospike(rng: Random) -> Said:
    def message(kind: int, body: bytes) -> bytes:
        return pack(">Q", 2 << 56 | kind << 48 | len(body)) + body

    said: Said = [
        (CLIENT, message(1, b"node\nservices\n")),
        (SERVER, message(1, b"node\tBB9\nservices\t10.0.0.1:3000\n")),
    ]
    for _ in range(TURNS):
        said.append(
            (CLIENT, message(3, pack(">BBBBBBIIIHH", 22, 1, 0, 0, 0, 0, 0, 0, 1000, 1, 0) + s32(b"\0" + word(rng))))
        )
        said.append(
            (
                SERVER,
                message(3, pack(">BBBBBBIIIHH", 22, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1) + s32(b"\1\3\0\1a" + word(rng))),
            )
        )
    return said


@conversation("Elasticsearch transport")
def _elasticsearch(rng: Random) -> Said:
    def message(number: int, status: int, body: bytes) -> bytes:
        rest = pack(">qBi", number, status, 8_010_099) + pack(">i", 2) + b"\0\0" + body
        return b"ES" + pack(">i", len(rest)) + rest

    said: Said = []
    for number in range(TURNS):
        said.append((CLIENT, message(number, 0, b"\x1findices:data/read/" + word(rng))))
        said.append((SERVER, message(number, 1, word(rng) * 5)))
    return said


@conversation("LDAP")
def _ldap(rng: Random) -> Said:
    def message(number: int, op: bytes) -> bytes:
        body = b"\x02\x01" + bytes([number]) + op
        return b"\x30" + bytes([len(body)]) + body

    said: Said = [
        (CLIENT, message(1, b"\x60\x0c\x02\x01\x03\x04\x00\x80\x05guest")),
        (SERVER, message(1, b"\x61\x07\x0a\x01\0\x04\0\x04\0")),
    ]
    for number in range(2, TURNS):
        name = word(rng)
        said += [
            (CLIENT, message(number, b"\x4a" + bytes([len(name)]) + name)),
            (SERVER, message(number, b"\x6b\x07\x0a\x01\0\x04\0\x04\0")),
        ]
    return said
