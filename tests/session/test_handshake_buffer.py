"""Segments met before the handshake of their connection: held back for as long as it may still come."""

from __future__ import annotations

import pytest

from kwiresniff.model import ACK, FIN, SYN, Segment
from kwiresniff.session.handshake_buffer import (
    MAX_HANDSHAKES,
    MAX_SEGMENTS,
    MAX_SPAN_BYTES,
    HandshakeBuffer,
    can_follow,
    first_seq,
)
from kwiresniff.stream.out_of_order import GRACE_NS, GRACE_PACKETS
from tests.support.conversation import Wire, events, exchanges, heartbeat, heartbeat_response

UP, DOWN = Wire().flows


def segment(
    seq: int, data: bytes = b"data", *, flow: bytes = UP, ack: int = 0, flags: int = ACK, packet: int = 1, ns: int = 0
) -> Segment:
    return packet, ns, flow, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, flags, b"??" + data, 2, 2 + len(data), 0


def payloads(held: list[Segment]) -> list[bytes]:
    return [one[6][one[7] : one[8]] for one in held]


def test_what_is_held_back_comes_out_in_the_order_in_which_it_came() -> None:
    """A buffered segment keeps its own bytes alive, not the whole read buffer that they lie in."""
    handshakes = HandshakeBuffer()
    assert handshakes.hold(b"one", segment(20, b"second")) == []
    assert handshakes.hold(b"one", segment(10, b"first")) == []
    assert len(handshakes) == 1 and b"one" in handshakes
    held = handshakes.pop(b"one")
    assert payloads(held) == [b"second", b"first"]
    assert [one[6] for one in held] == [b"second", b"first"]
    assert len(handshakes) == 0 and handshakes.pop(b"one") == []


def test_too_many_segments_of_a_connection_wait_no_longer() -> None:
    handshakes = HandshakeBuffer()
    for number in range(MAX_SEGMENTS - 1):
        assert handshakes.hold(b"one", segment(number)) == []
    assert len(handshakes.hold(b"one", segment(99))) == MAX_SEGMENTS
    assert b"one" not in handshakes


def test_of_too_many_connections_the_oldest_waits_no_longer() -> None:
    handshakes = HandshakeBuffer()
    for number in range(MAX_HANDSHAKES):
        assert handshakes.hold(b"%d" % number, segment(number, b"%d" % number)) == []
    assert payloads(handshakes.hold(b"new", segment(1))) == [b"0"]
    assert len(handshakes) == MAX_HANDSHAKES


@pytest.mark.parametrize(
    ("packet", "ns", "late"),
    [
        (1 + GRACE_PACKETS, GRACE_NS, False),
        (2 + GRACE_PACKETS, 0, True),
        (1, GRACE_NS + 1, True),
    ],
)
def test_a_connection_waits_as_long_as_a_hole_does(packet: int, ns: int, late: bool) -> None:
    """In packets of the capture and in time, whichever is over first."""
    handshakes = HandshakeBuffer()
    handshakes.hold(b"one", segment(1, packet=1, ns=0))
    handshakes.hold(b"two", segment(1, packet=packet, ns=ns))
    assert payloads(handshakes.pop_late(packet, ns)) == ([b"data"] if late else [])
    assert handshakes.pop_late(packet, ns) == []


@pytest.mark.parametrize("isn", [1000, 0xFFFFFFFF, 0xFFFFFFF0])
def test_segments_follow_a_syn_when_their_numbers_are_a_little_above_its_own(isn: int) -> None:
    """The SYN's own flow is judged by sequence numbers, the other by what it acknowledges; across the wrap too."""
    assert can_follow([segment(isn + 1), segment(isn + 1 + MAX_SPAN_BYTES)], UP, isn & 0xFFFFFFFF)
    assert not can_follow([segment(isn + 2 + MAX_SPAN_BYTES)], UP, isn & 0xFFFFFFFF)
    assert not can_follow([segment(isn)], UP, isn & 0xFFFFFFFF)
    assert can_follow([segment(7, flow=DOWN, ack=isn + 1)], UP, isn & 0xFFFFFFFF)
    assert not can_follow([segment(7, flow=DOWN, ack=isn)], UP, isn & 0xFFFFFFFF)
    assert can_follow([segment(7, flow=DOWN, ack=isn, flags=0)], UP, isn & 0xFFFFFFFF)
    assert can_follow([segment(7, flow=DOWN, ack=isn, flags=SYN | ACK)], UP, isn & 0xFFFFFFFF)


@pytest.mark.parametrize("base", [1000, 0xFFFFFFFA])
def test_a_flow_begins_with_its_lowest_number(base: int) -> None:
    """Of data, or of its end; not of acknowledgements, nor of the other flow, nor of numbers far away."""
    held = [segment(base + 9), segment(base + 5), segment(base, b""), segment(base - 50, flow=DOWN)]
    assert first_seq(held, UP) == (base + 5) & 0xFFFFFFFF
    assert first_seq([segment(base, b"", flags=ACK | FIN)], UP) == base
    assert first_seq([segment(base, b"")], UP) == -1
    assert first_seq([segment(base), segment(base - MAX_SPAN_BYTES - 1)], UP) == base


def test_data_captured_before_its_handshake_belongs_to_the_connection() -> None:
    """The capture point put the request before the SYN and the answer before the answer to it."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1)).close()
    for order in ([3, 0, 1, 2, 4], [3, 4, 0, 1, 2], [0, 3, 1, 2, 4], [4, 3, 1, 0, 2]):
        shuffled = Wire()
        shuffled.segments = [wire.segments[at] for at in order] + wire.segments[5:]
        (exchange,) = exchanges(events(shuffled))
        assert (exchange.outcome, exchange.connection.handshake_seen) == ("ok", True), order
