"""Traffic that is not Kafka: connections counted by protocol and server and then ignored, servers that answer Kafka
with another protocol, and TLS hellos that a server leaves unanswered.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import ClassVar

from kwiresniff.base.flows import endpoints, host_of
from kwiresniff.model import Connection, Problem
from kwiresniff.session.signatures import RESPONSES_ALONE

#: Flows known not to be Kafka.
MAX_FLOWS = 65_536
#: Different (protocol, server) pairs counted apart, of each kind; and servers remembered to speak Kafka.
MAX_SERVERS = 10_000
#: Hosts named of those that send another protocol to one server, and counted of all servers together.
MAX_CLIENTS_NAMED = 32
MAX_CLIENTS = 20_000
_FURTHER = "further servers"
#: What is counted without its clients: it may be Kafka of which the capture has too little.
UNNAMED = frozenset({"unknown", RESPONSES_ALONE})
#: What is said of protocols by another name than ``signatures`` gives them.
_WORDS = {
    "unknown": "something other than Kafka",
    RESPONSES_ALONE: "what reads like Kafka's responses, and the capture has nothing of the other direction",
}


class NonKafkaTraffic:
    """Counts of traffic besides Kafka; those of a server are a list: connections, bytes, first packet, its time."""

    STATE: ClassVar[tuple[str, ...]] = (
        "_answers", "_clients", "_clients_counted", "_flows", "_hellos", "_kafka", "_servers",
    )  # fmt: skip
    __slots__ = STATE

    def __init__(self) -> None:
        #: (protocol, server) -> connections, first packet, its time, first client, what an alert says
        self._answers: dict[tuple[str, str], tuple[int, int, int, str, str | None]] = {}
        #: (protocol, server) -> host of a client -> its connections
        self._clients: dict[tuple[str, str], dict[str, int]] = {}
        self._clients_counted = 0
        #: server -> connections, packet that closed the first, its time, first client
        self._hellos: dict[str, tuple[int, int, int, str]] = {}
        self._kafka: dict[str, bool] = {}  # servers that have answered Kafka in the clear
        self._flows: dict[bytes, list[int]] = {}  # flow -> the counts of its server
        self._servers: dict[tuple[str, str], list[int]] = {}

    def knows(self, flow: bytes, length: int) -> bool:
        """Whether a flow is known not to be Kafka; if it is, ``length`` more bytes of it are counted."""
        counts = self._flows.get(flow)
        if counts is None:
            return False
        counts[1] += length
        return True

    def forget(self, *flows: bytes) -> None:
        """Forgets flows, because a new connection uses their ports."""
        for flow in flows:
            self._flows.pop(flow, None)

    def count(
        self,
        protocol: str,
        flow: bytes,
        is_client: bool,
        first_packet: int,
        first_ns: int,
        size: int,
        dialled: str | None = None,
    ) -> list[int]:
        """Counts a connection of ``size`` bytes, returning its server's counts. ``flow`` is the client's if
        ``is_client``; ``dialled`` is the server asked of a proxy.
        """
        client, server = endpoints(flow)
        where = server if is_client else f"{server} or {client}"
        if dialled is not None:
            where = f"{server} for {dialled}"
        key = (protocol, where) if len(self._servers) < MAX_SERVERS else (protocol, _FURTHER)
        counts = self._servers.setdefault(key, [0, 0, first_packet, first_ns])
        if is_client and protocol not in UNNAMED and not protocol.startswith("PROXY "):  # a balancer's health check
            self._count_client(key, host_of(client))
        counts[0] += 1
        counts[1] += size
        return counts

    def _count_client(self, key: tuple[str, str], host: str) -> None:
        clients = self._clients.setdefault(key, {})
        if host in clients:
            clients[host] += 1
        elif len(clients) < MAX_CLIENTS_NAMED and self._clients_counted < MAX_CLIENTS:
            clients[host] = 1
            self._clients_counted += 1

    def remember(self, flow: bytes, counts: list[int]) -> None:
        """Counts all further bytes of this flow in ``counts``."""
        self._flows[flow] = counts
        if len(self._flows) > MAX_FLOWS:
            # Some at once: the first of a dict is found behind the places of all before it.
            for oldest in list(islice(self._flows, 1 + MAX_FLOWS // 16)):
                del self._flows[oldest]

    def answered(self, connection: Connection, answer: tuple[str, str | None], packet: int, ns: int) -> None:
        """Notes that a server answers Kafka, in ``packet``, with another protocol: its name and its text."""
        protocol, alert = answer
        key = (protocol, connection.broker)
        if key not in self._answers and len(self._answers) >= MAX_SERVERS:
            key = (protocol, _FURTHER)
        count, *first = self._answers.get(key, (0, packet, ns, connection.client, alert))
        self._answers[key] = (count + 1, *first)  # type: ignore[assignment]

    def unanswered_hello(self, connection: Connection, packet: int, ns: int) -> None:
        """Notes that a server has, in ``packet``, closed a connection after the hello of a TLS client."""
        server = connection.broker
        if server not in self._hellos and len(self._hellos) >= MAX_SERVERS:
            server = _FURTHER
        count, packet, ns, client = self._hellos.get(server, (0, packet, ns, connection.client))
        self._hellos[server] = (count + 1, packet, ns, client)

    def speaks_kafka(self, server: str) -> None:
        """Notes that a server has answered Kafka in the clear."""
        if len(self._kafka) < MAX_SERVERS:
            self._kafka[server] = True

    def problems(self) -> Iterator[Problem]:
        """Yields one problem for each server, and resets the counts."""
        for (protocol, server), (connections, size, packet, ns) in self._servers.items():
            what = _WORDS.get(protocol, protocol)
            details: dict[str, object] = {
                "protocol": protocol, "server": server, "connections": connections, "bytes": size,
            }  # fmt: skip
            clients = self._clients.get((protocol, server))
            if clients and server in self._kafka:
                details |= {"speaks_kafka": True, "clients": clients}
                what += f", though it speaks Kafka, from {', '.join(clients)}"
            else:
                packet = 0
            yield Problem(
                "not_kafka",
                f"{_connections(connections)} to {server} carried {what}, left alone",
                packet=packet or None,
                timestamp_ns=ns or None,
                details=details,
            )
        self._servers.clear()
        self._clients = {}
        self._clients_counted = 0
        yield from self._answer_problems()
        yield from self._hello_problems()

    def _answer_problems(self) -> Iterator[Problem]:
        for (protocol, server), (connections, packet, ns, client, alert) in self._answers.items():
            said = f" (alert {alert})" if alert else ""
            yield Problem(
                "not_kafka_answer",
                f"{server} answered Kafka with {protocol}{said} on {_connections(connections)}, {client} first",
                packet=packet,
                timestamp_ns=ns,
                details={
                    "protocol": protocol, "server": server, "client": client, "alert": alert,
                    "connections": connections,
                },
            )  # fmt: skip
        self._answers.clear()

    def _hello_problems(self) -> Iterator[Problem]:
        for server, (connections, packet, ns, client) in self._hellos.items():
            plain = server in self._kafka
            known = "; there it speaks Kafka without TLS" if plain else ""
            yield Problem(
                "tls_not_answered",
                f"{server} closed {_connections(connections)} without an answer to a TLS hello, {client} first{known}",
                packet=packet,
                timestamp_ns=ns,
                details={"server": server, "client": client, "connections": connections, "speaks_kafka": plain},
            )
        self._hellos.clear()


def _connections(count: int) -> str:
    return f"{count} connections" if count > 1 else "a connection"
