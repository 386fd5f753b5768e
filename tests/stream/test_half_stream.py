"""One direction of a connection: whatever the network does to segments, the frames come out as they were sent."""

from __future__ import annotations

import random
from itertools import pairwise
from struct import pack

import pytest

from kwiresniff.stream import out_of_order
from kwiresniff.stream.buffer_budget import BufferBudget
from kwiresniff.stream.frame_handler import FrameRecorder
from kwiresniff.stream.half_stream import HalfStream
from kwiresniff.stream.out_of_order import GRACE_NS, GRACE_PACKETS

Frame = tuple[int, int, int, bytes, int]


class Listener:
    """A half stream and what it hands on; a frame is found wherever ``found`` says."""

    def __init__(self, *, keep: int = 1 << 20, found: int = 0) -> None:
        self.recorder = FrameRecorder(found)
        self.half = HalfStream(b"flow", 0, BufferBudget())
        self.half.start(keep)

    @property
    def frames(self) -> list[Frame]:
        """First and last packet, size, data and lost bytes of each."""
        return [(p0, p1, size, data, lost) for p0, _, p1, _, size, data, lost in self.recorder.frames]

    @property
    def losses(self) -> list[tuple[int, int, str]]:
        return [gap[2:] for gap in self.recorder.gaps]

    @property
    def data(self) -> list[bytes]:
        return [frame[3] for frame in self.frames]

    def segment(self, packet: int, ns: int, seq: int, buffer: bytes, start: int, end: int, missing: int = 0) -> None:
        self.half.feed_anyhow(self.recorder, packet, ns, seq, buffer, start, end, missing)

    def acknowledged(self, packet: int, ns: int, ack: int) -> None:
        self.half.acknowledged(self.recorder, packet, ns, ack)

    def flush(self) -> None:
        self.half.flush(self.recorder)


def framed(*bodies: bytes) -> bytes:
    return b"".join(pack(">i", len(body)) + body for body in bodies)


def feed(listener: Listener, stream: bytes, cuts: list[int], first_seq: int = 1000) -> None:
    """Feed ``stream`` in order, cut at ``cuts``."""
    edges = [0, *cuts, len(stream)]
    for number, (a, b) in enumerate(pairwise(edges), 1):
        listener.segment(number, number * 1000, (first_seq + a) & 0xFFFFFFFF, stream, a, b)


BODIES = (b"abcdefgh", b"i" * 300, b"jklm", b"n" * 17)


def test_frames_in_one_segment_are_all_found() -> None:
    """Pipelined frames in one segment carry that segment's packet number, first and last."""
    listener = Listener()
    feed(listener, framed(*BODIES), [])
    assert listener.frames == [(1, 1, len(body), body, 0) for body in BODIES]


def test_a_stream_cut_anywhere_gives_the_same_frames() -> None:
    """Every way to cut the stream in two, through lengths as well as bodies."""
    stream = framed(*BODIES)
    for cut in range(1, len(stream)):
        listener = Listener()
        feed(listener, stream, [cut])
        assert listener.data == list(BODIES), cut


def test_a_stream_of_single_bytes_gives_the_same_frames_and_packets() -> None:
    """Byte by byte; the first packet of a frame is the one with the first byte of its length."""
    stream = framed(*BODIES)
    listener = Listener()
    feed(listener, stream, list(range(1, len(stream))))
    starts = [0, 12, 316, 324]
    assert [frame[0] for frame in listener.frames] == [start + 1 for start in starts]
    assert [frame[1] for frame in listener.frames] == [12, 316, 324, 345]
    assert listener.data == list(BODIES)


@pytest.mark.parametrize("first_seq", [1000, 0xFFFFFFFF - 40, 0x7FFFFFFF - 40])
def test_shuffled_repeated_and_overlapping_segments_are_put_in_order(first_seq: int) -> None:
    """Random reordering, duplication and re-segmentation, also across the wrap of the sequence number."""
    stream = framed(*BODIES)
    for seed in range(200):
        rng = random.Random(seed)
        pieces = []
        at = 0
        while at < len(stream):
            end = min(len(stream), at + rng.randint(1, 40))
            pieces.append((max(0, at - rng.randint(0, 9)), end))
            at = end
        pieces += rng.choices(pieces, k=5)
        rest = pieces[1:]
        rng.shuffle(rest)
        listener = Listener()
        for number, (a, b) in enumerate([pieces[0], *rest], 1):
            listener.segment(number, number, (first_seq + a) & 0xFFFFFFFF, stream, a, b, 0)
        assert listener.data == list(BODIES), seed
        assert not listener.losses


def test_a_gap_inside_a_frame_keeps_the_frames() -> None:
    """The damaged frame is given with its undamaged front and the number of lost bytes; the next one is whole."""
    stream = framed(b"x" * 100, b"whole")
    listener = Listener()
    listener.segment(1, 1, 0, stream, 0, 50, 0)
    listener.segment(2, 2, 80, stream, 80, len(stream), 0)
    listener.flush()
    assert listener.frames == [(1, 2, 100, b"x" * 46, 30), (2, 2, 5, b"whole", 0)]
    assert listener.losses == [(30, 0, "gap")]


def test_a_gap_over_the_end_of_a_frame_loses_the_frames_and_finds_them_again() -> None:
    """The frame that is cut short is given; the bytes up to the next frame are counted as skipped."""
    stream = framed(b"x" * 100, b"y" * 100, b"whole")
    listener = Listener(found=58)
    listener.segment(1, 1, 0, stream, 0, 50, 0)
    listener.segment(2, 2, 150, stream, 150, len(stream), 0)
    listener.flush()
    assert listener.frames == [(1, 2, 100, b"x" * 46, 54), (2, 2, 5, b"whole", 0)]
    assert listener.losses == [(100, 0, "gap"), (0, 58, "gap")]


def test_a_snapped_segment_is_a_hole_at_once() -> None:
    """Bytes that were on the wire but not captured do not wait for a retransmission."""
    stream = framed(b"x" * 100, b"whole")
    listener = Listener()
    listener.segment(1, 1, 0, stream, 0, 60, 44)
    listener.segment(2, 2, 104, stream, 104, len(stream), 0)
    assert listener.frames == [(1, 1, 100, b"x" * 56, 44), (2, 2, 5, b"whole", 0)]


@pytest.mark.parametrize(
    ("packets", "ns", "given_up"),
    [
        (1, 1, False),
        (GRACE_PACKETS, 1, False),
        (GRACE_PACKETS + 1, 1, True),
        (1, GRACE_NS, False),
        (1, GRACE_NS + 1, True),
    ],
)
def test_a_hole_before_an_acknowledgement_is_given_up_after_its_grace(packets: int, ns: int, given_up: bool) -> None:
    """The receiver had the bytes, so the capture lost them or has them some packets further on."""
    stream = framed(b"a" * 20, b"b" * 20)
    listener = Listener()
    listener.segment(1, 1, 0, stream, 0, 10, 0)
    listener.segment(2, 2, 24, stream, 24, 48, 0)
    listener.acknowledged(10_000, 10 * GRACE_NS, 10)
    assert listener.half.is_awaited()
    listener.acknowledged(20_000, 20 * GRACE_NS, 48)
    assert not listener.half.is_awaited()
    assert listener.frames == []
    listener.acknowledged(20_000 + packets, 20 * GRACE_NS + ns, 48)
    assert [frame[4] for frame in listener.frames] == ([14, 0] if given_up else [])


def test_what_comes_within_the_grace_fills_the_hole() -> None:
    """A segment that the capture point put behind its acknowledgement."""
    stream = framed(b"a" * 20, b"b" * 20)
    listener = Listener()
    listener.segment(1, 1, 0, stream, 0, 10, 0)
    listener.segment(2, 2, 24, stream, 24, 48, 0)
    listener.acknowledged(3, 3, 48)
    listener.segment(4, 4, 10, stream, 10, 24, 0)
    assert [frame[4] for frame in listener.frames] == [0, 0]
    assert not listener.losses


def test_a_second_hole_has_a_grace_of_its_own() -> None:
    """What was acknowledged before a hole was there says nothing about it."""
    stream = framed(b"a" * 20, b"b" * 20)
    listener = Listener()
    listener.segment(1, 1, 0, stream, 0, 10, 0)
    listener.segment(2, 2, 12, stream, 12, 14, 0)
    listener.acknowledged(3, 3, 48)
    listener.segment(4, 4, 10, stream, 10, 12, 0)
    listener.segment(1000, 1000, 24, stream, 24, 48, 0)
    listener.acknowledged(1001, 1001, 48)
    assert not listener.losses


def test_a_keep_alive_probe_is_neither_data_nor_a_retransmission() -> None:
    """One garbage byte just before the window."""
    stream = framed(b"abcd")
    listener = Listener()
    feed(listener, stream, [])
    listener.segment(2, 2, 1000 + len(stream) - 1, b"\0", 0, 1, 0)
    assert listener.half.retransmits == 0
    listener.segment(3, 3, 1000 + len(stream), stream, 0, len(stream), 0)
    assert listener.data == [b"abcd", b"abcd"]


def test_no_more_than_keep_bytes_of_a_frame_are_held() -> None:
    """The size is told in full, the data is its front, however the frame was cut."""
    stream = framed(b"0123456789" * 10, b"tail")
    for cut in range(1, len(stream)):
        listener = Listener(keep=16)
        feed(listener, stream, [cut])
        assert listener.frames[0][2:4] == (100, b"0123456789012345"), cut
        assert listener.frames[1][3] == b"tail"


@pytest.mark.parametrize("length", [-1, -(2**31), (1 << 30) + 1, 2**31 - 1])
def test_a_length_that_cannot_be_is_counted_as_skipped_and_searched_behind(length: int) -> None:
    """Four bytes given up, then a frame is sought in what follows."""
    stream = framed(b"good") + pack(">i", length) + b"rubbish" + framed(b"again")
    listener = Listener(found=7)
    feed(listener, stream, [])
    assert listener.data == [b"good", b"again"]
    assert sum(skipped for _, skipped, _ in listener.losses) == 4 + 7


def test_waiting_segments_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Out-of-order bytes beyond the limit give up the hole in front of them instead of growing."""
    monkeypatch.setattr(out_of_order, "MAX_QUEUED_BYTES", 1000)
    listener = Listener()
    listener.segment(1, 1, 0, framed(b"good"), 0, 8, 0)
    for number in range(100):
        listener.segment(2 + number, 0, 1000 + 200 * number, b"z" * 100, 0, 100, 0)
        queue = listener.half.queue
        assert queue is not None
        assert 0 < queue.bytes <= 1000
    assert listener.losses[0] == (992, 0, "gap")


def test_false_beginnings_by_the_thousand_neither_recurse_nor_hang() -> None:
    """Each believed frame is followed by a bad length; the reader walks on as far as its bytes pay for that."""
    stream = (framed(b"fine") + b"\xff" * 4) * 10_000
    listener = Listener(found=0)
    feed(listener, stream, list(range(1200, len(stream), 1200)))
    skipped = sum(loss[1] for loss in listener.losses) + len(listener.half.resync.buffer)
    assert 100 < len(listener.frames) < 5_000
    assert 8 * len(listener.frames) + skipped == len(stream)


def test_every_byte_is_framed_skipped_or_missing() -> None:
    """The books balance on damaged streams: lengths and bodies, skipped bytes, and holes add up to the stream."""
    for seed in range(100):
        rng = random.Random(seed)
        stream = framed(*(rng.randbytes(rng.randint(4, 60)) for _ in range(30)))
        listener = Listener(found=0)
        listener.half.next_seq = 0
        at = captured = 0
        while at < len(stream):
            end = min(len(stream), at + rng.randint(1, 50))
            if rng.random() < 0.9 or end == len(stream):
                listener.segment(at, at, at, stream, at, end, 0)
                captured += end - at
            at = end
        half = listener.half
        listener.flush()
        framed_bytes = sum(4 + size - lost for _, _, size, _, lost in listener.frames)
        left = half.frames.unfinished()
        unfinished = left[1] + (4 if left[0] else 0)
        skipped = sum(skip for _, skip, _ in listener.losses)
        assert framed_bytes + skipped + unfinished + len(half.resync.buffer) == captured, seed


@pytest.mark.parametrize("step", [1, 7, 100, 1000])
def test_the_usual_way_and_the_full_way_hand_on_the_same(step: int) -> None:
    """Segments in order by ``feed``, which takes a short way, and by ``feed_anyhow``, which has none."""
    stream = framed(*BODIES)
    short, full = Listener(), Listener()
    peer = HalfStream(b"peer", 1, BufferBudget())
    short.half.next_seq = 0
    for number, at in enumerate(range(0, len(stream), step), 1):
        end = min(at + step, len(stream))
        assert short.half.feed(short.recorder, peer, number, number, at, 0, stream, at, end, 0)
        full.segment(number, number, at, stream, at, end)
    assert short.recorder.frames == full.recorder.frames
    assert short.data == list(BODIES)
    assert (short.half.packets, short.half.bytes) == (number, len(stream))


def test_what_is_far_outside_the_window_is_not_taken() -> None:
    """A segment that far away belongs to another connection on the same ports."""
    listener = Listener()
    peer = HalfStream(b"peer", 1, BufferBudget())
    listener.half.next_seq = 0
    assert not listener.half.feed(listener.recorder, peer, 1, 1, 0x20000000, 0, framed(b"abcd"), 0, 8, 0)
    assert listener.half.feed(listener.recorder, peer, 2, 2, 0, 0, framed(b"abcd"), 0, 8, 0)
    assert listener.data == [b"abcd"]
