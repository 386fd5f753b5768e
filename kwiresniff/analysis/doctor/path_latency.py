"""Long ways to a broker: what packets take there and back is part of every wait, and no broker's doing.

Measured at the capture point between a SYN and its answer, which the broker's kernel sends at once. Beside the broker
that is nothing, beside the client the whole way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.evidence import MAX_SUBJECTS, client_text
from kwiresniff.analysis.doctor.rule import INCIDENT, Context, Rule, found
from kwiresniff.analysis.doctor.wording import counted, duration
from kwiresniff.base.flows import host_of
from kwiresniff.model import Connection
from kwiresniff.results.findings import Finding

#: Within a data centre a round trip takes less than a millisecond or two, between those of a region a few.
LONG_NS: Final = 20_000_000
#: As between continents: every request that is waited for costs that.
VERY_LONG_NS: Final = 100_000_000


class PathLatencyRule(Rule):
    """Brokers that are far away."""

    codes = ("long_path",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._paths = context.tally()
        self._shortest: dict[tuple[str, str], int] = {}

    def connection(self, connection: Connection) -> None:
        """One of which the capture has SYN and answer; of several the shortest counts, others met a busy machine."""
        if connection.path_ns is None:
            return
        key = host_of(connection.client), connection.broker
        shortest = self._shortest.get(key)
        if shortest is None and len(self._shortest) >= MAX_SUBJECTS:
            return
        self._shortest[key] = connection.path_ns if shortest is None else min(shortest, connection.path_ns)
        if connection.path_ns >= LONG_NS:
            case = self._paths.case(*key)
            case.add(connection.first_packet, connection.first_ns, connection.path_ns, until_ns=connection.last_ns)
            case.note("clients", [client_text(connection.client_id, connection.client)])

    def findings(self) -> Iterator[Finding]:
        """By client's host and broker."""
        for host, broker, case in self._paths:
            shortest_ns = self._shortest.get((host, broker), 0)
            if shortest_ns < LONG_NS:
                continue
            yield found(
                "long_path",
                "warning" if shortest_ns >= VERY_LONG_NS else "info",
                f"{host} to {broker}",
                f"is {duration(shortest_ns)} there and back ({counted(case.count, 'handshake')}): that long each "
                "request waits besides what the broker takes",
                "It is the way, not the broker: another region, a VPN, a detour. Bring clients near the brokers, or "
                "let them wait less often: more in flight, larger batches (linger.ms, batch.size), commits at "
                "intervals. For throughput raise send.buffer.bytes and receive.buffer.bytes.",
                case,
                {"round_trip_ns": shortest_ns, "clients": case.noted("clients")},
                brokers=[broker],
                rank=INCIDENT,
            )
