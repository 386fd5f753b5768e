"""TLS connections without their keys: what OpenSSL's two ends agreed on is what is reported."""

from __future__ import annotations

import shutil
import ssl
import subprocess

import pytest

from kwiresniff.model import DECRYPTED, Connection, Event
from kwiresniff.session.tls_names import cipher_suite_name
from kwiresniff.session.tls_suites import suite_of
from tests.support.conversation import Wire, events, exchanges, heartbeat, heartbeat_response, problems
from tests.support.tls_conversation import TlsTalk

VERSIONS = {
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}


def wire(talk: TlsTalk, *, segment: int = 1460, opened: bool = True, skip: int = 0) -> Wire:
    """The talk on the wire, in segments of so many bytes, without its first ``skip`` flights."""
    one = Wire()
    if opened:
        one.open()
    for side, flight in talk.flights[skip:]:
        for at in range(0, len(flight), segment):
            one.send(side, flight[at : at + segment])
    return one.close()


def only(found: list[Event]) -> Connection:
    (connection,) = found
    assert isinstance(connection, Connection)
    assert connection.protocol == "tls"
    assert connection.tls is not None
    return connection


def suite_number(talk: TlsTalk) -> str:
    """The suite as OpenSSL numbers it, to find its official name."""
    name = talk.client.cipher()
    assert name is not None
    (suite,) = (one for one in ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).get_ciphers() if one["name"] == name[0])
    return f"{suite['id'] & 0xFFFF:04x}"


#: From the IANA registry, by number.
NAMES = {
    "1302": "TLS_AES_256_GCM_SHA384",
    "c02c": "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
}


@pytest.mark.parametrize("segment", [1, 7, 100, 1460, 65536])
@pytest.mark.parametrize("version", VERSIONS)
def test_the_hellos_are_read_however_they_are_cut(version: str, segment: int) -> None:
    talk = TlsTalk(version=VERSIONS[version]).shake().up(b"request").down(b"response")
    connection = only(events(wire(talk, segment=segment)))
    assert talk.client.version() == version
    assert connection.tls is not None
    assert connection.tls["version"] == version
    assert connection.tls["cipher"] == NAMES[suite_number(talk)]
    assert connection.tls["server_name"] == "broker-1.test"
    assert connection.tls["decrypted"] is False
    assert connection.tls["alert"] is None
    assert (connection.client, connection.broker) == ("10.0.0.1:40000", "10.0.0.2:9092")


def test_everything_on_the_wire_is_counted() -> None:
    talk = TlsTalk().shake()
    for _ in range(100):
        talk.up(b"q" * 3000).down(b"a" * 20_000)
    one = wire(talk)
    connection = only(events(one))
    sent = [sum(len(flight) for side, flight in talk.flights if side == way) for way in (0, 1)]
    assert connection.bytes == sent
    assert sum(connection.packets) == len(one.segments)
    assert connection.retransmits == [0, 0]
    assert connection.handshake_seen and connection.handshake_rtt_ns == 2_000_000
    assert (connection.first_ns, connection.last_ns) == (one.segments[0][1], one.segments[-1][1])
    assert connection.exchanges == {}


def test_repeated_and_missing_segments_are_survived_and_counted() -> None:
    talk = TlsTalk().shake()
    for _ in range(20):
        talk.up(b"q" * 3000).down(b"a" * 20_000)
    one = wire(talk)
    repeated = [again for segment in one.segments for again in (segment, segment)]
    payloads = sum(1 for segment in one.segments if segment[8] > segment[7])
    one.segments = repeated
    connection = only(events(one))
    assert (connection.captured_twice, sum(connection.retransmits)) == (payloads + 4, 0)  # and both SYNs and FINs
    lossy = wire(talk)
    del lossy.segments[20::7]
    assert only([event for event in events(lossy) if isinstance(event, Connection)]).tls == only(events(wire(talk))).tls


def test_nothing_is_kept_of_what_is_encrypted() -> None:
    """Neither while it comes nor while the other side is silent."""
    from kwiresniff.session import Analyzer

    talk = TlsTalk().shake()
    for _ in range(50):
        talk.down(b"a" * 50_000)
    analyzer = Analyzer()
    segments = wire(talk).segments[:-3]
    halves = set()
    for segment in segments:
        analyzer.table.feed(*segment)
        halves |= {one.half for one in analyzer.table.open.values()}
    assert len(halves) == 2
    for half in halves:
        buffer = half.resync.buffer
        assert (len(buffer), len(half.frames.parts), half.queue, len(buffer.marks)) == (0, 0, None, 0)


def test_certificates_show_in_tls_1_2_and_not_in_1_3() -> None:
    """The names are those in the files that the ends loaded."""
    found = {}
    for name, version in VERSIONS.items():
        talk = TlsTalk(version=version, client_certificate=True).shake().up(b"request").down(b"response")
        found[name] = only(events(wire(talk))).tls or {}
    assert found["TLSv1.2"]["server_certificate_names"] == ["broker-1.test", "*.kafka.test", "10.0.0.2"]
    assert found["TLSv1.2"]["client_certificate"] is True
    assert found["TLSv1.2"]["client_certificate_names"] == ["billing"]
    assert found["TLSv1.3"]["server_certificate_names"] is None
    assert found["TLSv1.3"]["client_certificate"] is None


def test_a_client_without_a_certificate_is_told_where_that_can_be_seen() -> None:
    talk = TlsTalk(version=ssl.TLSVersion.TLSv1_2).shake().up(b"request").down(b"response")
    tls = only(events(wire(talk))).tls or {}
    assert (tls["client_certificate"], tls["client_certificate_names"]) == (False, None)


def test_a_refused_certificate_is_told_by_its_alert() -> None:
    talk = TlsTalk(version=ssl.TLSVersion.TLSv1_2, trusted=False).shake()
    tls = only(events(wire(talk))).tls or {}
    assert tls["alert"] == {"sender": "client", "description": "unknown_ca"}


def test_application_protocols_are_named() -> None:
    """HTTP/2 on port 443 is no Kafka, and says so; in TLS 1.3 only the offer is visible."""
    offered = (["h2", "http/1.1"], ["h2"])
    talk = TlsTalk(version=ssl.TLSVersion.TLSv1_2, protocols=offered).shake()
    tls = only(events(wire(talk))).tls or {}
    assert (tls["alpn"], tls["alpn_offered"]) == (talk.client.selected_alpn_protocol(), ["h2", "http/1.1"])
    tls = only(events(wire(TlsTalk(protocols=offered).shake()))).tls or {}
    assert (tls["alpn"], tls["alpn_offered"]) == (None, ["h2", "http/1.1"])


def test_without_a_server_name_there_is_none() -> None:
    assert (only(events(wire(TlsTalk(server_name=None).shake()))).tls or {})["server_name"] is None


@pytest.mark.parametrize("port", [9092, 61_000])
def test_a_connection_found_in_mid_stream_is_tls_of_an_unknown_version(port: int) -> None:
    talk = TlsTalk().shake()
    handshake = len(talk.flights)
    for _ in range(3):
        talk.up(b"q" * 100).down(b"a" * 40_000)
    one = Wire(broker_port=port)
    for side, flight in talk.flights[handshake:]:
        for at in range(0, len(flight), 1460):
            one.send(side, flight[at : at + 1460])
    connection = only(events(one, ports=[port]))
    assert (connection.tls or {})["version"] is None
    assert connection.broker == f"10.0.0.2:{port}"
    assert sum(connection.bytes) == sum(len(flight) for _, flight in talk.flights[handshake:])
    assert not connection.handshake_seen


def test_a_hello_tells_the_roles_when_the_tcp_handshake_was_missed() -> None:
    talk = TlsTalk().shake().up(b"request")
    connection = only(events(wire(talk, opened=False), ports=[40_000]))
    assert (connection.client, (connection.tls or {})["version"]) == ("10.0.0.1:40000", "TLSv1.3")
    answers = wire(talk, opened=False, skip=1)
    assert only(events(answers)).client == "10.0.0.1:40000"


def test_a_broker_seen_alone_is_tls_too() -> None:
    """A tap on one direction."""
    talk = TlsTalk().shake().up(b"request").down(b"response")
    one = wire(talk)
    one.segments = [segment for segment in one.segments if segment[2] == one.flows[1]]
    assert (only(events(one)).tls or {})["version"] == "TLSv1.3"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_damaged_handshake_is_tls_all_the_same(version: str) -> None:
    """Every byte of the hellos in turn is another one: no exception, still one connection or something unknown."""
    talk = TlsTalk(version=VERSIONS[version], client_certificate=True).shake()
    for number, (side, flight) in enumerate(talk.flights[:3]):
        for at in range(0, len(flight), 3):
            for value in (0, 0xFF):
                damaged = flight[:at] + bytes([value]) + flight[at + 1 :]
                flights = [*talk.flights]
                talk.flights[number] = (side, damaged)
                found = events(wire(talk))
                talk.flights = flights
                assert len(found) == 1
                if at > 12 or number:
                    only(found)


def test_suites_go_by_their_registered_names() -> None:
    """Names and numbers of the cipher suites are those of OpenSSL's own table."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl")
    command = [openssl, "ciphers", "-V", "-stdname", "ALL:@SECLEVEL=0"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    names = {int(row[0].replace(",0x", ""), 16): row[2] for row in rows}
    known = {number: name for number in range(0x10000) if (name := cipher_suite_name(number))[:2] != "0x"}
    assert len(known.keys() & names.keys()) >= 30
    assert all(names.get(number, name) == name for number, name in known.items())


def test_every_suite_that_java_17_supports_is_decrypted() -> None:
    """As SSLContext.getDefault().getSupportedSSLParameters() lists them, so any that a broker may offer."""
    shared = (
        "AES_128_CBC_SHA",
        "AES_256_CBC_SHA",
        "AES_128_CBC_SHA256",
        "AES_128_GCM_SHA256",
        "AES_256_GCM_SHA384",
    )
    java = {"TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"}
    java |= {
        f"TLS_{exchange}_WITH_{cipher}"
        for exchange, more in (
            ("RSA", ("AES_256_CBC_SHA256",)),
            ("DHE_DSS", ("AES_256_CBC_SHA256",)),
            ("DHE_RSA", ("AES_256_CBC_SHA256", "CHACHA20_POLY1305_SHA256")),
            ("ECDHE_RSA", ("AES_256_CBC_SHA384", "CHACHA20_POLY1305_SHA256")),
            ("ECDHE_ECDSA", ("AES_256_CBC_SHA384", "CHACHA20_POLY1305_SHA256")),
        )
        for cipher in (*shared, *more)
    }
    assert len(java) == 36
    assert java <= {cipher_suite_name(number) for number in range(0x10000) if suite_of(number) is not None}


def decrypted(talk: TlsTalk, said: list[tuple[int, bytes]]) -> Wire:
    """The talk on the wire, with what was said in its last flights beside them as a decrypting source gives it."""
    one = Wire().open()
    places = [0, 0]
    handshake = len(talk.flights) - len(said)
    for number, (side, flight) in enumerate(talk.flights):
        if number >= handshake:
            data = said[number - handshake][1]
            packet = one.packet + 1
            one.segments.append(
                (packet, packet * 1_000_000, one.flows[side], places[side], 0, DECRYPTED, data, 0, len(data), 0)
            )
            places[side] += len(data)
        one.send(side, flight)
    return one.close()


def test_what_tls_carries_becomes_exchanges_of_the_same_connection() -> None:
    """Counted on the wire, read in the clear: one connection, as Kafka."""
    said = [(0, heartbeat(1)), (1, heartbeat_response(1)), (0, heartbeat(2)), (1, heartbeat_response(2, 27))]
    talk = TlsTalk().shake()
    for side, data in said:
        (talk.down if side else talk.up)(data)
    one = decrypted(talk, said)
    found = events(one)
    assert [(x.api, x.correlation_id, x.outcome) for x in exchanges(found)] == [
        ("Heartbeat", 1, "ok"),
        ("Heartbeat", 2, "error"),
    ]
    assert [x.latency_ns for x in exchanges(found)] == [1_000_000, 1_000_000]
    (connection,) = (event for event in found if isinstance(event, Connection))
    assert {x.connection for x in exchanges(found)} == {connection}
    assert (connection.protocol, connection.exchanges) == ("kafka", {"ok": 1, "error": 1})
    assert connection.tls is not None
    assert (connection.tls["decrypted"], connection.tls["version"]) == (True, "TLSv1.3")
    assert connection.bytes == [sum(len(flight) for side, flight in talk.flights if side == way) for way in (0, 1)]
    assert connection.handshake_seen
    assert len(found) == 3


def test_what_tls_carries_is_cut_off_like_anything_else() -> None:
    """A request without its response, and half a request."""
    said = [(0, heartbeat(1)), (0, heartbeat(2)[:10])]
    talk = TlsTalk().shake()
    for _, data in said:
        talk.up(data)
    found = events(decrypted(talk, said))
    assert [(x.correlation_id, x.outcome) for x in exchanges(found)] == [(1, "unanswered")]
    assert [problem.code for problem in problems(found)] == ["incomplete_request"]
    assert isinstance(found[-1], Connection)


def test_what_tls_carries_besides_kafka_is_named() -> None:
    said = [(0, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"), (1, b"HTTP/1.1 200 OK\r\n\r\n")]
    talk = TlsTalk().shake()
    for side, data in said:
        (talk.down if side else talk.up)(data)
    found = events(decrypted(talk, said))
    (problem,) = problems(found)
    assert problem.code == "not_kafka" and (problem.details or {})["protocol"] == "http"
    (connection,) = (event for event in found if isinstance(event, Connection))
    assert (connection.protocol, (connection.tls or {})["decrypted"]) == ("tls", True)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_client_that_closes_when_it_has_the_certificate_abandons_the_handshake(version: str) -> None:
    """One that does its own part, sends an alert or has nothing of the server's yet, does not."""
    talk = TlsTalk(version=VERSIONS[version]).shake()
    whole, talk.flights = talk.flights, talk.flights[:2]
    cut = only(events(wire(talk)))
    assert cut.tls is not None and cut.closed_by == "client"
    assert cut.tls["abandoned"] is True and cut.tls["alert"] is None
    refusal = 0, bytes.fromhex("15 03 03 00 02 02 30")  # an alert of unknown_ca
    for flights in (whole[:1], whole, [*whole[:2], refusal]):
        talk.flights = flights
        other = only(events(wire(talk)))
        assert other.tls is not None and other.tls["abandoned"] is False
