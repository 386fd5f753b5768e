"""Networks, devices and files; and noise."""

from __future__ import annotations

import json
from random import Random
from struct import pack

from tests.support.other_protocols.making import CLIENT, SERVER, TURNS, Said, conversation, framed, s16, s32, word


@conversation("DNS over TCP")
def _dns(rng: Random) -> Said:
    said: Said = []
    for _ in range(2 * TURNS):
        name = bytes([6]) + b"broker" + bytes([4]) + b"test\0"
        number = rng.randrange(65536)
        said.append((CLIENT, s16(pack(">HHHHHH", number, 0x100, 1, 0, 0, 0) + name + pack(">HH", 1, 1))))
        answer = b"\xc0\x0c" + pack(">HHIH", 1, 1, 60, 4) + rng.randbytes(4)
        said.append((SERVER, s16(pack(">HHHHHH", number, 0x8180, 1, 1, 0, 0) + name + pack(">HH", 1, 1) + answer)))
    return said


@conversation("SMB 2")
def _smb2(rng: Random) -> Said:
    said: Said = []
    for number in range(2 * TURNS):
        for side in (CLIENT, SERVER):
            header = (
                b"\xfeSMB"
                + pack("<HHIHHIIQIIQ", 64, 1, 0, rng.randrange(16), 31, side, 0, number, 0xFEFF, 5, 9)
                + b"\0" * 16
            )
            said.append((side, framed(header + word(rng).decode().encode("utf-16-le"))))
    return said


@conversation("NetBIOS session")
def _netbios(rng: Random) -> Said:
    return [(CLIENT, b"\x81\0\0\x44 " + b"CA" * 16 + b"\0 " + b"CA" * 16 + b"\0"), (SERVER, b"\x82\0\0\0"), *_smb2(rng)]


@conversation("BGP")
def _bgp(rng: Random) -> Said:
    def message(kind: int, body: bytes) -> bytes:
        return b"\xff" * 16 + pack(">HB", 19 + len(body), kind) + body

    opening = message(1, pack(">BHH4sB", 4, 65001, 180, b"\x0a\0\0\1", 0))
    said: Said = [(CLIENT, opening), (SERVER, opening)]
    for _ in range(TURNS):
        update = message(2, pack(">HH", 0, 14) + b"\x40\1\1\0\x40\2\0\x40\3\4\x0a\0\0\1" + b"\x18" + rng.randbytes(3))
        said += [(CLIENT, message(4, b"")), (SERVER, update)]
    return said


@conversation("Diameter")
def _diameter(rng: Random) -> Said:
    def message(flags: int, code: int, number: int, *avps: tuple[int, bytes]) -> bytes:
        body = b"".join(pack(">II", k, 0x40 << 24 | 8 + len(v)) + v + b"\0" * (-len(v) % 4) for k, v in avps)
        return pack(">IIIII", 1 << 24 | 20 + len(body), flags << 24 | code, 0, number, number) + body

    said: Said = []
    for number in range(TURNS):
        said.append((CLIENT, message(0x80, 257, number, (264, b"client-1.example"), (296, word(rng)))))
        said.append((SERVER, message(0, 257, number, (268, pack(">I", 2001)), (264, b"server"))))
    return said


@conversation("RADIUS over TCP")
def _radius(rng: Random) -> Said:
    said: Said = []
    for number in range(TURNS):
        name = word(rng)
        attributes = b"\x01" + bytes([2 + len(name)]) + name
        said.append((CLIENT, pack(">BBH", 1, number, 20 + len(attributes)) + rng.randbytes(16) + attributes))
        said.append((SERVER, pack(">BBH", 2, number, 20) + rng.randbytes(16)))
    return said


@conversation("Modbus/TCP")
def _modbus(rng: Random) -> Said:
    said: Said = []
    for number in range(3 * TURNS):
        said.append((CLIENT, pack(">HHHBBHH", number, 0, 6, 1, 3, rng.randrange(99), 10)))
        said.append((SERVER, pack(">HHHBBB", number, 0, 23, 1, 3, 20) + bytes(rng.randrange(3) for _ in range(20))))
    return said


@conversation("OPC UA")
def _opcua(rng: Random) -> Said:
    def message(kind: bytes, body: bytes) -> bytes:
        return kind + pack("<I", 8 + len(body)) + body

    said: Said = [(CLIENT, message(b"HELF", pack("<IIIIIi", 0, 65536, 65536, 0, 0, 18) + b"opc.tcp://host:4840"))]
    said.append((SERVER, message(b"ACKF", pack("<IIIII", 0, 65536, 65536, 0, 0))))
    for number in range(TURNS):
        said += [(side, message(b"MSGF", pack("<IIII", 7, 1, number, number) + word(rng))) for side in (CLIENT, SERVER)]
    return said


@conversation("DICOM")
def _dicom(rng: Random) -> Said:
    def pdu(kind: int, body: bytes) -> bytes:
        return pack(">BBI", kind, 0, len(body)) + body

    association = pack(">HH", 1, 0) + b"ARCHIVE".ljust(16) + b"SCANNER".ljust(16) + b"\0" * 32
    item = b"\x10\0" + s16(b"1.2.840.10008.3.1.1.1")
    said: Said = [(CLIENT, pdu(1, association + item)), (SERVER, pdu(2, association + item))]
    for _ in range(TURNS):
        said += [(side, pdu(4, s32(b"\x01\x03" + word(rng) + rng.randbytes(30)))) for side in (CLIENT, SERVER)]
    return said


@conversation("RTMP")
def _rtmp(rng: Random) -> Said:
    said: Said = [
        (CLIENT, b"\x03" + b"\0" * 8 + rng.randbytes(1528)),
        (SERVER, b"\x03" + b"\0" * 8 + rng.randbytes(1528)),
    ]
    for number in range(TURNS):
        body = b"\x02" + s16(b"connect") + b"\0" + rng.randbytes(8) + b"\x03" + s16(b"app") + b"\x02" + s16(word(rng))
        said += [
            (side, b"\x03" + pack(">I", number)[1:] + pack(">I", len(body))[1:] + b"\x14\0\0\0\0" + body)
            for side in (0, 1)
        ]
    return said


@conversation("BitTorrent")
def _bittorrent(rng: Random) -> Said:
    shake = b"\x13BitTorrent protocol" + b"\0" * 8 + rng.randbytes(40)
    said: Said = [
        (CLIENT, shake),
        (SERVER, shake),
        (SERVER, framed(b"\x05" + b"\xff\xf0")),
        (CLIENT, framed(b"\x02")),
    ]
    for number in range(2 * TURNS):
        said.append((CLIENT, framed(b"\x06" + pack(">III", number, 0, 16384))))
        said.append((SERVER, framed(b"\x07" + pack(">II", number, 0) + rng.randbytes(600))))
        said += [(CLIENT, pack(">i", 0)), (SERVER, framed(b"\x04" + pack(">I", number)))]
    return said


@conversation("Zabbix")
def _zabbix(rng: Random) -> Said:
    said: Said = []
    for _ in range(TURNS):
        text = json.dumps({"request": "active checks", "host": word(rng).decode()}).encode()
        said += [(side, b"ZBXD\x01" + pack("<II", len(text), 0) + text) for side in (CLIENT, SERVER)]
    return said


@conversation("VNC")
def _vnc(rng: Random) -> Said:
    said: Said = [(SERVER, b"RFB 003.008\n"), (CLIENT, b"RFB 003.008\n"), (SERVER, b"\x01\x01"), (CLIENT, b"\x01")]
    said += [
        (SERVER, pack(">I", 0)),
        (CLIENT, b"\x01"),
        (SERVER, pack(">HH16s", 800, 600, b"\x20\x18\0\1" + b"\0" * 12) + s32(b"desk")),
    ]
    for _ in range(TURNS):
        said.append((CLIENT, pack(">BBHHHH", 3, 1, 0, 0, 800, 600)))
        said.append((SERVER, pack(">BBHHHHHi", 0, 0, 1, 0, 0, 8, 8, 0) + rng.randbytes(256)))
    return said


@conversation("RDP")
def _rdp(rng: Random) -> Said:
    said: Said = [(CLIENT, pack(">BBHBBHHB", 3, 0, 19, 14, 0xE0, 0, 0, 0) + bytes.fromhex("0100080003000000"))]
    said.append((SERVER, pack(">BBHBBHHB", 3, 0, 19, 14, 0xD0, 0, 0x1234, 0) + bytes.fromhex("0200080000000000")))
    for _ in range(TURNS):
        body = b"\x02\xf0\x80\x64\0\x06\x03\xeb" + rng.randbytes(40)
        said += [(side, pack(">BBH", 3, 0, 4 + len(body)) + body) for side in (CLIENT, SERVER)]
    return said


@conversation("PROXY protocol 2, then text")
def _proxy2(rng: Random) -> Said:
    front = b"\r\n\r\n\0\r\nQUIT\n\x21\x11" + pack(">H4s4sHH", 12, b"\x0a\0\0\1", b"\x0a\0\0\2", 40000, 9092)
    return [
        (CLIENT, front + b"hello\n"),
        *[(side, word(rng) + b"\n") for _ in range(TURNS) for side in (SERVER, CLIENT)],
    ]


@conversation("random bytes")
def _random(rng: Random) -> Said:
    return [(side, rng.randbytes(rng.randrange(1, 1400))) for _ in range(2 * TURNS) for side in (CLIENT, SERVER)]


@conversation("zeros")
def _zeros(rng: Random) -> Said:
    return [(side, b"\0" * rng.randrange(1, 200)) for _ in range(TURNS) for side in (CLIENT, SERVER)]


@conversation("numbers of 16 bits")
def _samples(rng: Random) -> Said:
    return [(CLIENT, b"".join(pack(">h", rng.randrange(12)) for _ in range(500))) for _ in range(20)]


@conversation("text of 16 bits")
def _utf16(rng: Random) -> Said:
    return [(side, (word(rng).decode() * 40).encode("utf-16-be")) for _ in range(TURNS) for side in (CLIENT, SERVER)]
