"""Findings on connections and packets: churn, segments and SYNs sent twice, damaged batches, holes in the capture."""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import is_one_way
from kwiresniff.analysis.doctor.evidence import client_of, client_text
from kwiresniff.analysis.doctor.rule import ERROR, INCIDENT, SYMPTOM, WASTE, Rule, as_brokers, found
from kwiresniff.analysis.doctor.wording import duration, listed, times
from kwiresniff.analysis.places import place_of
from kwiresniff.base.flows import host_of
from kwiresniff.base.time_units import MILLISECOND_NS
from kwiresniff.model import Connection, Exchange, Problem
from kwiresniff.results.findings import Explains, Finding

#: Connections one client opens to one broker in a minute before it is churn.
CONNECTIONS_PER_MINUTE = 30.0
ENOUGH_CONNECTIONS = 20
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


class NetworkRule(Rule):
    """Connection churn, and packets that are sent twice."""

    codes = ("connection_churn", "retransmits", "syn_retransmits")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._opened = context.tally()
        self._twice = context.tally()
        self._syns = context.tally()
        #: Connections on which packets came again, and those of them that the capture has twice.
        self._resent = self._copied = 0

    def connection(self, connection: Connection) -> None:
        """One that has ended, and what was counted on it."""
        packets, again = sum(connection.packets), sum(connection.retransmits)
        self._resent += again > 0
        if is_captured_twice(connection):
            self._copied += 1
            again = 0
        client, place = (
            client_text(connection.client_id, connection.client),
            (connection.first_packet, connection.first_ns),
        )
        much = packets >= FEW_PACKETS and again >= max(FEW_RETRANSMITS, packets * MANY_RETRANSMITS)
        # In one direction alone it may be a receiver that takes no more, and is asked again and again whether it does.
        both = min(connection.retransmits) >= BOTH_WAYS
        lossy = both and again >= max(SOME_RETRANSMITS, packets * LOSSY)
        if much or lossy or (packets >= ENOUGH_PACKETS and again > packets * RETRANSMITS):
            case = self._twice.case(f"{connection.client} {connection.broker}")
            case.add(*place, again * 1000 // packets, until_ns=connection.last_ns)
            case.note("clients", [client])
            case.note("brokers", [connection.broker])
            case.note("much", ["yes"] if much else [])
        if connection.handshake_seen:
            self._opened.case(client, connection.broker).add(*place)
        if connection.syn_retransmits:
            case = self._syns.case(connection.broker)
            took_ns = connection.handshake_rtt_ns or 0
            case.add(*place, took_ns)
            case.total += connection.syn_retransmits - took_ns
            case.note("clients", [client])
            case.note("hosts", [host_of(connection.client)])

    def findings(self) -> Iterator[Finding]:
        """Churn by client and broker, the rest by connection and broker."""
        opened: dict[str, int] = {}
        for client, broker, case in self._opened:
            opened[broker] = opened.get(broker, 0) + case.count
            rate = case.count / max(case.seconds / 60, 1.0)
            if case.count >= ENOUGH_CONNECTIONS and rate > CONNECTIONS_PER_MINUTE:
                yield found(
                    "connection_churn",
                    "info" if is_node(client) else "warning",
                    f"{client} {broker}",
                    f"opens {rate:.0f} connections a minute",
                    "Clients should live as long as their process: one made per request costs a handshake each time.",
                    case,
                    {"client": client, "broker": broker, "per_minute": round(rate, 1)},
                    clients=[client],
                    brokers=[broker],
                    rank=WASTE,
                )
        for ends, _, case in self._twice if self._copied * 2 < self._resent else ():
            yield found(
                "retransmits",
                "warning" if case.most >= BAD_PER_THOUSAND else "info",
                ends,
                f"{case.most / 10:.1f} % of the packets are sent twice",
                "The network between the two loses packets; or they are acknowledged so late that TCP sends them again "
                "(tail loss probes), as when a machine is short of CPU.",
                case,
                {"per_thousand": case.most},
                # Answers that were lost on the way are late without the broker's doing.
                explains=_late(case.noted("brokers")) if case.noted("much") else {},
                brokers=case.noted("brokers"),
                rank=SYMPTOM,
            )
        for broker, _, case in self._syns:
            if case.count < opened.get(broker, 0) * SYN_RETRANSMITS:
                continue
            took = f", which took {duration(case.most)} at most" if case.most else ""
            yield found(
                "syn_retransmits",
                "warning" if case.total >= FEW_SYNS else "info",
                broker,
                f"answers SYNs late: for {case.count} of {max(opened.get(broker, 0), case.count)} connections they had "
                f"to be sent again, {times(case.total)}{took}",
                "The listener's queue of connections overflows (socket.listen.backlog.size, net.core.somaxconn; many "
                "clients that reconnect at once), or packets are lost on the way.",
                case,
                {
                    "retransmits": case.total,
                    **({"longest_ns": case.most} if case.most else {}),
                    "clients": case.noted("clients"),
                    "connections": opened.get(broker, 0),
                },
                brokers=[broker],
                rank=SYMPTOM,
            )


def _late(brokers: list[str]) -> Explains:
    """What else a path that loses many packets makes of a broker."""
    return dict.fromkeys(("slow", "unanswered", "syn_retransmits", "broker_stalled"), as_brokers(*brokers))


def is_captured_twice(connection: Connection) -> bool:
    """Whether the capture has the packets of a connection twice: nearly all bytes came again soon; or many packets did,
    and nearly all of these at once, where TCP would have waited."""
    if connection.is_twice or not connection.captured_twice:
        return connection.is_twice
    packets, again = sum(connection.packets), sum(connection.retransmits)
    return connection.captured_twice >= max(packets * TWICE, again * AT_ONCE)


def is_node(client: str) -> bool:
    """Whether a client is a broker that speaks to its controller: its client id is its node id. While it looks for the
    active one it connects anew each time."""
    return client.partition(" ")[0].isdigit()


_BOTH_WAYS = (
    "Capture both directions: a filter like 'port 9092' instead of 'dst port 9092', both halves of a mirrored port, "
    "and a place that both ways of an asymmetric route pass."
)


class DamageRule(Rule):
    """What is damaged: batches on the wire, and the capture itself."""

    codes = ("bad_crc", "capture_gaps", "snap_length", "response_before_request", "one_way_capture", "captured_twice")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._damaged = context.tally()
        self._lost = context.case()
        self._cut = context.case()
        self._early = context.case()
        self._early_by_time = 0
        self._one_way = context.case()
        self._twice = context.case()
        self._views = context.tally()
        self._brokers_alone = context.case()
        self._connections = 0

    def connection(self, connection: Connection) -> None:
        """Counts those of which the capture has one direction only, or everything twice."""
        self._connections += 1
        if is_captured_twice(connection):
            later_ns = connection.later_ns or 0
            self._twice.add(connection.first_packet, connection.first_ns, later_ns, until_ns=connection.last_ns)
        if is_one_way(connection):
            self._one_way.add(connection.first_packet, connection.first_ns, until_ns=connection.last_ns)
            self._one_way.note("brokers", [connection.broker])

    def failure(self, exchange: Exchange) -> None:
        """A batch whose checksum does not match."""
        if any(problem.code == "bad_crc" for problem in exchange.problems):
            case = self._damaged.case(client_of(exchange))
            case.add(*place_of(exchange))
            case.note("apis", [exchange.api])
            case.note("brokers", [exchange.connection.broker])

    def problem(self, problem: Problem) -> None:
        """A hole in the capture."""
        details = problem.details or {}
        if problem.code == "not_kafka" and details.get("protocol") == "kafka responses":
            self._brokers_alone.add(problem.packet or 0, problem.timestamp_ns or 0, until_ns=problem.timestamp_ns or 0)
            self._brokers_alone.count += details.get("connections", 1) - 1
            return
        missing = details.get("missing_bytes") or 0
        if problem.code == "gap" and missing and not details.get("unacknowledged"):
            case = self._cut if details.get("cut") else self._lost
            case.add(problem.packet or 0, problem.timestamp_ns or 0, missing)
        elif problem.code == "response_before_request":
            count = int(details.get("responses") or 1)
            self._early.add(problem.packet or 0, problem.timestamp_ns or 0)
            self._early.count += count - 1
            self._early_by_time += count if details.get("by_time") else 0
        elif problem.code == "other_view":
            counted = details["counted"]
            what = "on the other leg of a proxy" if details["via"] == "proxy" else "behind address translation"
            takes = "" if details["apart_ns"] is None else f", {duration(details['apart_ns'])} there and back"
            case = self._views.case(f"{details['client']} {details['broker']}")
            case.add(problem.packet or 0, problem.timestamp_ns or 0)
            case.note("views", [f"{counted['client']} {counted['broker']} ({what}{takes})"])
        elif problem.code == "snap_length":
            self._cut.note("lengths", [str(details.get("snap_length"))])

    def findings(self) -> Iterator[Finding]:
        """By client; the holes together."""
        for subject, _, case in self._damaged:
            yield found(
                "bad_crc",
                "error",
                subject,
                f"batches whose checksum does not match ({', '.join(case.noted('apis'))})",
                "Bytes changed on their way or on a disk: look at hardware, and at proxies that rewrite batches.",
                case,
                clients=[subject],
                rank=ERROR,
            )
        yield from self._gaps()
        yield from self._directions()

    def _gaps(self) -> Iterator[Finding]:
        if self._lost.count:
            yield found(
                "capture_gaps",
                "info",
                "the capture",
                f"{self._lost.total:,} bytes are missing from it",
                "The capture point dropped packets, so counts above are low: a larger buffer (tcpdump -B), or a "
                "filter.",
                self._lost,
                {"missing_bytes": self._lost.total},
                rank=WASTE,
            )
        if self._cut.count:
            lengths = [f"{length} bytes" for length in self._cut.noted("lengths")]
            yield found(
                "snap_length",
                "info",
                "the capture",
                f"its packets are cut{' at ' if lengths else ''}{listed(lengths)} (snap length): {self._cut.total:,} "
                "bytes of messages are not in it",
                "Capture whole packets (tcpdump and dumpcap -s 0): records, and counts of what is in bodies that are "
                "cut off, are not known. No packet was dropped for that.",
                self._cut,
                {"missing_bytes": self._cut.total, "snap_lengths": [int(one) for one in self._cut.noted("lengths")]},
                rank=WASTE,
            )
        yield from self._responses_first()
        yield from self._copies()

    def _copies(self) -> Iterator[Finding]:
        if self._twice.count:
            later_ns = self._twice.most
            within = "within a millisecond" if later_ns < MILLISECOND_NS else f"up to {duration(later_ns)} later"
            yield found(
                "captured_twice",
                "info",
                "the capture",
                f"of {self._twice.count} of {self._connections} connections it has packets twice, {within}: copies, "
                "not packets that were sent again",
                "Capture on one interface instead of 'any', and one direction of a mirrored port (or: editcap -d).",
                self._twice,
                {"connections": self._twice.count, "of": self._connections},
                rank=WASTE,
            )
        for subject, _, case in self._views:
            yield found(
                "captured_twice",
                "info",
                subject,
                f"the capture has this traffic once more as {listed(case.noted('views'))}; it is counted once, there",
                "Nothing is wrong. Waits are those of the view that counts; what is between both views takes the rest. "
                "A capture on one side of it has each message once.",
                case,
                rank=WASTE,
            )

    def _responses_first(self) -> Iterator[Finding]:
        if self._early.count:
            by_time = self._early_by_time
            by_packet = self._early.count - by_time
            ways = [f"{by_time} by time, whose latencies are not known"] if by_time else []
            ways += [f"{by_packet} by the order of packets alone"] if by_packet else []
            yield found(
                "response_before_request",
                "info",
                "the capture",
                f"it has responses before their requests: {', '.join(ways)}",
                "Order: sort the packets by time with reordercap. Time: clocks of two interfaces, queues or hosts "
                "differ; capture on one interface, or set the clocks before captures are merged.",
                self._early,
                {"by_time": by_time, "by_packet": by_packet},
                rank=WASTE,
            )

    def _directions(self) -> Iterator[Finding]:
        if self._brokers_alone.count:
            yield found(
                "one_way_capture",
                "info",
                "the capture",
                f"{self._brokers_alone.count} connections have what reads like responses of brokers, and no packet of "
                "the clients: what was asked, and so what they say, cannot be told",
                _BOTH_WAYS,
                self._brokers_alone,
                {"connections": self._brokers_alone.count},
                rank=INCIDENT,
            )
        if self._one_way.count:
            yield found(
                "one_way_capture",
                "info",
                "the capture",
                f"of {self._one_way.count} of {self._connections} connections it has what clients send, and no packet "
                "of the brokers: whether and when they answered cannot be told",
                _BOTH_WAYS,
                self._one_way,
                {"connections": self._one_way.count, "of": self._connections},
                rank=INCIDENT,
            )
