"""What the doctor says of captures that lack one direction, the beginning of a connection, or bytes in between."""

from __future__ import annotations

import pytest

from kwiresniff.model import Connection, Event, Problem
from tests.support.exchanges import START_NS, connection, exchange
from tests.support.incidents import codes, findings

SECOND = 1_000_000_000
HOST = "172.19.0.1"
BROKER = "172.19.0.3:9092"


def test_tls_that_answers_plaintext_is_named_even_without_the_requests() -> None:
    """The alert of the server is enough where the capture has one direction only."""
    details = {"protocol": "tls", "server": "10.0.0.9:9093", "client": "10.0.0.5:50000", "connections": 3}
    answered = Problem("not_kafka_answer", "", packet=7, timestamp_ns=START_NS, details=details)
    assert codes(answered) == [("plaintext_to_tls", "error")]


def asked_in_vain(closed_by: str = "") -> list[Event]:
    """Three requests that nobody answered for ten seconds, and a connection of that broker which ended with them."""
    silent, other = connection(1, f"{HOST}:5000", BROKER), connection(2, f"{HOST}:5001", BROKER)
    for one in (silent, other):
        one.handshake_seen, one.bytes, one.packets = True, [300, 300], [6, 6]
        one.first_ns, one.last_ns, one.first_packet = START_NS, START_NS + 10 * SECOND, one.id
    other.closed_by, other.closed_ns = closed_by, START_NS + SECOND // 10
    before = exchange(request={}, response={}, on=silent, start_ns=START_NS - SECOND)
    asked = [
        exchange("Metadata", 3, 12, request={}, latency_ns=None, outcome="unanswered", on=silent,
                 start_ns=START_NS + number * SECOND // 10)
        for number in range(3)
    ]  # fmt: skip
    end = exchange(request={}, response={}, on=connection(3, f"{HOST}:1", "172.19.0.9:9092"),
                   start_ns=START_NS + 10 * SECOND)  # fmt: skip
    return [before, *asked, end, other, silent]


def test_a_broker_that_closes_its_connections_does_not_stand_still() -> None:
    """A process that was stopped by a signal, or pauses, closes none; one that ends closes all."""
    assert codes(*asked_in_vain()) == [("broker_stalled", "error")]
    assert codes(*asked_in_vain(closed_by="client")) == [("broker_stalled", "error")]
    (found,) = findings(*asked_in_vain(closed_by="broker"))
    assert (found.code, found.severity) == ("unanswered", "warning")
    assert "stopped or killed" in found.title


@pytest.mark.parametrize(
    "handshake, sent, again, one_way",
    [(True, 300, 3, True), (False, 300, 0, True), (False, 300, 4, False), (True, 0, 3, False)],
    ids=["established", "going on", "sent again", "SYNs alone"],
)
def test_a_capture_of_one_direction_says_nothing_of_answers(
    handshake: bool, sent: int, again: int, one_way: bool
) -> None:
    """A client that sends a request was let in, and one that need not send it again was acknowledged: somebody
    answered, and the capture does not have it. Where the client sends again and again, nobody did."""
    events = asked_in_vain()
    silent = events[-1]
    assert isinstance(silent, Connection)
    silent.handshake_seen, silent.bytes, silent.packets, silent.retransmits = handshake, [sent, 0], [6, 0], [again, 0]
    assert codes(*events) == [("one_way_capture", "info") if one_way else ("broker_stalled", "error")]


def test_bytes_of_a_broker_that_could_not_be_read_may_be_its_answers() -> None:
    """A capture that begins in the middle of a large response does not always show where the next one begins."""
    events = asked_in_vain()
    silent = events[-1]
    assert isinstance(silent, Connection)
    silent.skipped_bytes = [0, 1_500_000]
    assert codes(*events) == []


def over_tls(*, beginning: bool, alert: str = "", seen: bool = True) -> Connection:
    """A connection of TLS that the broker closes, without an answer or with an alert; ``seen``: both directions."""
    on = connection(1, f"{HOST}:5000", BROKER)
    on.protocol, on.handshake_seen, on.closed_by, on.closed_ns = "tls", beginning, "broker", START_NS + SECOND
    on.bytes, on.packets = [46 * seen, 7 if alert else 0], [3 * seen, 4]
    on.first_ns, on.first_packet = START_NS, 1
    on.tls = {"version": None, "alert": {"sender": "broker", "description": alert} if alert else None}
    return on


def test_a_handshake_whose_beginning_is_not_there_is_not_judged() -> None:
    """The broker may have answered the hello before the capture began; then it closes for another reason."""
    assert codes(over_tls(beginning=True)) == [("tls_to_plaintext", "error")]
    assert codes(over_tls(beginning=False)) == []


def test_an_alert_to_what_is_not_in_the_capture_is_told_with_the_doubt() -> None:
    """An alert answers a refused handshake and plaintext alike."""
    titles = []
    for seen in (True, False):
        found_all = findings(over_tls(beginning=True, alert="internal_error", seen=seen))
        (found,) = [one for one in found_all if one.code == "tls_refused"]
        titles.append(found.title)
    assert "TLS handshake" in titles[0] and "plaintext" not in titles[0]
    assert "plaintext, or a handshake that it refuses" in titles[1]
