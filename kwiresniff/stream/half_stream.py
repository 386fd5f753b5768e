"""One direction of a TCP connection: segments in, size-delimited frames out.

A :class:`HalfStream` puts segments in order (:class:`Reassembler`), cuts the bytes into frames (:class:`FrameReader`)
and finds back to them where they are lost (:class:`Resynchronizer`). Whoever feeds it says to whom frames and gaps are
handed on, and who knows where frames begin: it keeps no handler, and knows no connection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Final

from kwiresniff.base.fastint import i32
from kwiresniff.base.sequence_numbers import SEQ_MASK
from kwiresniff.stream.buffer_budget import SEGMENT_BYTES, BufferBudget
from kwiresniff.stream.frame_buffer import SMALL_PIECE_BYTES
from kwiresniff.stream.frame_handler import LOST_CUT, LOST_GAP, FrameHandler
from kwiresniff.stream.frame_reader import MAX_FRAME_BYTES, FrameReader
from kwiresniff.stream.reassembler import Piece, Reassembler
from kwiresniff.stream.resync import Resynchronizer

if TYPE_CHECKING:
    from mypy_extensions import i64

#: A segment that comes again so soon after another of its direction may be a copy made by the capture: on two
#: interfaces, or both ways through a mirror port. TCP waits for an acknowledgement, or 200 ms (RFC 6298 with Linux).
COPY_NS: Final = 1_000_000
#: What comes again so soon after another segment of its direction may be the same packet at another capture point. Of
#: what stands alone in flight Linux sends nothing again before 200 ms have passed (the lower bound of RFC 6298, section
#: 2.4, and of tail loss probes, RFC 8985, section 7.2), of which an acknowledgement in between takes a part.
SOON_NS: Final = 100_000_000
#: A SYN is sent again after a second (RFC 6298, section 2.1), by clocks that may be a little fast.
SYN_TIMEOUT_NS: Final = 900_000_000
#: The part of the bytes of a direction, in tenths, that comes again soon where the capture has it from two points: a
#: capture may lose some packets, and no path on which connections live loses so many.
TWICE_TENTHS: Final = 8
#: One segment that comes again soon, the SYN included, may be a tail loss probe.
FEW_COPIES: Final = 2
#: So many are copies though the other direction has none: a capture point may see one direction alone.
MANY_COPIES: Final = 5
#: So many are copies where a part of the direction came again, because one of two captures began later or ended sooner.
COPIES_OF_PART: Final = 20

#: What became of a segment: it was taken, or it belongs to another connection on the same ports.
ACCEPTED: Final = True
PORT_REUSED: Final = False


class HalfStream(Reassembler):
    """One direction; see the module.

    Before its connection's first data a direction is little more than its counts: ``frames`` and ``resync`` are made by
    ``start``. From then on, until it has ended, it is ``reading``. ``unreported_bytes`` were skipped and are not
    reported yet, ``unreported_gap`` has packet and time of the first and the number of all bytes that are not in the
    capture and not reported yet, and why (a ``LOST_*``). ``beyond`` counts, while a frame that was found by a search is
    handed on, the bytes under search behind its last segment. ``preamble_bytes`` are those of a proxy's preamble, which
    stands before the first frame. What comes again within ``soon_ns`` may be a copy; of the bytes those from
    ``copied_from`` (-1 without) to ``copied_until`` have one. While it is ``unframed``, bytes are handed on as they
    come.
    """

    STATE: ClassVar[tuple[str, ...]] = (
        "beyond", "copied_from", "copied_until", "frames", "preamble_bytes", "reading", "resync", "side", "soon_ns",
        "unframed", "unreported_bytes",
        "unreported_gap",
    )  # fmt: skip
    __slots__ = STATE

    def __init__(self, flow: bytes, side: i64, budget: BufferBudget) -> None:
        super().__init__(flow, budget)
        self.side = side
        self.reading = False
        self.unframed = False
        self.soon_ns = SOON_NS
        self.copied_from: i64 = -1
        self.copied_until: i64 = 0
        self.beyond: i64 = 0
        self.preamble_bytes: i64 = 0
        self.unreported_bytes: i64 = 0
        self.unreported_gap: tuple[int, int, int, str] | None = None

    def start(self, keep: int) -> None:
        """Makes what reads data, the first byte of which begins a frame; ``keep`` bytes are kept of each."""
        self.frames = FrameReader(self.side, keep, self.budget)
        self.resync = Resynchronizer(self.side, self.budget)
        self.reading = True

    # -- segments -----------------------------------------------------------------------------------------------

    def feed(
        self,
        handler: FrameHandler,
        peer: HalfStream,
        packet: i64,
        ns: int,
        seq: i64,
        ack: i64,
        buffer: bytes,
        start: i64,
        end: i64,
        missing: i64,
    ) -> bool:
        """Take a segment that neither begins nor ends the connection; ``peer`` is the other direction.

        Returns PORT_REUSED when it belongs to another connection on the same ports. The usual case is all here: a
        segment that comes in order and is part of a frame, or one frame.
        """
        self.packets += 1
        before_ns = self.last_ns
        self.last_ns = ns
        self.acknowledge(ack)
        if peer.queue is not None:
            peer.acknowledged(handler, packet, ns, ack)
        length = end - start
        if not length and not missing:
            return ACCEPTED
        self.bytes += length
        if length > self.largest:
            self.largest = length
        if seq == self.next_seq and not missing and self.queue is None:
            self.next_seq = (seq + length) & SEQ_MASK
            frames = self.frames
            if length < frames.remaining:
                if frames.keepable > 0 and length >= SMALL_PIECE_BYTES:
                    frames.parts.append(buffer[start:end])
                    frames.keepable -= length
                    frames.remaining -= length
                else:
                    frames.read_inside(buffer, start, end)
                return ACCEPTED
            size = length - 4
            if frames.at_frame_start and 0 < size <= frames.keep and i32(buffer, start) == size:
                handler.on_frame(self.side, packet, ns, packet, ns, size, buffer[start + 4 : end], 0)
            else:
                self._deliver(handler, packet, ns, buffer, start, end)
        elif self.out_of_window(seq):
            return PORT_REUSED
        else:
            self.feed_watched(handler, peer, before_ns, packet, ns, seq, buffer, start, end, missing)
        return ACCEPTED

    def feed_watched(
        self,
        handler: FrameHandler,
        peer: HalfStream,
        before_ns: int,
        packet: i64,
        ns: int,
        seq: i64,
        buffer: bytes,
        start: i64,
        end: i64,
        missing: i64,
    ) -> None:
        """Take the data of a segment that may have come before; the one before it, of any kind, came at
        ``before_ns``.
        """
        retransmits, soon_bytes = self.retransmits, self.soon_bytes
        self.feed_anyhow(handler, packet, ns, seq, buffer, start, end, missing)
        if self.retransmits == retransmits:
            return
        length: i64 = end - start + missing
        if not self.came_again(ns - before_ns, peer.has_acknowledged((seq + length) & SEQ_MASK)):
            self.soon_bytes = soon_bytes
        else:
            once: i64 = self.bytes - self.soon_bytes
            self.copied_until = once + self.distance((seq + length) & SEQ_MASK)
            if self.copied_from < 0:
                self.copied_from = once + self.distance(seq) if self.came_soon == 1 else 0
            self.copies += ns - before_ns < COPY_NS and self.distance((seq + length) & SEQ_MASK) == 0
            if self._is_twice_until(seq + length):
                handler.on_copy(self.side, packet, ns, seq, length)

    def came_again(self, after_ns: int, is_acknowledged: bool) -> bool:
        """Counts a segment that came again, ``after_ns`` nanoseconds after the one before it; whether it may be a copy,
        because that was so soon, or because the other side had acknowledged the first one. What follows one that was
        sent again, before anything new, was sent again, too.
        """
        if not is_acknowledged and (after_ns >= self.soon_ns or self.late_seq == self.next_seq):
            self.late_seq = self.next_seq
            return False
        self.captured_twice += after_ns < COPY_NS
        self.came_soon += 1
        return True

    def opened_again(self, after_ns: int, is_acknowledged: bool, apart_ns: int) -> None:
        """Counts a SYN that came again, ``apart_ns`` after the first one. If it came sooner than any is sent again, two
        capture points are so far apart: what they have of the connection comes as late.
        """
        if self.came_again(after_ns, is_acknowledged or after_ns < SYN_TIMEOUT_NS):
            self.soon_ns = max(self.soon_ns, 2 * apart_ns)

    def _is_twice_until(self, seq: i64) -> bool:
        """Whether nearly all bytes of the direction before ``seq`` came again soon, or of a part of it many."""
        ahead: i64 = max(-self.distance(seq & SEQ_MASK), 0)
        once: i64 = self.bytes - self.soon_bytes - ahead
        if self.came_soon >= COPIES_OF_PART and self.copied_from >= 0:
            once = min(once, self.copied_until) - self.copied_from
        return self.came_soon >= FEW_COPIES and self.soon_bytes > 0 and self.soon_bytes * 10 >= once * TWICE_TENTHS

    def sent_bytes(self) -> int:
        """The bytes behind a preamble, each once where the beginning of the connection is known."""
        sent: i64 = self.bytes
        if self.syn_seq >= 0 and self.next_seq >= 0:
            sent = (self.next_seq - self.syn_seq - 1) & SEQ_MASK
        return sent - self.preamble_bytes

    def has_copies(self) -> bool:
        """Whether nearly all of the direction is in the capture twice, as of two capture points."""
        return self._is_twice_until(self.next_seq)

    def feed_anyhow(
        self, handler: FrameHandler, packet: i64, ns: int, seq: i64, buffer: bytes, start: i64, end: i64, missing: i64
    ) -> None:
        """Take the data of a segment in whatever order it comes; a segment without data marks the end of the stream."""
        piece = self.arrange(packet, ns, seq, buffer, start, end, missing)
        if piece is not None:
            if self.queue is not None and start < end:
                self.filled, self.filled_late = seq, ns - self.queue.segments[0][2] >= COPY_NS
                self.recovered += self.filled_late
            self._deliver_piece(handler, piece)
            if self.queue is not None:
                self.deliver_queued(handler)
        else:
            while self.queue is not None and self.queue.is_full():
                if not self.skip_gap(handler):
                    return

    def deliver_queued(self, handler: FrameHandler) -> bool:
        """Hand on what was queued and is in order now; False when some of it has to wait (``must_pause``)."""
        while self.has_next():
            if handler.must_pause():
                return False
            piece = self.pop()
            if piece is not None:
                self._deliver_piece(handler, piece)
        return True

    def _deliver_piece(self, handler: FrameHandler, piece: Piece) -> None:
        packet, ns, buffer, start, end, missing = piece
        if start < end:
            self.advance(end - start)
            self.resync.buffer.ahead = missing
            self._deliver(handler, packet, ns, buffer, start, end)
            self.resync.buffer.ahead = 0
        if missing:
            self.advance(missing)
            self._gap(handler, packet, ns, missing, LOST_CUT)

    def acknowledged(self, handler: FrameHandler, packet: i64, ns: int, ack: i64) -> None:
        """The other side confirms, in ``packet``, everything before ``ack``.

        Gaps before that are given up when their grace has passed.
        """
        while (queue := self.queue) is not None and queue.is_confirmed():
            if queue.is_in_grace(packet, ns) or not self.skip_gap(handler):
                return
        if queue is not None:
            queue.confirm(self.stream_offset + self.distance(ack), packet, ns)

    def skip_gap(self, handler: FrameHandler) -> bool:
        """Declares the bytes before the first queued segment lost and goes on behind them; False when that has to wait
        (``must_pause``).
        """
        if not self.has_next():
            if not self.frames.synchronized:
                self.search(handler)  # the other side may have shown since the last search what there is to find
            packet, ns, missing = self.skip()
            self._gap(handler, packet, ns, missing, LOST_GAP)
        return self.deliver_queued(handler)

    def flush(self, handler: FrameHandler) -> bool:
        """Skips every gap, because nothing more will come; False when some of what is queued has to wait
        (``must_pause``).
        """
        while self.queue is not None:
            if not self.skip_gap(handler):
                return False
        return True

    # -- frames -------------------------------------------------------------------------------------------------

    def _deliver(self, handler: FrameHandler, packet: i64, ns: int, buffer: bytes, start: i64, end: i64) -> None:
        """Take ``buffer[start:end]``, the next bytes in order."""
        if self.unframed:
            handler.on_bytes(self.side, packet, ns, buffer, start, end)
            return
        frames = self.frames
        if frames.synchronized:
            start = frames.read(handler, packet, ns, buffer, start, end)
            if frames.synchronized:
                return
            self.resync.buffer.begin()
        if start < end and not self.closed:
            data = buffer[start:end]
            if self.resync.feed(handler, packet, ns, self.ack, data, frames.reason):
                self.search(handler)

    def _gap(self, handler: FrameHandler, packet: i64, ns: int, missing: i64, code: str) -> None:
        if self.unframed:
            handler.on_gap(self.side, packet, ns, missing, 0, code)
            return
        if not self.frames.synchronized:
            self.resync.gap(handler, packet, ns, missing, code)
            return
        self.frames.gap(handler, packet, ns, missing, code)
        if not self.frames.synchronized:
            self.resync.buffer.begin()

    def take(self, handler: FrameHandler, packet: i64, ns: int, buffer: bytes, start: i64, end: i64) -> None:
        """Take ``buffer[start:end]``, the next bytes of a stream that has no sequence numbers."""
        self.advance(end - start)
        self._deliver(handler, packet, ns, buffer, start, end)

    def lose(self, handler: FrameHandler, packet: i64, ns: int, missing: i64, code: str, known: bool) -> None:
        """The next ``missing`` bytes of such a stream are lost; where their number is not ``known``, they go beyond the
        current frame.
        """
        if not known and self.frames.remaining <= MAX_FRAME_BYTES:
            missing = max(missing, self.frames.remaining + 1)
        self.advance(missing)
        self._gap(handler, packet, ns, missing, code)

    def frame_end(self) -> i64:
        """The sequence number behind the frame that is being handed on, as far as it came in order."""
        return (self.next_seq - self.frames.behind - self.beyond) & SEQ_MASK

    def starts_at_syn(self) -> bool:
        """Whether every byte since the handshake, or a preamble, is under search, so that its first begins a frame."""
        first = self.syn_seq + 1 + self.preamble_bytes
        return self.syn_seq >= 0 and (self.next_seq - first) & SEQ_MASK == len(self.resync.buffer)

    def is_all_there(self) -> bool:
        """Whether every byte that was seen of this direction is under search, but for a preamble."""
        if self.syn_seq >= 0:
            return self.starts_at_syn()
        return self.bytes == self.preamble_bytes + len(self.resync.buffer)

    def pass_preamble(self, length: i64) -> None:
        """Drops the first ``length`` bytes under search, which are of a preamble."""
        self.preamble_bytes += length
        self.resync.buffer.pass_over(length)

    # -- synchronisation ----------------------------------------------------------------------------------------

    def desynchronize(self, reason: str) -> None:
        """Forgets where frames begin, for ``reason`` (a ``LOST_*``); the next bytes are searched for it."""
        self.frames.desynchronize(reason)
        self.resync.buffer.begin()

    def search(self, handler: FrameHandler) -> None:
        """Look for the beginning of a frame; when there is one, hand on what follows it.

        That may lose the frames again, which fills a new buffer: a loop, because hostile bytes can do that thousands
        of times and a recursion would not survive it.
        """
        resync = self.resync
        if resync.searching:
            return
        resync.buffer.looked_at()
        resync.searching = True
        try:
            while not self.frames.synchronized and not self.closed:
                found = resync.find(handler)
                if found < 0 or self.frames.synchronized:
                    return
                self.resync_at(handler, found)
        finally:
            resync.searching = False

    def resync_at(self, handler: FrameHandler, found: int) -> None:
        """Take ``found`` in the bytes under search for the first byte of a frame and hand on from there."""
        buffer, reason = self.resync.buffer, self.frames.reason
        data, size = buffer.data, len(buffer)
        parts = buffer.segments(found)
        packet, ns = buffer.place(found)
        self.resume()
        if found or self.unreported_bytes:
            handler.on_gap(self.side, packet, ns, 0, found, reason)
        for start, end, packet, ns, ack in parts:
            if not self.closed:
                self.ack, self.beyond = ack, size - end
                self._deliver(handler, packet, ns, data, start, end)
        self.beyond = 0

    def resume(self) -> None:
        """Takes the next byte delivered for the first of a frame."""
        self.frames.synchronize()
        self.resync.buffer.clear()

    def unframe(self) -> None:
        """Hands bytes on as they come from here on; those under search are dropped."""
        self.resume()
        self.frames.at_frame_start = False
        self.unframed = True

    def count_only(self) -> None:
        """Counts segments from here on: nothing is kept and no frame ends."""
        self.unframed = False
        self.frames.count_only()
        self.resync.buffer.clear()

    def drop_queued(self, which: Callable[[bytes], bool]) -> None:
        """Drops the queued segments for whose data ``which`` returns true: they become a gap."""
        if self.queue is not None:
            self.queue.drop(which)
            if not self.queue.segments:
                self.queue = None

    def drop_search(self) -> None:
        """Drops the bytes under search, which are reported as skipped with the next of them."""
        self.unreported_bytes += len(self.resync.buffer)
        self.resync.buffer.clear()

    # -- what is held and left ----------------------------------------------------------------------------------

    def note_gap(self, packet: int, ns: int, missing: int, code: str) -> None:
        """Count ``missing`` bytes that are not in the capture, which are reported later; ``code`` is a ``LOST_*``."""
        if missing:
            first_packet, first_ns, before, first_code = self.unreported_gap or (packet, ns, 0, code)
            self.unreported_gap = (first_packet, first_ns, before + missing, code if code == first_code else LOST_GAP)

    def held_bytes(self) -> int:
        """Bytes of memory of queued segments, of the frame being assembled and of the bytes under search."""
        queue = self.queue
        queued = 0 if queue is None else queue.bytes + SEGMENT_BYTES * len(queue.segments)
        return queued + self.resync.held_bytes() + self.frames.held_bytes()

    def release(self, handler: FrameHandler) -> None:
        """Releases memory: skips every gap, drops the bytes under search and all but the front of the frame."""
        self.flush(handler)
        self.frames.release()
        if not self.frames.synchronized:
            self.resync.release(handler, self.frames.reason)

    def end(self) -> None:
        """Ends the stream and drops all that is buffered."""
        self.closed = True
        if self.reading:
            self.reading = False
            self.frames.end()
            self.resync.buffer.clear()
