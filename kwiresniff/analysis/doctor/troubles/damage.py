"""Damaged batches, and what is missing from the capture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.cause import ERROR, INCIDENT, WASTE, Cause, Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import is_one_way
from kwiresniff.analysis.doctor.evidence import Case, client_of
from kwiresniff.analysis.doctor.observation import Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.troubles.segments import is_captured_twice
from kwiresniff.analysis.doctor.wording import counted, duration, listed
from kwiresniff.analysis.places import place_of
from kwiresniff.base.time_units import MILLISECOND_NS
from kwiresniff.model import Connection, Exchange, Problem

#: The subject of observations about nobody in particular.
CAPTURE: Final = "the capture"


class Damage(Observer):
    """``bad_crc``: a client's batch whose checksum does not match; of the capture ``bytes_missing``, ``packets_cut`` at
    a snap length, ``responses_first`` (before their requests), ``clients_only`` and ``brokers_only`` (connections with
    one direction), ``packets_twice``; ``other_view``: a connection once more under other addresses.

    Notes: ``apis``, ``lengths``, ``views``. Numbers: ``subject``, ``total`` bytes, ``most`` nanoseconds between two
    copies, ``connections`` of the whole capture, ``by_time``: responses that are early by their times as well.
    """

    kinds = (
        "bad_crc", "bytes_missing", "packets_cut", "responses_first", "clients_only", "brokers_only", "packets_twice",
        "other_view",
    )  # fmt: skip

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._cases = context.tally()
        self._connections = 0
        self._early_by_time = 0

    def connection(self, connection: Connection) -> None:
        self._connections += 1
        place, until_ns = (connection.first_packet, connection.first_ns), connection.last_ns
        if is_captured_twice(connection):
            self._of_capture("packets_twice").add(*place, connection.later_ns or 0, until_ns=until_ns)
        if is_one_way(connection):
            case = self._of_capture("clients_only")
            case.add(*place, until_ns=until_ns)
            case.note("brokers", [connection.broker])

    def failure(self, exchange: Exchange) -> None:
        if any(problem.code == "bad_crc" for problem in exchange.problems):
            case = self._cases.case(client_of(exchange), "bad_crc")
            case.add(*place_of(exchange))
            case.note("apis", [exchange.api])
            case.note("brokers", [exchange.connection.broker])

    def problem(self, problem: Problem) -> None:
        details = problem.details or {}
        place = problem.packet or 0, problem.timestamp_ns or 0
        missing = details.get("missing_bytes") or 0
        if problem.code == "not_kafka" and details.get("protocol") == "kafka responses":
            case = self._of_capture("brokers_only")
            case.add(*place)
            case.count += details.get("connections", 1) - 1
        elif problem.code == "gap" and missing and not details.get("unacknowledged"):
            self._of_capture("packets_cut" if details.get("cut") else "bytes_missing").add(*place, missing)
        elif problem.code == "response_before_request":
            count = int(details.get("responses") or 1)
            case = self._of_capture("responses_first")
            case.add(*place)
            case.count += count - 1
            self._early_by_time += count if details.get("by_time") else 0
        elif problem.code == "other_view":
            counted = details["counted"]
            what = "on the other leg of a proxy" if details["via"] == "proxy" else "behind address translation"
            takes = "" if details["apart_ns"] is None else f", {duration(details['apart_ns'])} there and back"
            case = self._cases.case(f"{details['client']} {details['broker']}", "other_view")
            case.add(*place)
            case.note("views", [f"{counted['client']} {counted['broker']} ({what}{takes})"])
        elif problem.code == "snap_length":
            self._of_capture("packets_cut").note("lengths", [str(details.get("snap_length"))])

    def _of_capture(self, kind: str) -> Case:
        return self._cases.case(CAPTURE, kind)

    def observations(self) -> Iterator[Observation]:
        for subject, kind, case in self._cases:
            if case.count:
                numbers = {
                    "subject": subject,
                    "total": case.total,
                    "most": case.most,
                    "connections": self._connections,
                    "by_time": self._early_by_time,
                }
                about = {f"client:{subject}"} if kind == "bad_crc" else set()
                yield observation_of(kind, case, about, numbers)


@cause("bad_crc", explains=("bad_crc",))
def damaged_batches(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`bad_crc` (error): a batch whose checksum does not match."""
    return told(
        one,
        f"batches whose checksum does not match ({', '.join(one.noted('apis'))})",
        "Bytes changed on their way or on a disk: look at hardware, and at proxies that rewrite batches.",
        severity="error",
        rank=ERROR,
        numbers={},
    )


class DamagedCapture(Cause):
    """`capture_gaps` (info): packets are missing from the capture.

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

    codes = ("capture_gaps", "snap_length", "response_before_request", "one_way_capture", "captured_twice")
    explains = (
        "bytes_missing", "packets_cut", "responses_first", "packets_twice", "other_view", "brokers_only",
        "clients_only",
    )  # fmt: skip

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        for one in observed.of(*self.explains):
            code, title, numbers = _what(one)
            rank = INCIDENT if code == "one_way_capture" else WASTE
            more = {"subject": one.numbers["subject"], "severity": "info", "rank": rank, "numbers": numbers}
            yield told(one, title, _REMEDIES[one.kind], code=code, **more)


def _what(one: Observation) -> tuple[str, str, dict[str, object]]:
    """The code, the title and the numbers of the finding on an observation."""
    total, whole = one.numbers["total"], one.numbers["connections"]
    if one.kind == "bytes_missing":
        return "capture_gaps", f"{total:,} bytes are missing from it", {"missing_bytes": total}
    if one.kind == "packets_cut":
        lengths = one.noted("lengths")
        at = f" at {listed([f'{length} bytes' for length in lengths])}" if lengths else ""
        title = f"its packets are cut{at} (snap length): {total:,} bytes of messages are not in it"
        return "snap_length", title, {"missing_bytes": total, "snap_lengths": [int(length) for length in lengths]}
    if one.kind == "responses_first":
        by_time = one.numbers["by_time"]
        by_packet = one.count - by_time
        ways = [f"{by_time} by time, whose latencies are not known"] if by_time else []
        ways += [f"{by_packet} by the order of packets alone"] if by_packet else []
        title = f"it has responses before their requests: {', '.join(ways)}"
        return "response_before_request", title, {"by_time": by_time, "by_packet": by_packet}
    if one.kind == "other_view":
        views = listed(one.noted("views"))
        return "captured_twice", f"the capture has this traffic once more as {views}; it is counted once, there", {}
    if one.kind == "brokers_only":
        title = (
            f"what reads like responses of brokers is on {counted(one.count, 'connection')}, and no packet of the "
            "clients: what was asked, and so what they say, cannot be told"
        )
        return "one_way_capture", title, {"connections": one.count}
    of, numbers = f"of {one.count} of {whole} connections it has", {"connections": one.count, "of": whole}
    if one.kind == "packets_twice":
        later_ns = one.numbers["most"]
        within = "within a millisecond" if later_ns < MILLISECOND_NS else f"up to {duration(later_ns)} later"
        return "captured_twice", f"{of} packets twice, {within}: copies, not packets that were sent again", numbers
    sent = "what clients send, and no packet of the brokers: whether and when they answered cannot be told"
    return "one_way_capture", f"{of} {sent}", numbers


_BOTH_WAYS: Final = (
    "Capture both directions: a filter like 'port 9092' instead of 'dst port 9092', both halves of a mirrored port, "
    "and a place that both ways of an asymmetric route pass."
)

_REMEDIES: Final = {
    "bytes_missing": "The capture point dropped packets, so counts above are low: a larger buffer (tcpdump -B), or a "
    "filter.",
    "packets_cut": "Capture whole packets (tcpdump and dumpcap -s 0): records, and counts of what is in bodies that "
    "are cut off, are not known. No packet was dropped for that.",
    "responses_first": "Order: sort the packets by time with reordercap. Time: clocks of two interfaces, queues or "
    "hosts differ; capture on one interface, or set the clocks before captures are merged.",
    "packets_twice": "Capture on one interface instead of 'any', and one direction of a mirrored port (or: editcap "
    "-d).",
    "other_view": "Nothing is wrong. Waits are those of the view that counts; what is between both views takes the "
    "rest. A capture on one side of it has each message once.",
    "brokers_only": _BOTH_WAYS,
    "clients_only": _BOTH_WAYS,
}
