"""The inventory: who talks to which broker, with which software, in which versions, about what.

Bounded: there are at most ``MAX_CLIENTS`` different clients, and they take no more memory than ``client_traffic`` lets
them. Clients that come later are counted in ``left_out``, those that used more than is remembered in ``cut``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

from kwiresniff.analysis.body_entities import message_names
from kwiresniff.analysis.client_traffic import ClientTraffic, InventoryMemory
from kwiresniff.analysis.cluster_evidence import cluster_of
from kwiresniff.analysis.followed_sessions import FollowedSessions
from kwiresniff.analysis.late_names import renamer
from kwiresniff.base.api_keys import API_VERSIONS
from kwiresniff.base.flows import host_of
from kwiresniff.base.needs import Needs
from kwiresniff.identity.clusters import Clusters
from kwiresniff.model import Connection, Exchange, FetchedTopics, TopicNames
from kwiresniff.results.clients import ApiUse, Client

#: Clients kept.
MAX_CLIENTS = 10_000
#: Client ids kept of a connection that has not ended. Clients have one; proxies and forged traffic have more.
MAX_IDS = 100

_Identity: TypeAlias = tuple[Any, ...]
#: Topics, groups and transactional ids.
Names: TypeAlias = tuple[list[str], list[str], list[str]]


class NamesInTraffic:
    """The topics, groups and transactional ids that the bodies of exchanges name, and the topics of fetch sessions.

    Of a session whose topics a client was told to have before, only those are given that it has had since.
    """

    def __init__(self, topic_name: TopicNames | None = None) -> None:
        self._topic_name = topic_name
        self._sessions = FollowedSessions()

    def __call__(self, exchange: Exchange) -> Names:
        """The names in one exchange."""
        topics: list[str] = []
        groups: list[str] = []
        transactional_ids: list[str] = []
        for message in (exchange.request, exchange.response):
            names = message_names(message, self._topic_name)
            topics += names.topics
            groups += names.groups
            transactional_ids += names.transactional_ids
        if exchange.fetched is not None:
            topics += self._session_topics(exchange, exchange.fetched)
        return topics, groups, transactional_ids

    def _session_topics(self, exchange: Exchange, fetched: FetchedTopics) -> list[str]:
        members, followed = fetched.names, self._sessions.of(fetched.session)
        if followed.seen is None or followed.seen.values is not members.values:
            followed.state = {}  # of each client, up to where in the log it was given the names
        followed.seen = members
        client = exchange.connection.id, exchange.client_id
        given: int = followed.state.get(client, 0)
        if given >= members.end:
            return []
        found = [members.values[at] for at in range(given, members.end) if members.added[at]]
        if not given:
            found = members.present()
        followed.state[client] = members.end
        self._sessions.weigh(followed, len(followed.state))
        topic_name = self._topic_name
        return found if topic_name is None else [topic_name(topic) or topic for topic in found]


class _OpenConnection:
    """The clients of a connection that has not ended, by their ids; ``last`` is the one whose exchange came last.

    ``node`` is that of clusters which they speak to (``identity.clusters``).
    """

    __slots__ = ("by_id", "connection", "last", "node")

    def __init__(self, connection: Connection, node: int) -> None:
        self.connection = connection
        self.node = node
        self.by_id: dict[str | None, ClientTraffic] = {}
        self.last: ClientTraffic | None = None


class Inventory:
    """Collects clients from exchanges with decoded bodies and from ended connections."""

    NEEDS: ClassVar[Needs] = Needs("bodies", sessions=True, clusters=True, digests=True)

    def __init__(self, topic_name: TopicNames | None = None, clusters: Clusters | None = None) -> None:
        """``clusters`` are those of other analyses of the same exchanges."""
        self.left_out = 0
        self._clusters = clusters or Clusters()
        self._memory = InventoryMemory()
        self._topic_name = topic_name
        self._names = NamesInTraffic(topic_name)
        # By connection: what is known of a client's software and identity is complete when its connection ends.
        self._open: dict[int, _OpenConnection] = {}
        self._refused: set[int] = set()  # open connections for whose first client there was no room
        self._clients: dict[_Identity, ClientTraffic] = {}

    @property
    def cut(self) -> int:
        """Clients that used more versions or names than are remembered."""
        return sum(seen.memory.cut for seen in self._clients.values())

    def exchange(self, exchange: Exchange) -> None:
        """Take in an exchange."""
        seen = self._client_of(exchange)
        if seen is not None and seen.add(exchange):
            topics, groups, transactional_ids = self._names(exchange)
            seen.note(topics, groups, transactional_ids)

    def exchange_about(
        self, exchange: Exchange, topics: list[str], groups: list[str], transactional_ids: list[str]
    ) -> None:
        """Takes in an exchange whose names are known already."""
        seen = self._client_of(exchange)
        if seen is not None and seen.add(exchange):
            seen.note(topics, groups, transactional_ids)

    def _client_of(self, exchange: Exchange) -> ClientTraffic | None:
        """The traffic of the client of an exchange; None where there is no room for it."""
        connection = exchange.connection
        node = cluster_of(self._clusters, exchange)
        if self._refused and connection.id in self._refused:
            return None
        found = self._open.get(connection.id)
        if found is None:
            found = self._open[connection.id] = _OpenConnection(connection, node)
        found.node = node
        last = found.last
        if last is not None and last.client_id == exchange.client_id:
            return last
        by_id = found.by_id
        seen = by_id.get(exchange.client_id)
        if seen is None:
            if exchange.request is None and by_id:  # a response alone does not say whose it is
                return next(iter(by_id.values()))
            seen = ClientTraffic(exchange.client_id, self._memory)
            if len(by_id) >= MAX_IDS or not seen.admit():
                self.left_out += 1
                if not by_id:
                    self._refused.add(connection.id)
                    del self._open[connection.id]
                return None
            by_id[exchange.client_id] = seen
        found.last = seen
        return seen

    def connection(self, connection: Connection) -> None:
        """Take in a connection that has ended."""
        if connection.id in self._refused:
            self._refused.discard(connection.id)
            return
        found = self._open.pop(connection.id, None)
        if found is None:
            found = _OpenConnection(connection, self._clusters.node_at(connection.broker))
        self._settle(found)

    def _settle(self, ended: _OpenConnection) -> None:
        connection, by_id = ended.connection, ended.by_id
        if None in by_id and len(by_id) > 1 and not by_id[None].uses:
            lone = by_id.pop(None)  # responses that came before the first request, which has the client id
            next(iter(by_id.values())).merge(lone)
        if not by_id:
            lone = ClientTraffic(None, self._memory)
            if not lone.admit():
                self.left_out += 1
                return
            by_id = {None: lone}
            lone.counts.span(connection.first_ns, connection.last_ns)
            if connection.protocol == "tls":
                lone.counts.request_bytes, lone.counts.response_bytes = connection.bytes
        negotiated = any((key == API_VERSIONS) for seen in by_id.values() for key, _ in seen.uses)
        for seen in by_id.values():
            seen.counts.connections = 1
            seen.counts.negotiated = int(negotiated)
            seen.counts.handshakes = int(connection.handshake_seen)
            identity = (
                *_identity(connection, seen.client_id),
                self._clusters.era(connection.broker, ended.node),
            )
            known = self._clients.get(identity)
            if known is not None:
                known.merge(seen)
            elif len(self._clients) < MAX_CLIENTS and seen.memory.admit_identity(_texts(identity)):
                self._clients[identity] = seen
            else:
                seen.memory.release()
                self.left_out += 1

    def clients(self) -> list[Client]:
        """Everything found, the busiest first; connections that have not ended count with what they have shown."""
        for one in self._open.values():
            self._settle(one)
        self._open.clear()
        rename = renamer(self._topic_name)
        labels = self._clusters.labels()
        found = [
            _client(identity, seen, rename, labels.get(self._cluster_of(identity)))
            for identity, seen in self._clients.items()
        ]
        return sorted(found, key=lambda one: (-one.exchanges, one.address, one.broker, one.client_id or ""))

    def _cluster_of(self, identity: _Identity) -> int:
        """The number of the cluster of a client's broker, in its era."""
        return self._clusters.scope(identity[-1] or self._clusters.first_node(identity[3]))


def _identity(connection: Connection, client_id: str | None) -> _Identity:
    software = connection.client_software or {}
    sasl = connection.sasl or {}
    tls = connection.tls
    proxied = connection.proxied
    return (
        connection.protocol,
        client_id,
        host_of(connection.client),
        connection.broker,
        (software.get("name"), software.get("version")),
        (sasl.get("mechanism"), sasl.get("principal"), sasl.get("outcome")) if sasl else None,
        None if tls is None else (tls.get("version"), tls.get("server_name"), tls.get("decrypted")),
        None if proxied is None else (host_of(proxied["client"] or ""), proxied["broker"], proxied["by"]),
    )


def _texts(identity: _Identity) -> list[str]:
    """The texts of an identity that come from the wire."""
    parts = [part for group in identity for part in (group if isinstance(group, tuple) else (group,))]
    return [part for part in parts if isinstance(part, str)]


def _client(identity: _Identity, seen: ClientTraffic, rename: Callable[[Any], Any], cluster: str | None) -> Client:
    protocol, client_id, address, broker, software, sasl, tls, proxied, _ = identity
    counts = seen.counts
    negotiates: bool | None = None
    if counts.negotiated:
        negotiates = True
    elif counts.handshakes and counts.handshakes == counts.connections:
        negotiates = False
    return Client(
        kind="encrypted" if protocol == "tls" and not counts.exchanges else "broker" if seen.cluster else "client",
        client_id=client_id,
        address=address,
        broker=broker,
        software=software,
        sasl=None if sasl is None else dict(zip(("mechanism", "principal", "outcome"), sasl, strict=True)),
        tls=None if tls is None else dict(zip(("version", "server_name", "decrypted"), tls, strict=True)),
        negotiates=negotiates,
        offered=seen.offered,
        uses=tuple(
            ApiUse(use.api, key, version, use.count, use.errors, use.packet, use.first_ns)
            for (key, version), use in sorted(seen.uses.items(), key=lambda item: item[0])
        ),
        topics=tuple(dict.fromkeys(map(rename, seen.topics))),
        groups=tuple(seen.groups),
        transactional_ids=tuple(seen.transactional_ids),
        connections=counts.connections,
        exchanges=counts.exchanges,
        errors=counts.errors,
        unanswered=counts.unanswered,
        request_bytes=counts.request_bytes,
        response_bytes=counts.response_bytes,
        first_ns=counts.first_ns,
        last_ns=counts.last_ns,
        proxied=None if proxied is None else {"client": proxied[0] or None, "broker": proxied[1], "by": proxied[2]},
        cluster=cluster,
        settings=() if seen.cluster or seen.settings is None else seen.settings.settings(),
    )
