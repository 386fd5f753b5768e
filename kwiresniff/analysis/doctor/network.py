"""Findings on connections and packets: damaged batches, holes in the capture."""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.cause import ERROR, INCIDENT, WASTE
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import is_one_way
from kwiresniff.analysis.doctor.evidence import client_of
from kwiresniff.analysis.doctor.observers.segments import is_captured_twice
from kwiresniff.analysis.doctor.rule import Rule, found
from kwiresniff.analysis.doctor.wording import counted, duration, listed
from kwiresniff.analysis.places import place_of
from kwiresniff.base.time_units import MILLISECOND_NS
from kwiresniff.model import Connection, Exchange, Problem
from kwiresniff.results.findings import Finding

_BOTH_WAYS = (
    "Capture both directions: a filter like 'port 9092' instead of 'dst port 9092', both halves of a mirrored port, "
    "and a place that both ways of an asymmetric route pass."
)


class DamageRule(Rule):
    """What is damaged: batches on the wire, and the capture itself.

    `bad_crc` (error): a batch whose checksum does not match.

    `capture_gaps` (info): packets are missing from the capture.

    `snap_length` (info): its packets are cut at a snap length: nothing was dropped, and what messages hold behind it is
    not known.

    `response_before_request` (info): it has responses before their requests: by the order of packets alone, which
    reordercap mends, or by time, as with clocks of two interfaces that differ; latencies of those are not known.

    `one_way_capture` (info): the capture has what clients send, and nothing of the brokers: a filter on the
    destination, half of a mirrored port, an asymmetric route; or it has what reads like brokers' responses, and nothing
    of clients. Of such connections no request counts as unanswered.

    `captured_twice` (info): the capture has packets twice, as of two interfaces (`-i any`) or of both directions of a
    mirrored port: most data came again, and within a millisecond, or nearly all within 100 ms, as of captures of two
    hosts that were merged. Such copies do not count as sent twice. Or a connection is there once more under other
    addresses, before and behind address translation (NAT) or on both legs of a proxy: one view counts, and the time
    that lies between both is told.
    """

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
                f"what reads like responses of brokers is on {counted(self._brokers_alone.count, 'connection')}, and "
                "no packet of the clients: what was asked, and so what they say, cannot be told",
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
