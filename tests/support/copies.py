"""A recording whose traffic is in the capture twice: mirrored, before and after address translation, on both legs of a
proxy, or from two capture points.

Each takes the segments of a whole recording and adds another view of them. The view nearest to the broker stays as it
was recorded, so what is counted has to stay, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from zlib import crc32

from kwiresniff.analysis.doctor import Doctor
from kwiresniff.base.flows import reverse
from kwiresniff.identity.copies import Copies
from kwiresniff.model import FIN, SYN, Event, EventList, Segment, feed_of
from kwiresniff.session import Analyzer
from tests.support.cuts import from_clients

Segments = Sequence[Segment]
Doubling = Callable[[Segments], list[Segment]]

#: How much earlier a request passes the other view's capture point, and how much later a response.
NAT_NS = 12_000
PROXY_NS = 300_000
MAX_SEGMENT_BYTES = 1_000


def _merged(*views: Segments) -> list[Segment]:
    """All segments by time, their packets numbered anew in that order."""
    every = sorted((one for view in views for one in view), key=lambda one: one[1])
    return [(number, *one[1:]) for number, one in enumerate(every, 1)]


def _moved(flow: bytes, to_broker: bool, client: bytes | None, broker: bytes | None) -> bytes:
    """The flow with other addresses of the same length, where they are given."""
    there = flow if to_broker else reverse(flow)
    size = len(there) // 2 - 2
    moved = (client or there[:size]) + (broker or there[size : 2 * size]) + there[2 * size :]
    return moved if to_broker else reverse(moved)


def _before(segments: Segments, apart_ns: int, flow_of: Callable[[bytes, bool], bytes]) -> list[Segment]:
    """The view of a capture point so far away on the clients' side, with flows as ``flow_of`` makes them."""
    clients = from_clients(segments)
    view: list[Segment] = []
    for packet, ns, flow, seq, ack, flags, buffer, start, end, missing in segments:
        to_broker = flow in clients
        ns += -apart_ns if to_broker else apart_ns
        view.append((packet, ns, flow_of(flow, to_broker), seq, ack, flags, buffer, start, end, missing))
    return view


def _address(size: int, *last: int) -> bytes:
    return bytes((10, 96, *last)) if size == 4 else bytes((0xFD, *([0] * 13), *last))


def mirrored(segments: Segments) -> list[Segment]:
    """Each packet again 20 µs later, as on two interfaces."""
    return _merged(segments, [(one[0], one[1] + 20_000, *one[2:]) for one in segments])


def mirrored_late(segments: Segments) -> list[Segment]:
    """Each packet again 200 ms later, by a clock that is ahead."""
    return _merged(segments, [(one[0], one[1] + 200_000_000, *one[2:]) for one in segments])


def requests_again(segments: Segments) -> list[Segment]:
    """What clients send again 1 ms later: the other capture point sees one direction."""
    clients = from_clients(segments)
    return _merged(segments, [(one[0], one[1] + 1_000_000, *one[2:]) for one in segments if one[2] in clients])


def two_points(apart_ns: int) -> Doubling:
    """Captures of client and broker, merged, so far from each other."""
    return lambda segments: _merged(_before(segments, apart_ns, lambda flow, _: flow), segments)


def dnat(segments: Segments) -> list[Segment]:
    """Clients dial the address of a service, which is translated to that of the broker."""

    def flow_of(flow: bytes, to_broker: bool) -> bytes:
        there = flow if to_broker else reverse(flow)
        size = len(there) // 2 - 2
        return _moved(flow, to_broker, None, _address(size, 1, crc32(there[size : 2 * size] + there[-2:]) % 250))

    return _merged(_before(segments, NAT_NS, flow_of), segments)


def snat(segments: Segments) -> list[Segment]:
    """Addresses of pods are translated to those of their nodes."""

    def flow_of(flow: bytes, to_broker: bool) -> bytes:
        there = flow if to_broker else reverse(flow)
        size = len(there) // 2 - 2
        return _moved(flow, to_broker, _address(size, 2, crc32(there[:size]) % 250), None)

    return _merged(_before(segments, NAT_NS, flow_of), segments)


def proxied(segments: Segments, late_ns: int = 0, *, apart: bool = False) -> list[Segment]:
    """Each host of clients is that of a proxy for clients elsewhere: sequence numbers and segments of its own. Its
    clock may be late, the address at which it is dialled another one (``apart``)."""
    clients = from_clients(segments)
    view: list[Segment] = []
    for packet, ns, flow, seq, ack, flags, buffer, start, end, missing in segments:
        to_broker = flow in clients
        there = flow if to_broker else reverse(flow)
        size = len(there) // 2 - 2
        host, broker = there[:size], there[size : 2 * size] + there[-2:]
        port = (15_000 + crc32(broker) % 1_000).to_bytes(2, "big")
        dialled = _address(size, 4, crc32(host) % 250) if apart else host
        leg = _address(size, 3, crc32(host) % 250) + dialled + there[-4:-2] + port
        numbers = crc32(there), crc32(there[::-1])
        ours, theirs = numbers if to_broker else numbers[::-1]
        ns += (-PROXY_NS if to_broker else PROXY_NS) - late_ns
        seq, ack = (seq + ours) & 0xFFFFFFFF, (ack + theirs) & 0xFFFFFFFF
        cut = MAX_SEGMENT_BYTES if not missing else end - start
        first = True
        while first or start < end:
            stop = min(start + cut, end)
            last = stop == end
            here = flags if first and last else flags & ~(SYN if not first else 0) & ~(FIN if not last else 0)
            view.append((packet, ns, leg if to_broker else reverse(leg), seq, ack, here, buffer, start, stop, missing))
            seq, start, first = (seq + stop - start) & 0xFFFFFFFF, stop, False
    return _merged(view, segments)


#: What adds another view, by its name.
DOUBLINGS: dict[str, Doubling] = {
    "mirrored": mirrored,
    "mirrored 200 ms later": mirrored_late,
    "requests again": requests_again,
    "DNAT": dnat,
    "SNAT": snat,
    "proxied": proxied,
    "two points 0.5 ms apart": two_points(500_000),
    "two points 25 ms apart": two_points(25_000_000),
}


def counted(segments: Iterable[Segment], *, all_views: bool = False) -> list[Event]:
    """The events of a capture that analyses get."""
    analyzer = Analyzer(Doctor.NEEDS)
    events = EventList()
    analyzer.give_to(Copies(events, all_views=all_views))
    for _ in (*analyzer.read(feed_of(segments)), *analyzer.end()):
        pass
    return events.take()
