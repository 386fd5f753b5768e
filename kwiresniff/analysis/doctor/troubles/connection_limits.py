"""Connections that a broker accepts and closes without an answer, while it serves others.

Above ``max.connections.per.ip`` it closes them at once; with a quota on their rate (``connection_creation_rate``,
KIP-612) it delays a client first, and then resets the connection. It takes no PROXY header, which load balancers may
send. A load balancer itself closes what it cannot pass on.
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
from kwiresniff.analysis.doctor.troubles.addresses import numeric_address
from kwiresniff.analysis.doctor.wording import counted, listed, times
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
    broker served then), ``served`` (all of them), ``headers`` of a proxy before what the client sends, which all of
    those that were closed have and none that was served.
    """

    kinds = ("closed_without_answer",)
    entities = ("host", "broker")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._served: dict[tuple[str, str], list[tuple[int, int]]] = {}
        self._with_header: set[tuple[str, str]] = set()
        self._held = 0

    def connection(self, connection: Connection) -> None:
        key = host_of(connection.client), connection.broker
        served = connection.bytes[1] and connection.handshake_seen
        if served and self._held < MAX_SERVED and self.context.budget.admit(2 * ENTRY_BYTES):
            self._held += 1
            self._served.setdefault(key, []).append((connection.first_ns, connection.closed_ns or connection.last_ns))
            if connection.proxied is not None:
                self._with_header.add(key)

    def ending(self, ending: Ending) -> None:
        """Counts one that the broker closed without a byte after ApiVersions."""
        connection = ending.connection
        fresh = connection.handshake_seen and not connection.bytes[1] and ending.first.api_key == API_VERSIONS
        if not fresh or ending.reason != "closed by broker":
            return
        case = self.cases.case(host_of(connection.client), connection.broker)
        case.add(ending.first.packet, connection.first_ns, until_ns=connection.closed_ns)
        case.note("clients", [client_text(connection.client_id, connection.client)])
        if connection.proxied is not None:
            case.note("headers", [str(connection.proxied.get("by"))])
        case.note("how", ["at once" if connection.closed_ns - connection.first_ns < AT_ONCE_NS else "later"])

    def observations(self) -> Iterator[Observation]:
        cluster = self.context.cluster
        for host, broker, case in self.cases:
            if case.count < OFTEN or cluster.last_answer_ns.get(broker, 0) <= case.first_ns:
                continue
            how = case.counts("how")
            at_once = how.get("at once", 0) > how.get("later", 0)
            served = self._served.get((host, broker), [])
            open_ = sum(first <= case.first_ns <= last for first, last in served)
            headers, harm = case.counts("headers"), Harm(requests_failed=case.count)
            refused = sum(headers.values()) == case.count and (host, broker) not in self._with_header
            numbers = {"open": open_, "served": len(served), "headers": list(headers) if refused else []}
            if not refused and not cluster.offer(broker):
                continue
            yield self.observed(host, broker, case, harm=harm, at_once=at_once, **numbers)


@cause("connections_refused", "proxy_header", "dead_backend", explains=("closed_without_answer",))
def connection_limit(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`connections_refused` (error): a broker accepts connections of a host and closes them without a word, while it
    answers others: `max.connections.per.ip` and its like when it does so at once, with how many were open, a quota on
    their rate when after a while.

    Seen must be three such connections, and answers of that broker to others. A proxy without a broker behind it looks
    the same where none of the host's connections is open.

    `proxy_header` (error): a load balancer or proxy sends its PROXY header to a broker, which takes it for the size of
    a request and closes the connection. Seen must be the header on all connections that were closed without a word, 3
    or more, and on none that was served.

    `dead_backend` (warning): an address that is no broker's, as that of a load balancer, serves some connections of a
    host and closes others at once: one of the brokers behind it is down, or not reached from there. Seen must be the
    addresses of the cluster's brokers, by number, and three connections of either kind.
    """
    host, broker, clients = one.name("host"), one.name("broker"), one.named("client")
    at_once, open_, headers = one.numbers["at_once"], one.numbers["open"], one.numbers["headers"]
    code, served, severity = "connections_refused", one.numbers["served"], ""
    if headers:
        code, remedy = "proxy_header", _HEADER
        title = f"{times(one.count)}: they begin with a header ({listed(headers)}), which brokers do not take"
    elif at_once and served >= OFTEN and _stands_before(broker, context):
        code, remedy, severity = "dead_backend", _BACKEND, "warning"
        title = (
            f"{times(one.count)} at once, and serves {counted(served, 'other')}: it is none of the brokers but stands "
            "before them, as a load balancer does, and what it passes these on to is not there"
        )
    elif at_once and not open_:
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
        code=code,
        severity=severity,
        subject=f"{host} → {broker}",
        numbers={"broker": broker, "host": host, "open": open_ if at_once else None, "clients": clients},
        explains=dict.fromkeys(
            ("closed_by_broker", "unanswered", "metadata_storm", "connection_churn"),
            scope_of("client", clients) | scope_of("broker", [broker]),
        ),
    )


def _stands_before(address: str, context: Context) -> bool:
    """Whether an address through which Metadata came is none of those that the cluster's brokers advertise."""
    cluster = context.cluster
    advertised = cluster.addresses(cluster.of(address))
    numeric = all(numeric_address(host_of(one)) is not None for one in advertised)
    return bool(advertised) and numeric and address not in advertised


_HEADER: Final = (
    "Switch the PROXY protocol off for this backend (send-proxy of HAProxy, the target group's attribute "
    "proxy_protocol_v2 at AWS, proxy_protocol of nginx): no listener of Kafka takes it. The broker logs a receive of "
    "an invalid size."
)

_BACKEND: Final = (
    "See which backend of the load balancer is down or listens on another port, and let its health check take that "
    "out: clients that are passed on to it have to try again. Once a client has Metadata it goes to the brokers "
    "themselves."
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
