"""Responses that a capture has before their requests: held back until the request is there or has had its time."""

from __future__ import annotations

import random
from collections import deque
from struct import pack
from time import process_time

import pytest

from kwiresniff.model import Connection, Event, Exchange
from kwiresniff.session import Analyzer
from kwiresniff.session.response_reordering import MAX_REORDERED, MAX_REORDERED_BYTES, ResponseReorderBuffer
from kwiresniff.stream.out_of_order import GRACE_NS, GRACE_PACKETS
from tests.support.conversation import Wire, events, exchanges, heartbeat, heartbeat_response, response
from tests.support.events import finish


def summaries(found: list[Event]) -> list[tuple[int, str]]:
    return [(one.correlation_id, one.outcome) for one in exchanges(found)]


def overtaken(first: int, *others: int) -> Wire:
    """An open connection on which the answers to these come before the requests."""
    wire = Wire().open().up(heartbeat(0)).down(heartbeat_response(0))
    ids = (first, *others)
    place = len(wire.segments)
    wire.up(*map(heartbeat, ids)).down(*map(heartbeat_response, ids))
    wire.segments[place:] = wire.segments[place:][::-1]
    return wire


def test_a_response_waits_for_its_request() -> None:
    """Nothing is told of it before, and then the pair."""
    wire = overtaken(1)
    analyzer = Analyzer()
    for segment in wire.segments[:-1]:
        analyzer.segment(*segment)
    assert summaries(analyzer.events()) == [(0, "ok")]
    analyzer.segment(*wire.segments[-1])
    assert summaries(analyzer.events()) == [(1, "ok")]


def test_several_in_one_packet_find_their_requests_in_order() -> None:
    assert summaries(events(overtaken(1, 2, 3))) == [(0, "ok"), (1, "ok"), (2, "ok"), (3, "ok")]


@pytest.mark.parametrize(("packets", "ns"), [(2 * GRACE_PACKETS, 0), (0, 2 * GRACE_NS)])
def test_a_request_that_does_not_come_in_its_time_is_missing(packets: int, ns: int) -> None:
    """By packets of the capture, or by time, when the next request comes."""
    wire = Wire().open().up(heartbeat(0)).down(heartbeat_response(0)).down(heartbeat_response(7))
    wire.packet += packets
    wire.up(heartbeat(1))
    number, time, *rest = wire.segments[-1]
    wire.segments[-1] = (number, time + ns, *rest)  # type: ignore[assignment]
    analyzer = Analyzer()
    for segment in wire.segments:
        analyzer.segment(*segment)
    assert summaries(analyzer.events()) == [(0, "ok"), (7, "request_missing")]


def test_a_later_response_with_its_request_shows_that_the_earlier_ones_have_lost_theirs() -> None:
    """Brokers answer in order."""
    wire = Wire().open().up(heartbeat(0)).down(heartbeat_response(0))
    wire.down(heartbeat_response(7)).up(heartbeat(8)).down(heartbeat_response(8))
    assert summaries(events(wire)) == [(0, "ok"), (7, "request_missing"), (8, "ok")]


def test_what_is_held_when_the_connection_ends_is_told() -> None:
    wire = Wire().open().up(heartbeat(0)).down(heartbeat_response(0)).down(heartbeat_response(7), heartbeat_response(8))
    assert summaries(events(wire.close())) == [(0, "ok"), (7, "request_missing"), (8, "request_missing")]


@pytest.mark.parametrize(
    ("count", "size"), [(MAX_REORDERED + 50, 10), (40, MAX_REORDERED_BYTES // 20), (3, 2 * MAX_REORDERED_BYTES)]
)
def test_no_more_are_held_than_the_limits_say(count: int, size: int) -> None:
    """In number and in bytes, together and alone; the oldest go first, and none is lost."""
    wire = Wire().open().up(heartbeat(0)).down(heartbeat_response(0))
    analyzer = Analyzer("headers")
    for number in range(count):
        wire.down(response(1000 + number, b"x" * size))
    most = 0
    for segment in wire.segments:
        analyzer.segment(*segment)
        for one in analyzer.table.open.values():
            if not one.connection.started:
                continue
            early = one.connection.reordering
            assert early.held_bytes <= MAX_REORDERED_BYTES and len(early.held) <= MAX_REORDERED
            most = max(most, len(early.held))
    told_before = len([one for one in analyzer.events() if isinstance(one, Exchange)]) - 1
    assert told_before == count - most or size > MAX_REORDERED_BYTES
    assert len(summaries(list(finish(analyzer)))) == count - told_before


def held(*ids: int, packet: int = 1) -> ResponseReorderBuffer:
    """A buffer with responses with these correlation ids."""
    buffer = ResponseReorderBuffer()
    for correlation_id in ids:
        data = correlation_id.to_bytes(4, "big")
        buffer.hold((packet, 0, packet, 0, len(data), data, 0, -1, -1))
    return buffer


def outstanding(*ids: int) -> dict[int, Exchange | deque[Exchange]]:
    return {one: Exchange(Connection(1, "", ""), 12, 0, one, None, None, None) for one in ids}


def asking(correlation_id: int) -> bytes:
    return b"\0\x0c\0\0" + correlation_id.to_bytes(4, "big")


def test_a_buffer_says_how_many_responses_have_their_request() -> None:
    """Responses before one whose request is known have lost theirs; a request that none answers changes nothing."""
    buffer = held(1, 2, 3)
    assert buffer.ready(asking(9), 2, 0, outstanding(9)) == 0
    assert buffer.ready(asking(1), 2, 0, outstanding(1)) == 1
    assert buffer.ready(asking(2), 2, 0, outstanding(2)) == 2


def test_of_two_responses_with_one_id_the_second_waits_for_another_request() -> None:
    assert held(5, 5).ready(asking(5), 2, 0, outstanding(5)) == 1


def test_a_buffer_lets_go_of_what_has_waited_long_enough() -> None:
    """In packets of the capture or in time."""
    assert held(1, 2).ready(asking(9), 1 + GRACE_PACKETS, 0, {}) == 0
    assert held(1, 2).ready(asking(9), 2 + GRACE_PACKETS, 0, {}) == 2
    assert held(1, 2).ready(asking(9), 1, GRACE_NS + 1, {}) == 2


def test_what_is_popped_is_held_no_longer() -> None:
    """Neither its bytes nor its id."""
    buffer = held(1, 2)
    assert [one[5][-1] for one in buffer.pop(1)] == [1]
    assert buffer.ready(asking(1), 2, 0, outstanding(1)) == 0
    assert [one[5][-1] for one in buffer.pop(1)] == [2]
    assert (buffer.held, buffer.held_bytes) == ([], 0)


@pytest.mark.parametrize("seed", range(4))
def test_what_is_ready_is_what_a_look_at_each_finds(seed: int) -> None:
    """Ids out of order and repeated, times that run back: the last that has its request, or had its time."""
    chance = random.Random(seed)
    for _ in range(300):
        buffer, kept = ResponseReorderBuffer(), []
        for _ in range(chance.randrange(1, 12)):
            packet, ns, number = chance.randrange(600), chance.randrange(2 * GRACE_NS), chance.randrange(8)
            data = pack(">i", number)
            buffer.hold((packet, ns, packet, ns, len(data), data, 0, 0, -1))
            kept.append((packet, ns, number))
        for _ in range(3):
            asked, last_packet, last_ns = chance.randrange(8), chance.randrange(900), chance.randrange(3 * GRACE_NS)
            known = {asked, *chance.sample(range(8), 2)}
            first, numbers = kept[0], [number for *_, number in kept]

            def is_late(one: tuple[int, int, int], packet: int = last_packet, ns: int = last_ns) -> bool:
                return packet - one[0] > GRACE_PACKETS or ns - one[1] > GRACE_NS

            fits = [is_late(one) or (one[2] in known and numbers.index(one[2]) == at) for at, one in enumerate(kept)]
            expected = max((at + 1 for at, fit in enumerate(fits) if fit), default=0)
            if asked not in numbers and not is_late(first):
                expected = 0
            found = buffer.ready(asking(asked), last_packet, last_ns, outstanding(*known))
            assert found == expected
            buffer.pop(found)
            del kept[:found]
            if not kept:
                break


def test_the_next_request_does_not_have_all_that_are_held_looked_at() -> None:
    """Ten times as many answers that wait take no more than three times as long, request by request."""

    def took(count: int) -> float:
        rounds = []
        for _ in range(5):
            buffers = [held(*range(count)) for _ in range(200)]
            began = process_time()
            for buffer in buffers:
                buffer.ready(asking(0), 2, 0, outstanding(0))
            rounds.append(process_time() - began)
        return min(rounds)

    assert took(250) < 3 * took(25)
