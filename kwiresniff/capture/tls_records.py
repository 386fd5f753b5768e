"""Times of encrypted TLS records (RFC 8446, section 5.1), for those that tshark decrypts.

A record is decrypted when its last byte is there, but the time of its first one counts too.
"""

from __future__ import annotations

from kwiresniff.base.sequence_numbers import SEQ_HALF, SEQ_MASK
from kwiresniff.base.tls_record import HANDSHAKE, RECORD_HEADER_BYTES
from kwiresniff.model import SYN, Segment

#: Directions followed at once; beyond it the ones that began first are let go.
MAX_FLOWS = 131_072


class _Direction:
    __slots__ = ("begun", "head", "left", "next_seq")

    def __init__(self, next_seq: int) -> None:
        self.next_seq = next_seq
        self.head = b""  # a header of which not all is there yet
        self.left = 0  # bytes that the current record still lacks
        self.begun = (0, 0)  # packet and time of its first byte


class RecordStarts:
    """Follows the records of TLS connections that are captured in order from their beginning; ignores others."""

    def __init__(self) -> None:
        self._directions: dict[bytes, _Direction] = {}

    def segment(self, segment: Segment) -> tuple[int, int] | None:
        """Packet and time at which the record began that this segment completes and an earlier one began."""
        packet, ns, flow, seq, _, flags, buffer, start, end, missing = segment
        if start == end and not missing and not flags & SYN:
            return None
        directions = self._directions
        one = directions.get(flow)
        if flags & SYN or missing:
            directions.pop(flow, None)
            return None
        if one is None:
            if end - start < 2 or buffer[start] != HANDSHAKE or buffer[start + 1] != 3:
                return None
            if len(directions) >= MAX_FLOWS:
                del directions[next(iter(directions))]
            one = directions[flow] = _Direction(seq)
        behind = (one.next_seq - seq) & SEQ_MASK
        if behind >= SEQ_HALF:
            del directions[flow]
            return None
        if behind >= end - start:
            return None
        one.next_seq = (seq + end - start) & SEQ_MASK
        return self._follow(one, (packet, ns), buffer, start + behind, end)

    @staticmethod
    def _follow(one: _Direction, here: tuple[int, int], buffer: bytes, at: int, end: int) -> tuple[int, int] | None:
        begun = one.begun if one.left or one.head else None
        if one.head:
            taken = min(RECORD_HEADER_BYTES - len(one.head), end - at)
            one.head += buffer[at : at + taken]
            at += taken
            if len(one.head) < RECORD_HEADER_BYTES:
                return None
            one.left = int.from_bytes(one.head[3:], "big")
            one.head = b""
        if one.left > end - at:
            one.left -= end - at
            return None
        at += one.left
        one.left = 0
        while end - at >= RECORD_HEADER_BYTES:
            following = at + RECORD_HEADER_BYTES + (buffer[at + 3] << 8 | buffer[at + 4])
            if following > end:
                one.left = following - end
                break
            at = following
        else:
            one.head = buffer[at:end]
        if one.left or one.head:
            one.begun = here
        return begun
