"""The inventory: who talks to which broker, with which software, in which versions, about what.

Bounded: there are at most ``MAX_CLIENTS`` different clients, what comes later is counted in ``left_out``; of topics,
groups and transactional ids each client keeps the first ``MAX_NAMES``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeAlias

from kwiresniff.analysis.names import groups_of, topics_of, transactional_ids_of
from kwiresniff.answers.clients import ApiUse, Client
from kwiresniff.model import Body, Connection, Exchange, TopicNames

#: Clients kept. One takes some 5 kB, so an inventory stays below 50 MB.
MAX_CLIENTS = 10_000
#: Topics, groups and transactional ids that are kept of one client, each.
MAX_NAMES = 1_000
#: Client ids kept of a connection that has not ended. Clients have one; proxies and forged traffic have more.
MAX_IDS = 100

API_VERSIONS = 18
ADD_PARTITIONS_TO_TXN = 24
FETCH, LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH = 1, 2, 23
#: APIs with which only nodes of a cluster talk to each other: LeaderAndIsr, StopReplica, UpdateMetadata,
#: ControlledShutdown, WriteTxnMarkers, Vote, BeginQuorumEpoch, EndQuorumEpoch, AlterPartition, Envelope,
#: FetchSnapshot, BrokerRegistration, BrokerHeartbeat, AllocateProducerIds, ControllerRegistration,
#: AssignReplicasToDirs, UpdateRaftVoter, and the five of the share-group state.
CLUSTER_APIS = frozenset({4, 5, 6, 7, 27, 52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82, 83, 84, 85, 86, 87})

_Identity: TypeAlias = tuple[Any, ...]
#: Topics, groups and transactional ids of an exchange.
Names: TypeAlias = Callable[[Exchange], tuple[Iterable[str], Iterable[str], Iterable[str]]]


class _Seen:
    """What is known of one client so far."""

    __slots__ = (
        "client_id", "cluster", "connections", "errors", "exchanges", "first_ns", "groups", "handshakes", "last_ns",
        "negotiated", "offered", "request_bytes", "response_bytes", "topics", "transactional_ids", "unanswered", "uses",
    )  # fmt: skip

    def __init__(self, client_id: str | None) -> None:
        self.client_id = client_id
        self.cluster = False
        self.connections = 0
        self.negotiated = 0  # connections that began with ApiVersions
        self.handshakes = 0  # connections whose beginning is in the capture
        self.exchanges = 0
        self.errors = 0
        self.unanswered = 0
        self.request_bytes = 0
        self.response_bytes = 0
        self.first_ns = -1
        self.last_ns = -1
        self.offered: dict[int, tuple[int, int]] = {}
        #: (api_key, version) -> [api, count, errors, packet, first_ns]
        self.uses: dict[tuple[int, int], list[Any]] = {}
        self.topics: dict[str, None] = {}
        self.groups: dict[str, None] = {}
        self.transactional_ids: dict[str, None] = {}

    def add(self, exchange: Exchange, names: Names) -> None:
        request, response = exchange.request, exchange.response
        message = request or response
        assert message is not None
        self.exchanges += 1
        self.errors += bool(exchange.errors)
        self.unanswered += exchange.outcome == "unanswered"
        self.span(message.first_ns, (response or message).last_ns)
        if response is not None:
            self.response_bytes += response.size_bytes
        if request is None:
            return
        self.request_bytes += request.size_bytes
        use = self.uses.get((exchange.api_key, exchange.api_version))
        if use is None:
            use = [exchange.api, 0, 0, message.first_packet, message.first_ns]
            self.uses[exchange.api_key, exchange.api_version] = use
        use[1] += 1
        use[2] += bool(exchange.errors)
        if _is_of_cluster(exchange.api_key, exchange.api_version, request.body):
            self.cluster = True
        for kept, found in zip((self.topics, self.groups, self.transactional_ids), names(exchange), strict=True):
            _keep(kept, found)
        if exchange.api_key == API_VERSIONS and response is not None and response.body is not None:
            self.offered.update(_offered(response.body))

    def span(self, first_ns: int, last_ns: int) -> None:
        """Widen the time in which the client was seen."""
        self.first_ns = first_ns if self.first_ns < 0 else min(self.first_ns, first_ns)
        self.last_ns = max(self.last_ns, last_ns)

    def merge(self, other: _Seen) -> None:
        """Take in what another connection of the same client has shown."""
        for name in (
            "connections", "negotiated", "handshakes", "exchanges", "errors", "unanswered", "request_bytes",
            "response_bytes",
        ):  # fmt: skip
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.cluster |= other.cluster
        if other.first_ns >= 0:
            self.span(other.first_ns, other.last_ns)
        self.offered.update(other.offered)
        for key, use in other.uses.items():
            mine = self.uses.setdefault(key, [use[0], 0, 0, use[3], use[4]])
            mine[1] += use[1]
            mine[2] += use[2]
            if use[4] < mine[4]:
                mine[3:] = use[3:]
        _keep(self.topics, other.topics)
        _keep(self.groups, other.groups)
        _keep(self.transactional_ids, other.transactional_ids)


def _keep(names: dict[str, None], found: Iterable[str]) -> None:
    for name in found:
        if len(names) >= MAX_NAMES:
            return
        names[name] = None


def _is_of_cluster(api_key: int, version: int, body: Body | None) -> bool:
    """Whether only a node of the cluster asks that.

    A follower that fetches gives its node id, where consumers give -1; versions of AddPartitionsToTxn from 4 on are
    for brokers alone (KIP-890).
    """
    if api_key in CLUSTER_APIS or (api_key == ADD_PARTITIONS_TO_TXN and version >= 4):
        return True
    if body is None or api_key not in (FETCH, LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH):
        return False
    state = body.get("replica_state")
    replica_id = body.get("replica_id", state.get("replica_id", -1) if isinstance(state, dict) else -1)
    return isinstance(replica_id, int) and replica_id >= 0


def _offered(body: Body) -> dict[int, tuple[int, int]]:
    """The versions of an ApiVersions response, by API key."""
    return {
        one["api_key"]: (one["min_version"], one["max_version"])
        for one in body.get("api_keys") or ()
        if {"api_key", "min_version", "max_version"} <= one.keys()
    }


def host_of(endpoint: str) -> str:
    """``10.0.0.5`` of ``10.0.0.5:50000``, ``[::1]`` of ``[::1]:50000``."""
    return endpoint.rpartition(":")[0]


def names_in(exchange: Exchange, topic_name: TopicNames | None = None) -> tuple[list[str], list[str], list[str]]:
    """The topics, groups and transactional ids that the bodies of an exchange name."""
    bodies = [message.body for message in (exchange.request, exchange.response) if message is not None]
    found = [body for body in bodies if body is not None]
    return (
        [name for body in found for name in topics_of(body, topic_name)],
        [name for body in found for name in groups_of(body)],
        [name for body in found for name in transactional_ids_of(body)],
    )


class Inventory:
    """Collects clients from exchanges with decoded bodies and from ended connections."""

    def __init__(self, topic_name: TopicNames | None = None, *, names: Names | None = None) -> None:
        """``names`` tells what ``names_in`` does, where that is known already."""
        self.left_out = 0
        self._names: Names = names or partial(names_in, topic_name=topic_name)
        # By connection: what is known of a client's software and identity is complete when its connection ends.
        self._open: dict[int, tuple[Connection, dict[str | None, _Seen]]] = {}
        self._clients: dict[_Identity, _Seen] = {}

    def exchange(self, exchange: Exchange) -> None:
        """Take in an exchange."""
        connection = exchange.connection
        found = self._open.get(connection.id)
        if found is None:
            found = self._open[connection.id] = (connection, {})
        by_id = found[1]
        seen = by_id.get(exchange.client_id)
        if seen is None:
            if exchange.request is None and by_id:  # a response alone does not say whose it is
                seen = next(iter(by_id.values()))
            elif len(by_id) >= MAX_IDS:
                self.left_out += 1
                return
            else:
                seen = by_id[exchange.client_id] = _Seen(exchange.client_id)
        seen.add(exchange, self._names)

    def connection(self, connection: Connection) -> None:
        """Take in a connection that has ended."""
        _, by_id = self._open.pop(connection.id, (connection, {}))
        self._settle(connection, by_id)

    def _settle(self, connection: Connection, by_id: dict[str | None, _Seen]) -> None:
        if None in by_id and len(by_id) > 1 and not by_id[None].uses:
            lone = by_id.pop(None)  # responses that came before the first request told the client id
            next(iter(by_id.values())).merge(lone)
        if not by_id:
            by_id = {None: _Seen(None)}
            by_id[None].span(connection.first_ns, connection.last_ns)
            if connection.protocol == "tls":
                by_id[None].request_bytes, by_id[None].response_bytes = connection.bytes
        negotiated = any((key == API_VERSIONS) for seen in by_id.values() for key, _ in seen.uses)
        for seen in by_id.values():
            seen.connections = 1
            seen.negotiated = int(negotiated)
            seen.handshakes = int(connection.handshake_seen)
            identity = _identity(connection, seen.client_id)
            known = self._clients.get(identity)
            if known is not None:
                known.merge(seen)
            elif len(self._clients) < MAX_CLIENTS:
                self._clients[identity] = seen
            else:
                self.left_out += 1

    def clients(self) -> list[Client]:
        """Everything found, the busiest first; connections that have not ended count with what they have shown."""
        for connection, by_id in self._open.values():
            self._settle(connection, by_id)
        self._open.clear()
        found = [_client(identity, seen) for identity, seen in self._clients.items()]
        return sorted(found, key=lambda one: (-one.exchanges, one.address, one.broker, one.client_id or ""))


def _identity(connection: Connection, client_id: str | None) -> _Identity:
    software = connection.client_software or {}
    sasl = connection.sasl or {}
    tls = connection.tls
    return (
        connection.protocol,
        client_id,
        host_of(connection.client),
        connection.broker,
        (software.get("name"), software.get("version")),
        (sasl.get("mechanism"), sasl.get("principal"), sasl.get("outcome")) if sasl else None,
        None if tls is None else (tls.get("version"), tls.get("server_name"), tls.get("decrypted")),
    )


def _client(identity: _Identity, seen: _Seen) -> Client:
    protocol, client_id, address, broker, software, sasl, tls = identity
    negotiates: bool | None = None
    if seen.negotiated:
        negotiates = True
    elif seen.handshakes and seen.handshakes == seen.connections:
        negotiates = False
    return Client(
        kind="encrypted" if protocol == "tls" and not seen.exchanges else "broker" if seen.cluster else "client",
        client_id=client_id,
        address=address,
        broker=broker,
        software=software,
        sasl=None if sasl is None else dict(zip(("mechanism", "principal", "outcome"), sasl, strict=True)),
        tls=None if tls is None else dict(zip(("version", "server_name", "decrypted"), tls, strict=True)),
        negotiates=negotiates,
        offered=seen.offered,
        uses=tuple(
            ApiUse(api, key, version, count, errors, packet, first_ns)
            for (key, version), (api, count, errors, packet, first_ns) in sorted(seen.uses.items())
        ),
        topics=tuple(seen.topics),
        groups=tuple(seen.groups),
        transactional_ids=tuple(seen.transactional_ids),
        connections=seen.connections,
        exchanges=seen.exchanges,
        errors=seen.errors,
        unanswered=seen.unanswered,
        request_bytes=seen.request_bytes,
        response_bytes=seen.response_bytes,
        first_ns=seen.first_ns,
        last_ns=seen.last_ns,
    )
