"""What is not Kafka is counted by server and told once: other protocols, other answers, unanswered hellos."""

from __future__ import annotations

import ssl
from struct import pack

import pytest

from kwiresniff.model import Event, Problem
from kwiresniff.session import Analyzer, non_kafka
from tests.support.conversation import Wire, events, exchanges, heartbeat, heartbeat_response, problems, string
from tests.support.events import analyze_with
from tests.support.incidents import findings
from tests.support.tls_conversation import TlsTalk

#: A fatal alert, internal_error (80), as brokers that expect TLS send it to a plain request (RFC 8446, section 6).
ALERT = bytes.fromhex("15030300020250")


def only(found: list[Event]) -> Problem:
    (problem,) = problems(found)
    return problem


def details(problem: Problem) -> dict[str, object]:
    assert problem.details is not None
    return dict(problem.details)


@pytest.mark.parametrize(
    ("answer", "protocol", "alert"),
    [
        (ALERT, "tls", "internal_error"),
        (ALERT[:5], "tls", None),
        (b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "http", None),
        (b"HTTP", "http", None),
        (b"-ERR unknown command '\\x00'\r\n", "redis", None),
        (b"ERROR malformed request\r\n", "text", None),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "ssh", None),
        (b"220 mail.example.org ESMTP\r\n", "smtp or ftp", None),
    ],
)
def test_a_server_that_answers_kafka_with_something_else_is_named(answer: bytes, protocol: str, alert: str) -> None:
    """The request stays unanswered, and nothing is said of messages that are cut off or lost."""
    found = events(Wire().open().up(heartbeat(1)).down(answer).close())
    problem = only(found)
    assert (problem.code, problem.packet) == ("not_kafka_answer", 5)
    assert details(problem) == {
        "protocol": protocol, "server": "10.0.0.2:9092", "client": "10.0.0.1:40000", "alert": alert, "connections": 1,
    }  # fmt: skip
    assert [one.outcome for one in exchanges(found)] == ["unanswered"]


def test_it_is_told_once_for_all_connections_of_a_server() -> None:
    """With their number, the first client and the first packet."""
    wires = [Wire(client_port=40_000 + n).open().up(heartbeat(1)).down(ALERT).reset() for n in range(20)]
    problem = only(events(*wires))
    assert (details(problem)["connections"], details(problem)["client"]) == (20, "10.0.0.1:40000")


def test_what_follows_the_first_bytes_is_only_counted() -> None:
    """However much of it there is."""
    wire = Wire().open().up(heartbeat(1)).down(b"HTTP/1.1 200 OK\r\n\r\n")
    for _ in range(50):
        wire.down(b"<html>" * 200)
    found = events(wire.close())
    assert only(found).code == "not_kafka_answer"
    (connection,) = (one for one in found if one not in problems(found) and one not in exchanges(found))
    assert connection.bytes[1] == 19 + 50 * 1200  # type: ignore[union-attr]


def test_an_answer_in_single_bytes_is_named_too() -> None:
    """By its first four."""
    wire = Wire().open().up(heartbeat(1))
    for byte in ALERT:
        wire.down(bytes([byte]))
    assert details(only(events(wire.close())))["protocol"] == "tls"


def test_an_alert_is_recognised_where_the_handshake_was_missed() -> None:
    """When nothing but the alert has come from the server."""
    found = events(Wire().up(heartbeat(1)).down(ALERT))
    assert details(only(found))["alert"] == "internal_error"
    assert [one.outcome for one in exchanges(found)] == ["unanswered"]


def test_a_server_that_has_answered_kafka_is_not_named() -> None:
    """What comes later is bytes that do not read; and an answer of gigabytes stays one that is cut off."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1)).up(heartbeat(2)).down(ALERT)
    assert [one.code for one in problems(events(wire))] == ["incomplete_response"]
    odd = Wire().open().up(heartbeat(1)).down(b"\x10\1\2\3\0\0\0\1")
    assert [one.code for one in problems(events(odd))] == ["incomplete_response"]


SENT = {
    "http": b"GET /metrics HTTP/1.1\r\nHost: broker:9092\r\nUser-Agent: Prometheus/3.0\r\n\r\n",
    "redis": b"*1\r\n$4\r\nPING\r\n",
    "zookeeper": b"ruok",
}


@pytest.mark.parametrize("protocol", SENT)
def test_a_broker_that_is_sent_another_protocol_is_told_with_its_clients(protocol: str) -> None:
    """Where it answers Kafka on another connection, before or behind; else it may be any server."""
    strangers = []
    for port in (40_000, 40_001, 40_002):
        wire = Wire(client_port=port).open().up(SENT[protocol])
        wire.send(1, flags=0x11)
        strangers.append(wire)
    kafka = Wire(client_port=41_000).open().up(heartbeat(1)).down(heartbeat_response(1)).close()
    for wires in ([kafka, *strangers], [*strangers, kafka]):
        found = events(*wires, depth="bodies")
        told = details(only(found))
        assert (told["protocol"], told["server"], told["connections"]) == (protocol, "10.0.0.2:9092", 3)
        assert (told["speaks_kafka"], told["clients"]) == (True, {"10.0.0.1": 3})
        (finding,) = findings(*found)
        assert (finding.code, finding.severity, finding.subject) == ("not_kafka_client", "warning", "10.0.0.1")
        assert (finding.count, len(finding.evidence)) == (3, 1)
    alone = events(*strangers)
    assert details(only(alone)).keys() == {"protocol", "server", "connections", "bytes"}
    assert only(alone).packet is None
    assert not findings(*alone)


def test_what_is_not_recognised_is_no_stranger() -> None:
    """It may be Kafka of which the capture has too little."""
    stranger = Wire(client_port=40_000).open().up(b"\xde\xad\xbe\xef" * 9).close()
    kafka = Wire(client_port=41_000).open().up(heartbeat(1)).down(heartbeat_response(1)).close()
    found = events(kafka, stranger, depth="bodies")
    assert "clients" not in details(only(found))
    assert not findings(*found)


@pytest.mark.parametrize("limit", ["MAX_CLIENTS_NAMED", "MAX_CLIENTS"])
def test_clients_without_end_are_named_up_to_a_limit(limit: str) -> None:
    """All are counted; what one server's clients leave of the limit for all, others have."""
    traffic = non_kafka.NonKafkaTraffic()
    servers = 1 if limit == "MAX_CLIENTS_NAMED" else non_kafka.MAX_CLIENTS // non_kafka.MAX_CLIENTS_NAMED + 2
    for server in range(servers):
        addresses = bytes([10, 1, 0, 1]) + pack(">BBH", 10, 2, server) + b"\0\1\0\2"
        for client in range(non_kafka.MAX_CLIENTS_NAMED + 1):
            traffic.count("http", bytes([10, 1, 1, client]) + addresses[4:], True, 1, 1, 5)
        traffic.speaks_kafka(f"10.2.{server >> 8}.{server & 255}:2")
    told = [details(problem) for problem in traffic.problems()]
    assert {one["connections"] for one in told} == {non_kafka.MAX_CLIENTS_NAMED + 1}
    named = [len(one.get("clients", ())) for one in told]  # type: ignore[arg-type]
    assert max(named) == non_kafka.MAX_CLIENTS_NAMED
    assert sum(named) == min(servers * non_kafka.MAX_CLIENTS_NAMED, non_kafka.MAX_CLIENTS)


def hello() -> bytes:
    """The first flight of a TLS client, by OpenSSL."""
    return TlsTalk(version=ssl.TLSVersion.TLSv1_2, server_name=None).shake().flights[0][1]


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("reset", [False, True])
def test_a_server_that_closes_without_an_answer_to_a_hello_is_told(plain: bool, reset: bool) -> None:
    """The message says that the server speaks Kafka without TLS only where that was seen."""
    wires = [Wire(client_port=41_000).open().up(heartbeat(1)).down(heartbeat_response(1)).close()] if plain else []
    for port in (40_000, 40_001):
        wire = Wire(client_port=port).open().up(hello())
        wire.send(1, flags=0x14 if reset else 0x11)
        wires.append(wire)
    problem = only(events(*wires))
    assert (problem.code, problem.packet) == ("tls_not_answered", 5)
    assert details(problem) == {
        "server": "10.0.0.2:9092", "client": "10.0.0.1:40000", "connections": 2, "speaks_kafka": plain,
    }  # fmt: skip


def test_a_hello_that_is_answered_or_given_up_by_the_client_is_not_told() -> None:
    """Nor one of which only the client's side was captured, or that is still open."""
    answered = Wire().open()
    for side, flight in TlsTalk(version=ssl.TLSVersion.TLSv1_2, trusted=False).shake().flights:
        answered.send(side, flight)
    given_up = Wire(client_port=40_001).open().up(hello()).close()
    waiting = Wire(client_port=40_002).open().up(hello())
    assert problems(events(answered.close(), given_up, waiting)) == []


def test_servers_without_end_are_told_as_further_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each kind."""
    monkeypatch.setattr(non_kafka, "MAX_SERVERS", 3)
    if non_kafka.MAX_SERVERS != 3 or non_kafka.__file__.endswith(".so"):
        pytest.skip("compiled: the limit is part of the code")
    wires = []
    for port in range(5):
        wires.append(Wire(broker_port=port + 1).open().up(b"GET / HTTP/1.1\r\n\r\n").close())
        wires.append(Wire(broker_port=port + 101).open().up(heartbeat(1)).down(ALERT).close())
        wire = Wire(broker_port=port + 201).open().up(hello())
        wire.send(1, flags=0x14)
        wires.append(wire)
    told: dict[str, list[int]] = {}
    for problem in problems(events(*wires)):
        told.setdefault(problem.code, []).append(int(str(details(problem)["connections"])))
    assert told == {code: [1, 1, 1, 2] for code in ("not_kafka", "not_kafka_answer", "tls_not_answered")}


def test_the_counts_are_told_once_though_the_analyzer_goes_on() -> None:
    """``close`` tells them; the next one tells what has come since."""
    analyzer = Analyzer("headers")
    first = list(analyze_with(analyzer, Wire().open().up(heartbeat(1)).down(ALERT).close().segments))
    second = list(analyze_with(analyzer, Wire(client_port=2).open().up(pack(">i", -1) * 9).close().segments))
    assert [[one.code for one in problems(found)] for found in (first, second)] == [["not_kafka_answer"], ["not_kafka"]]


def test_what_shows_only_in_the_end_that_it_is_not_kafka_is_counted_once() -> None:
    """A first frame that reads like a Produce until its second topic, which comes in so few bytes that nobody looks."""
    body = pack(">hii", 1, 1000, 2) + string("orders") + pack(">iii", 1, 0, 1500) + bytes(1500)
    wire = Wire().open().up(pack(">ihhih", 50_000, 0, 0, 5, -1) + body).up(pack(">h", -7) + bytes(48))
    told = details(only(events(wire)))
    sent = sum(end - start for *_, start, end, _ in wire.segments)
    assert (told["protocol"], told["connections"], told["bytes"]) == ("unknown", 1, sent)
