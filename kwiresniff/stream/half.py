"""One direction of a TCP connection: segments in, size-delimited frames out.

A :class:`Half` puts segments in order, drops what was sent twice, and cuts the bytes into frames: a signed 32-bit
big-endian length, then that many bytes (protocol guide, "Common Request and Response Structure"). It holds no
opinion about what a frame says; its owner does that through two callbacks:

``frame(half, first_packet, first_ns, last_packet, last_ns, size_bytes, data, lost_bytes)``
    A frame is complete. ``data`` is the frame without its length, or only its first bytes when ``keep`` is smaller
    than the frame or when ``lost_bytes`` of it are missing from the capture.
``lost(half, packet, timestamp_ns, missing_bytes, skipped_bytes, code)``
    Footing was lost or bytes were given up. ``code`` is one of the ``LOST_*`` constants.

and one question, asked while there is no footing:

``locate(half) -> int``
    The offset in ``half.run.data`` at which a frame surely begins, or -1.

A hole in the middle of a frame does not cost the footing: the length says where the next frame begins.
Sequence numbers are 32-bit and wrap (RFC 9293, section 3.4); all comparisons here are by forward distance.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Final, TypeAlias

from kwiresniff.base.sequence_numbers import SEQ_HALF as SEQ_HALF
from kwiresniff.base.sequence_numbers import SEQ_MASK as SEQ_MASK
from kwiresniff.compiled import COMPILED, i32
from kwiresniff.stream.budget import SEGMENT_BYTES, STEP_BYTES, Budget
from kwiresniff.stream.run import MARK_BYTES, Run
from kwiresniff.stream.waiting import Waiting

if TYPE_CHECKING:
    from mypy_extensions import i64


#: Further than this from what was expected, a segment belongs to another connection on the same ports. No TCP
#: window in use comes near it, and a capture that lost so much between two segments gains nothing from continuity.
JUMP_BYTES: Final = 0x10000000

#: A length above this is not a frame. Brokers refuse requests over ``socket.request.max.bytes`` (100 MB unless
#: raised); fetch responses stay below ``fetch.max.bytes`` but may be raised by operators too.
MAX_FRAME_BYTES: Final = 0x40000000

#: Brokers refuse longer requests unless they are told otherwise (``socket.request.max.bytes``), and answers are
#: shorter. Above it a length is more likely something else's first four bytes.
SOUND_FRAME_BYTES: Final = 100 << 20

#: Of one frame no more than this is held in memory; the rest is counted down.
MAX_KEPT_BYTES = 1 << 27

#: Frames above this are sifted by those who want no more than error codes or names.
MIN_SIFTED_BYTES = 4096

#: So many bytes tell what a stream carries that is not Kafka.
FIRST_BYTES: Final = 64

#: The rest of a frame that never ends: more than any connection carries.
ENDLESS: Final = 1 << 62

#: Pieces of a frame shorter than the first are joined with the one before, up to the second: an object of its own takes
#: some 60 bytes.
SMALL_PIECE_BYTES: Final = 256
JOINED_BYTES: Final = 2048
#: What is left of a frame that gives way: enough for its header.
SHED_FRONT_BYTES: Final = 1024

LOST_GAP = "gap"
LOST_BAD_LENGTH = "bad_length"
LOST_MID_STREAM = "mid_stream"
LOST_UNRECOGNIZED = "unrecognized"

FrameSink: TypeAlias = Callable[["Half", int, int, int, int, int, bytes, int], None]
LostSink: TypeAlias = Callable[["Half", int, int, int, int, str], None]
Locate: TypeAlias = Callable[["Half"], int]

#: ``frame_length(buffer, offset) -> (size_bytes,)``
frame_length = Struct(">i").unpack_from
_NONE: list[bytes] = []


#: Values of ``Half.usual``: which of its owner's methods stands behind ``Half.frame``.
REQUESTS: Final = 1
RESPONSES: Final = 2


class Owner:
    """Whom a half belongs to, for the frames that the hot loop hands over without a callback's cost."""

    def request(
        self, half: Half, packet: i64, ns: int, last_packet: i64, last_ns: int, size: i64, data: bytes, lost: i64
    ) -> None:
        """A frame from the client."""
        raise NotImplementedError

    def response(
        self, half: Half, packet: i64, ns: int, last_packet: i64, last_ns: int, size: i64, data: bytes, lost: i64
    ) -> None:
        """A frame from the broker."""
        raise NotImplementedError

    def sifter(self, half: Half, data: bytes, start: i64, end: i64) -> Sifter | None:
        """Who decides what is kept of a large frame that begins with ``data[start:end]``; None keeps all of it.

        Asked while ``half.sifts``.
        """
        raise NotImplementedError

    def is_foreign(self, half: Half, packet: int, ns: int, first: bytes) -> bool:
        """Whether what ``half`` sends from ``first`` on, where a length should be that is sound, is not Kafka."""
        return False


class Sifter:
    """Decides what is kept of one frame while it comes. ``parts`` are what is kept so far.

    When ``plain`` is set, the rest of the frame is kept as it comes, and the sifter is not asked again.
    """

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.plain = False

    def take(self, data: bytes, at: i64, end: i64, left: i64) -> i64:
        """Sift ``data[at:end]``, the next bytes of ``left`` to come; returns how many behind them nobody needs."""
        raise NotImplementedError

    def finish(self) -> None:
        """The frame is complete."""
        raise NotImplementedError

    def broken(self, within: bool) -> None:
        """Bytes of the frame are missing, and nothing behind them is kept.

        ``within`` says that they begin before the end of what is being passed over.
        """
        raise NotImplementedError


NOBODY = Owner()


class Half:
    """One direction; see the module. The public attributes up to ``room`` are read and written by the hot loop."""

    __slots__ = (
        "_busy", "_head", "_lost_in_frame", "_position", "_search_code", "ack", "at_edge", "behind", "beyond", "budget",
        "bytes", "closed", "fin", "first_ns", "first_packet", "flow", "frame", "granted", "index", "keep", "last_ns",
        "locate", "lost", "min_frame_bytes", "need", "next_seq", "owner", "packets", "parts", "passing", "peer",
        "retransmits", "room", "run", "searching", "sifter", "sifts", "size", "skipped", "syn_seq", "unseen",
        "usual", "waiting", "wanted",
    )  # fmt: skip

    def __init__(
        self, flow: bytes, frame: FrameSink, lost: LostSink, locate: Locate, keep: int, budget: Budget
    ) -> None:
        self.flow = flow
        self.frame = frame
        self.lost = lost
        self.locate = locate
        self.keep: i64 = min(keep, MAX_KEPT_BYTES)
        self.budget = budget
        self.peer: Half = self
        self.owner: Owner = NOBODY
        self.usual: i64 = 0  # REQUESTS or RESPONSES while ``frame`` is that method of the owner
        self.index: i64 = 0  # 0 client to broker, 1 broker to client, once that is known
        self.next_seq: i64 = -1
        self.syn_seq: i64 = -1
        self.waiting = Waiting()  # what came before its turn
        self.at_edge = True  # with a footing, and the next byte is the first of a frame
        self.need: i64 = 0  # bytes the current frame still lacks; 0 between frames
        self.room: i64 = 0  # bytes of the current frame that may still be kept
        self.wanted: i64 = 0  # and those that will be once the budget grants them
        self.granted: i64 = 0  # of the frame begun last
        self.sifts = False  # large frames are sifted
        self.sifter: Sifter | None = None  # of the current frame
        self.passing: i64 = 0  # bytes of the current frame before the next that the sifter wants to see
        self.parts: list[bytes] = []
        self.size: i64 = 0
        self.min_frame_bytes: i64 = 4
        self.first_packet: i64 = 0
        self.first_ns = 0
        self.searching = False
        self.run = Run()  # what is searched
        self.ack: i64 = -1  # what the current segment acknowledges, -1 where that is not known
        self.behind: i64 = 0  # bytes of the current segment behind the frame that is handed over,
        self.beyond: i64 = 0  # and those of the run that come after this segment
        self.packets: i64 = 0
        self.bytes: i64 = 0
        self.retransmits: i64 = 0
        self.skipped: i64 = 0  # bytes given up that the owner has not reported yet,
        #: and those that are not in the capture: (packet, timestamp_ns, missing_bytes) of the first and of all of them.
        self.unseen: tuple[int, int, int] | None = None
        self.last_ns = 0
        self.fin = False
        self.closed = False
        self._busy = False
        self._head = b""
        self._lost_in_frame: i64 = 0
        self._position: i64 = 0  # place of next_seq on the scale of ``waiting``
        self._search_code = LOST_MID_STREAM

    def hear(self, frame: FrameSink, usual: i64 = 0) -> None:
        """Frames go to ``frame`` from now on; ``usual`` says which method of the owner that is, if any."""
        self.frame = frame
        self.usual = usual

    # -- sequence -----------------------------------------------------------------------------------------------

    def distance(self, seq: i64) -> i64:
        """Signed distance in bytes from the next expected byte to ``seq``; negative is behind."""
        delta = (seq - self.next_seq) & SEQ_MASK
        return delta - SEQ_MASK - 1 if delta >= SEQ_HALF else delta

    def is_jump(self, seq: i64) -> bool:
        """Whether ``seq`` is too far away to belong to what this half has seen."""
        return self.next_seq >= 0 and not -JUMP_BYTES <= self.distance(seq) <= JUMP_BYTES

    def is_foreign(self, seq: i64) -> bool:
        """Whether data at ``seq`` belongs to another connection on the same ports: far away, or behind the end."""
        return self.is_jump(seq) or (
            self.fin and not self.waiting.segments and self.next_seq >= 0 and self.distance(seq) > 1
        )

    def segment(self, packet: i64, ns: int, seq: i64, buffer: bytes, start: i64, end: i64, missing: i64) -> None:
        """Take a segment, in whatever order it comes: the full path beside the hot loop's short one.

        One without data marks the end of the stream: it waits like any other for what must come before it.
        """
        if self.next_seq < 0:
            self.next_seq = seq
        behind = -self.distance(seq)
        if behind > 0:
            length = end - start + missing
            if length <= 1 and behind == 1:
                return  # keep-alive probe: one byte before the window, RFC 9293 section 3.8.4
            self.retransmits += 1
            if length <= behind:
                return
            start += behind
            if start > end:
                missing -= start - end
                start = end
        elif behind < 0:
            self._hold(packet, ns, -behind, buffer[start:end], missing)
            return
        self._accept(packet, ns, buffer, start, end, missing)
        if self.waiting.segments:
            self._drain()

    def _accept(self, packet: i64, ns: int, buffer: bytes, start: i64, end: i64, missing: i64) -> None:
        if start < end:
            self._advance(end - start)
            self.run.ahead = missing
            self.deliver(packet, ns, buffer, start, end)
            self.run.ahead = 0
        if missing:
            self._advance(missing)
            self._gap(packet, ns, missing)

    def _advance(self, length: i64) -> None:
        self.next_seq = (self.next_seq + length) & SEQ_MASK
        self._position += length

    def frame_end(self) -> i64:
        """The sequence number behind the frame that is being handed over, as far as it came in order."""
        return (self.next_seq - self.behind - self.beyond) & SEQ_MASK

    def miss(self, packet: int, ns: int, missing: int) -> None:
        """Count bytes that are not in the capture, of which nobody is told yet."""
        if missing:
            first_packet, first_ns, before = self.unseen or (packet, ns, 0)
            self.unseen = (first_packet, first_ns, before + missing)

    def run_is_whole(self) -> bool:
        """Whether the run holds every byte since the handshake, so that its first byte begins a frame."""
        return self.syn_seq >= 0 and (self.next_seq - self.syn_seq - 1) & SEQ_MASK == len(self.run)

    def _hold(self, packet: i64, ns: int, ahead: i64, data: bytes, missing: i64) -> None:
        waiting = self.waiting
        waiting.hold((self._position + ahead, packet, ns, data, missing, self.ack))
        while waiting.is_too_much():
            self.give_up_hole()
        self.budget.held += len(data) + SEGMENT_BYTES

    def _drain(self) -> None:
        waiting = self.waiting
        while waiting.is_next(self._position):
            position, packet, ns, data, missing, self.ack = waiting.take()
            start, end = self._position - position, len(data)
            if start >= end + missing:
                self.retransmits += start > 0  # an end of stream that waited in its place is nothing sent twice
                continue
            if start > end:
                missing -= start - end
                start = end
            self._accept(packet, ns, data, start, end, missing)

    def acknowledged(self, packet: i64, ns: int, ack: i64) -> None:
        """The other side confirms, in ``packet``, everything before ``ack``.

        Holes before that are given up when their grace has passed. To be called while something is ``waiting``.
        """
        waiting = self.waiting
        if waiting.is_confirmed():
            if waiting.is_in_grace(packet, ns):
                return
            while waiting.is_confirmed():
                self.give_up_hole()
        waiting.confirm(self._position + self.distance(ack), packet, ns)

    def is_awaited(self) -> bool:
        """Whether bytes are missing that the other side has not confirmed, so that they will be sent again."""
        return len(self.waiting) > 0 and not self.waiting.is_confirmed()

    def give_up_hole(self) -> None:
        """Declare the bytes before the first waiting segment lost and go on behind them."""
        if self.searching:
            self.search()  # the other side may have shown since the last search what there is to find
        position, packet, ns, *_ = self.waiting.segments[0]
        skip = position - self._position
        self._advance(skip)
        self._gap(packet, ns, skip)
        self._drain()

    def flush(self) -> None:
        """Give up every hole: nothing more will come."""
        while self.waiting.segments:
            self.give_up_hole()

    # -- frames -------------------------------------------------------------------------------------------------

    def deliver(self, packet: i64, ns: int, buffer: bytes, start: i64, end: i64) -> None:
        """Take ``buffer[start:end]``, the next bytes in order."""
        if self.searching:
            self._search(packet, ns, buffer, start, end)
            return
        need = self.need
        size: i64
        self.at_edge = False
        if need:
            available = end - start
            if self.sifter is not None:
                self.sift(buffer, start, start + min(available, need))
            elif self.room > 0 or self.wanted:
                if self.room <= 0:
                    self.grant()
                kept = min(available, need)
                self.keep_piece(buffer[start : start + kept])
            if available < need:
                self.need = need - available
                return
            start += need
            self.behind = end - start
            self._finish(packet, ns)
            self.behind = 0
            if self.searching:
                self._search(packet, ns, buffer, start, end)
                return
        while start < end:
            if self._head:
                taken = min(4 - len(self._head), end - start)
                head = self._head + buffer[start : start + taken]
                start += taken
                if len(head) < 4:
                    self._head = head
                    return
                self._head = b""
                (size,) = frame_length(head)
            else:
                self.first_packet = packet
                self.first_ns = ns
                if end - start < 4:
                    self._head = buffer[start:end]
                    return
                size = i32(buffer, start) if COMPILED else frame_length(buffer, start)[0]
                start += 4
            if not self.min_frame_bytes <= size <= SOUND_FRAME_BYTES and self._is_no_frame(
                packet, ns, buffer, start, end, size
            ):
                return
            stop = start + size
            keep = self.keep
            if stop <= end:
                data = buffer[start:stop] if size <= keep else buffer[start : start + keep]
                start = stop
                self.behind = end - stop
                self.frame(self, self.first_packet, self.first_ns, packet, ns, size, data, 0)
                self.behind = 0
                if self.searching:
                    if start < end:
                        self._search(packet, ns, buffer, start, end)
                    return
                continue
            self.size = size
            self.granted = STEP_BYTES
            kept = min(size, keep)  # of two at a time: compiled, that is no call
            self.budget.held += min(kept, STEP_BYTES) + SEGMENT_BYTES
            self.room = self.wanted = 0
            self._lost_in_frame = 0
            if self.sifts and size >= MIN_SIFTED_BYTES:
                self.sifter = self.owner.sifter(self, buffer, start, end)
                if self.sifter is not None:
                    self.parts = self.sifter.parts
                    self.passing = 0
                    self.need = size
                    self.sift(buffer, start, end)
                    self.need = stop - end
                    return
            kept = min(end - start, keep)
            self.need = stop - end
            self.parts = [buffer[start : start + kept]]
            self.room = min(size, keep) - kept
            if self.room > STEP_BYTES:
                self.wanted = self.room - STEP_BYTES
                self.room = STEP_BYTES
            return
        self.at_edge = True

    def sift(self, buffer: bytes, start: i64, end: i64) -> None:
        """Let the sifter have ``buffer[start:end]``, the next bytes of a frame that still lacks ``need``."""
        length = end - start
        if self.passing >= length:
            self.passing -= length
            return
        sifter = self.sifter
        assert sifter is not None
        self.passing = sifter.take(buffer, start + self.passing, end, self.need - self.passing)
        if sifter.plain:
            self.sifter = None
            self.wanted = min(self.need - length, self.keep)

    def grant(self) -> None:
        """Let more of the current frame be kept, in growing steps."""
        step = min(self.wanted, max(STEP_BYTES, self.granted // 4))
        self.room += step
        self.wanted -= step
        self.granted += step
        self.budget.held += step

    def keep_piece(self, data: bytes) -> None:
        """Keep the next piece of the current frame."""
        parts = self.parts
        length: i64 = len(data)
        self.room -= length
        if length < SMALL_PIECE_BYTES and parts and len(parts[-1]) < JOINED_BYTES:
            parts[-1] += data
        else:
            parts.append(data)

    def held_bytes(self) -> int:
        """Memory of segments out of order, of the frame that is being assembled and of what is searched."""
        waiting, run = self.waiting, self.run
        held = waiting.bytes + SEGMENT_BYTES * len(waiting) + len(run) + MARK_BYTES * len(run.marks)
        if self.need:
            held += sum(map(len, self.parts)) + SEGMENT_BYTES
        return held

    def shed(self) -> None:
        """Give up every hole, all but the front of the frame that is being assembled, and what is searched."""
        self.flush()
        if self.need:
            self.parts = [b"".join(self.parts)[:SHED_FRONT_BYTES]]
            self.room = self.wanted = 0
            if self.sifter is not None:
                self.sifter = None
        if self.searching and len(self.run):
            packet, ns = self.run.place(0)
            size = len(self.run)
            self.run.clear()
            self.lost(self, packet, ns, 0, size, self._search_code)

    def end(self) -> None:
        """Nothing more comes, and nothing is kept."""
        self.closed = True
        self.parts = _NONE
        self.sifter = None
        self._head = b""
        self.run.clear()

    def _finish(self, packet: i64, ns: int) -> None:
        if self.sifter is not None:
            self.sifter.finish()
            self.sifter = None
        parts = self.parts
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        self.parts = _NONE
        self.need = 0
        self.wanted = 0
        if len(data) > self.keep:
            data = data[: self.keep]
        self.frame(self, self.first_packet, self.first_ns, packet, ns, self.size, data, self._lost_in_frame)

    def _is_no_frame(self, packet: int, ns: int, buffer: bytes, start: int, end: int, size: int) -> bool:
        """Whether no frame begins with a length of ``size``; if so, ``buffer[start:end]`` behind it has been taken."""
        first = size.to_bytes(4, "big", signed=True) + buffer[start : min(end, start + FIRST_BYTES)]
        if self.owner.is_foreign(self, packet, ns, first):
            self.count_only()
            return True
        if self.min_frame_bytes <= size <= MAX_FRAME_BYTES:
            return False
        self._bad_length(packet, ns, buffer, start, end, size)
        return True

    def _bad_length(self, packet: int, ns: int, buffer: bytes, start: int, end: int, size: int) -> None:
        # The length itself is garbage, so it is bytes given up; what follows it may hold the next frame.
        self.lose_footing(LOST_BAD_LENGTH)
        self.lost(self, packet, ns, 0, 4, LOST_BAD_LENGTH)
        if start < end and not self.closed:
            self._search(packet, ns, buffer, start, end)

    def _gap(self, packet: int, ns: int, missing: int) -> None:
        need = self.need
        if self.searching:
            skipped = len(self.run)
            self.run.clear()
            self.lost(self, packet, ns, missing, skipped, LOST_GAP)
            return
        if need:
            self.room = self.wanted = 0
            if self.sifter is not None:
                self.sifter.broken(self.passing > 0)
                self.sifter = None
            self._lost_in_frame += min(need, missing)
            if missing < need:
                self.need = need - missing
                self.lost(self, packet, ns, missing, 0, LOST_GAP)
                return
            self._finish(packet, ns)
            if missing == need:
                self.lost(self, packet, ns, missing, 0, LOST_GAP)
                return
        skipped = len(self._head)
        self.lose_footing(LOST_GAP)
        self.lost(self, packet, ns, missing, skipped, LOST_GAP)

    # -- footing ------------------------------------------------------------------------------------------------

    def lose_footing(self, code: str) -> None:
        """Forget where frames begin; the next bytes are searched for it."""
        self.searching = True
        self.at_edge = False
        self.need = 0
        self.room = self.wanted = 0
        self.parts = _NONE
        self.sifter = None
        self._head = b""
        self._search_code = code
        self.run.begin()

    def _search(self, packet: int, ns: int, buffer: bytes, start: int, end: int) -> None:
        if start >= end:
            return
        run = self.run
        if not self._busy:
            run.earn(end - start)
        over = run.excess(end - start)
        if over:
            cut = run.trim(over)
            first_packet, first_ns = run.place(0) if run.marks else (0, self.last_ns)
            self.lost(self, first_packet, first_ns, 0, cut, self._search_code)
        self.budget.held += end - start + MARK_BYTES
        if run.take(packet, ns, self.ack, buffer[start:end]):
            self.search()

    def search(self) -> None:
        """Look for a footing in the run; when there is one, deliver what follows it.

        Delivering may lose the footing again, which fills a new run: a loop, because hostile bytes can do that
        thousands of times and a recursion would not survive it.
        """
        if self._busy:
            return
        self.run.looked_at()
        self._busy = True
        try:
            while self.searching and len(self.run) and not self.closed and self.run.can_pay():
                found = self.locate(self)
                if found < 0 or not self.searching:
                    return
                self.step_in(found)
        finally:
            self._busy = False

    def step_in(self, found: int) -> None:
        """Take ``found`` in the run for the first byte of a frame and deliver from there."""
        run, code = self.run, self._search_code
        data, size = bytes(run.data), len(run)
        parts = list(run.segments(found))
        packet, ns = run.place(found)
        self.resume()
        if found:
            self.lost(self, packet, ns, 0, found, code)
        for start, end, packet, ns, ack in parts:
            if not self.closed:
                self.ack, self.beyond = ack, size - end
                self.deliver(packet, ns, data, start, end)
        self.beyond = 0

    def resume(self) -> None:
        """The next byte delivered is the first of a frame."""
        self.searching = False
        self.at_edge = True
        self.need = 0
        self.sifter = None
        self._head = b""
        self.run.clear()

    def count_only(self) -> None:
        """From here on nothing is kept and no frame ends; segments are only counted."""
        self.resume()
        self.at_edge = False
        self.need = ENDLESS
        self.room = self.wanted = self.granted = 0
        self.parts = _NONE

    def unfinished(self) -> tuple[int, int, bytes]:
        """What an end leaves behind: ``(size_bytes, bytes_present, data)`` of a frame begun, or zeros."""
        if self.need > MAX_FRAME_BYTES:
            return 0, 0, b""  # nothing but counted
        if self.need:
            data = b"".join(self.parts)
            return self.size, self.size - self.need - self._lost_in_frame, data
        return (0, len(self._head), self._head) if self._head else (0, 0, b"")
