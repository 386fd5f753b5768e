"""Responses that come before their requests.

A capture point with several queues puts packets in another order than the wire, so a response may be seen before the
request that it answers, or while that request still waits behind a segment that comes later. Such a response is held
back until its request is there or has had its time.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, TypeAlias

from kwiresniff.stream.budget import EXCHANGE_BYTES
from kwiresniff.stream.half import Half
from kwiresniff.stream.waiting import GRACE_NS, GRACE_PACKETS

if TYPE_CHECKING:
    from kwiresniff.session.link import Link

#: Responses and memory of them held back on one connection: what fits into the grace of a hole at usual rates.
MAX_EARLY = 256
MAX_EARLY_BYTES = 256 << 10

_correlation_id = Struct(">i").unpack_from

#: The arguments of a frame callback, and what the segment acknowledged that completed it.
Frame: TypeAlias = tuple[Half, int, int, int, int, int, bytes, int, int]


class Early:
    """The responses held back on one link; while there are any, the client's frames come by here.

    ``held_bytes`` is their memory.
    """

    __slots__ = ("_ids", "_link", "_releasing", "_resume", "_resume_usual", "held", "held_bytes")

    def __init__(self, link: Link) -> None:
        self._link = link
        self.held: list[Frame] = []
        self._ids: dict[int, int] = {}  # their correlation ids, and how many have each
        self.held_bytes = 0
        self._releasing = False
        self._resume = link.client.frame  # the client's frame callback without us
        self._resume_usual = link.client.usual

    def hold(self, response: Frame) -> bool:
        """Take a response that nothing outstanding asked for; False when it must do without a request.

        When it is too much, holes in front of waiting requests are given up first, then the oldest responses; so the
        caller looks for the request again when it is told False.
        """
        link = self._link
        if self._releasing or link.closed:
            return False
        size = len(response[6]) + EXCHANGE_BYTES
        if self._is_too_much(size):
            link.client.flush()
            while self.held and self._is_too_much(size):
                self._release(1)
            if size > MAX_EARLY_BYTES or _correlation_id(response[6])[0] in link.pending.by_id:
                return False
        self.held.append(response)
        correlation_id = _correlation_id(response[6])[0]
        self._ids[correlation_id] = self._ids.get(correlation_id, 0) + 1
        self.held_bytes += size
        link.analyzer.budget.held += size
        self._watch()
        return True

    def _is_too_much(self, size: int) -> bool:
        return len(self.held) >= MAX_EARLY or self.held_bytes + size > MAX_EARLY_BYTES

    def _watch(self) -> None:
        client = self._link.client
        if self.held and client.frame != self.request:
            self._resume, self._resume_usual = client.frame, client.usual
            client.hear(self.request)

    def request(
        self, half: Half, packet: int, ns: int, last_packet: int, last_ns: int, size: int, data: bytes, lost: int
    ) -> None:
        """A frame from the client; it may be the one that was overtaken."""
        half.hear(self._resume, self._resume_usual)
        half.frame(half, packet, ns, last_packet, last_ns, size, data, lost)
        if self.held:
            _, first_packet, first_ns, *_ = self.held[0]
            asked = len(data) >= 8 and _correlation_id(data, 4)[0] in self._ids
            if asked or _is_late(first_packet, first_ns, last_packet, last_ns):
                self._release(self._ready(last_packet, last_ns))
        self._watch()

    def _ready(self, last_packet: int, last_ns: int) -> int:
        """How many of the responses have their request, or have had their time, and those before them."""
        by_id = self._link.pending.by_id
        taken: set[int] = set()  # the next response with such an id answers a request that is still to come
        ready = 0
        for count, (_, _, _, packet, ns, _, data, _, _) in enumerate(self.held, 1):
            late = _is_late(packet, ns, last_packet, last_ns)
            correlation_id = _correlation_id(data)[0]
            if late or (correlation_id in by_id and correlation_id not in taken):
                ready = count
                taken.add(correlation_id)
        return ready

    def release(self) -> None:
        """Let in all that are held: what has no request yet has lost it.

        Brokers answer in order, so this is the case as soon as a later response has its request.
        """
        if not self._releasing:
            self._release(len(self.held))

    def _release(self, count: int) -> None:
        client = self._link.client
        held, self.held = self.held[:count], self.held[count:]
        for response in held:
            correlation_id = _correlation_id(response[6])[0]
            self._ids[correlation_id] -= 1
            if not self._ids[correlation_id]:
                del self._ids[correlation_id]
            self.held_bytes -= len(response[6]) + EXCHANGE_BYTES
            self._let_in(response)
        if not self.held and client.frame == self.request:
            client.hear(self._resume, self._resume_usual)

    def _let_in(self, response: Frame) -> None:
        half = response[0]
        current, half.ack = half.ack, response[8]
        self._releasing = True
        self._link.response(*response[:8])
        self._releasing = False
        half.ack = current


def _is_late(packet: int, ns: int, last_packet: int, last_ns: int) -> bool:
    """Whether a response that came with ``packet`` has waited long enough."""
    return last_packet - packet > GRACE_PACKETS or last_ns - ns > GRACE_NS
