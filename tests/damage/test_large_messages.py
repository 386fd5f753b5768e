"""A capture that begins inside a message of more than a megabyte: the search for frames has used up its budget
by the time it ends, and the messages behind it are found all the same.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from struct import pack

import pytest

from kwiresniff.capture import open_captures
from kwiresniff.model import Connection, Exchange, Problem, Segment
from kwiresniff.session.connection import MAX_UNREPORTED_BYTES
from kwiresniff.stream.resync_buffer import SEARCH_BUDGET_BYTES
from tests.support.conversation import Wire, request, response, string
from tests.support.damages import started
from tests.support.events import analyze

#: Responses of 1.4 MB each, of which the broker sends the first 58 bytes in a segment of their own.
SLOW_READER = Path(__file__).parents[2] / "captures" / "incidents" / "slow-reader.pcap.xz"
SEGMENT_BYTES = 1448
LARGE_BYTES = SEARCH_BUDGET_BYTES + 300_000


def exchanged(segments: list[Segment]) -> list[tuple[int, int, int]]:
    """Correlation id and sizes of each request that has its response."""
    found = [one for one in analyze(segments) if isinstance(one, Exchange)]
    return [
        (one.correlation_id, one.request.size_bytes, one.response.size_bytes)
        for one in found
        if one.request is not None and one.response is not None
    ]


@pytest.mark.parametrize("share", [5, 10, 20, 40, 60])
def test_a_capture_that_begins_inside_a_large_response_has_those_behind_it(share: int) -> None:
    """Every exchange of which the capture has both messages whole, as the whole recording has them."""
    segments = list(open_captures([str(SLOW_READER)]))
    first = len(segments) * share // 100
    packets = {segment[0] for segment in segments[first:]}
    whole = [
        (one.correlation_id, one.request.size_bytes, one.response.size_bytes)
        for one in analyze(segments)
        if isinstance(one, Exchange) and one.request is not None and one.response is not None
        if {one.request.first_packet, one.response.first_packet} <= packets
    ]
    assert whole
    assert exchanged(started(segments, first)) == whole


def produce(correlation_id: int, size: int) -> bytes:
    """Produce v0 of one partition, which holds ``size`` bytes that are no batch."""
    filling = Random(correlation_id).randbytes(size)
    body = pack(">hii", 1, 1000, 1) + string("orders") + pack(">iii", 1, 0, size) + filling
    return request(0, 0, correlation_id, body, client="billing")


def test_a_capture_that_begins_inside_a_large_request_has_those_behind_it() -> None:
    """Nobody knows yet who the client is: a request of which only the first bytes are there is waited for."""
    wire = Wire()
    frames = [produce(7, LARGE_BYTES), produce(8, 100_000), produce(9, 50_000)]
    sizes = []
    for number, frame in enumerate(frames, 7):
        for at in range(0, len(frame), SEGMENT_BYTES):
            wire.up(frame[at : at + SEGMENT_BYTES])
        answer = response(number, pack(">i", 1) + string("orders") + pack(">iihq", 1, 0, 0, number))
        wire.down(answer)
        sizes.append((number, len(frame) - 4, len(answer) - 4))
    assert exchanged(wire.segments) == sizes
    assert exchanged(started(wire.segments, 2)) == sizes[1:]


def test_bytes_passed_over_in_one_search_are_one_problem_for_each_megabyte() -> None:
    """However many segments they came in: two are lost in the middle, and the rest of their message cannot be read."""
    wire = Wire()
    frames = [produce(7, 1000), produce(8, 2 * LARGE_BYTES), produce(9, 1000)]
    for number, frame in enumerate(frames, 7):
        for at in range(0, len(frame), SEGMENT_BYTES):
            wire.up(frame[at : at + SEGMENT_BYTES])
        wire.down(response(number, pack(">i", 1) + string("orders") + pack(">iihq", 1, 0, 0, number)))
    lost = [at for at, segment in enumerate(wire.segments) if segment[8] - segment[7] == SEGMENT_BYTES][:2]
    events = list(analyze([segment for at, segment in enumerate(wire.segments) if at not in lost]))
    assert [one.correlation_id for one in events if isinstance(one, Exchange)] == [7, 8, 9]
    (connection,) = (one for one in events if isinstance(one, Connection))
    unreadable = len(frames[1]) - 2 * SEGMENT_BYTES
    assert connection.skipped_bytes == [unreadable, 0]
    gaps = [one.details for one in events if isinstance(one, Problem) and one.details]
    assert [one["missing_bytes"] for one in gaps if one["missing_bytes"]] == [2 * SEGMENT_BYTES]
    skipped = [int(str(one["skipped_bytes"])) for one in gaps if one["skipped_bytes"]]
    assert sum(skipped) == unreadable
    assert len(skipped) == unreadable // MAX_UNREPORTED_BYTES + 1
    assert all(one.packet for one in events if isinstance(one, Problem))
