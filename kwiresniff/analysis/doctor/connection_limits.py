"""Connections that a broker accepts and closes at once, while it serves others: its limit on connections.

With max.connections.per.ip it closes what is too many at once; with a quota on their rate (connection_creation_rate,
KIP-612) it lets a client wait first, and then resets the connection. In both cases not a byte of an answer comes.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import Ending
from kwiresniff.analysis.doctor.evidence import client_text
from kwiresniff.analysis.doctor.rule import INCIDENT, Rule, found
from kwiresniff.analysis.doctor.wording import times
from kwiresniff.analysis.memory_budget import ENTRY_BYTES
from kwiresniff.base.api_keys import API_VERSIONS
from kwiresniff.base.flows import host_of
from kwiresniff.model import Connection
from kwiresniff.results.findings import Explains, Finding, scope_of

#: A broker that is stopped closes a few, too.
OFTEN = 3
#: What is closed later than this was kept waiting first.
AT_ONCE_NS = 200_000_000
#: Connections that were served, whose times are remembered; how many were open at a time is the limit.
MAX_SERVED = 5_000


class ConnectionLimitRule(Rule):
    """Hosts whose new connections a broker does not serve."""

    codes = ("connections_refused",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._cases = context.tally()
        self._served: dict[tuple[str, str], list[tuple[int, int]]] = {}
        self._held = 0

    def connection(self, connection: Connection) -> None:
        """One that the broker served."""
        key = host_of(connection.client), connection.broker
        if (
            connection.bytes[1]
            and connection.handshake_seen
            and self._held < MAX_SERVED
            and self.context.budget.admit(2 * ENTRY_BYTES)
        ):
            self._held += 1
            self._served.setdefault(key, []).append((connection.first_ns, connection.closed_ns or connection.last_ns))

    def ending(self, ending: Ending) -> None:
        """One that the broker closed without having sent a byte, after a request that any broker answers."""
        connection = ending.connection
        fresh = connection.handshake_seen and not connection.bytes[1] and ending.first.api_key == API_VERSIONS
        if not fresh or ending.reason != "closed by broker":
            return
        key = host_of(connection.client), connection.broker
        case = self._cases.case(*key)
        case.add(ending.first.packet, connection.first_ns, until_ns=connection.closed_ns)
        case.note("clients", [client_text(connection.client_id, connection.client)])
        case.note("how", ["at once" if connection.closed_ns - connection.first_ns < AT_ONCE_NS else "later"])

    def findings(self) -> Iterator[Finding]:
        """By host and broker, where that broker answers others."""
        cluster = self.context.cluster
        for host, broker, case in self._cases:
            alive = cluster.offer(broker) and cluster.last_answer_ns.get(broker, 0) > case.first_ns
            if case.count < OFTEN or not alive:
                continue
            how = case.counts("how")
            at_once = how.get("at once", 0) > how.get("later", 0)
            open_ = self._open_at(host, broker, case.first_ns)
            if at_once and not open_:
                title = f"{times(case.count)} at once: a proxy without a broker behind it, or a limit on connections"
                remedy = _PROXY
            elif at_once:
                title = f"{times(case.count)} at once, while {open_} others of it were open: a limit on connections"
                remedy = _NUMBER
            else:
                title = f"{times(case.count)} after a while: a limit on how many it may open a second"
                remedy = _RATE
            clients = case.noted("clients")
            yield found(
                "connections_refused",
                "error",
                f"{host} → {broker}",
                f"{cluster.broker_text(broker)} accepts connections of {host} and closes them without a word, {title}",
                remedy,
                case,
                {"broker": broker, "host": host, "open": open_ if at_once else None, "clients": clients},
                clients=clients,
                brokers=[broker],
                scope=scope_of("host", [host]),
                explains=_explains(clients, broker),
                rank=INCIDENT,
            )

    def _open_at(self, host: str, broker: str, ns: int) -> int:
        return sum(first <= ns <= last for first, last in self._served.get((host, broker), ()))


def _explains(clients: list[str], broker: str) -> Explains:
    whom = scope_of("client", clients) | scope_of("broker", [broker])
    return dict.fromkeys(("closed_by_broker", "unanswered", "metadata_storm", "connection_churn"), whom)


_NUMBER = (
    "See max.connections.per.ip, max.connections.per.ip.overrides and max.connections of the listener (the broker's "
    "log says 'Rejected connection'), and why that host has so many: clients made anew and never closed, or many "
    "behind one address (NAT, a proxy)."
)
_PROXY = (
    "If a load balancer or proxy listens there, see whether the broker behind it is up and reachable from it; else see "
    "max.connections and max.connections.per.ip of the broker."
)
_RATE = (
    "See the quota connection_creation_rate of the address (kafka-configs --entity-type ips --describe) and "
    "max.connection.creation.rate of the listener, and why that host opens so many: a client made anew for each "
    "message, or a restart of everything at once."
)
