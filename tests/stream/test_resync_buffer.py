"""The bytes under search: what is kept of them, when it is time to search, and where a byte came from."""

from __future__ import annotations

import random

from kwiresniff.stream.resync_buffer import (
    FIRST_STEPS,
    MAX_RESYNC_BYTES,
    MAX_RESYNC_SEGMENTS,
    MIN_SEARCH_BYTES,
    SEARCH_BUDGET_BYTES,
    SEARCH_GROWTH,
    SEARCH_STEPS,
    STEPS_PER_BYTE,
    STEPS_PER_SEGMENT,
    ResyncBuffer,
)


def filled(*segments: bytes) -> ResyncBuffer:
    """Segments in packets 1, 2, ... at 1000, 2000, ... ns, which acknowledge 10, 20, ..."""
    buffer = ResyncBuffer()
    for number, data in enumerate(segments, 1):
        buffer.feed(number, 1000 * number, 10 * number, data)
    return buffer


def test_a_byte_is_in_the_segment_that_brought_it() -> None:
    """Its packet and time; segments begin where the one before ended."""
    buffer = filled(b"abc", b"d", b"efgh")
    assert (bytes(buffer.data), len(buffer), buffer.starts()) == (b"abcdefgh", 8, [0, 3, 4])
    assert [buffer.place(at)[0] for at in range(8)] == [1, 1, 1, 2, 3, 3, 3, 3]
    assert buffer.place(4) == (3, 3000)


def test_what_came_from_a_place_on_comes_in_the_segments_it_came_in() -> None:
    """Start and end in the bytes, packet, time and what was acknowledged; the first may be a part."""
    buffer = filled(b"abc", b"d", b"efgh")
    assert list(buffer.segments(1)) == [(1, 3, 1, 1000, 10), (3, 4, 2, 2000, 20), (4, 8, 3, 3000, 30)]
    assert list(buffer.segments(4)) == [(4, 8, 3, 3000, 30)]
    assert list(buffer.segments(8)) == []
    for at in range(8):
        assert b"".join(buffer.data[start:end] for start, end, *_ in buffer.segments(at)) == buffer.data[at:]


def test_whole_segments_go_at_the_front_until_enough_is_gone() -> None:
    """What is left keeps its packets."""
    buffer = filled(b"abc", b"d", b"efgh", b"ij")
    assert buffer.trim(2) == 3
    assert (bytes(buffer.data), buffer.starts(), buffer.place(0)) == (b"defghij", [0, 1, 5], (2, 2000))
    assert buffer.trim(1) == 1
    assert buffer.trim(5) == 6
    assert (len(buffer), buffer.starts()) == (0, [])


def test_it_gives_way_at_its_front_when_it_is_too_long() -> None:
    """Whatever the segments are, no more is held than one segment beyond the limit, and nothing needlessly little."""
    made = random.Random(1)
    buffer = ResyncBuffer()
    for _ in range(500):
        data = made.randbytes(made.choice([1, 100, 1460, 9000]))
        over = buffer.excess(len(data))
        if over:
            buffer.trim(over)
        buffer.feed(1, 1, 1, data)
        assert len(buffer) <= MAX_RESYNC_BYTES
        assert len(buffer.marks) <= MAX_RESYNC_SEGMENTS


def test_tiny_segments_are_bounded_in_number() -> None:
    """Each has its mark, which takes more than its byte."""
    buffer = ResyncBuffer()
    for number in range(3 * MAX_RESYNC_SEGMENTS):
        over = buffer.excess(1)
        if over:
            buffer.trim(over)
        buffer.feed(number, number, -1, b"x")
        assert len(buffer.marks) <= MAX_RESYNC_SEGMENTS


def test_after_the_budget_every_segment_is_a_run_of_its_own() -> None:
    """Until a search begins anew."""
    buffer = ResyncBuffer()
    piece = b"x" * 8192
    for _ in range(SEARCH_BUDGET_BYTES // len(piece)):
        over = buffer.excess(len(piece))
        if over:
            buffer.trim(over)
        buffer.feed(1, 1, 1, piece)
    assert buffer.excess(1) >= len(buffer) > len(piece)
    buffer.clear()
    buffer.feed(1, 1, 1, piece)
    assert buffer.excess(1) >= len(piece)
    buffer.begin()
    buffer.feed(1, 1, 1, piece)
    assert buffer.excess(1) == 0


def test_after_the_budget_a_segment_that_may_begin_a_frame_is_kept_with_those_behind_it() -> None:
    """What is before it goes, and the next search decides anew; the buffer stays bounded."""
    buffer = ResyncBuffer()
    buffer.feed(1, 1, 1, b"x" * SEARCH_BUDGET_BYTES)
    buffer.clear()
    buffer.feed(2, 1, 1, b"y" * 100)
    buffer.feed(3, 1, 1, b"z" * 58)
    buffer.may_begin(100)
    buffer.may_begin(0)
    assert buffer.excess(1448) == 100
    assert buffer.trim(100) == 100
    assert buffer.excess(1448) == 0
    buffer.feed(4, 1, 1, b"." * 1448)
    assert buffer.starts() == [0, 58]
    assert buffer.excess(MAX_RESYNC_BYTES) == 58 + 1448
    buffer.looked_at()
    assert buffer.excess(1) == 58 + 1448


def test_a_search_is_due_while_it_is_short_and_when_it_has_grown_by_a_fraction() -> None:
    """Or when bytes behind the segment are missing, so that what is there must do."""
    buffer = ResyncBuffer()
    assert buffer.feed(1, 1, 1, b"x" * MIN_SEARCH_BYTES)
    buffer.looked_at()
    assert not buffer.feed(1, 1, 1, b"x")
    assert not buffer.feed(1, 1, 1, b"x" * (MIN_SEARCH_BYTES // SEARCH_GROWTH - 1))
    assert buffer.feed(1, 1, 1, b"x" * 10)
    buffer.looked_at()
    buffer.ahead = 5
    assert buffer.feed(1, 1, 1, b"x")


def test_searches_are_paid_for_with_steps_that_bytes_earn() -> None:
    """Who has none left waits; a lost footing gives none."""
    buffer = filled(b"x" * 100)
    buffer.begin()
    assert buffer.steps == FIRST_STEPS
    searches = 0
    while buffer.can_pay():
        searches += 1
    assert searches == -(-FIRST_STEPS // SEARCH_STEPS)
    buffer.begin()
    assert not buffer.can_pay()
    before = buffer.steps
    buffer.earn(1000)
    assert buffer.steps - before == STEPS_PER_SEGMENT + 1000 * STEPS_PER_BYTE
    assert buffer.can_pay()


def test_forgotten_bytes_are_gone() -> None:
    """With their segments."""
    buffer = filled(b"abc", b"d")
    buffer.clear()
    assert (len(buffer), buffer.starts()) == (0, [])


def test_bytes_are_put_together_once_for_all_segments_that_came_since() -> None:
    """One that came alone is not copied, nor are those before it while nobody looks; the first can be cut."""
    first = b"abc"
    buffer = filled(first)
    assert buffer.data is first
    for number in range(100):
        buffer.feed(2 + number, 0, 0, b"d")
    assert len(buffer) == 103
    assert buffer.data == first + b"d" * 100
    assert buffer.data is buffer.data
    buffer.pass_over(2)
    assert (buffer.data, len(buffer)) == (b"c" + b"d" * 100, 101)
