"""Bytes in order to frames: what a half stream does not show of it (``test_half_stream``)."""

from __future__ import annotations

from struct import pack

from kwiresniff.stream.buffer_budget import STEP_BYTES, BufferBudget
from kwiresniff.stream.frame_handler import FrameRecorder
from kwiresniff.stream.frame_reader import FrameReader

BODIES = (b"abcdefgh", b"i" * 300, b"jklm", b"n" * 17)
STREAM = b"".join(pack(">i", len(body)) + body for body in BODIES)


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
    for end, told in ((20, (300, 4, b"iiii")), (14, (0, 2, STREAM[12:14]))):
        reader = FrameReader(0, 1000, BufferBudget())
        reader.read(FrameRecorder(), 1, 1, STREAM, 0, end)
        assert reader.unfinished() == told
