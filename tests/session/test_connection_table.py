"""Connections begin, end, and give way to others on the same ports; what they held is freed."""

from __future__ import annotations

import gc
import tracemalloc
from struct import pack

import pytest

from kwiresniff.base.needs import Needs
from kwiresniff.model import ACK, FIN, RST, SYN, Connection, ConnectionAttempt, Event
from kwiresniff.session import Analyzer, connection_table
from kwiresniff.session.connection import ConnectionAnalyzer
from tests.support.conversation import (
    Wire,
    api_versions_v0,
    api_versions_v0_response,
    events,
    exchanges,
    heartbeat,
    heartbeat_response,
    request,
    response,
    string,
)
from tests.support.exchange_facts import facts
from tests.support.sample import slow_if


def test_an_end_without_the_answer_to_the_handshake_is_waited_for_only_once() -> None:
    """All that came from the broker is lost but its FIN, which does not tell where it began to count."""
    wire = Wire()
    wire.send(0, flags=SYN)
    wire.send(1, flags=SYN | ACK, drop=True)
    wire.up(heartbeat(1), drop=True).down(heartbeat_response(1), drop=True)
    wire.send(1, flags=FIN | ACK)
    wire.packet += 100
    later = Wire(client_port=40_001)
    later.packet = wire.packet
    later.open().up(heartbeat(2)).down(heartbeat_response(2))
    assert [facts(x) for x in exchanges(events(wire, later))] == [("Heartbeat", 0, 2, "ok")]


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
@pytest.mark.parametrize("ended", ["refused", "reset"])
def test_ports_used_again_are_a_new_connection_however_its_opening_is_reordered(
    ended: str, order: tuple[int, int, int]
) -> None:
    """SYN, its answer and the first request in any order, soon after a connection that was refused or reset."""
    first = Wire(isn=(100, 5000))
    if ended == "refused":
        first.send(0, flags=SYN)
        first.send(1, flags=RST | ACK)
    else:
        first.open().up(heartbeat(1)).down(heartbeat_response(1))
        first.send(0, flags=RST)
    again = Wire(isn=(9_000, 90_000))
    again.packet = first.packet
    again.open().up(heartbeat(7)).down(heartbeat_response(7))
    syn, answer, _, asked, answered = again.segments
    again.segments = [*((syn, answer, asked)[index] for index in order), answered]
    found = exchanges(events(first, again))
    assert [(x.correlation_id, x.outcome) for x in found][-1:] == [(7, "ok")]
    assert found[-1].connection.handshake_seen
    assert [x.outcome for x in found] == ["ok"] * len(found)


def test_port_reuse_is_a_new_connection_at_its_syn_or_at_a_jump() -> None:
    """Correlation ids start over; outstanding requests of the old one are unanswered."""
    first = Wire().open().up(heartbeat(1)).down(heartbeat_response(1)).up(heartbeat(2))
    second = Wire(isn=(1_000_000_000, 2_000_000_000)).open().up(heartbeat(2)).down(heartbeat_response(2))
    third = Wire(isn=(3_000_000_000, 3_500_000_000)).up(heartbeat(3)).down(heartbeat_response(3))
    found = events(first, second, third)
    assert [facts(x)[2:] for x in exchanges(found)] == [(1, "ok"), (2, "unanswered"), (2, "ok"), (3, "ok")]
    assert [event.id for event in found if isinstance(event, Connection)] == [1, 2, 3]


def test_a_connection_that_ends_while_its_opening_is_awaited_is_reported_when_its_ports_are_used_again() -> None:
    """The capture begins in the middle of it; a tenth of a second has not passed when another one follows."""
    first = Wire(isn=(100, 5000)).up(heartbeat(1)).down(heartbeat_response(1))
    first.send(0, flags=FIN | ACK)
    second = Wire(isn=(1_000_000_000, 2_000_000_000)).open().up(heartbeat(2)).down(heartbeat_response(2))
    found = events(first, second)
    assert [facts(x)[2:] for x in exchanges(found)] == [(1, "ok"), (2, "ok")]
    assert [event.id for event in found if isinstance(event, Connection)] == [1, 2]


def test_the_same_packets_seen_twice_count_once() -> None:
    """Two interfaces, every packet doubled, handshake and end included."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1)).close()
    wire.segments = [segment for segment in wire.segments for _ in range(2)]
    found = events(wire)
    assert [facts(x)[2:] for x in exchanges(found)] == [(1, "ok")]
    assert len([event for event in found if isinstance(event, Connection)]) == 1
    again = events(wire, wire)
    assert len(exchanges(again)) == 1


def test_the_round_trip_of_the_handshake_is_syn_to_first_acknowledgement() -> None:
    """Wherever the capture point lies, both ways are in it."""
    found = events(Wire().open().up(heartbeat(1)).down(heartbeat_response(1)).close())
    (connection,) = (event for event in found if isinstance(event, Connection))
    assert connection.handshake_seen
    assert connection.handshake_rtt_ns == 2_000_000
    assert connection.path_ns == 1_000_000, "from the SYN to its answer"
    assert connection.exchanges == {"ok": 1}


@pytest.mark.parametrize(
    ("ends", "closed_by", "was_reset", "packet"),
    [([], "", False, 0), ([(0, FIN | ACK), (1, FIN | ACK)], "client", False, 6), ([(1, RST)], "broker", True, 6)],
)
def test_a_connection_says_who_closed_it(
    ends: list[tuple[int, int]], closed_by: str, was_reset: bool, packet: int
) -> None:
    """By the first FIN or RST; and whose it was, and where it began."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    for way, flags in ends:
        wire.send(way, flags=flags)
    (connection,) = (event for event in events(wire) if isinstance(event, Connection))
    assert (connection.closed_by, connection.was_reset, connection.closed_packet) == (closed_by, was_reset, packet)
    assert (connection.client_id, connection.first_packet, connection.syn_retransmits) == ("c-1", 1, 0)


@pytest.mark.parametrize("refused", [False, True])
def test_a_syn_refused_or_not_answered_is_an_attempt(refused: bool) -> None:
    """A SYN that is sent again is one attempt; they are told to whoever asks, and no connections."""
    wire = Wire()
    wire.send(0, flags=SYN)
    for _ in range(2):
        wire.packet += 999
        wire.seq[0] -= 1
        wire.send(0, flags=SYN)
    wire.seq[0] -= 1
    wire.send(0, flags=SYN)  # the same packet captured twice
    if refused:
        wire.send(1, flags=RST | ACK)
    other = Wire(client_port=40_001).open().up(heartbeat(1)).close()
    assert not [event for event in events(wire, other) if isinstance(event, ConnectionAttempt)]
    found = events(wire, other, attempts=True)
    (attempt,) = (event for event in found if isinstance(event, ConnectionAttempt))
    last_ns = (2003 if refused else 2002) * 1_000_000
    seq = wire.segments[0][3]
    assert attempt == ("10.0.0.1:40000", "10.0.0.2:9092", 1, 1_000_000, last_ns, 3, refused, seq)
    assert [event.client for event in found if isinstance(event, Connection)] == ["10.0.0.1:40001"]


def test_a_syn_that_is_answered_late_is_counted_with_its_connection() -> None:
    """The connection came to be, though not at the first SYN."""
    wire = Wire()
    wire.send(0, flags=SYN)
    wire.packet += 999
    wire.seq[0] -= 1
    wire.open().up(heartbeat(1)).down(heartbeat_response(1))
    found = events(wire, attempts=True)
    assert [event.syn_retransmits for event in found if isinstance(event, Connection)] == [1]
    assert not [event for event in found if isinstance(event, ConnectionAttempt)]


def test_a_connection_counts_its_last_acknowledgement_and_a_repeated_end() -> None:
    """The counts are those of ``tshark -z conv,tcp``: 3 packets to open, 2 of data, 4 to close."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    wire.send(0, flags=FIN | ACK)
    wire.seq[0] -= 1
    wire.send(0, flags=FIN | ACK)
    wire.send(1, flags=FIN | ACK)
    wire.send(0)
    wire.send(0, flags=SYN)  # the port is used again
    (connection,) = [event for event in events(wire) if isinstance(event, Connection)]
    assert (connection.packets, connection.retransmits) == ([6, 3], [1, 0])


@pytest.mark.slow
def test_what_ended_connections_held_is_free_without_a_search_for_garbage() -> None:
    """A hundred connections, one every second; an ended one is remembered for 20 seconds."""
    analyzer = Analyzer("errors")
    gc.disable()
    try:
        before = sum(isinstance(one, ConnectionAnalyzer) for one in gc.get_objects())
        for second in range(100):
            wire = Wire(client_port=40_000 + second).open()
            if second % 2:  # with a token that has no header
                wire.up(request(17, 0, 1, string("PLAIN"))).down(response(1, pack(">hi", 0, 1) + string("PLAIN")))
                wire.up(pack(">i", 4) + b"\0a\0b").down(pack(">i", 0))
            else:
                wire.up(api_versions_v0(1)).down(api_versions_v0_response(1))
            wire.up(heartbeat(2)).down(heartbeat_response(2))
            for segment in wire.close().segments:
                analyzer.segment(segment[0], segment[1] + second * 1_000_000_000, *segment[2:])
        connections = sum(isinstance(one, ConnectionAnalyzer) for one in gc.get_objects()) - before
    finally:
        gc.enable()
    assert 20 <= connections <= 25
    assert len(exchanges(analyzer.events())) == 200


@pytest.mark.parametrize("handshake", slow_if([True, False], False))
def test_a_connection_whose_ports_are_used_again_is_free_without_a_search_for_garbage(handshake: bool) -> None:
    """Fifty connections on the same ports, none of which ends before the next begins, with or without its handshake."""
    analyzer = Analyzer("errors")
    gc.disable()
    try:
        before = sum(isinstance(one, ConnectionAnalyzer) for one in gc.get_objects())
        for number in range(50):
            wire = Wire(isn=(number * 0x20000000 + 1, number * 0x20000000 + 99)).open()
            wire.up(api_versions_v0(1)).down(api_versions_v0_response(1)).up(heartbeat(2)).down(heartbeat_response(2))
            for segment in wire.segments[0 if handshake else 3 :]:
                packet, ns = segment[0] + number * 100, segment[1] + number * 1_000_000_000
                analyzer.segment(packet, ns, *segment[2:])
        connections = sum(isinstance(one, ConnectionAnalyzer) for one in gc.get_objects()) - before
        analyzer.close()
    finally:
        gc.enable()
    assert connections <= 2
    assert len(exchanges(analyzer.events())) == 100


#: Objects that the search for garbage has to look at, and bytes of memory: a SYN is one object, with its flow and its
#: time; a connection is its two directions, their entries in the table, and how it began. What reads data is as much
#: again and more; its lists and tables are made when something is in them.
LIGHT = {"attempt": (1, 1, 200), "handshake": (3, 6, 1500), "request": (5, 18, 3800)}


def analyzing_objects() -> int:
    """Of this package, as far as the collector of cycles knows them. A type of C may have no text for a module."""
    return sum(str(type(one).__module__).startswith("kwiresniff.") for one in gc.get_objects())


@pytest.mark.parametrize("kind", LIGHT)
def test_little_is_kept_of_a_connection_of_few_packets(kind: str) -> None:
    """A thousand SYNs that nobody answers, handshakes that nothing follows, and connections of one request."""
    packets, objects, memory = LIGHT[kind]
    analyzer = Analyzer("errors")
    wires = [Wire(client_port=10_000 + number).open() for number in range(1_000)]
    for wire in wires:
        wire.up(heartbeat(1)).down(heartbeat_response(1))
    segments = [segment for wire in wires for segment in wire.segments[:packets]]
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        before = analyzing_objects()
        for segment in segments:
            analyzer.segment(*segment)
        analyzer.events()
        kept = analyzing_objects() - before
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
        gc.enable()
    assert kept <= 1_000 * objects
    assert held <= 1_000 * memory


def test_who_has_spoken_since_is_not_the_longest_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of ten connections speaks time and again among SYNs without an answer: it gives way when it has gone silent,
    and not before, though the others are not sorted anew each time.
    """
    monkeypatch.setattr(connection_table, "MAX_CONNECTIONS", 10)
    analyzer = Analyzer(Needs("errors", attempts=True))
    wires = [Wire(client_port=40_000 + number).open() for number in range(10)]
    speaker = wires[0].up(heartbeat(1)).down(heartbeat_response(1))
    clock = iter(range(1, 10_000))

    def feed(*fed: Wire) -> list[Event]:
        for wire in fed:
            for segment in wire.segments:
                packet = next(clock)
                analyzer.segment(packet, packet * 1_000_000_000, *segment[2:])
            wire.segments.clear()
        return analyzer.events()

    feed(*wires[1:], speaker)
    for number in range(30):
        wire = Wire(client_port=50_000 + number)
        wire.send(0, flags=SYN)
        told = feed(wire, speaker.up(heartbeat(2 + number)).down(heartbeat_response(2 + number)))
        assert [event for event in told if isinstance(event, Connection)] == []
        attempts = [event.client for event in told if isinstance(event, ConnectionAttempt)]
        assert attempts == ([f"10.0.0.1:{50_000 + number - 9}"] if number >= 9 else []), "the oldest of the SYNs"
    for number in range(10):
        wire = Wire(client_port=60_000 + number)
        wire.send(0, flags=SYN)
        told = feed(wire)
        ended = [event.client for event in told if isinstance(event, Connection)]
        assert ended == (["10.0.0.1:40000"] if number == 9 else [])
