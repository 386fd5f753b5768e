"""Times of encrypted TLS records, and the places where their decryption breaks off (RFC 8446, section 5.1).

A record is decrypted when its last byte is there, but the time of its first one counts too.
"""

from __future__ import annotations

from kwiresniff.base.sequence_numbers import SEQ_HALF, SEQ_MASK
from kwiresniff.base.tls_record import APPLICATION_DATA, HANDSHAKE, RECORD_HEADER_BYTES
from kwiresniff.model import SYN, Segment

#: Directions followed at once; beyond it the ones that began first are let go.
MAX_FLOWS = 131_072

#: Segments that begin with application data and give no plaintext before decryption is said to have broken off. One or
#: two may hold what is no application's: a session ticket, a farewell.
MAX_SILENT_RECORDS = 4


class _Direction:
    __slots__ = ("begun", "head", "left", "next_seq")

    def __init__(self, next_seq: int) -> None:
        self.next_seq = next_seq
        self.head = b""  # a header of which not all is there yet
        self.left = 0  # bytes that the current record still lacks
        self.begun = (0, 0)  # packet and time of its first byte


class RecordStarts:
    """Follows the records of TLS connections that are captured from their beginning and in order.

    Other connections are not followed: when their records begin is not known.
    """

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


class Breaks:
    """Notices where decryption breaks off: application data goes on, but nothing comes out any more.

    After a hole nothing can be decrypted in that direction, because each record counts for those behind it.
    """

    def __init__(self) -> None:
        # By direction: the furthest byte seen, how many records have begun since the last plaintext, the first's place.
        self._silent: dict[bytes, tuple[int, int, tuple[int, int]]] = {}

    def plaintext(self, flow: bytes, seq: int) -> None:
        """Notes plaintext that came out of the segment at ``seq``."""
        self._silent[flow] = seq, 0, (0, 0)
        if len(self._silent) > MAX_FLOWS:
            del self._silent[next(iter(self._silent))]

    def segment(self, segment: Segment) -> tuple[int, int] | None:
        """Packet and time from which on nothing came out, once it is clear."""
        packet, ns, flow, seq, _, flags, buffer, start, end, _ = segment
        silent = self._silent.get(flow)
        if silent is None:
            return None
        if flags & SYN:
            del self._silent[flow]
            return None
        furthest, count, place = silent
        if end - start < RECORD_HEADER_BYTES or buffer[start] != APPLICATION_DATA or buffer[start + 1] != 3:
            return None
        if not 0 < (seq - furthest) & SEQ_MASK < SEQ_HALF:
            return None  # sent again
        if count + 1 == MAX_SILENT_RECORDS:
            del self._silent[flow]
            return place
        self._silent[flow] = seq, count + 1, place if count else (packet, ns)
        return None
