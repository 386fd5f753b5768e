"""Finding back: the bytes that come while it is not known where frames begin."""

from __future__ import annotations

import pytest

from kwiresniff.stream.buffer_budget import BufferBudget
from kwiresniff.stream.frame_handler import FrameRecorder
from kwiresniff.stream.resync import Resynchronizer
from kwiresniff.stream.resync_buffer import FIRST_STEPS, MARK_BYTES, MAX_RESYNC_BYTES, SEARCH_STEPS

STREAM = bytes(range(200))


def fed(step: int) -> Resynchronizer:
    resync, recorder = Resynchronizer(0, BufferBudget()), FrameRecorder()
    for number, at in enumerate(range(0, len(STREAM), step), 1):
        resync.feed(recorder, number, number, -1, STREAM[at : at + step], "gap")
    assert recorder.gaps == []
    return resync


@pytest.mark.parametrize("step", [1, 3, 199, 200])
def test_what_comes_is_under_search_however_it_is_cut(step: int) -> None:
    """Whole, byte by byte and in pieces; the budget is charged for all of it."""
    resync = fed(step)
    segments = -(-len(STREAM) // step)
    assert resync.buffer.data == STREAM
    assert resync.budget.held == len(STREAM) + segments * MARK_BYTES == resync.held_bytes()


def test_the_handler_is_asked_where_a_frame_begins_as_long_as_it_is_paid_for() -> None:
    """The handler is not asked when there are no bytes to search."""
    recorder = FrameRecorder(found=7)
    assert Resynchronizer(0, BufferBudget()).find(recorder) == -1
    resync = fed(50)
    assert resync.find(recorder) == 7
    searches = 0
    while resync.find(recorder) >= 0:
        searches += 1
    assert 1 < searches < 3 * FIRST_STEPS // SEARCH_STEPS


def test_the_oldest_bytes_are_given_up_and_told() -> None:
    """With the packet of the first that stay, and the reason why they were searched."""
    resync, recorder = Resynchronizer(0, BufferBudget()), FrameRecorder()
    piece = bytes(10_000)
    for number in range(1, 11):
        resync.feed(recorder, number, 10 * number, -1, piece, "mid_stream")
    assert len(resync.buffer) <= MAX_RESYNC_BYTES
    skipped = sum(gap[3] for gap in recorder.gaps)
    assert skipped + len(resync.buffer) == 100_000
    packet, ns, missing, _, code = recorder.gaps[0]
    assert (packet, ns, missing, code) == (2, 20, 0, "mid_stream")


def test_a_gap_gives_up_what_is_under_search() -> None:
    """Bytes before the gap do not join up with those after it, so the search begins anew."""
    resync, recorder = fed(50), FrameRecorder()
    resync.gap(recorder, 9, 90, 33, "gap")
    assert recorder.gaps == [(9, 90, 33, len(STREAM), "gap")]
    assert len(resync.buffer) == 0


def test_what_gives_way_is_told_once() -> None:
    """There is nothing to give up afterwards."""
    resync, recorder = fed(50), FrameRecorder()
    for _ in range(2):
        resync.release(recorder, "mid_stream")
    assert recorder.gaps == [(1, 1, 0, len(STREAM), "mid_stream")]
    assert resync.held_bytes() == 0
