"""Recordings merged by time, as somebody does with the captures of two clusters, or as one interface sees both."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import merge
from operator import itemgetter

from kwiresniff.base.packet_references import PACKET_BITS
from kwiresniff.capture import open_captures
from kwiresniff.model import Segment

_time_of = itemgetter(1)


@dataclass(frozen=True)
class Network:
    """IPv4 addresses that begin with ``old`` get ``new`` instead, a text as long, also where messages name them."""

    old: str
    new: str

    def moved(self, segment: Segment) -> Segment:
        """A segment with other addresses."""
        packet, ns, flow, seq, ack, flags, buffer, start, end, missing = segment
        old, new = (bytes(map(int, text.strip(".").split("."))) for text in (self.old, self.new))
        ends = [flow[at : at + 4] for at in (0, 4)] if len(flow) == 12 else []
        ends = [new + one[len(new) :] if one.startswith(old) else one for one in ends]
        payload = buffer[start:end].replace(self.old.encode(), self.new.encode())
        return packet, ns, b"".join(ends) + flow[4 * len(ends) :], seq, ack, flags, payload, 0, len(payload), missing


def segments_of(path: str, *, begin_ns: int, network: Network | None = None) -> list[Segment]:
    """The segments of a recording as if it had begun at ``begin_ns``, in another network if one is given."""
    found = list(open_captures([path]))
    later_ns = begin_ns - found[0][1] if found else 0
    found = [(one[0], one[1] + later_ns, *one[2:]) for one in found]
    return found if network is None else [network.moved(one) for one in found]


def merged(*recordings: Iterable[Segment]) -> list[Segment]:
    """Several recordings in the order of time, the packets of each as those of a file."""
    files = [
        [(file << PACKET_BITS | one[0], *one[1:]) for one in recording] for file, recording in enumerate(recordings)
    ]
    return list(merge(*files, key=_time_of))
