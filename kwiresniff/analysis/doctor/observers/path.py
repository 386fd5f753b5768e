"""The path between clients and brokers, as TCP shows it.

The time of the path is measured at the capture point between a SYN and its answer, which the broker's kernel sends at
once. Beside the broker that is nothing, beside the client the whole path.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_text
from kwiresniff.analysis.doctor.observation import HARMLESS, Harm, Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.wording import counted, duration
from kwiresniff.base.flows import host_of
from kwiresniff.model import Connection

#: Within a data centre a round trip takes less than a millisecond or two, between those of a region a few.
LONG_NS: Final = 20_000_000


class PathTimes(Observer):
    """``path_time``: the shortest time of the handshakes between a client's host and a broker.

    The shortest one, because others met a busy machine. Numbers: ``round_trip_ns``. From ``LONG_NS`` on it costs each
    request that long.
    """

    kinds: ClassVar[tuple[str, ...]] = ("path_time",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._paths = context.tally()
        self._shortest_ns: dict[Case, int] = {}

    def connection(self, connection: Connection) -> None:
        """Takes one of which the capture has the SYN and its answer."""
        if connection.path_ns is None:
            return
        case = self._paths.case(host_of(connection.client), connection.broker)
        case.add(connection.first_packet, connection.first_ns, _responses(connection), until_ns=connection.last_ns)
        case.note("clients", [client_text(connection.client_id, connection.client)])
        self._shortest_ns[case] = min(self._shortest_ns.get(case, connection.path_ns), connection.path_ns)

    def observations(self) -> Iterator[Observation]:
        """One for each host and broker."""
        for host, broker, case in self._paths:
            path_ns = self._shortest_ns[case]
            late = Harm(requests_late=case.total, late_ns=case.total * path_ns)
            yield observation_of(
                "path_time",
                f"from {host} to {self.context.cluster.broker_text(broker)} and back took {duration(path_ns)} at least "
                f"in {counted(case.count, 'handshake')}",
                case,
                [f"host:{host}", f"broker:{broker}"],
                {"round_trip_ns": path_ns},
                late if path_ns >= LONG_NS else HARMLESS,
            )


def _responses(connection: Connection) -> int:
    """How many requests of a connection were answered."""
    return sum(connection.exchanges.get(outcome, 0) for outcome in ("ok", "error"))
