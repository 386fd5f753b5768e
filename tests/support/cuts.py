"""Ways in which a capture has only part of what was said, or more, or in another order, and nothing else went wrong.

Each takes the segments of a whole capture and gives those of the other; capture points, filters and people make such.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kwiresniff.base.flows import reverse
from kwiresniff.model import ACK, SYN, Segment
from tests.support.damages import snapped

#: So long after a packet its copy comes, where a capture has two interfaces.
COPY_NS = 50_000

Cut = Callable[[Sequence[Segment]], list[Segment]]


def from_clients(segments: Sequence[Segment]) -> set[bytes]:
    """The flows on which clients send, by their SYNs, or by their ports where the capture has none."""
    kinds: dict[bytes, bool] = {}
    for segment in segments:
        flow, flags = segment[2], segment[5]
        if flow not in kinds:
            client = not flags & ACK if flags & SYN else flow[-4:-2] > flow[-2:]
            kinds[flow], kinds[reverse(flow)] = client, not client
    return {flow for flow, client in kinds.items() if client}


def _part(begin: float, end: float) -> Cut:
    return lambda segments: list(segments[int(len(segments) * begin) : int(len(segments) * end)])


def _direction(client: bool) -> Cut:
    def cut(segments: Sequence[Segment]) -> list[Segment]:
        flows = from_clients(segments)
        return [segment for segment in segments if (segment[2] in flows) is client]

    return cut


def _one_server(segments: Sequence[Segment]) -> list[Segment]:
    flows = from_clients(segments)

    def server(flow: bytes) -> bytes:
        there = flow if flow in flows else reverse(flow)
        return there[len(there) // 2 - 2 : -4] + there[-2:]

    first = server(segments[0][2])
    return [segment for segment in segments if server(segment[2]) == first]


def _lost(every: int) -> Cut:
    return lambda segments: [one for index, one in enumerate(segments) if index % every != every // 2]


def _snapped(length: int) -> Cut:
    return lambda segments: snapped(segments, length)


def _twice(later_ns: int) -> Cut:
    def cut(segments: Sequence[Segment]) -> list[Segment]:
        copies = [(segment[0], segment[1] + later_ns, *segment[2:]) for segment in segments]
        return sorted([*segments, *copies], key=lambda one: one[1])

    return cut


def _out_of_order(segments: Sequence[Segment]) -> list[Segment]:
    mixed = list(segments)
    for at in range(0, len(mixed) - 3, 7):
        mixed[at], mixed[at + 2] = mixed[at + 2], mixed[at]
    return mixed


CUTS: dict[str, Cut] = {
    "whole": list,
    "without its beginning": _part(0.1, 1),
    "without its first half": _part(0.5, 1),
    "its first tenth": _part(0, 0.1),
    "its first half": _part(0, 0.5),
    "its middle": _part(0.25, 0.75),
    "clients alone": _direction(True),
    "brokers alone": _direction(False),
    "one server": _one_server,
    "every fifth packet lost": _lost(5),
    "every hundredth packet lost": _lost(100),
    "96 bytes of each packet": _snapped(96),
    "128 bytes of each packet": _snapped(128),
    "256 bytes of each packet": _snapped(256),
    "each packet twice": _twice(0),
    "each packet twice, late": _twice(COPY_NS),
    "out of order": _out_of_order,
    "without handshakes": lambda segments: [one for one in segments if not one[5] & SYN],
}
