"""Bytes in order to frames: whole, byte by byte, cut anywhere and with gaps."""

from __future__ import annotations

from itertools import pairwise
from struct import pack

import pytest

from kwiresniff.stream.buffer_budget import STEP_BYTES, BufferBudget
from kwiresniff.stream.frame_handler import FrameRecorder
from kwiresniff.stream.frame_reader import FrameReader

BODIES = (b"abcdefgh", b"i" * 300, b"jklm", b"n" * 17)
STREAM = b"".join(pack(">i", len(body)) + body for body in BODIES)


def read(cuts: list[int], stream: bytes = STREAM, keep: int = 1 << 20) -> tuple[FrameReader, FrameRecorder]:
    reader, recorder = FrameReader(0, keep, BufferBudget()), FrameRecorder()
    for number, (start, end) in enumerate(pairwise([0, *cuts, len(stream)]), 1):
        assert reader.read(recorder, number, 1000 * number, stream, start, end) == end
    return reader, recorder


def bodies(recorder: FrameRecorder) -> list[bytes]:
    return [frame[5] for frame in recorder.frames]


def test_frames_are_read_whole_byte_by_byte_and_cut_anywhere() -> None:
    """Through lengths as well as bodies."""
    for cuts in ([], list(range(1, len(STREAM))), *([cut] for cut in range(1, len(STREAM)))):
        reader, recorder = read(cuts)
        assert bodies(recorder) == list(BODIES), cuts
        assert reader.at_frame_start or cuts[-1:] == [len(STREAM) - 1]
        assert (reader.remaining, reader.unfinished(), recorder.gaps) == (0, (0, 0, b""), [])


def test_a_frame_tells_the_packets_of_its_first_and_last_byte() -> None:
    """The first is that of its length."""
    _, recorder = read([2, 10, 20])
    assert [frame[:4] for frame in recorder.frames[:2]] == [(1, 1000, 3, 3000), (3, 3000, 4, 4000)]


def test_no_more_is_kept_than_asked_for() -> None:
    """The size is told in full."""
    for cut in range(1, len(STREAM)):
        _, recorder = read([cut], keep=10)
        assert [(frame[4], frame[5]) for frame in recorder.frames] == [(len(body), body[:10]) for body in BODIES], cut


def test_a_long_frame_takes_from_the_budget_as_it_comes() -> None:
    """Not what its length promises."""
    reader, recorder = FrameReader(0, 1 << 30, BufferBudget()), FrameRecorder()
    size = 100 * STEP_BYTES
    reader.read(recorder, 1, 1, pack(">i", size) + bytes(10), 0, 14)
    assert STEP_BYTES <= reader.budget.held < 2 * STEP_BYTES
    for _ in range(99):
        reader.read(recorder, 1, 1, bytes(STEP_BYTES), 0, STEP_BYTES)
    assert 99 * STEP_BYTES <= reader.budget.held < 3 * size
    assert reader.held_bytes() > 99 * STEP_BYTES
    assert recorder.frames == []


@pytest.mark.parametrize("length", [-1, 3, (1 << 30) + 1])
def test_a_length_that_no_frame_has_ends_the_reading_behind_it(length: int) -> None:
    """Its four bytes are given up, and the caller is told where it stopped."""
    reader, recorder = FrameReader(0, 100, BufferBudget()), FrameRecorder()
    data = pack(">i", 4) + b"good" + pack(">i", length) + b"rest"
    assert reader.read(recorder, 1, 1, data, 0, len(data)) == 12
    assert not reader.synchronized
    assert bodies(recorder) == [b"good"]
    assert recorder.gaps == [(1, 1, 0, 4, "bad_length")]


def test_a_gap_inside_a_frame_leaves_the_next_frame_where_it_is() -> None:
    """The frame has its undamaged front and the number of lost bytes."""
    reader, recorder = FrameReader(0, 1000, BufferBudget()), FrameRecorder()
    reader.read(recorder, 1, 1, STREAM, 0, 20)
    reader.gap(recorder, 2, 2, 100, "gap")
    reader.read(recorder, 2, 2, STREAM, 120, len(STREAM))
    assert [(frame[5], frame[6]) for frame in recorder.frames[1:]] == [(b"i" * 4, 100), (b"jklm", 0), (b"n" * 17, 0)]
    assert recorder.gaps == [(2, 2, 100, 0, "gap")]


def test_a_gap_over_a_length_loses_the_frames() -> None:
    """What had come of the length is given up too."""
    reader, recorder = FrameReader(0, 1000, BufferBudget()), FrameRecorder()
    reader.read(recorder, 1, 1, STREAM, 0, 14)
    reader.gap(recorder, 2, 2, 5, "gap")
    assert not reader.synchronized
    assert recorder.gaps == [(2, 2, 5, 2, "gap")]


def test_what_is_only_counted_has_no_frames() -> None:
    """However it is cut."""
    reader, recorder = FrameReader(0, 1000, BufferBudget()), FrameRecorder()
    reader.count_only()
    for _ in range(3):
        assert reader.read(recorder, 1, 1, STREAM, 0, len(STREAM)) == len(STREAM)
    assert (recorder.frames, recorder.gaps, reader.held_bytes() < 1000) == ([], [], True)
    assert reader.unfinished() == (0, 0, b"")


def test_an_unfinished_frame_is_told_with_what_there_is() -> None:
    """Or the part of its length."""
    reader, _ = read([], STREAM[:20])
    assert reader.unfinished() == (300, 4, b"iiii")
    reader, _ = read([], STREAM[:14])
    assert reader.unfinished() == (0, 2, STREAM[12:14])
