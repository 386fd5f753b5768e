"""Segments and SYNs that are sent again: the path loses packets, or acknowledges them late."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import client_text
from kwiresniff.analysis.doctor.observation import Harm, Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.wording import counted, times
from kwiresniff.model import Connection

#: The part of segments sent twice above which the network is bad.
RETRANSMITS = 0.01
ENOUGH_PACKETS = 1_000
#: Below this part, some may be probes that TCP sends because an acknowledgement is late (RFC 8985, section 7).
BAD_PER_THOUSAND = 20
#: What is enough of a shorter connection to see that packets are lost all the time, and in which part they are then.
SOME_RETRANSMITS = 10
LOSSY = 0.03
BOTH_WAYS = 2
#: On a connection of any length the part and the number above which packets were lost for a while, and answers late.
MANY_RETRANSMITS = 0.1
FEW_PACKETS = 20
FEW_RETRANSMITS = 5
#: The part of packets that come again where a capture has all twice (of what it has, half is acknowledgements, which
#: nobody counts), and the part of these that come at once.
TWICE = 0.15
AT_ONCE = 0.9
#: The part of connections whose SYN was sent again above which something is wrong, when so many were sent again.
SYN_RETRANSMITS = 0.05
FEW_SYNS = 3


class ResentSegments(Observer):
    """``segments_resent``: a connection on which many segments came again, or had been lost before the capture point;
    ``syns_resent``: a broker whose connections came to be only at a later SYN.

    Where a capture has most packets twice it shows neither. Numbers of the first: ``per_thousand`` of the packets, and
    how many ``to_broker`` and ``to_client``; ``much``: so many that answers must be late. Of the second:
    ``retransmits``, ``longest_ns`` that a handshake took, ``connections`` of the broker.
    """

    kinds: ClassVar[tuple[str, ...]] = ("segments_resent", "syns_resent")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._opened = context.tally()
        self._twice = context.tally()
        self._syns = context.tally()
        #: Connections on which packets came again, and those of them that the capture has twice.
        self._resent = self._copied = 0

    def connection(self, connection: Connection) -> None:
        """Takes one that has ended, and what was counted on it."""
        lost = [again + before for again, before in zip(connection.retransmits, connection.recovered, strict=True)]
        packets, again = sum(connection.packets), sum(lost)
        self._resent += sum(connection.retransmits) > 0
        if is_captured_twice(connection):
            self._copied += 1
            again = 0
        client = client_text(connection.client_id, connection.client)
        place = connection.first_packet, connection.first_ns
        much = packets >= FEW_PACKETS and again >= max(FEW_RETRANSMITS, packets * MANY_RETRANSMITS)
        # In one direction alone it may be a receiver that takes no more, and is asked again and again whether it does.
        both = min(connection.retransmits) >= BOTH_WAYS or sum(connection.recovered) >= BOTH_WAYS
        lossy = both and again >= max(SOME_RETRANSMITS, packets * LOSSY)
        if much or lossy or (packets >= ENOUGH_PACKETS and again > packets * RETRANSMITS):
            case = self._twice.case(f"{connection.client} {connection.broker}")
            case.add(*place, again * 1000 // packets, until_ns=connection.last_ns)
            case.note("clients", [client])
            case.note("brokers", [connection.broker])
            case.note("much", ["yes"] * much)
            case.note("lost", [f"{lost[0]} {lost[1]}"])
        if connection.handshake_seen:
            self._opened.case(connection.broker).add(*place)
        if connection.syn_retransmits:
            case = self._syns.case(connection.broker)
            took_ns = connection.handshake_rtt_ns or 0
            case.add(*place, took_ns)
            case.total += connection.syn_retransmits - took_ns
            case.note("clients", [client])

    def observations(self) -> Iterator[Observation]:
        """One for each connection, one for each broker."""
        for ends, _, case in self._twice if self._copied * 2 < self._resent else ():
            to_broker, to_client = map(int, case.noted("lost")[0].split())
            much = bool(case.noted("much"))
            yield observation_of(
                "segments_resent",
                f"of the packets of {ends} {to_broker} were sent again to the broker and {to_client} to the client",
                case,
                [f"connection:{ends}"],
                {"per_thousand": case.most, "to_broker": to_broker, "to_client": to_client, "much": much},
                Harm(requests_late=to_broker + to_client if much else 0),
            )
        for broker, _, case in self._syns:
            known = self._opened.known(broker)
            opened = known.count if known is not None else 0
            if case.count >= opened * SYN_RETRANSMITS:
                yield observation_of(
                    "syns_resent",
                    f"SYNs to {broker} were sent again {times(case.total)}, for {counted(case.count, 'connection')}",
                    case,
                    [f"broker:{broker}"],
                    {"retransmits": case.total, "longest_ns": case.most, "connections": opened},
                )


def is_captured_twice(connection: Connection) -> bool:
    """Whether the capture has the packets of a connection twice: nearly all bytes came again soon; or many packets did,
    and nearly all of these at once, where TCP would have waited."""
    if connection.is_twice or not connection.captured_twice:
        return connection.is_twice
    packets, again = sum(connection.packets), sum(connection.retransmits)
    return connection.captured_twice >= max(packets * TWICE, again * AT_ONCE)
