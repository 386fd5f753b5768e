"""The round-trip time between clients and brokers, as TCP shows it.

It is measured at the capture point between a SYN and its answer, which the broker's kernel sends at once: near the
broker it is zero, near the client the whole path.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.cause import Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_text
from kwiresniff.analysis.doctor.observation import HARMLESS, Harm, Observation, Observed
from kwiresniff.analysis.doctor.observer import CountingObserver
from kwiresniff.analysis.doctor.wording import counted, duration
from kwiresniff.base.flows import host_of
from kwiresniff.model import Connection

#: Within a data centre a round trip takes up to two milliseconds, between those of a region a few.
LONG_NS: Final = 20_000_000
#: As between continents.
VERY_LONG_NS: Final = 100_000_000
#: A path is longer than the others from this factor on.
TIMES_LONGER: Final = 4


class PathTimes(CountingObserver):
    """``path_time``: the shortest time of the handshakes between a client's host and a broker.

    The shortest, because a busy host delays others. Numbers: ``round_trip_ns``. From ``LONG_NS`` on each request is
    late by it.
    """

    kinds = ("path_time",)
    entities = ("host", "broker")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._shortest_ns: dict[Case, int] = {}

    def connection(self, connection: Connection) -> None:
        if connection.path_ns is None:
            return
        case = self.cases.case(host_of(connection.client), connection.broker)
        case.add(connection.first_packet, connection.first_ns, _responses(connection), until_ns=connection.last_ns)
        case.note("clients", [client_text(connection.client_id, connection.client)])
        self._shortest_ns[case] = min(self._shortest_ns.get(case, connection.path_ns), connection.path_ns)

    def observations(self) -> Iterator[Observation]:
        for host, broker, case in self.cases:
            path_ns = self._shortest_ns[case]
            late = Harm(requests_late=case.total, late_ns=case.total * path_ns) if path_ns >= LONG_NS else HARMLESS
            yield self.observed(host, broker, case, late, round_trip_ns=path_ns)


def _responses(connection: Connection) -> int:
    """The number of answered requests of a connection."""
    return sum(connection.exchanges.get(outcome, 0) for outcome in ("ok", "error"))


@cause("long_path", explains=("path_time",))
def long_path(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`long_path` (warning where it is 100 ms or more, or the path to one broker of a cluster is 4 times as long as to
    the others; else info): packets take 20 ms or more from a client's host to a broker and back. Seen must be the
    handshake of a connection, on the client's side of the path. A busy host looks the same in one handshake, so the
    shortest of all counts, and of one alone nothing is compared.
    """
    path_ns = one.numbers["round_trip_ns"]
    if path_ns < LONG_NS:
        return None
    host, broker = one.name("host"), one.name("broker")
    others = _others(context, observed, one)
    longest_ns = max((one.numbers["round_trip_ns"] for one in others), default=0)
    alone = bool(others) and one.count > 1 and path_ns >= TIMES_LONGER * longest_ns
    name = context.cluster.broker_text(broker)
    title = f"is {duration(path_ns)} there and back ({counted(one.count, 'handshake')})"
    if alone:
        title += f", to the other brokers of the cluster {duration(longest_ns)} at most"
    return told(
        one,
        subject=f"{host} to {name if alone else broker}",
        title=f"{title}: that long each request waits besides what the broker takes",
        remedy="It is the path, not the broker: another region, a VPN, a detour. Bring clients near the "
        "brokers, or let them wait less often: more in flight, larger batches (linger.ms, batch.size), commits "
        "at intervals. For throughput raise send.buffer.bytes and receive.buffer.bytes.",
        severity="warning" if alone or path_ns >= VERY_LONG_NS else "info",
        supports=(
            f"the kernel of {name} answers a SYN at once, and its answer took that long",
            *(one.sentence for one in others),
        ),
        numbers={
            "round_trip_ns": path_ns,
            **({"others_ns": longest_ns} if others else {}),
            "clients": one.named("client"),
        },
    )


def _others(context: Context, observed: Observed, path: Observation) -> list[Observation]:
    """The paths from the same host to the other brokers of the cluster."""
    cluster = context.cluster
    cluster_id = cluster.of(path.name("broker"))
    paths = observed.about([f"host:{path.name('host')}"], "path_time") if cluster_id else []
    return [one for one in paths if one is not path and cluster.of(one.name("broker")) == cluster_id]
