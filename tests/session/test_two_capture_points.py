"""A connection that the capture has from two points: between them lies a path, and every segment comes by twice."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kwiresniff.model import Connection, Exchange, Segment
from kwiresniff.session import Analyzer
from kwiresniff.session.kafka_messages import MAX_COPIED_REQUESTS
from tests.support.conversation import Wire, heartbeat, heartbeat_response
from tests.support.copies import two_points
from tests.support.events import analyze_with

MS = 1_000_000
START_NS = 1_700_000_000_000_000_000


def at(segments: Sequence[Segment], *times_ms: float) -> list[Segment]:
    """The segments at these times at the broker."""
    return [(one[0], START_NS + int(ms * MS), *one[2:]) for one, ms in zip(segments, times_ms, strict=True)]


def analyzed(segments: Sequence[Segment]) -> tuple[list[Exchange], Connection]:
    events = list(analyze_with(Analyzer(), sorted(segments, key=lambda one: one[1])))
    (connection,) = (one for one in events if isinstance(one, Connection))
    return [one for one in events if isinstance(one, Exchange)], connection


@pytest.mark.parametrize("apart_ms", [0.5, 25, 90])
def test_a_latency_is_that_of_the_point_nearest_to_the_broker(apart_ms: float) -> None:
    """Of a request in three segments as of one in a single segment; times and packets are those of that point."""
    wire = Wire().open()
    first = heartbeat(1)
    wire.up(first[:10]).up(first[10:20]).up(first[20:]).down(heartbeat_response(1))
    wire.up(heartbeat(2)).down(heartbeat_response(2))
    seen = at(wire.segments, 0, 0.1, 200, 400, 400.1, 400.2, 403, 900, 902)
    both = two_points(int(apart_ms * MS))(seen)
    exchanges, connection = analyzed(both)
    assert [one.latency_ns for one in exchanges] == [2_800_000, 2_000_000]
    request = exchanges[0].request
    assert request is not None and (request.first_ns, request.last_ns) == (START_NS + 400 * MS, START_NS + 400_200_000)
    by_packet = {one[0]: one for one in both}
    assert by_packet[request.first_packet][1] == START_NS + 400 * MS
    assert by_packet[request.last_packet][1] == START_NS + 400_200_000
    assert (connection.is_twice, connection.later_ns) == (True, int(apart_ms * MS))
    assert (sum(connection.retransmits), connection.captured_twice) == (0, 8)
    assert connection.bytes == [len(first) + len(heartbeat(2)), 2 * len(heartbeat_response(1))]
    assert connection.path_ns == 100_000


def test_clocks_that_differ_by_more_than_the_path_show_one_point() -> None:
    """All segments of the point with the slower clock come first: the latency is the one there."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    client = at(wire.segments, 0, 50.1, 50.2, 300, 351)
    for ahead_ms, latency_ms in ((-2000, 1), (2000, 51)):
        broker = at(wire.segments, *[ms + ahead_ms for ms in (25, 25.1, 75.2, 325, 326)])
        exchanges, _ = analyzed([*client, *broker])
        assert [one.latency_ns for one in exchanges] == [latency_ms * MS]


def test_a_segment_that_is_sent_again_is_no_copy() -> None:
    """A tail loss probe repeats the last segment alone, soon; a timeout repeats it late."""
    wire = Wire().open()
    data = heartbeat(1)
    for start in range(0, len(data), 4):
        wire.up(data[start : start + 4])
    sent = wire.segments[-1]
    wire.down(heartbeat_response(1))
    for again_ms in (40, 400):
        segments = at(wire.segments, *range(len(wire.segments) - 1), 500)
        exchanges, connection = analyzed([*segments, (99, START_NS + again_ms * MS, *sent[2:])])
        last_ms = len(wire.segments) - 2
        assert [one.latency_ns for one in exchanges] == [(500 - last_ms) * MS]
        assert (connection.is_twice, connection.retransmits) == (False, [1, 0])


def test_retransmissions_at_two_points_stay_retransmissions() -> None:
    """What is sent again after a timeout passes both points again."""
    wire = Wire().open()
    for number in range(10):
        wire.up(heartbeat(number)).down(heartbeat_response(number))
    lost = wire.segments[-2]
    times = [0, 0.1, 50, *[100 * number + late for number in range(1, 11) for late in (0, 30)]]
    times[-1] = 1_400
    seen = [*at(wire.segments, *times), (0, START_NS + 1_300 * MS, *lost[2:])]
    _, connection = analyzed(two_points(10 * MS)(seen))
    assert (connection.is_twice, connection.retransmits) == (True, [2, 0])


@pytest.mark.parametrize("later_ms", [150, 400, 2_000])
def test_what_comes_again_after_it_was_acknowledged_is_a_copy(later_ms: int) -> None:
    """The clock of a second capture point is ahead by more than any timeout: nothing was sent again."""
    wire = Wire().open()
    for number in range(10):
        wire.up(heartbeat(number)).down(heartbeat_response(number))
    seen = at(wire.segments, 0, 0.1, 0.2, *[100 * number + late for number in range(1, 11) for late in (0, 3)])
    _, connection = analyzed([*seen, *[(one[0], one[1] + later_ms * MS, *one[2:]) for one in seen]])
    assert (connection.is_twice, connection.retransmits, connection.syn_retransmits) == (True, [0, 0], 0)
    assert connection.bytes == [10 * len(heartbeat(1)), 10 * len(heartbeat_response(1))]


@pytest.mark.parametrize("part", [slice(40, None), slice(0, 70), slice(33, 90)])
def test_a_second_point_may_have_a_part_of_the_time(part: slice) -> None:
    """One of two captures began later, or ended sooner."""
    wire = Wire().open()
    for number in range(60):
        wire.up(heartbeat(number)).down(heartbeat_response(number))
    times = [0, 0.1, 0.2, *[100 * number + late for number in range(1, 61) for late in (0, 3)]]
    seen = at(wire.segments, *times)
    again = [(one[0], one[1] + 5 * MS, *one[2:]) for one in seen[part]]
    _, connection = analyzed([*seen, *again])
    assert (connection.is_twice, connection.retransmits) == (True, [0, 0])
    assert connection.bytes == [60 * len(heartbeat(1)), 60 * len(heartbeat_response(1))]


def test_a_burst_that_is_lost_behind_the_capture_point_is_no_copy() -> None:
    """A window of segments is sent again after a round trip, and acknowledged then; so much of the whole is no copy."""
    wire = Wire().open()
    for number in range(60):
        wire.up(heartbeat(number)).down(heartbeat_response(number))
    for number in range(60, 75):
        wire.up(heartbeat(number))
    seen = at(wire.segments, 0, 0.1, 0.2, *[10 * number for number in range(1, 121)], *[1_300] * 15)
    again = [(0, one[1] + 60 * MS, *one[2:]) for one in seen[-15:]]
    _, connection = analyzed([*seen, *again])
    assert (connection.is_twice, connection.retransmits) == (False, [15, 0])


@pytest.mark.parametrize("side", [0, 1])
def test_a_second_point_may_have_one_direction_alone(side: int) -> None:
    """The other direction is counted as it is, what was sent again there, too."""
    wire = Wire().open()
    for number in range(10):
        wire.up(heartbeat(number)).down(heartbeat_response(number))
    seen = at(wire.segments, 0, 0.1, 0.2, *[300 * number + late for number in range(1, 11) for late in (0, 3)])
    again = [(0, one[1] + 2 * MS, *one[2:]) for one in seen[3 + side :: 2]]
    lost = seen[4 - side + 6]
    _, connection = analyzed([*seen, *again, (0, lost[1] + 250 * MS, *lost[2:])])
    assert connection.is_twice
    assert (connection.retransmits[side], connection.retransmits[1 - side]) == (0, 1)
    sizes = [10 * len(heartbeat(1)), 10 * len(heartbeat_response(1))]
    assert connection.bytes[side] == sizes[side]


def test_a_syn_that_is_sent_again_after_a_second_is_no_copy() -> None:
    """The first one was lost behind the capture point: what follows is seen once."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    seen = at(wire.segments, 0, 1_050, 1_051, 1_060, 1_070)
    _, connection = analyzed([*seen, (9, START_NS + 1_000 * MS, *seen[0][2:])])
    assert (connection.is_twice, connection.retransmits, connection.syn_retransmits) == (False, [1, 0], 1)


def test_the_requests_that_a_copy_is_compared_with_are_bounded() -> None:
    """Of more requests in flight the oldest keep the times of the first point."""
    wire = Wire().open()
    count = MAX_COPIED_REQUESTS + 20
    for number in range(count):
        wire.up(heartbeat(number))
    wire.down(b"".join(heartbeat_response(number) for number in range(count)))
    sent = wire.segments[3:-1]
    segments = at(wire.segments, 0, 1, 2, *[3] * count, 100)
    exchanges, _ = analyzed(
        [*segments, *[(number, START_NS + 50 * MS, *one[2:]) for number, one in enumerate(sent, 1_000)]]
    )
    assert [one.latency_ns for one in exchanges] == [97 * MS] * 20 + [50 * MS] * MAX_COPIED_REQUESTS
