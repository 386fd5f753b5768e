"""Connections that a broker accepts and closes without a byte of an answer, while it serves others.

With max.connections.per.ip it closes what is too many at once; with a quota on their rate (connection_creation_rate,
KIP-612) it lets a client wait first, and then resets the connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import Ending
from kwiresniff.analysis.doctor.evidence import client_text
from kwiresniff.analysis.doctor.observation import Harm, Observation
from kwiresniff.analysis.doctor.observer import CountingObserver
from kwiresniff.analysis.doctor.wording import times
from kwiresniff.analysis.memory_budget import ENTRY_BYTES
from kwiresniff.base.api_keys import API_VERSIONS
from kwiresniff.base.flows import host_of
from kwiresniff.model import Connection

#: A broker that is stopped closes a few, too.
OFTEN: Final = 3
#: What is closed later than this was kept waiting first.
AT_ONCE_NS: Final = 200_000_000
#: Connections that were served, whose times are remembered; how many were open at a time is the limit.
MAX_SERVED: Final = 5_000


class ClosedUnanswered(CountingObserver):
    """`closed_without_answer`: a broker that answers others closed new connections of a host after ApiVersions, without
    a byte, 3 times or more.

    By host and broker. Numbers: ``at_once`` (most of them within 0.2 s), ``open`` (connections of the host that the
    broker served then).
    """

    kinds: ClassVar[tuple[str, ...]] = ("closed_without_answer",)
    entities = ("host", "broker")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._served: dict[tuple[str, str], list[tuple[int, int]]] = {}
        self._held = 0

    def connection(self, connection: Connection) -> None:
        """Notes one that the broker served."""
        key = host_of(connection.client), connection.broker
        served = connection.bytes[1] and connection.handshake_seen
        if served and self._held < MAX_SERVED and self.context.budget.admit(2 * ENTRY_BYTES):
            self._held += 1
            self._served.setdefault(key, []).append((connection.first_ns, connection.closed_ns or connection.last_ns))

    def ending(self, ending: Ending) -> None:
        """Counts one that the broker closed without having sent a byte, after a request that any broker answers."""
        connection = ending.connection
        fresh = connection.handshake_seen and not connection.bytes[1] and ending.first.api_key == API_VERSIONS
        if not fresh or ending.reason != "closed by broker":
            return
        case = self.cases.case(host_of(connection.client), connection.broker)
        case.add(ending.first.packet, connection.first_ns, until_ns=connection.closed_ns)
        case.note("clients", [client_text(connection.client_id, connection.client)])
        case.note("how", ["at once" if connection.closed_ns - connection.first_ns < AT_ONCE_NS else "later"])

    def observations(self) -> Iterator[Observation]:
        """By host and broker, where that broker answers others."""
        cluster = self.context.cluster
        for host, broker, case in self.cases:
            alive = cluster.offer(broker) and cluster.last_answer_ns.get(broker, 0) > case.first_ns
            if case.count < OFTEN or not alive:
                continue
            how = case.counts("how")
            at_once = how.get("at once", 0) > how.get("later", 0)
            open_ = sum(first <= case.first_ns <= last for first, last in self._served.get((host, broker), ()))
            name, harm = cluster.broker_text(broker), Harm(requests_failed=case.count)
            text = f"{name} closed new connections of {host} without an answer {times(case.count)}"
            yield self.observed(host, broker, case, text, harm, at_once=at_once, open=open_)
