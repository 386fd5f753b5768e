"""TLS decrypted: what two ends of OpenSSL wrote comes out, whatever happens to the segments on the way."""

from __future__ import annotations

import random
import shutil
import ssl
import zlib
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from kwiresniff.base.tls_secrets import TlsSecrets
from kwiresniff.capture import open_captures
from kwiresniff.model import Connection, Event, Segment
from kwiresniff.session import Analyzer
from kwiresniff.session.checkpoint import dump, load
from kwiresniff.session.services import SECRETS_LATE_NS
from kwiresniff.session.tls_decryption import MAX_WAITING_BYTES
from tests.support.capture_files import LINKTYPE_RAW, pcap
from tests.support.conversation import Wire, exchanges, heartbeat_response, problems, request, string
from tests.support.events import analyze, finish, process
from tests.support.openssl_programs import early_talk
from tests.support.packet_builder import Pcapng
from tests.support.tls_conversation import TlsTalk

#: OpenSSL's SSL_OP_NO_ENCRYPT_THEN_MAC, for which the module ssl has no name.
OP_NO_ENCRYPT_THEN_MAC = 1 << 19
V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
VERSIONS = [V12, V13]
#: By cipher of OpenSSL, and whether it belongs to TLS 1.2; the certificate is ECDSA's.
SUITES_1_2 = [
    "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-ECDSA-AES128-CCM", "ECDHE-ECDSA-AES256-CCM", "ECDHE-ECDSA-AES128-CCM8", "ECDHE-ECDSA-AES256-CCM8",
    "ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA", "ECDHE-ECDSA-AES128-SHA256", "ECDHE-ECDSA-AES256-SHA384",
]  # fmt: skip


def asked(number: int, size: int = 10) -> bytes:
    """A Heartbeat whose member id has so many bytes."""
    return request(12, 0, number, string("group") + pack(">i", 5) + string("m" * size))


def talk(keylog: Path, version: ssl.TLSVersion = V13, *, rounds: int = 3, size: int = 10, **how: Any) -> TlsTalk:
    """Heartbeats and their responses, each in a record of its own."""
    one = TlsTalk(version=version, keylog=keylog, **how).shake()
    for number in range(rounds):
        one.up(asked(number, size)).down(heartbeat_response(number))
    return one


def wire(one: TlsTalk, *, segment: int = 1448, **how: Any) -> Wire:
    result = Wire(**how).open()
    for side, flight in one.flights:
        for at in range(0, len(flight), segment):
            result.send(side, flight[at : at + segment])
    return result.close()


def secrets_of(keylog: Path | str) -> TlsSecrets:
    secrets = TlsSecrets()
    secrets.expected = True
    secrets.add(keylog.read_bytes() if isinstance(keylog, Path) else keylog.encode())
    return secrets


def decrypted(segments: list[Segment], keylog: Path | str) -> list[Event]:
    return list(analyze(segments, tls_secrets=secrets_of(keylog)))


def ids(found: list[Event]) -> list[int]:
    return [one.correlation_id for one in exchanges(found)]


def outcomes(found: list[Event]) -> list[tuple[int, str]]:
    return sorted((one.correlation_id, one.outcome) for one in exchanges(found))


def refusal(found: list[Event]) -> str:
    """Why TLS is not decrypted, which is told once."""
    (problem,) = [one for one in problems(found) if one.code == "not_decrypted"]
    return problem.message


def only(found: list[Event]) -> Connection:
    (connection,) = (event for event in found if isinstance(event, Connection))
    return connection


@pytest.mark.parametrize("segment", [1, 7, 1448, 65_000])
@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_written_comes_out(tmp_path: Path, version: ssl.TLSVersion, segment: int) -> None:
    """Records over many segments, and many records in one."""
    keylog = tmp_path / "keys.log"
    found = decrypted(wire(talk(keylog, version), segment=segment).segments, keylog)
    assert outcomes(found) == [(0, "ok"), (1, "ok"), (2, "ok")]
    assert problems(found) == []
    connection = only(found)
    assert connection.protocol == "kafka" and connection.tls is not None
    assert connection.tls["decrypted"] is True


@pytest.mark.parametrize("suite", SUITES_1_2)
def test_every_suite_of_tls_1_2_is_decrypted(tmp_path: Path, suite: str) -> None:
    keylog = tmp_path / "keys.log"
    one = talk(keylog, V12, suite=suite, size=5000)
    assert one.client.cipher()[0] == suite  # type: ignore[index]
    found = decrypted(wire(one).segments, keylog)
    assert outcomes(found) == [(0, "ok"), (1, "ok"), (2, "ok")]
    assert problems(found) == []


def test_a_suite_that_is_not_decrypted_is_named(tmp_path: Path) -> None:
    keylog = tmp_path / "keys.log"
    found = decrypted(wire(talk(keylog, V12, suite="ECDHE-ECDSA-CAMELLIA128-SHA256")).segments, keylog)
    assert "the cipher suite 0xc072 is not decrypted" in refusal(found)


@pytest.mark.parametrize("suite", ["ECDHE-ECDSA-AES128-SHA", "ECDHE-ECDSA-AES256-SHA384"])
def test_macs_inside_and_behind_what_is_encrypted_are_told_apart(tmp_path: Path, suite: str) -> None:
    """OpenSSL's ends agree on encrypt-then-MAC (RFC 7366), unless the client does not offer it."""
    for option in (0, OP_NO_ENCRYPT_THEN_MAC):
        keylog = tmp_path / f"keys-{option}.log"
        one = (
            TlsTalk(version=V12, keylog=keylog, suite=suite, options=option)
            .shake()
            .up(asked(0))
            .down(heartbeat_response(0))
        )
        assert (b"\0\x16\0\0" in one.flights[1][1][:200]) is not bool(option)
        assert outcomes(decrypted(wire(one).segments, keylog)) == [(0, "ok")]


@pytest.mark.parametrize("segment", [50, 1448])
def test_a_hello_that_is_asked_for_again_is_read(tmp_path: Path, segment: int) -> None:
    """The client has sent no key for the broker's curve: HelloRetryRequest (RFC 8446, section 4.1.4)."""
    keylog = tmp_path / "keys.log"
    one = talk(keylog, curve="secp384r1")
    assert [side for side, _ in one.flights[:4]] == [0, 1, 0, 1]
    assert outcomes(decrypted(wire(one, segment=segment).segments, keylog)) == [(0, "ok"), (1, "ok"), (2, "ok")]


@pytest.mark.parametrize("version", VERSIONS)
def test_resumed_sessions_are_decrypted(tmp_path: Path, version: ssl.TLSVersion) -> None:
    keylog = tmp_path / "keys.log"
    first = talk(keylog, version)
    second = talk(keylog, version, after=first)
    assert second.client.session_reused
    lines = keylog.read_text()
    assert outcomes(decrypted(wire(second).segments, lines)) == [(0, "ok"), (1, "ok"), (2, "ok")]


def test_a_resumed_session_of_tls_1_2_has_the_secret_of_the_first_one(tmp_path: Path) -> None:
    """Go logs no line for it: its ticket says which session it was."""
    first = talk(tmp_path / "first.log", V12)
    second = talk(tmp_path / "second.log", V12, after=first)
    assert second.client.session_reused
    both = [*wire(first, client_port=40_001).segments, *wire(second, client_port=40_002).segments]
    found = decrypted(both, tmp_path / "first.log")
    assert outcomes(found) == [(0, "ok"), (0, "ok"), (1, "ok"), (1, "ok"), (2, "ok"), (2, "ok")]
    assert "CLIENT_RANDOM" in refusal(decrypted(wire(second).segments, tmp_path / "first.log"))


@pytest.mark.parametrize(
    ("asks", "answers"),
    [
        (b"PROXY TCP4 203.0.113.7 10.0.0.2 50000 9092\r\n", b""),
        (b"CONNECT broker-1.test:9092 HTTP/1.1\r\nHost: broker-1.test:9092\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"),
    ],
)
@pytest.mark.parametrize("version", VERSIONS)
def test_records_may_stand_behind_what_a_proxy_says(
    tmp_path: Path, version: ssl.TLSVersion, asks: bytes, answers: bytes
) -> None:
    keylog = tmp_path / "keys.log"
    made = talk(keylog, version)
    made.flights[:0] = [(0, asks), (1, answers)] if answers else [(0, asks)]
    found = decrypted(wire(made).segments, keylog)
    assert outcomes(found) == [(0, "ok"), (1, "ok"), (2, "ok")]
    assert problems(found) == []
    assert only(found).proxied is not None


# -- what is missing, changed or out of order ---------------------------------------------------------------------


def payloads(one: Wire, side: int) -> list[Segment]:
    return [segment for segment in one.segments if segment[2] == one.flows[side] and segment[8] > segment[7]]


def without(one: Wire, lost: list[Segment]) -> list[Segment]:
    return [segment for segment in one.segments if segment not in lost]


@pytest.mark.parametrize("suite", ["", *SUITES_1_2[:4], "ECDHE-ECDSA-AES128-SHA256"])
@pytest.mark.parametrize("count", [1, 3])
def test_a_gap_costs_the_messages_it_touches(tmp_path: Path, suite: str, count: int) -> None:
    """Whole records are gone, so the number of the next one has to be found."""
    keylog = tmp_path / "keys.log"
    how: dict[str, Any] = {"version": V12, "suite": suite} if suite else {}
    one = wire(talk(keylog, rounds=12, **how))
    lost = payloads(one, 0)[-8 : -8 + count]
    found = decrypted(without(one, lost), keylog)
    missing = set(range(4, 4 + count))
    assert {one.correlation_id for one in exchanges(found) if one.outcome == "ok"} == set(range(12)) - missing
    (gap,) = problems(found)
    sizes = [len(asked(number)) for number in missing]
    assert gap.code == "gap" and gap.details is not None
    if suite != "ECDHE-ECDSA-AES128-SHA256":
        assert gap.details["missing_bytes"] == sum(sizes)


def test_a_gap_inside_a_large_message_costs_that_message(tmp_path: Path) -> None:
    """The record that it touches is of known length, so the frame goes on behind it."""
    keylog = tmp_path / "keys.log"
    made = TlsTalk(keylog=keylog).shake()
    for number in range(4):
        made.up(asked(number, 30_000)).down(heartbeat_response(number))
    one = wire(made)
    lost = payloads(one, 0)[-30]
    found = decrypted(without(one, [lost]), keylog)
    assert len(ids(found)) == 4
    assert [bool(one.problems) for one in exchanges(found)].count(True) == 1


@pytest.mark.parametrize("version", VERSIONS)
def test_many_gaps_leave_the_rest(tmp_path: Path, version: ssl.TLSVersion) -> None:
    """Every 11th packet is lost, in both directions and wherever records begin."""
    keylog = tmp_path / "keys.log"
    one = wire(talk(keylog, version, rounds=200, size=300), segment=100)
    first = len(one.segments) // 10
    kept = [segment for number, segment in enumerate(one.segments) if number < first or number % 11]
    found = decrypted(kept, keylog)
    whole = [one for one in exchanges(found) if one.outcome == "ok" and not one.problems]
    assert len(whole) > 60
    for one_exchange in whole:
        assert one_exchange.request is not None and one_exchange.request.body is not None
        assert one_exchange.request.body["member_id"] == "m" * 300


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_snap_length_cuts_off_costs_the_records_it_touches(tmp_path: Path, version: ssl.TLSVersion) -> None:
    keylog = tmp_path / "keys.log"
    made = TlsTalk(version=version, keylog=keylog).shake()
    handshake = len(made.flights)
    for number in range(12):
        made.up(asked(number, 10 if number % 3 else 2000)).down(heartbeat_response(number))
    one = wire(made, segment=65_000)
    cut = []
    for number, segment in enumerate(one.segments):
        size = min(segment[8], 200) if number > handshake + 3 else segment[8]
        cut.append((*segment[:8], size, segment[8] - size))
    found = decrypted(cut, keylog)
    assert {one.correlation_id for one in exchanges(found) if one.outcome == "ok"} >= {1, 2, 4, 5, 7, 8, 10, 11}


def test_segments_may_come_in_any_order(tmp_path: Path) -> None:
    keylog = tmp_path / "keys.log"
    one = wire(talk(keylog, rounds=6, size=100), segment=50)
    mixed = one.segments[:12]
    rest = one.segments[12:]
    for at in range(0, len(rest), 2):
        mixed += reversed(rest[at : at + 2])
    assert outcomes(decrypted(mixed, keylog)) == [(number, "ok") for number in range(6)]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_changed_record_costs_itself(tmp_path: Path, version: ssl.TLSVersion) -> None:
    """Every fourth byte of a record in turn: what does not open is no plaintext, and those behind it are found."""
    keylog = tmp_path / "keys.log"
    made = talk(keylog, version, rounds=6)
    at = len(made.flights) - 6
    side, flight = made.flights[at]
    assert side == 0
    for place in range(5, len(flight), 4):
        made.flights[at] = side, flight[:place] + bytes([flight[place] ^ 1]) + flight[place + 1 :]
        found = decrypted(wire(made).segments, keylog)
        assert {one.correlation_id for one in exchanges(found) if one.outcome == "ok"} == {0, 1, 2, 4, 5}, place


@pytest.mark.parametrize("version", VERSIONS)
def test_damage_of_any_kind_raises_nothing(tmp_path: Path, version: ssl.TLSVersion) -> None:
    """Whatever the wire brings, it is decrypted or it is told."""
    keylog = tmp_path / "keys.log"
    one = wire(talk(keylog, version, rounds=8, size=200), segment=120)
    chance = random.Random(7)
    for _ in range(8):
        segments = []
        for segment in one.segments:
            luck = chance.random()
            data = bytearray(segment[6][segment[7] : segment[8]])
            if data and luck < 0.03:
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            if luck > 0.04:
                segments.append((*segment[:6], bytes(data), 0, len(data), 0))
        decrypted(segments, keylog)


# -- keys ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("late", [10, 14, 1000])
def test_what_comes_before_its_keys_waits_for_them(tmp_path: Path, version: ssl.TLSVersion, late: int) -> None:
    """In the middle of the connection, or behind its end."""
    keylog = tmp_path / "keys.log"
    one = wire(talk(keylog, version, rounds=10))
    secrets = TlsSecrets()
    secrets.expected = secrets.growing = True
    analyzer = Analyzer(tls_secrets=secrets)
    found = list(process(analyzer, one.segments[:late]))
    assert ids(found) == []
    secrets.add(keylog.read_bytes())
    found += process(analyzer, one.segments[late:])
    analyzer.look_for_secrets()
    found += analyzer.events()
    assert outcomes(found) == [(number, "ok") for number in range(10)]
    assert only([*found, *finish(analyzer)]).exchanges == {"ok": 10}


def test_who_ended_waits_for_keys_no_longer_than_it_may(tmp_path: Path) -> None:
    one = wire(talk(tmp_path / "keys.log"))
    secrets = TlsSecrets()
    secrets.expected = secrets.growing = True
    secrets.changes = 1
    analyzer = Analyzer(tls_secrets=secrets)

    def at(ns: int) -> Segment:
        syn = Wire(client_port=41_000).open().segments[0]
        return syn[0], ns, *syn[2:]

    assert list(process(analyzer, [*one.segments, at(3_000_000_000)])) == []
    found = list(process(analyzer, [at(SECRETS_LATE_NS + 3_000_000_000)]))
    assert (analyzer.tls_waiting_bytes, len(analyzer.tls_waiting), len(analyzer.tls_ending)) == (0, 0, 0)
    assert "CLIENT_TRAFFIC_SECRET_0" in refusal(found)


@pytest.mark.parametrize("version", VERSIONS)
def test_no_more_waits_than_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: ssl.TLSVersion) -> None:
    """What waited is lost then, which is told; what comes behind the keys is decrypted."""
    monkeypatch.setattr("kwiresniff.session.tls_decryption.MAX_WAITING_BYTES", 20_000)
    keylog = tmp_path / "keys.log"
    one = wire(talk(keylog, version, rounds=60, size=1000))
    secrets = TlsSecrets()
    secrets.expected = True
    analyzer = Analyzer(tls_secrets=secrets)
    found: list[Event] = []
    for number, segment in enumerate(one.segments):
        if number == 100:
            secrets.add(keylog.read_bytes())
        found += process(analyzer, [segment])
        assert analyzer.tls_waiting_bytes <= 22_000
    found += finish(analyzer)
    assert 59 in ids(found) and 0 not in ids(found)
    assert "bytes came before their keys" in refusal(found)
    assert analyzer.tls_waiting_bytes == 0


def test_no_more_waits_on_all_connections_than_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that wait longest give up."""
    monkeypatch.setattr("kwiresniff.session.tls_phase.MAX_ALL_WAITING_BYTES", 30_000)
    keylog = tmp_path / "keys.log"
    wires = [wire(talk(keylog, size=1000), client_port=40_000 + number) for number in range(8)]
    secrets = TlsSecrets()
    secrets.expected = secrets.growing = True
    analyzer = Analyzer(tls_secrets=secrets)
    found: list[Event] = []
    for one in wires:
        found += process(analyzer, one.segments)
        assert analyzer.tls_waiting_bytes <= 30_000
    secrets.add(keylog.read_bytes())
    found += [*process(analyzer, []), *finish(analyzer)]
    decrypted_ones = [one for one in found if isinstance(one, Connection) and one.tls and one.tls["decrypted"]]
    assert 2 <= len(decrypted_ones) <= 6


def test_which_secret_is_lacking_is_told_once(tmp_path: Path) -> None:
    keylog = tmp_path / "keys.log"
    one = wire(talk(keylog))
    lines = keylog.read_text().splitlines()
    kept = "\n".join(line for line in lines if not line.startswith("SERVER_TRAFFIC_SECRET_0")) + "\n"
    client_random = lines[-1].split()[1]
    found = decrypted(one.segments, kept)
    assert refusal(found).endswith(f"the keys lack SERVER_TRAFFIC_SECRET_0 of client random {client_random}")
    assert ids(found) == []


def test_the_secrets_of_the_handshake_are_not_needed(tmp_path: Path) -> None:
    keylog = tmp_path / "keys.log"
    one = wire(talk(keylog))
    kept = [line for line in keylog.read_text().splitlines() if "HANDSHAKE" not in line]
    assert outcomes(decrypted(one.segments, "\n".join(kept) + "\n")) == [(0, "ok"), (1, "ok"), (2, "ok")]


def test_a_connection_says_which_lines_of_a_key_log_it_used(tmp_path: Path) -> None:
    keylog = tmp_path / "keys.log"
    talk(tmp_path / "keys.log")
    one = wire(talk(keylog))
    session = only(decrypted(one.segments, keylog)).tls_session
    assert session is not None
    lines = secrets_of(keylog).lines(*session)
    assert len(lines) == 4 and set(lines) < set(keylog.read_text().splitlines())
    assert outcomes(decrypted(one.segments, "\n".join(lines) + "\n")) == [(0, "ok"), (1, "ok"), (2, "ok")]


def test_keys_behind_the_packets_of_a_capture_count(tmp_path: Path) -> None:
    """A decryption secrets block of pcapng may stand anywhere; here is one at the end."""
    keylog = tmp_path / "keys.log"
    one = wire(talk(keylog))
    form = Pcapng("<")
    data, at, packets = pcap(one.segments), 24, b""
    while at < len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "little")
        packets += form.enhanced(data[at + 16 : at + 16 + size])
        at += 16 + size
    lines = keylog.read_bytes()
    secrets = form.block(10, pack("<II", 0x544C534B, len(lines)) + lines + bytes(-len(lines) & 3))
    path = tmp_path / "a.pcapng"
    path.write_bytes(form.section() + form.interface(link_type=LINKTYPE_RAW) + packets + secrets)
    source = open_captures([str(path)])
    found = list(analyze(source, tls_secrets=source.tls_secrets))
    assert outcomes(found) == [(0, "ok"), (1, "ok"), (2, "ok")]


# -- without the handshake ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("skipped", [0, 5, 30])
def test_tls_1_3_is_decrypted_without_its_handshake(tmp_path: Path, skipped: int) -> None:
    """By trial of the secrets in the log; the roles are those of the secrets. Nothing is missing from the capture."""
    keylog = tmp_path / "keys.log"
    for _ in range(3):
        talk(keylog, rounds=0)
    made = TlsTalk(keylog=keylog).shake()
    start = len(made.flights)
    for number in range(40):
        made.up(asked(number)).down(heartbeat_response(number))
    for broker_port in (9092, 33_000):
        one = Wire(broker_port=broker_port)
        for side, flight in made.flights[start + 2 * skipped :]:
            one.send(side, flight)
        found = decrypted(one.segments, keylog)
        assert set(range(skipped + 1, 40)) <= {one.correlation_id for one in exchanges(found) if one.outcome == "ok"}
        assert only(found).broker == f"10.0.0.2:{broker_port}"
        assert [one.code for one in problems(found)] == []


@pytest.mark.parametrize("missing", [0, 1])
def test_one_hello_is_enough(tmp_path: Path, missing: int) -> None:
    """What is encrypted first is the handshake's; the session is found by what follows."""
    keylog = tmp_path / "keys.log"
    talk(keylog, rounds=0)
    one = wire(talk(keylog, rounds=6))
    hello = payloads(one, missing)[0]
    found = decrypted(without(one, [hello]), keylog)
    assert outcomes(found)[-4:] == [(number, "ok") for number in range(2, 6)]


def test_tls_1_2_without_its_handshake_is_refused_by_name(tmp_path: Path) -> None:
    keylog = tmp_path / "keys.log"
    made = talk(keylog, V12, rounds=6)
    one = Wire()
    for side, flight in made.flights[-10:]:
        one.send(side, flight)
    assert "its handshake is not in the capture" in refusal(decrypted(one.segments, keylog))


# -- what is refused ----------------------------------------------------------------------------------------------


def test_a_renegotiated_session_is_refused_by_name(tmp_path: Path) -> None:
    """The second ChangeCipherSpec of a direction, which is encrypted as all around it is."""
    keylog = tmp_path / "keys.log"
    made = talk(keylog, V12, rounds=2)
    made.flights.append((0, bytes.fromhex("1403030029") + bytes(41)))
    made.up(asked(7))
    found = decrypted(wire(made).segments, keylog)
    assert "its session was renegotiated" in refusal(found)
    assert outcomes(found) == [(0, "ok"), (1, "ok")]


@pytest.mark.parametrize("segment", [40, 1448])
@pytest.mark.parametrize("count", [1, 30])
@pytest.mark.parametrize("curve", [None, "secp384r1"])
def test_early_data_that_the_server_refuses_is_passed_over(
    tmp_path: Path, curve: str | None, count: int, segment: int
) -> None:
    """In EncryptedExtensions, or by a HelloRetryRequest, which says so without the secrets of the handshake, too: RFC
    8446, section 4.2.10. The client's hello offers it, and records stand before the server's answer."""
    keylog = tmp_path / "keys.log"
    made = talk(keylog, curve=curve)
    side, hello = made.flights[0]
    made.flights[0] = side, with_extension(hello, 42) + (bytes.fromhex("1703030040") + bytes(64)) * count
    segments = wire(made, segment=segment).segments
    found = decrypted(segments, keylog)
    assert outcomes(found) == [(0, "ok"), (1, "ok"), (2, "ok")] and not problems(found)
    lines = "\n".join(line for line in keylog.read_text().splitlines() if "HANDSHAKE" not in line)
    found = decrypted(segments, lines)
    if curve is None:
        assert "the keys lack SERVER_HANDSHAKE_TRAFFIC_SECRET" in refusal(found) and ids(found) == []
    else:
        assert outcomes(found) == [(0, "ok"), (1, "ok"), (2, "ok")]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the program openssl")
@pytest.mark.parametrize("answer", ["takes", "refuses", "asks again"])
def test_early_data_of_openssl(tmp_path: Path, answer: str) -> None:
    """A client resumes a session with a request as early data, and sends it again where the server did not take it."""
    flights, keylog = early_talk(tmp_path, answer, asked(0), heartbeat_response(0))
    one = Wire().open()
    for side, flight in flights:
        one.send(side, flight)
    found = decrypted(one.close().segments, keylog)
    if answer == "takes":
        assert "it begins with early data (0-RTT)" in refusal(found)
    else:
        assert outcomes(found) == [(0, "ok")] and not problems(found)


def with_extension(hello: bytes, kind: int) -> bytes:
    """A record with a client's hello, with an empty extension more."""
    at = 5 + 4 + 2 + 32
    at += 1 + hello[at]
    at += 2 + int.from_bytes(hello[at : at + 2], "big")
    at += 1 + hello[at]
    body = (
        hello[9:at] + pack(">H", int.from_bytes(hello[at : at + 2], "big") + 4) + hello[at + 2 :] + pack(">HH", kind, 0)
    )
    return hello[:3] + pack(">H", len(body) + 4) + hello[5:6] + len(body).to_bytes(3, "big") + body


# -- key updates --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lost", [False, True])
def test_keys_may_be_updated(tmp_path: Path, lost: bool) -> None:
    """The records behind the update are made here, by RFC 8446, section 7.2; the one that announces it may be lost."""
    keylog = tmp_path / "keys.log"
    made = TlsTalk(keylog=keylog).shake()
    lines = dict(line.split()[::2] for line in keylog.read_text().splitlines() if line[0] != "#")
    secret = bytes.fromhex(lines["CLIENT_TRAFFIC_SECRET_0"])
    made.flights.append((0, sealed(secret, 0, asked(0), 23)))
    made.flights.append((0, sealed(secret, 1, bytes.fromhex("1800000100"), 22)))
    updated = expanded(secret, "traffic upd", 48)
    made.flights += [(0, sealed(updated, number, asked(1 + number), 23)) for number in range(3)]
    one = wire(made)
    segments = without(one, [payloads(one, 0)[-4]]) if lost else one.segments
    assert sorted(ids(decrypted(segments, keylog))) == [0, 1, 2, 3]


def expanded(secret: bytes, label: str, size: int) -> bytes:
    name = b"tls13 " + label.encode()
    info = pack(">HB", size, len(name)) + name + b"\0"
    return HKDFExpand(SHA384(), size, info).derive(secret)


def sealed(secret: bytes, number: int, data: bytes, kind: int) -> bytes:
    """A record of TLS_AES_256_GCM_SHA384."""
    key, iv = expanded(secret, "key", 32), expanded(secret, "iv", 12)
    header = pack(">BHH", 23, 0x0303, len(data) + 17)
    nonce = (int.from_bytes(iv, "big") ^ number).to_bytes(12, "big")
    return header + AESGCM(key).encrypt(nonce, data + bytes([kind]), header)


# -- secrets and state --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("step", [1, 7])
def test_another_analyzer_goes_on_and_no_state_has_a_secret(tmp_path: Path, version: ssl.TLSVersion, step: int) -> None:
    """As from file to file in ``pipeline watch``: the secrets are read from the log again."""
    keylog = tmp_path / "keys.log"
    one = wire(talk(keylog, version, rounds=8, size=100), segment=70)
    hidden = [bytes.fromhex(line.split()[2]) for line in keylog.read_text().splitlines() if line[0] != "#"]
    analyzer = Analyzer(tls_secrets=secrets_of(keylog))
    found: list[Event] = []
    for start in range(0, len(one.segments), step):
        found += process(analyzer, one.segments[start : start + step])
        state = dump(analyzer)
        plain = zlib.decompress(state)
        assert not any(secret in plain or secret.hex().encode() in plain for secret in hidden)
        analyzer = Analyzer(tls_secrets=secrets_of(keylog))
        load(analyzer, state)
    found += finish(analyzer)
    assert outcomes(found) == [(number, "ok") for number in range(8)]
    assert problems(found) == []


def test_nothing_of_a_long_connection_is_kept(tmp_path: Path) -> None:
    """What was decrypted, and what never will be."""
    keylog = tmp_path / "keys.log"
    one = wire(talk(keylog, rounds=400, size=2000))
    for lines in (keylog.read_text(), f"CLIENT_RANDOM {'00' * 32} {'00' * 48}\n"):
        analyzer = Analyzer(tls_secrets=secrets_of(lines))
        most = 0
        for segment in one.segments[:-3]:
            list(process(analyzer, [segment]))
            most = max([most, *(one.held_bytes() for one in analyzer.table.connections() if one.started)])
        assert most < MAX_WAITING_BYTES + 20_000
        assert keylog.read_text() != lines or most < 20_000
