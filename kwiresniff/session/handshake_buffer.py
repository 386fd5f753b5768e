"""The first segments of connections whose opening comes out of order, such as data before the handshake.

It may be that the capture began in the middle of the connection; or the capture point reordered its opening. So the
first segments are held back until the handshake is there or has had its time, as long as a gap gets
(see ``OutOfOrderQueue``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from kwiresniff.base.sequence_numbers import SEQ_HALF, SEQ_MASK
from kwiresniff.model import ACK, FIN, SYN, Segment
from kwiresniff.stream.out_of_order import GRACE_NS, GRACE_PACKETS

#: Connections held back at once, and segments of each; beyond it the oldest begins, or that one.
MAX_HANDSHAKES = 1024
MAX_SEGMENTS = 32
#: Sequence numbers further apart than this are not those of one opening: the ports served another connection before.
MAX_SPAN_BYTES = 1 << 20


class HandshakeBuffer:
    """The buffered segments by connection (canonical flow)."""

    STATE: ClassVar[tuple[str, ...]] = ("_held",)
    __slots__ = STATE

    def __init__(self) -> None:
        self._held: dict[bytes, list[Segment]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, connection: bytes) -> bool:
        return connection in self._held

    def hold(self, connection: bytes, segment: Segment) -> list[Segment]:
        """Buffers a segment; returns the segments that need not wait any longer, in the order in which they came."""
        packet, ns, flow, seq, ack, flags, buffer, start, end, missing = segment
        held = self._held.setdefault(connection, [])
        held.append((packet, ns, flow, seq, ack, flags, buffer[start:end], 0, end - start, missing))
        if len(held) >= MAX_SEGMENTS:
            return self.pop(connection)
        return self.pop(next(iter(self._held))) if len(self._held) > MAX_HANDSHAKES else []

    def pop(self, connection: bytes) -> list[Segment]:
        """Removes and returns the segments of a connection."""
        return self._held.pop(connection, [])

    def drop(self, which: Callable[[bytes], bool]) -> None:
        """Removes the segments of each connection where ``which`` is true of the data of one."""
        for connection, held in list(self._held.items()):
            if any(which(buffer[start:end]) for *_, buffer, start, end, _ in held):
                left = [segment for segment in held if segment[7] == segment[8]]
                if left:
                    self._held[connection] = left
                else:
                    del self._held[connection]

    def pop_late(self, packet: int, ns: int) -> list[Segment]:
        """Removes and returns the segments of the connection that has waited longest, if that is too long."""
        for connection, held in self._held.items():
            if packet - held[0][0] > GRACE_PACKETS or ns - held[0][1] > GRACE_NS:
                return self.pop(connection)
            break
        return []


def can_follow(held: Sequence[Segment], flow: bytes, seq: int) -> bool:
    """Whether the segments can follow a SYN with ``seq`` of ``flow``."""
    for _, _, one, one_seq, one_ack, flags, *_ in held:
        if flags & SYN or (one != flow and not flags & ACK):
            continue
        place = one_seq if one == flow else one_ack
        if (place - seq - 1) & SEQ_MASK > MAX_SPAN_BYTES:
            return False
    return True


def first_seq(held: Sequence[Segment], flow: bytes) -> int:
    """The lowest sequence number of a flow's data, or of its FIN when there is no data, or -1."""
    seqs = [
        seq
        for _, _, one, seq, _, flags, _, start, end, missing in held
        if one == flow and (start < end or missing or flags & FIN)
    ]
    if not seqs:
        return -1
    steps = (((seq - seqs[0] + SEQ_HALF) & SEQ_MASK) - SEQ_HALF for seq in seqs)
    return (seqs[0] + min(step for step in steps if step >= -MAX_SPAN_BYTES)) & SEQ_MASK
