"""What TCP had to do on connections: handshakes, retransmissions, gaps, windows of zero, ends.

Source: RFC 9293. Names are Wireshark's where it has one. Segments are told in the order of the capture, so a segment
that the capture has too late is told as a gap first and then as ``out_of_order``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwiresniff.base.sequence_numbers import SEQ_HALF, SEQ_MASK
from kwiresniff.model import ACK, FIN, RST, SYN, Segment

#: Gaps of one direction that are remembered to tell what fills them.
MAX_GAPS = 64

SYN_SENT, SYN_ACKED, SYN_AGAIN = "syn", "syn_ack", "syn_retransmission"
RETRANSMISSION, OUT_OF_ORDER, GAP = "retransmission", "out_of_order", "gap"
ZERO_WINDOW, WINDOW_UPDATE = "zero_window", "window_update"
FIN_SENT, RST_SENT = "fin", "rst"

#: Name and details of an event.
TcpEvent = tuple[str, dict[str, Any]]


class _Way:
    """One direction: the next sequence number, -1 before it is known, and the gaps before it."""

    __slots__ = ("fin", "gaps", "is_closed_window", "next_seq", "syn_ns", "syn_seq")

    def __init__(self) -> None:
        self.next_seq = -1
        self.syn_seq = -1
        self.syn_ns = 0
        self.gaps: list[tuple[int, int]] = []
        self.is_closed_window = False
        self.fin = False


class TcpEvents:
    """The events of one connection, segment by segment."""

    def __init__(self) -> None:
        self._ways = _Way(), _Way()

    def events(self, segment: Segment, from_client: bool) -> Iterator[TcpEvent]:
        """The events that a segment shows; none for an expected one."""
        _, ns, flow, seq, _, flags, buffer, start, end, missing = segment
        own, other = self._ways if from_client else self._ways[::-1]
        size = end - start + missing
        if flags & SYN:
            yield self._syn(own, other, ns, seq, flags)
            return
        if not flags & RST:  # an empty segment, too, has the number of what follows
            yield from _data(own, seq, size)
        window = window_of(buffer, start, flow)
        if window is not None and not flags & RST:
            if window == 0 and not own.is_closed_window:
                yield ZERO_WINDOW, {}
            elif window and own.is_closed_window:
                yield WINDOW_UPDATE, {"window": window}
            own.is_closed_window = window == 0
        if flags & RST:
            yield RST_SENT, {}
        elif flags & FIN and not own.fin:
            own.fin = True
            own.next_seq = (seq + size + 1) & SEQ_MASK  # a FIN takes a number
            yield FIN_SENT, {}

    @staticmethod
    def _syn(own: _Way, other: _Way, ns: int, seq: int, flags: int) -> TcpEvent:
        if own.syn_seq == seq:
            return SYN_AGAIN, {}
        own.syn_seq, own.syn_ns, own.next_seq = seq, ns, (seq + 1) & SEQ_MASK
        if flags & ACK:
            return SYN_ACKED, {"after_ns": ns - other.syn_ns} if other.syn_ns else {}
        return SYN_SENT, {}


def _data(way: _Way, seq: int, size: int) -> Iterator[TcpEvent]:
    end = (seq + size) & SEQ_MASK
    ahead = _distance(way.next_seq, seq) if way.next_seq >= 0 else 0
    if ahead > 0:
        yield GAP, {"missing_bytes": ahead}
        if len(way.gaps) < MAX_GAPS:
            way.gaps.append((way.next_seq, seq))
    elif size and ahead < 0 and not (size == 1 and ahead == -1):  # else a keep-alive, section 3.8.4
        filled = [gap for gap in way.gaps if _distance(gap[0], end) > 0 and _distance(seq, gap[1]) > 0]
        way.gaps = [gap for gap in way.gaps if gap not in filled]
        yield OUT_OF_ORDER if filled else RETRANSMISSION, {"size_bytes": size}
    if way.next_seq < 0 or _distance(way.next_seq, end) > 0:
        way.next_seq = end


def _distance(start: int, end: int) -> int:
    """Signed, from one sequence number to another."""
    delta = (end - start) & SEQ_MASK
    return delta - SEQ_MASK - 1 if delta >= SEQ_HALF else delta


def header_of(buffer: bytes, start: int, flow: bytes) -> int | None:
    """The offset of the TCP header before the payload at ``start``; None where it is not in front of that."""
    for words in range(5, 16):
        header = start - 4 * words
        if header >= 0 and buffer[header + 12] >> 4 == words and buffer[header : header + 4] == flow[-4:]:
            return header
    return None


def window_of(buffer: bytes, start: int, flow: bytes) -> int | None:
    """The window in that header, not scaled."""
    header = header_of(buffer, start, flow)
    return None if header is None else int.from_bytes(buffer[header + 14 : header + 16], "big")
