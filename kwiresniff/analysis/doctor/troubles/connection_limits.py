"""Connections that a broker accepts and closes without an answer, while it serves others.

Above ``max.connections.per.ip`` it closes them at once; with a quota on their rate (``connection_creation_rate``,
KIP-612) it delays a client first, and then resets the connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.cause import Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import Ending
from kwiresniff.analysis.doctor.evidence import client_text
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed
from kwiresniff.analysis.doctor.observer import CountingObserver
from kwiresniff.analysis.doctor.wording import times
from kwiresniff.analysis.memory_budget import ENTRY_BYTES
from kwiresniff.base.api_keys import API_VERSIONS
from kwiresniff.base.flows import host_of
from kwiresniff.model import Connection
from kwiresniff.results.findings import scope_of

#: A broker that is stopped closes fewer.
OFTEN: Final = 3
#: A connection that is closed later was delayed first.
AT_ONCE_NS: Final = 200_000_000
#: Connections that were served, with their times.
MAX_SERVED: Final = 5_000


class ClosedUnanswered(CountingObserver):
    """`closed_without_answer`: a broker that answers others closed new connections of a host after ApiVersions, without
    a byte, 3 times or more.

    By host and broker. Numbers: ``at_once`` (most of them within 0.2 s), ``open`` (connections of the host that the
    broker served then).
    """

    kinds = ("closed_without_answer",)
    entities = ("host", "broker")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._served: dict[tuple[str, str], list[tuple[int, int]]] = {}
        self._held = 0

    def connection(self, connection: Connection) -> None:
        key = host_of(connection.client), connection.broker
        served = connection.bytes[1] and connection.handshake_seen
        if served and self._held < MAX_SERVED and self.context.budget.admit(2 * ENTRY_BYTES):
            self._held += 1
            self._served.setdefault(key, []).append((connection.first_ns, connection.closed_ns or connection.last_ns))

    def ending(self, ending: Ending) -> None:
        """Counts one that the broker closed without a byte after ApiVersions."""
        connection = ending.connection
        fresh = connection.handshake_seen and not connection.bytes[1] and ending.first.api_key == API_VERSIONS
        if not fresh or ending.reason != "closed by broker":
            return
        case = self.cases.case(host_of(connection.client), connection.broker)
        case.add(ending.first.packet, connection.first_ns, until_ns=connection.closed_ns)
        case.note("clients", [client_text(connection.client_id, connection.client)])
        case.note("how", ["at once" if connection.closed_ns - connection.first_ns < AT_ONCE_NS else "later"])

    def observations(self) -> Iterator[Observation]:
        cluster = self.context.cluster
        for host, broker, case in self.cases:
            alive = cluster.offer(broker) and cluster.last_answer_ns.get(broker, 0) > case.first_ns
            if case.count < OFTEN or not alive:
                continue
            how = case.counts("how")
            at_once = how.get("at once", 0) > how.get("later", 0)
            open_ = sum(first <= case.first_ns <= last for first, last in self._served.get((host, broker), ()))
            harm = Harm(requests_failed=case.count)
            yield self.observed(host, broker, case, harm=harm, at_once=at_once, open=open_)


@cause("connections_refused", explains=("closed_without_answer",))
def connection_limit(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`connections_refused` (error): a broker accepts connections of a host and closes them without a word, while it
    answers others: `max.connections.per.ip` and its like when it does so at once, with how many were open, a quota on
    their rate when after a while.

    Seen must be three such connections, and answers of that broker to others. A proxy without a broker behind it looks
    the same where none of the host's connections is open.
    """
    host, broker, clients = one.name("host"), one.name("broker"), one.named("client")
    at_once, open_ = one.numbers["at_once"], one.numbers["open"]
    if at_once and not open_:
        title = f"{times(one.count)} at once: a proxy without a broker behind it, or a limit on connections"
        remedy = _PROXY
    elif at_once:
        title = f"{times(one.count)} at once, while {open_} others of it were open: a limit on connections"
        remedy = _NUMBER
    else:
        title = f"{times(one.count)} after a while: a limit on how many it may open a second"
        remedy = _RATE
    return told(
        one,
        f"{context.cluster.broker_text(broker)} accepts connections of {host} and closes them without a word, {title}",
        remedy,
        subject=f"{host} → {broker}",
        numbers={"broker": broker, "host": host, "open": open_ if at_once else None, "clients": clients},
        explains=dict.fromkeys(
            ("closed_by_broker", "unanswered", "metadata_storm", "connection_churn"),
            scope_of("client", clients) | scope_of("broker", [broker]),
        ),
    )


_NUMBER: Final = (
    "See max.connections.per.ip, max.connections.per.ip.overrides and max.connections of the listener (the broker's "
    "log says 'Rejected connection'), and why that host has so many: clients that are created again and again and "
    "never closed, or many behind one address (NAT, a proxy)."
)

_PROXY: Final = (
    "If a load balancer or proxy listens there, see whether the broker behind it is up and reachable from it; else see "
    "max.connections and max.connections.per.ip of the broker."
)

_RATE: Final = (
    "See the quota connection_creation_rate of the address (kafka-configs --entity-type ips --describe) and "
    "max.connection.creation.rate of the listener, and why that host opens so many: a client for each message, or a "
    "restart of everything at once."
)
