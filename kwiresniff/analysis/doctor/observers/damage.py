"""What is damaged or missing: batches on the wire, and the capture itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import is_one_way
from kwiresniff.analysis.doctor.evidence import Case, client_of
from kwiresniff.analysis.doctor.observation import Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.observers.segments import is_captured_twice
from kwiresniff.analysis.doctor.wording import duration, times
from kwiresniff.analysis.places import place_of
from kwiresniff.model import Connection, Exchange, Problem

#: Whom an observation is about that is about nobody.
CAPTURE: Final = "the capture"


class Damage(Observer):
    """``bad_crc``: a client's batch whose checksum does not match; of the capture ``bytes_missing``, ``packets_cut`` at
    a snap length, ``responses_first``, before their requests, ``clients_only`` and ``brokers_only``, of connections
    with one direction, ``packets_twice``; ``other_view``: it has a connection once more under other addresses.

    Numbers: ``subject``, ``total`` bytes, ``most`` nanoseconds from one copy to the next, ``connections`` of the whole
    capture, ``by_time``, the responses that come before their requests by their times as well. Notes: ``apis``,
    ``lengths``, ``views``.
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
        """Counts those of which the capture has one direction only, or everything twice."""
        self._connections += 1
        place, until_ns = (connection.first_packet, connection.first_ns), connection.last_ns
        if is_captured_twice(connection):
            self._of_capture("packets_twice").add(*place, connection.later_ns or 0, until_ns=until_ns)
        if is_one_way(connection):
            case = self._of_capture("clients_only")
            case.add(*place, until_ns=until_ns)
            case.note("brokers", [connection.broker])

    def failure(self, exchange: Exchange) -> None:
        """A batch whose checksum does not match."""
        if any(problem.code == "bad_crc" for problem in exchange.problems):
            case = self._cases.case(client_of(exchange), "bad_crc")
            case.add(*place_of(exchange))
            case.note("apis", [exchange.api])
            case.note("brokers", [exchange.connection.broker])

    def problem(self, problem: Problem) -> None:
        """A hole in the capture, or what it has out of order or twice."""
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
        """By kind, of damaged batches by client and of other views by connection."""
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
                text = f"{subject}: {kind.replace('_', ' ')}, {times(case.count)}"
                yield observation_of(kind, text, case, about, numbers)
