"""Kafka behind a proxy: the connection goes on behind the preamble, which tells of client and broker."""

from __future__ import annotations

import json
import ssl
import zlib
from collections.abc import Iterable
from struct import pack
from typing import Any

import pytest

from kwiresniff.export.json_objects import event_json
from kwiresniff.model import Connection, Event, Exchange, Outcome
from kwiresniff.session import Analyzer, proxy_preamble
from kwiresniff.session.checkpoint import _FIELDS, dump, load
from kwiresniff.stream.resync_buffer import MAX_RESYNC_SEGMENTS
from tests.support.conversation import (
    Wire,
    api_versions_v0,
    api_versions_v0_response,
    events,
    exchanges,
    heartbeat,
    heartbeat_response,
    problems,
    request,
)
from tests.support.events import analyze_with, finish, process
from tests.support.proxies import PASSWORD, USER, Said, recorded
from tests.support.tls_conversation import TlsTalk

RECORDED = recorded()
#: The signature of version 2 (proxy-protocol.txt, section 2.2).
V2 = bytes.fromhex("0d0a0d0a000d0a515549540a")
#: Addresses of section 2.2, in network order: source, destination, ports.
V4 = bytes([203, 0, 113, 7, 10, 0, 0, 2]) + pack(">HH", 51515, 9092)
V6 = bytes.fromhex("20010db8000000000000000000000007 20010db8000000000000000000000002") + pack(">HH", 51515, 9092)
REAL, REAL6, DIALLED = "203.0.113.7:51515", "[2001:db8::7]:51515", "kafka-1.int:9092"
NAME = b"kafka-1.int"


def v2(command: int, family: int, rest: bytes) -> bytes:
    return V2 + bytes([command, family]) + pack(">H", len(rest)) + rest


def tlv(kind: int, value: bytes) -> bytes:
    return bytes([kind]) + pack(">H", len(value)) + value


def socks5(address: bytes, port: int = 9092) -> Said:
    """RFC 1928 without authentication; ``address`` begins with its type."""
    return [(0, b"\x05\x01\x00"), (1, b"\x05\x00"), (0, b"\x05\x01\x00" + address + pack(">H", port)), (1, GRANTED)]


GRANTED = b"\x05\x00\x00\x01" + bytes(6)
#: User name and password (RFC 1929, section 2).
LOGIN = b"\x01\x05kwire\x0csn1ff-secret"
TLVS = (
    tlv(0x01, b"h2") + tlv(0x02, b"broker.example") + tlv(0x03, bytes(4)) + tlv(0x04, bytes(300))
    + tlv(0x05, b"id") + tlv(0x20, b"\x01" + bytes(4) + tlv(0x21, b"TLSv1.3")) + tlv(0xEA, b"\x01vpce-08d2bf15")
)  # fmt: skip

#: What is said before Kafka, and the member ``proxied``.
PREAMBLES: dict[str, tuple[Said, str | None, str | None, str]] = {
    "v1": ([(0, b"PROXY TCP4 203.0.113.7 10.0.0.2 51515 9092\r\n")], REAL, None, "PROXY v1"),
    # The longest lines of section 2.1.
    "v1 longest IPv4": (
        [(0, b"PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n")], "255.255.255.255:65535", None, "PROXY v1",
    ),
    "v1 longest IPv6": (
        [(0, b"PROXY TCP6 " + b" ".join([b":".join([b"ffff"] * 8)] * 2) + b" 65535 65535\r\n")],
        f"[{':'.join(['ffff'] * 8)}]:65535", None, "PROXY v1",
    ),
    "v1 IPv6": ([(0, b"PROXY TCP6 2001:db8::7 2001:db8::2 51515 9092\r\n")], REAL6, None, "PROXY v1"),
    "v1 unknown": ([(0, b"PROXY UNKNOWN\r\n")], None, None, "PROXY v1"),
    "v1 longest unknown": (
        [(0, b"PROXY UNKNOWN " + b" ".join([b":".join([b"ffff"] * 8)] * 2) + b" 65535 65535\r\n")],
        None, None, "PROXY v1",
    ),
    "v2": ([(0, v2(0x21, 0x11, V4))], REAL, None, "PROXY v2"),
    "v2 TLVs": ([(0, v2(0x21, 0x11, V4 + TLVS))], REAL, None, "PROXY v2"),
    "v2 IPv6": ([(0, v2(0x21, 0x21, V6 + TLVS))], REAL6, None, "PROXY v2"),
    "v2 UNIX": ([(0, v2(0x21, 0x31, b"/run/a".ljust(108, b"\0") + bytes(108)))], None, None, "PROXY v2"),
    "v2 UNSPEC": ([(0, v2(0x21, 0x00, b""))], None, None, "PROXY v2"),
    "v2 LOCAL": ([(0, v2(0x20, 0x00, b""))], None, None, "PROXY v2"),
    "v2 LOCAL with addresses": ([(0, v2(0x20, 0x11, V4))], None, None, "PROXY v2"),
    "v2 too short for its addresses": ([(0, v2(0x21, 0x21, V4))], None, None, "PROXY v2"),
    "socks4": (
        [(0, b"\x04\x01" + pack(">H4s", 9092, b"\x0a\0\0\7") + b"me\0"), (1, b"\0\x5a" + bytes(6))],
        None, "10.0.0.7:9092", "SOCKS4",
    ),
    "socks4a": (
        [(0, b"\x04\x01" + pack(">H4s", 9092, b"\0\0\0\1") + b"\0" + NAME + b"\0"), (1, b"\0\x5a" + bytes(6))],
        None, DIALLED, "SOCKS4",
    ),
    "socks5 name": (socks5(b"\x03\x0b" + NAME), None, DIALLED, "SOCKS5"),
    "socks5 IPv4": (socks5(b"\x01\x0a\0\0\7"), None, "10.0.0.7:9092", "SOCKS5"),
    "socks5 IPv6": (socks5(b"\x04" + V6[:16]), None, "[2001:db8::7]:9092", "SOCKS5"),
    "socks5 answered with a name": (
        [*socks5(b"\x03\x0b" + NAME)[:3], (1, b"\x05\0\0\x03\x04exit\0\x50")], None, DIALLED, "SOCKS5",
    ),
    "connect": (
        [(0, b"CONNECT kafka-1.int:9092 HTTP/1.1\r\nHost: kafka-1.int:9092\r\n\r\n"),
         (1, b"HTTP/1.1 200 Connection established\r\n\r\n")],
        None, DIALLED, "HTTP CONNECT",
    ),
    "connect without headers": (
        [(0, b"CONNECT [2001:db8::7]:9092 HTTP/1.0\r\n\r\n"), (1, b"HTTP/1.1 200\r\n\r\n")],
        None, "[2001:db8::7]:9092", "HTTP CONNECT",
    ),
    "connect after an interim answer": (
        [(0, b"CONNECT kafka-1.int:9092 HTTP/1.1\r\n\r\n"),
         (1, b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nVia: a\r\n\r\n")],
        None, DIALLED, "HTTP CONNECT",
    ),
    "connect, asked for a password": (
        [(0, b"CONNECT kafka-1.int:9092 HTTP/1.1\r\n\r\n"),
         (1, b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 26\r\n\r\n<p>HTTP/1.1 407, sorry</p>"),
         (0, b"CONNECT kafka-1.int:9092 HTTP/1.1\r\nProxy-Authorization: Basic a3dpcmU6c24xZmYtc2VjcmV0\r\n\r\n"),
         (1, b"HTTP/1.1 200 OK\r\n\r\n")],
        None, DIALLED, "HTTP CONNECT",
    ),
    "PROXY before SOCKS5": (
        [(0, v2(0x21, 0x11, V4)), *socks5(b"\x03\x0b" + NAME)], REAL, DIALLED, "PROXY v2, SOCKS5",
    ),
    "two PROXY headers": (
        [(0, b"PROXY TCP4 10.9.9.9 10.0.0.2 1 9092\r\n"), (0, v2(0x21, 0x11, V4))], REAL, None, "PROXY v1, PROXY v2",
    ),
    "SOCKS5 through SOCKS5": (
        [*socks5(b"\x01\x0a\0\0\7", 1080), *socks5(b"\x03\x0b" + NAME)], None, DIALLED, "SOCKS5",
    ),
    **{
        name: (said, None if said[0][0] or said[0][1][:1] in b"\5\4C" else "127.0.0.1", None, "")
        for name, said in RECORDED.items()
        if not any(word in name for word in ("refused", "wrong", "no password"))
    },
}  # fmt: skip

#: What is said where nothing of Kafka follows, and what is said of it.
REFUSED: dict[str, tuple[Said, str]] = {
    "recorded, SOCKS5": (RECORDED["curl socks5h microsocks, refused"], "SOCKS5, refused (connection refused)"),
    "recorded, wrong password": (
        RECORDED["curl socks5h microsocks, wrong password"], "SOCKS5, refused (user name or password)",
    ),
    "recorded, SOCKS4": (RECORDED["curl socks4a dante, refused"], "SOCKS4, refused (rejected or failed)"),
    "recorded, CONNECT": (
        RECORDED["curl connect tinyproxy, refused"], "HTTP CONNECT, refused (500 Internal Server Error)",
    ),
    "recorded, no password": (
        RECORDED["curl connect tinyproxy, no password"], "HTTP CONNECT, refused (407 Proxy Authentication Required)",
    ),
    "no method": ([(0, b"\x05\x01\x00"), (1, b"\x05\xff")], "SOCKS5, refused (no acceptable authentication method)"),
    "ruleset": ([*socks5(b"\x03\x0b" + NAME)[:3], (1, b"\x05\x02\0\x01" + bytes(6))],
                "SOCKS5, refused (not allowed by the ruleset)"),
    "a code that no RFC has": ([*socks5(b"\x03\x0b" + NAME)[:3], (1, b"\x05\x63\0\x01" + bytes(6))],
                               "SOCKS5, refused (code 99)"),
    "SOCKS4 code": ([PREAMBLES["socks4"][0][0], (1, b"\0\x5d" + bytes(6))],
                    "SOCKS4, refused (identd names another user)"),
    "forbidden": ([PREAMBLES["connect"][0][0], (1, b"HTTP/1.1 403 Forbidden\r\n\r\n")],
                  "HTTP CONNECT, refused (403 Forbidden)"),
    "a status that few know": ([PREAMBLES["connect"][0][0], (1, b"HTTP/1.1 599 \x1b[31mNo\r\n\r\n")],
                               "HTTP CONNECT, refused (599)"),
    "checked": (RECORDED["haproxy check of send-proxy-v2"], "PROXY v2 with nothing behind it (LOCAL: a health check)"),
    "nothing behind": (PREAMBLES["v1"][0], "PROXY v1 with nothing behind it"),
    "nothing behind SOCKS5": (socks5(b"\x03\x0b" + NAME), "SOCKS5 with nothing behind it"),
    "HTTP behind": ([*PREAMBLES["v2"][0], (0, b"GET / HTTP/1.1\r\n\r\n")], "http behind PROXY v2"),
}  # fmt: skip

ASKED = (api_versions_v0(1), heartbeat(2))
ANSWERED = (api_versions_v0_response(1), heartbeat_response(2))


def after(said: Said, *, opened: bool = True, only: int | None = None) -> Wire:
    """Two exchanges behind a preamble."""
    wire = Wire().open() if opened else Wire()
    for side, data in [*said, (0, ASKED[0]), (1, ANSWERED[0]), (0, ASKED[1]), (1, ANSWERED[1])]:
        if only in (None, side):
            wire.send(side, data)
    return wire.close()


def joined(said: Said) -> Said:
    """With the first request in the last segment of the client's, and the first response in the broker's."""
    result = list(said)
    for side, data in ((1, ANSWERED[0]), (0, ASKED[0])):
        places = [at for at, (one, _) in enumerate(result) if one == side]
        if places:
            at = places[-1]
            result[at] = side, result[at][1] + data
        else:
            result.append((side, data))
    return sorted(result, key=lambda one: (one[1].endswith(ANSWERED[0]) and 1) or 0)


def wire_of(said: Said) -> Wire:
    wire = Wire().open()
    for side, data in said:
        wire.send(side, data)
    return wire


def connection_of(found: Iterable[Event]) -> Connection:
    (connection,) = [one for one in found if isinstance(one, Connection)]
    return connection


def seen(found: list[Event]) -> tuple[list[tuple[str, Outcome]], list[str], dict[str, Any] | None]:
    """Exchanges, codes of problems, and ``proxied``."""
    told = [(one.api, one.outcome) for one in exchanges(found)]
    return told, [one.code for one in problems(found)], connection_of(found).proxied


BOTH: list[tuple[str, Outcome]] = [("ApiVersions", "ok"), ("Heartbeat", "ok")]


@pytest.mark.parametrize("name", PREAMBLES)
def test_kafka_goes_on_behind_a_preamble(name: str) -> None:
    """Whole, in the same segment as the first request, and in segments of one byte."""
    said, client, broker, by = PREAMBLES[name]
    whole = events(after(said))
    told, codes, proxied = seen(whole)
    assert (told, codes) == (BOTH, [])
    assert proxied is not None
    if by:
        assert proxied == {"client": client, "broker": broker, "by": by}
    end = connection_of(whole)
    assert (end.client, end.broker) == ("10.0.0.1:40000", "10.0.0.2:9092")
    assert end.skipped_bytes == [0, 0]
    bytewise = [(side, data[at : at + 1]) for side, data in said for at in range(len(data))]
    assert seen(events(after(bytewise))) == (BOTH, [], proxied)
    together = wire_of(joined(said)).up(ASKED[1]).down(ANSWERED[1]).close()
    assert seen(events(together)) == (BOTH, [], proxied)


@pytest.mark.parametrize("name", [name for name in PREAMBLES if len(PREAMBLES[name][0]) <= 4])
def test_a_preamble_may_be_cut_anywhere(name: str) -> None:
    """Each message of it in two segments, at every byte."""
    said = PREAMBLES[name][0]
    proxied = seen(events(after(said)))[2]
    for index, (side, data) in enumerate(said):
        for at in range(1, len(data)):
            cut = [*said[:index], (side, data[:at]), (side, data[at:]), *said[index + 1 :]]
            assert seen(events(after(cut))) == (BOTH, [], proxied), (index, at)


def test_recorded_preambles_name_who_dials_and_who_is_dialled() -> None:
    """HAProxy names the client that dialled it; curl and nc name the server that they ask for."""
    for name, said in RECORDED.items():
        if name not in PREAMBLES or "check" in name:
            continue
        proxied = seen(events(after(said)))[2]
        assert proxied is not None
        of_haproxy = name.startswith("haproxy")
        assert (proxied["client"] is not None, proxied["broker"] is not None) == (of_haproxy, not of_haproxy), name
        named = proxied["client"] or proxied["broker"]
        assert named.rpartition(":")[0] in ("127.0.0.1", "localhost"), name


def test_packets_and_times_are_those_of_the_messages() -> None:
    """A preamble in the first request's segment takes nothing of its packet and time."""
    wire = wire_of([(0, PREAMBLES["v1"][0][0][1] + ASKED[0]), (1, ANSWERED[0])]).close()
    (one,) = exchanges(events(wire))
    assert one.request is not None and one.response is not None
    assert (one.request.first_packet, one.request.last_packet, one.request.first_ns) == (4, 4, 4_000_000)
    assert (one.response.first_packet, one.latency_ns) == (5, 1_000_000)


@pytest.mark.parametrize("name", ["v1", "v2 TLVs", "socks4a", "connect", "PROXY before SOCKS5"])
def test_one_direction_is_enough(name: str) -> None:
    """Of a capture that has the client's packets alone, the requests are read and the preamble is told."""
    said, client, broker, by = PREAMBLES[name]
    found = events(after(said, only=0))
    assert [one.api for one in exchanges(found)] == ["ApiVersions", "Heartbeat"]
    assert connection_of(found).proxied == {"client": client, "broker": broker, "by": by}


def test_socks5_is_known_by_its_request_where_no_answer_was_captured() -> None:
    """The greeting alone shows too little; a login or the request behind it is enough."""
    for login in ((), ((0, LOGIN),)):
        methods = b"\x05\x02\x00\x02" if login else b"\x05\x01\x00"
        said = [(0, methods), *login, (0, b"\x05\x01\x00\x03\x0b" + NAME + pack(">H", 9092))]
        found = events(after(said, only=0))
        assert [one.api for one in exchanges(found)] == ["ApiVersions", "Heartbeat"]
        assert connection_of(found).proxied == {"client": None, "broker": DIALLED, "by": "SOCKS5"}


@pytest.mark.parametrize("name", ["v1", "v2 TLVs", "connect"])
def test_a_preamble_without_a_handshake_shows_who_is_the_client(name: str) -> None:
    """The capture began between the handshake and the first bytes."""
    said, client, broker, by = PREAMBLES[name]
    assert seen(events(after(said, opened=False))) == (BOTH, [], {"client": client, "broker": broker, "by": by})


def test_a_client_need_not_wait_for_the_answers() -> None:
    """All that the client says comes before the first answer of the proxy."""
    said = PREAMBLES["socks5 name"][0]
    wire = Wire().open().up(*[data for side, data in said if side == 0], *ASKED)
    wire.down(*[data for side, data in said if side == 1], *ANSWERED).close()
    assert seen(events(wire)) == (BOTH, [], {"client": None, "broker": DIALLED, "by": "SOCKS5"})


@pytest.mark.parametrize("name", ["v1", "v2 TLVs", "socks4", "socks5 name", "connect, asked for a password"])
def test_tls_behind_a_preamble_is_tls(name: str) -> None:
    """With its version and server name, and who is behind the proxy."""
    said, client, broker, by = PREAMBLES[name]
    talk = TlsTalk().shake().up(b"x" * 100).down(b"y" * 100)
    for bytewise in (False, True):
        flights = [*said, *talk.flights]
        if bytewise:
            flights = [(side, data[at : at + 1]) for side, data in flights for at in range(len(data))]
        found = events(wire_of(flights).close())
        end = connection_of(found)
        assert end.protocol == "tls" and end.tls is not None
        assert (end.tls["version"], end.tls["server_name"], end.tls["alert"]) == ("TLSv1.3", "broker-1.test", None)
        assert end.proxied == {"client": client, "broker": broker, "by": by}
        assert problems(found) == []


def test_an_abandoned_handshake_behind_a_preamble_is_abandoned() -> None:
    """The bytes of the preamble are none of TLS."""
    talk = TlsTalk(version=ssl.TLSVersion.TLSv1_2)
    for side, end in enumerate((talk.client, talk.broker)):
        talk._step(side, end.do_handshake)
    plain = connection_of(events(wire_of(talk.flights).close())).tls
    behind = connection_of(events(wire_of([*PREAMBLES["v1"][0], *talk.flights]).close())).tls
    assert plain is not None and plain["abandoned"]
    assert behind == plain


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_kafka_is_named_with_its_preamble(name: str) -> None:
    """A refusal in the words of its code, a health check, another protocol behind."""
    said, expected = REFUSED[name]
    bytewise = [(side, data[at : at + 1]) for side, data in said for at in range(len(data))]
    for one in (said,) if name == "HTTP behind" else (said, bytewise):
        (problem,) = problems(events(wire_of(one).close()))
        assert problem.code == "not_kafka" and problem.details is not None
        assert problem.details["protocol"] == expected
        is_dialled = "PROXY" not in expected and "method" not in expected and "user name" not in expected
        assert problem.details["server"].startswith("10.0.0.2:9092 for ") == is_dialled


def test_requests_sent_before_a_refusal_are_told_beside_it() -> None:
    """A client that did not wait for the proxy's answer."""
    said, expected = REFUSED["ruleset"]
    wire = wire_of(said[:3]).up(ASKED[0])
    found = events(wire.down(said[3][1]).close())
    assert [one.outcome for one in exchanges(found)] == ["unanswered"]
    (problem,) = problems(found)
    assert problem.code == "not_kafka_answer" and problem.details is not None
    assert (problem.details["protocol"], problem.packet) == (expected, 8)


SECRET = [
    (RECORDED["curl socks5h microsocks, password"], (PASSWORD.encode(), USER.encode())),
    (RECORDED["curl connect tinyproxy, password"], (b"a3dpcmU6c24xZmYtc2VjcmV0"[:8], b"Basic")),
]


def contents(analyzer: Analyzer) -> bytes:
    """All bytes and texts that a state holds."""
    return zlib.decompress(dump(analyzer))


@pytest.mark.parametrize(("said", "secrets"), SECRET)
def test_a_password_is_nowhere_once_it_was_read(said: Said, secrets: tuple[bytes, ...]) -> None:
    """Neither in events nor in a state, whole or in segments of one byte, at any moment."""
    password = secrets[0]
    for one in (said, [(side, data[at : at + 1]) for side, data in said for at in range(len(data))]):
        analyzer = Analyzer()
        found: list[Event] = []
        for segment in after(one).segments:
            found += process(analyzer, [segment])
            state = contents(analyzer)
            assert not any(password[at : at + 5] in state for at in range(len(password) - 4))
        found += finish(analyzer)
        told = json.dumps([event_json(event) for event in found], default=repr).encode()
        assert len(exchanges(found)) == 2
        assert not any(secret in told for secret in secrets)


@pytest.mark.parametrize("name", ["v1", "v2 TLVs", "socks5 name", "connect, asked for a password", "two PROXY headers"])
def test_a_state_carries_a_preamble(name: str) -> None:
    """Another analyzer goes on at every byte."""
    said = PREAMBLES[name][0]
    bytewise = [(side, data[at : at + 1]) for side, data in said for at in range(len(data))]
    segments = after(bytewise).segments
    analyzer = Analyzer()
    found: list[Event] = []
    for segment in segments:
        found += process(analyzer, [segment])
        state, analyzer = dump(analyzer), Analyzer()
        load(analyzer, state)
    found += finish(analyzer)
    whole = [event_json(event) for event in analyze_with(Analyzer(), segments)]
    assert [event_json(event) for event in found] == whole
    assert len([one for one in whole if one["kind"] == "exchange"]) == 2


def test_the_state_of_a_preamble_is_all_there_is_of_it() -> None:
    """Each of its attributes is among the written ones."""
    assert set(_FIELDS[proxy_preamble.ProxyPreamble]) == set(proxy_preamble.ProxyPreamble.__slots__)


@pytest.mark.parametrize("lost", [0, 1])
def test_a_gap_inside_a_preamble_is_reported_and_kafka_found_behind_it(lost: int) -> None:
    """Of the client's greeting or of the proxy's answer a segment is missing."""
    said = PREAMBLES["socks5 name"][0]
    wire = Wire().open()
    for index, (side, data) in enumerate(said):
        wire.send(side, data, drop=index == 2 + lost)
    for asked, answered in zip(ASKED, ANSWERED, strict=True):
        wire.up(asked).down(answered)
    found = events(wire.close())
    assert [one.api for one in exchanges(found)] == ["ApiVersions", "Heartbeat"]
    (gap,) = problems(found)
    assert gap.code == "gap" and gap.details is not None
    assert gap.details["missing_bytes"] == len(said[2 + lost][1])


def test_a_gap_inside_a_proxy_line_is_reported() -> None:
    """The end of the line is missing, and the first bytes of it were read as no message."""
    line = PREAMBLES["v1"][0][0][1]
    wire = Wire().open().up(line[:20])
    wire.send(0, line[20:], drop=True)
    for asked, answered in zip(ASKED, ANSWERED, strict=True):
        wire.up(asked).down(answered)
    found = events(wire.close())
    assert [one.api for one in exchanges(found)] == ["ApiVersions", "Heartbeat"]
    assert sum(one.details["missing_bytes"] for one in problems(found) if one.details) == len(line) - 20


def test_retransmissions_of_a_preamble_change_nothing() -> None:
    """Every segment of it is sent twice."""
    wire = Wire().open()
    for side, data in PREAMBLES["socks5 name"][0]:
        wire.send(side, data)
        wire.segments.append(wire.segments[-1])
    wire.up(ASKED[0]).down(ANSWERED[0]).up(ASKED[1]).down(ANSWERED[1])
    assert seen(events(wire.close())) == (BOTH, [], {"client": None, "broker": DIALLED, "by": "SOCKS5"})


def padded(size: int) -> bytes:
    """A header of PROXY v2 of ``size`` bytes, a PP2_TYPE_NOOP as padding."""
    return v2(0x21, 0x11, V4 + tlv(0x04, bytes(size - 16 - len(V4) - 3)))


def test_lengths_are_limited() -> None:
    """A preamble at its limit is read, one byte more makes it none."""
    limit = proxy_preamble.MAX_PROXY_V2_BYTES
    headers = b"CONNECT kafka-1.int:9092 HTTP/1.1\r\nX: %b\r\n\r\n"
    rest = len(headers) - 2 - len(b"CONNECT kafka-1.int:9092 HTTP/1.1")
    most = proxy_preamble.MAX_CONNECT_HEADER_BYTES
    unknown = b"PROXY UNKNOWN %b\r\n"
    longest = proxy_preamble.MAX_PROXY_V1_BYTES
    chain = proxy_preamble.MAX_PREAMBLES
    for good, bad in (
        (padded(limit), padded(limit + 1)),
        (headers % (b"a" * (most - rest)), headers % (b"a" * (most - rest + 1))),
        (unknown % (b"a" * (longest - 16)), unknown % (b"a" * (longest - 15))),
        (PREAMBLES["v2"][0][0][1] * chain, PREAMBLES["v2"][0][0][1] * (chain + 1)),
        (b"CONNECT %b:9092 HTTP/1.1\r\n\r\n" % (b"a" * 255), b"CONNECT %b:9092 HTTP/1.1\r\n\r\n" % (b"a" * 256)),
    ):
        assert [one.api for one in exchanges(events(after([(0, good)], only=0)))] == ["ApiVersions", "Heartbeat"]
        assert exchanges(events(after([(0, bad)], only=0))) == []


def test_the_cost_of_a_preamble_is_that_of_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Headers in segments of one byte are dropped as they come: nobody looks at them again and again."""
    looked: list[int] = []
    read = proxy_preamble.ProxyPreamble.from_client

    def counted(self: proxy_preamble.ProxyPreamble, data: bytes, answer: bytes) -> int:
        looked.append(len(data))
        return read(self, data, answer)

    monkeypatch.setattr(proxy_preamble.ProxyPreamble, "from_client", counted)
    size = 2 * MAX_RESYNC_SEGMENTS
    head = b"CONNECT kafka-1.int:9092 HTTP/1.1\r\nX: " + b"a" * size + b"\r\n\r\n"
    found = events(after([(0, head[at : at + 1]) for at in range(len(head))], only=0))
    assert len(exchanges(found)) == 2
    assert sum(looked) < 8 * len(head)


@pytest.mark.parametrize("first", [b"\x04\x01\x23\x84", b"\x05\x01\x00\x05", b"\x05\x02\x00\x01", b"\x05\x01\x02\x01"])
@pytest.mark.parametrize("version", [0, 3, 9])
def test_a_request_whose_length_looks_like_socks_is_a_request(first: bytes, version: int) -> None:
    """A Produce of 67 or 84 MB may be the first of a connection; so much of it is there as a segment has."""
    frame = first + request(0, version, 1, b"\xff\xff" + b"\0\1" + bytes(4) + b"\0\0\0\1" + bytes(1300))[4:]
    plain = pack(">i", 0x03000000) + frame[4:]
    named = [[one.code for one in problems(events(wire_of([(0, data)])))] for data in (frame, plain)]
    assert named[0] == named[1]


def test_strangers_that_begin_alike_keep_their_names() -> None:
    """NATS, STOMP, HTTP by a proxy's URL, and PROXY lines that are none."""
    for data, protocol in (
        (b'CONNECT {"verbose":false}\r\nPING\r\n', "nats"),
        (b"CONNECT\naccept-version:1.2\n\n\0", "stomp"),
        (b"CONNECT broker HTTP/1.1\r\n\r\n", "http"),
        (b"PROXY TCP4 300.0.0.1 10.0.0.2 1 2\r\n", "proxy protocol"),
        (b"PROXY TCP4 10.0.0.1 10.0.0.2 70000 2\r\n", "proxy protocol"),
        (b"PROXY TCP6 10.0.0.1 10.0.0.2 1 2\r\n", "proxy protocol"),
        (V2 + b"\x31\x11\0\x0c" + V4, "proxy protocol"),
        (b"PROXY TCP4 10.0.", "proxy protocol"),
    ):
        (problem,) = problems(events(wire_of([(0, data)]).close()))
        assert problem.details is not None and problem.details["protocol"] == protocol, data


def test_no_prefix_of_a_preamble_makes_an_exchange() -> None:
    """A connection that ends inside a preamble is no Kafka, and says so once."""
    for said, *_ in PREAMBLES.values():
        data = b"".join(data for side, data in said if side == 0)
        for at in range(1, len(data)):
            found = events(wire_of([(0, data[:at])]).close())
            assert not any(isinstance(one, (Exchange, Connection)) for one in found)
            assert [one.code for one in problems(found)] == ["not_kafka"]
