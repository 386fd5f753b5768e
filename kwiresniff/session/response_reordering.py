"""Responses that come before their requests.

A capture point with several queues puts packets in another order than the wire, so a response may be seen before the
request that it answers, or while that request still waits behind a segment that comes later. Such a response is held
back until its request is there or has had its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from kwiresniff.base.header_fields import unpack_correlation_id
from kwiresniff.session.in_flight import Outstanding
from kwiresniff.stream.buffer_budget import EXCHANGE_BYTES
from kwiresniff.stream.out_of_order import GRACE_NS, GRACE_PACKETS

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Responses and memory of them held back on one connection: what fits into the grace of a gap at usual rates.
MAX_REORDERED = 256
MAX_REORDERED_BYTES = 256 << 10


#: A frame's first packet, its time, last packet, its time, size, data, lost bytes; segment's ack; ``end_seq``.
Response: TypeAlias = tuple[int, int, int, int, int, bytes, int, int, int]
#: What is buffered on most connections. Never added to.
NO_RESPONSES: Final[list[Response]] = []
NO_IDS: Final[dict[int, int]] = {}
NO_ORDER: Final[list[int]] = []


class ResponseReorderBuffer:
    """The buffered responses of one connection, in the order in which they came; ``held_bytes`` is their memory."""

    STATE: ClassVar[tuple[str, ...]] = ("_ids", "_oldest", "_order", "held", "held_bytes")
    __slots__ = STATE

    def __init__(self) -> None:
        self.held: list[Response] = NO_RESPONSES
        self._ids: dict[int, int] = NO_IDS  # their correlation ids, and how many have each
        self._order: list[int] = NO_ORDER  # their correlation ids one by one
        self._oldest = (0, 0)  # none came with an earlier packet, nor at an earlier time
        self.held_bytes: i64 = 0

    def is_too_much(self, size: int) -> bool:
        """Whether a response that takes ``size`` bytes of memory is too much beside those that are buffered."""
        return len(self.held) >= MAX_REORDERED or self.held_bytes + size > MAX_REORDERED_BYTES

    def hold(self, response: Response) -> None:
        """Buffers a response."""
        if not self.held:
            self.held, self._ids, self._order = [], {}, []
            self._oldest = response[2], response[3]
        self.held.append(response)
        self._oldest = min(self._oldest[0], response[2]), min(self._oldest[1], response[3])
        correlation_id = unpack_correlation_id(response[5])[0]
        self._order.append(correlation_id)
        self._ids[correlation_id] = self._ids.get(correlation_id, 0) + 1
        self.held_bytes += response_bytes(response[5])

    def pop(self, count: int) -> list[Response]:
        """Removes and returns the first ``count`` responses."""
        released, self.held = self.held[:count], self.held[count:]
        ids, self._order = self._order[:count], self._order[count:]
        for response, correlation_id in zip(released, ids, strict=True):
            self._ids[correlation_id] -= 1
            if not self._ids[correlation_id]:
                del self._ids[correlation_id]
            self.held_bytes -= response_bytes(response[5])
        return released

    def ready(self, request: bytes, last_packet: int, last_ns: int, outstanding: Outstanding) -> int:
        """The number of held responses ready after ``request``: it is theirs, or they waited long enough."""
        first_packet, first_ns, *_ = self.held[0]
        asked = len(request) >= 8 and unpack_correlation_id(request, 4)[0] in self._ids
        if not asked and not _is_late(first_packet, first_ns, last_packet, last_ns):
            return 0
        if _is_late(*self._oldest, last_packet, last_ns):
            return self._ready_or_late(last_packet, last_ns, outstanding)
        answers = self._ids.keys() & outstanding.keys()
        return 1 + max([self._order.index(correlation_id) for correlation_id in answers], default=-1)

    def _ready_or_late(self, last_packet: int, last_ns: int, outstanding: Outstanding) -> int:
        """``ready`` where responses may have waited long enough: looks at all of them."""
        taken: set[int] = set()  # the next response with such an id answers a request that is still to come
        ready = 0
        for count, (_, _, packet, ns, _, data, _, _, _) in enumerate(self.held, 1):
            late = _is_late(packet, ns, last_packet, last_ns)
            correlation_id = unpack_correlation_id(data)[0]
            if late or (correlation_id in outstanding and correlation_id not in taken):
                ready = count
                taken.add(correlation_id)
        left = self.held[ready:]
        if left:
            self._oldest = min(one[2] for one in left), min(one[3] for one in left)
        return ready


def response_bytes(data: bytes) -> int:
    """The memory in bytes that a response takes while it is buffered."""
    return len(data) + EXCHANGE_BYTES


def _is_late(packet: int, ns: int, last_packet: int, last_ns: int) -> bool:
    """Whether a response that came with ``packet`` has waited long enough."""
    return last_packet - packet > GRACE_PACKETS or last_ns - ns > GRACE_NS
