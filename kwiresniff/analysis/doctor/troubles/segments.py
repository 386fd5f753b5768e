"""Segments and SYNs that are sent again: the path loses packets, or acknowledges them late."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_text
from kwiresniff.analysis.doctor.observation import HARMLESS, Harm, Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.base.flows import host_of
from kwiresniff.model import Connection

#: The part of segments sent twice above which the network is bad, and the packets that this needs.
RETRANSMITS = 0.01
ENOUGH_PACKETS = 1_000
#: Below this, some may be probes because of a late acknowledgement (RFC 8985, section 7).
BAD_PER_THOUSAND = 20
#: On a shorter connection the number and the part that show lasting loss, and how many in either direction.
SOME_RETRANSMITS = 10
LOSSY = 0.03
BOTH_WAYS = 2
#: On a connection of any length the part and the number that show loss for a while.
MANY_RETRANSMITS = 0.1
FEW_PACKETS = 20
FEW_RETRANSMITS = 5
#: The part of packets that come again where the capture has all twice (half are acknowledgements, which are not
#: counted), and the part of these that come at once.
TWICE = 0.15
AT_ONCE = 0.9
#: The part of connections whose SYN was sent again, and the number, that are too many.
SYN_RETRANSMITS = 0.05
FEW_SYNS = 3


class _Path:
    """The connections of a client's host to a broker: all of them, and those on which many packets came again."""

    __slots__ = (
        "all", "bad", "bad_lost", "bad_packets", "is_both_ways", "is_much", "is_twice", "lost", "packets", "recovered",
    )  # fmt: skip

    def __init__(self, context: Context) -> None:
        self.all, self.bad = context.case(), context.case()
        self.packets = self.bad_packets = self.recovered = 0
        self.lost, self.bad_lost = [0, 0], [0, 0]
        self.is_much = self.is_both_ways = False
        self.is_twice = True

    def add(self, connection: Connection, lost: list[int]) -> None:
        """Takes a connection, and how many packets it lost in each direction."""
        packets, again = sum(connection.packets), sum(lost)
        if not min(connection.packets):
            packets *= 2  # a capture of one direction, without what acknowledges it
        if connection.is_twice:
            packets //= 2  # what was sent again is told from its copies
        elif again:
            self.is_twice = False
        much = packets >= FEW_PACKETS and again >= max(FEW_RETRANSMITS, packets * MANY_RETRANSMITS)
        # In one direction alone it may be a receiver with a full window that is probed.
        both = min(lost) >= BOTH_WAYS or sum(connection.recovered) >= BOTH_WAYS
        lossy = both and again >= max(SOME_RETRANSMITS, packets * LOSSY)
        self._count(self.all, connection)
        self.packets += packets
        self.recovered += sum(connection.recovered)
        self.lost = [one + other for one, other in zip(self.lost, lost, strict=True)]
        self.is_both_ways = self.is_both_ways or both
        if much or lossy or (packets >= ENOUGH_PACKETS and again > packets * RETRANSMITS):
            self._count(self.bad, connection)
            self.bad_packets += packets
            self.bad_lost = [one + other for one, other in zip(self.bad_lost, lost, strict=True)]
            self.is_much = self.is_much or much

    def _count(self, case: Case, connection: Connection) -> None:
        case.add(connection.first_packet, connection.first_ns, until_ns=connection.last_ns)
        case.note("clients", [client_text(connection.client_id, connection.client)])


class ResentSegments(Observer):
    """``segments_resent``: a path from a client's host to a broker with connections on which many segments came again,
    or had been lost before the capture point; ``segments_arrived``: the other paths. ``syns_resent``: a broker whose
    connections were established only at a later SYN.

    In a capture that has most packets twice only what differs from the copies counts; packets that the network doubled
    or reordered do not count. Numbers of the first two: ``packets`` (of a path that loses few in all, those of the bad
    connections), of which were sent again ``to_broker`` and ``to_client``; ``all``: all packets of the path, and how
    many were sent again; ``recovered``: those lost before the capture point; ``both_ways``: some in either direction,
    or before the capture point; ``much``: so many that answers must be late. Of the third: ``retransmits``,
    ``longest_ns`` of a handshake, ``connections`` of the broker.
    """

    kinds = ("segments_resent", "segments_arrived", "syns_resent")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._opened = context.tally()
        self._paths: Subjects[tuple[str, str], _Path] = context.subjects(lambda: _Path(context), 40)
        self._syns = context.tally()
        #: Connections on which packets came again, and those of them that the capture has twice.
        self._resent = self._copied = 0

    def connection(self, connection: Connection) -> None:
        lost = [again - copies for again, copies in zip(connection.retransmits, connection.copies, strict=True)]
        lost = [again + before for again, before in zip(lost, connection.recovered, strict=True)]
        self._resent += sum(connection.retransmits) > 0
        if is_captured_twice(connection):
            self._copied += 1
            if not connection.is_twice:
                lost = [0, 0]
        path = self._paths.of((host_of(connection.client), connection.broker))
        if path is not None:
            path.add(connection, lost)
        place = connection.first_packet, connection.first_ns
        if connection.handshake_seen:
            self._opened.case(connection.broker).add(*place)
        if connection.syn_retransmits:
            case = self._syns.case(connection.broker)
            took_ns = connection.handshake_rtt_ns or 0
            case.add(*place, took_ns)
            case.total += connection.syn_retransmits - took_ns
            case.note("clients", [client_text(connection.client_id, connection.client)])
            case.note("hosts", [host_of(connection.client)])

    def observations(self) -> Iterator[Observation]:
        is_twice = self._copied > 0 and self._copied * 2 >= self._resent
        for (host, broker), path in self._paths.items():
            if is_twice and not path.is_twice:
                continue
            is_bad = path.bad.count > 0
            some = is_bad and sum(path.lost) <= path.packets * RETRANSMITS
            case = path.bad if is_bad else path.all
            packets, lost = (path.bad_packets, path.bad_lost) if some else (path.packets, path.lost)
            clients = [f"client:{client}" for client in path.all.noted("clients")] if not some else []
            numbers = {
                "packets": packets,
                "to_broker": lost[0],
                "to_client": lost[1],
                "all": [path.packets, sum(path.lost)],
                "both_ways": path.is_both_ways,
                "recovered": path.recovered,
                "much": path.is_much,
            }
            kind, about = "segments_resent" if is_bad else "segments_arrived", [f"host:{host}", f"broker:{broker}"]
            harm = Harm(requests_late=sum(lost)) if path.is_much else HARMLESS
            yield replace(observation_of(kind, case, [*about, *clients], numbers, harm), count=sum(lost))
        for broker, _, case in self._syns:
            known = self._opened.known(broker)
            opened = known.count if known is not None else 0
            if case.count >= opened * SYN_RETRANSMITS:
                about = [f"broker:{broker}", *[f"host:{host}" for host in case.noted("hosts")]]
                numbers = {"retransmits": case.total, "longest_ns": case.most, "connections": opened}
                yield observation_of("syns_resent", case, about, numbers)


def is_captured_twice(connection: Connection) -> bool:
    """Whether the capture has the packets of a connection twice: nearly all bytes soon again, or many packets and
    nearly all of these at once, where TCP would have waited."""
    if connection.is_twice or not connection.captured_twice:
        return connection.is_twice
    packets, again = sum(connection.packets), sum(connection.retransmits)
    return connection.captured_twice >= max(packets * TWICE, again * AT_ONCE)
