"""Clusters: which brokers belong together, by what they say of each other, and which cannot.

Broker addresses are joined by cluster ids and brokers in Metadata and DescribeCluster, by coordinators in
FindCoordinator, by the endpoints that Produce and Fetch answers name (KIP-951), by cluster ids in requests between
nodes (KIP-595, KIP-631) and by followers that fetch. Two of them are split by contradiction: other cluster ids, or logs
that contradict each other (``log_ends``). Where neither is seen all addresses are taken for one cluster.

An address may become another cluster, so what is counted is counted under a **node** of the union-find structure here:
an address from when it was met or changed. ``clusters`` says in the end which nodes are one cluster. Clients that speak
to two addresses join them unless something contradicts.
"""

from __future__ import annotations

from sys import getsizeof
from typing import Any, Final, NamedTuple

from kwiresniff.base.api_keys import (
    BEGIN_QUORUM_EPOCH,
    BROKER_REGISTRATION,
    DESCRIBE_CLUSTER,
    END_QUORUM_EPOCH,
    FETCH,
    FIND_COORDINATOR,
    METADATA,
    PRODUCE,
    VOTE,
)
from kwiresniff.base.field_values import field_text
from kwiresniff.base.flows import host_of
from kwiresniff.identity.log_ends import LogEnds
from kwiresniff.model import Body, Connection, Exchange, Message

#: Nodes: addresses, and those that became another cluster. A large company has some hundred brokers with some
#: listeners each. All further ones are one node.
MAX_NODES = 1_024
#: Pairs of nodes that a client has spoken to; with ``MAX_NODES`` it bounds what it takes to work out the clusters,
#: which is done anew when one of them is new.
MAX_PAIRS = 2_048
#: Bytes of addresses, cluster ids and client instances; beyond them addresses are still told apart, but not joined.
MAX_NAME_BYTES = 4 << 20
#: Changes of an address to another cluster that are remembered.
MAX_CHANGES = 100
#: Connections of which it is remembered what their last exchange was taken for; one takes the place of another.
MAX_RECENT: Final = 512
#: Characters of a client id that is remembered there. Those of clients are shorter; a forged one is as long as a frame.
MAX_ID_CHARS: Final = 255
#: An entry of a dict, with the tuple or list that stands there.
_ENTRY_BYTES: Final = 200

#: The APIs whose responses name brokers by ``host`` and ``port``, and the array where they do.
_NAMING: Final = {METADATA: "brokers", DESCRIBE_CLUSTER: "brokers", FIND_COORDINATOR: "coordinators"}
#: The APIs whose requests name the cluster that they mean; one that means another is answered with an error.
_ADDRESSED: Final = frozenset({VOTE, BEGIN_QUORUM_EPOCH, END_QUORUM_EPOCH, BROKER_REGISTRATION})
LEARNED_FROM: Final = _ADDRESSED | frozenset(_NAMING)

#: The node of all addresses that found no room.
_OTHERS: Final = 0


class ClusterChange(NamedTuple):
    """An address that had another cluster id from ``ns`` on, and when it was last asked before."""

    address: str
    before: str
    after: str
    before_ns: int
    ns: int
    packet: int


class _Recent:
    """What the last exchange of a connection was taken for, as long as nothing new was learned (``version``)."""

    __slots__ = ("client_id", "connection", "node", "version")

    def __init__(self, connection: Connection, client_id: str | None, node: int, version: int) -> None:
        self.connection = connection
        self.client_id = client_id
        self.node = node
        self.version = version


class Clusters:
    """Learns from exchanges which brokers are one cluster.

    ``changes`` are addresses that became another cluster. ``logs`` are to be shown what brokers append and serve while
    ``is_watching`` (``analysis.cluster_evidence``). ``is_ahead`` says that everything is learned from exchanges before
    analyses ask for them.
    """

    def __init__(self) -> None:
        self.changes: list[ClusterChange] = []
        self.logs = LogEnds()
        self.is_ahead = False
        self._version = 0
        self._roots = 0
        self._held_bytes = 0
        self._parents: list[int] = [_OTHERS]
        self._first_addresses: list[str] = [""]
        self._ids: dict[int, str] = {}  # of roots
        self._node_of_id: dict[str, int] = {}
        self._nodes: dict[str, int] = {}  # by address
        self._first_nodes: dict[str, int] = {}  # the node of an address when it was met
        self._told: dict[str, int] = {}  # when an address told a cluster id last
        self._hosts: dict[str, list[int]] = {}  # nodes by the host of their addresses
        self._moved: set[tuple[str, str]] = set()  # cluster ids that addresses had and have
        self._own: dict[int, int] = {}  # by connection, where an address has more than one cluster
        self._shared: set[str] = set()  # such addresses
        self._instances: dict[tuple[str, str], int] = {}  # the node that a client on a host spoke to last
        self._pairs: set[tuple[int, int]] = set()  # nodes that one client spoke to
        self._recent: list[_Recent | None] = [None] * MAX_RECENT
        self._last: Exchange | None = None
        self._last_node = _OTHERS
        self._resolved: dict[int, int] = {}
        self._resolved_version = -1

    @property
    def version(self) -> int:
        """Grows with everything that may change what ``root`` and ``scope`` return."""
        return self._version + len(self.logs.apart)

    @property
    def is_watching(self) -> bool:
        """Whether there are nodes that only their logs can tell apart."""
        return self._roots > 1 and len(self._ids) < self._roots

    def recall(self, exchange: Exchange, node: int) -> None:
        """Turns back to an exchange from which everything was learned before, when it was one of ``node``."""
        self._last, self._last_node = exchange, self.root(node)

    def is_new(self, exchange: Exchange) -> bool:
        """Whether something is to be learned from an exchange that is asked for."""
        return exchange is not self._last and not self.is_ahead

    def of(self, exchange: Exchange) -> int:
        """The node that an exchange is counted under, once what it says has been learned."""
        if exchange is self._last:
            return self._last_node
        if not self.is_ahead:
            return self.learn(exchange)
        recent = self._recent[exchange.connection.id % MAX_RECENT]
        if recent is not None and recent.connection is exchange.connection:
            return self.root(recent.node)
        return self.node_at(exchange.connection.broker)

    def learn(self, exchange: Exchange) -> int:
        """Learns from an exchange, and returns its node."""
        api_key = exchange.api_key
        if api_key in LEARNED_FROM:
            self._learn(exchange)
        elif exchange.errors and api_key in (PRODUCE, FETCH):
            body = exchange.response.body if exchange.response is not None else None
            if body:
                self._join_named(exchange.connection.broker, body.get("node_endpoints"))
        connection = exchange.connection
        place = connection.id % MAX_RECENT
        recent = self._recent[place]
        if (
            recent is None
            or recent.connection is not connection
            or recent.version != self._version
            or recent.client_id != exchange.client_id
        ):
            node = self._meet(exchange)
            if exchange.client_id is None or len(exchange.client_id) <= MAX_ID_CHARS:
                self._recent[place] = _Recent(connection, exchange.client_id, node, self._version)
        else:
            node = recent.node
        self._last, self._last_node = exchange, node
        return node

    def root(self, node: int) -> int:
        """The node that stands for all that this one was joined with."""
        parents = self._parents
        while parents[node] != node:
            parents[node] = parents[parents[node]]
            node = parents[node]
        return node

    def addresses(self) -> list[str]:
        """The addresses that are known."""
        return list(self._nodes)

    def node_at(self, address: str) -> int:
        """The node of an address now, ``_OTHERS`` for one that is not known."""
        found = self._nodes.get(address)
        return _OTHERS if found is None else self.root(found)

    def id_of(self, node: int) -> str:
        """The cluster id of a node, empty where it is not known."""
        return self._ids.get(self.root(node), "")

    def is_one(self, address: str, other: str) -> bool:
        """Whether something says that two addresses are of one cluster: brokers, or a client that speaks to both."""
        if address == other:
            return True
        one, two = self.node_at(address), self.node_at(other)
        if one == two:
            return True
        pairs = {(self.root(a), self.root(b)) for a, b in self._pairs}
        return self.scope(one) == self.scope(two) and ((one, two) in pairs or (two, one) in pairs)

    def first_node(self, address: str) -> int:
        """The node of an address when it was met, ``_OTHERS`` for one that is not known."""
        return self._first_nodes.get(address, _OTHERS)

    def era(self, address: str, node: int) -> int:
        """0 for the node of an address as long as it is the cluster that it was first, else that node."""
        if address not in self._shared:
            return 0
        return 0 if self.root(self._first_nodes.get(address, node)) == self.root(node) else self.root(node)

    def scope(self, node: int) -> int:
        """A number that nodes share as far as they are known, or taken, for one cluster by now; 0 is that of the first
        node, and of all as long as there is one cluster."""
        return self._resolve().get(self.root(node), _OTHERS)

    def labels(self) -> dict[int, str]:
        """The clusters by number as ``scope`` gives it: id, or ``cluster of ADDRESS``; empty if there is but one."""
        keys = self.keys()
        return {} if len(keys) < 2 else keys

    def keys(self) -> dict[int, str]:
        """The same, also where there is but one."""
        members: dict[int, list[int]] = {}
        for node, scope in self._resolve().items():
            members.setdefault(scope, []).append(node)
        return {
            scope: next((self._ids[node] for node in nodes if node in self._ids), "")
            or f"cluster of {self._first_addresses[min(nodes)] or 'others'}"
            for scope, nodes in members.items()
        }

    # -- what exchanges say -------------------------------------------------------------------------------------

    def _meet(self, exchange: Exchange) -> int:
        """The node of a connection's exchange, which is noted for its client."""
        connection = exchange.connection
        node = self._own.get(connection.id, -1) if connection.broker in self._shared else -1
        if node < 0:
            node = self._node(connection.broker)
        host = host_of(connection.client)
        if exchange.api_key == FETCH and _is_follower(exchange.request):
            beside = {self.root(one) for one in self._hosts.get(host, ())}
            if len(beside) == 1:
                self._join(beside.pop(), node)
        elif exchange.client_id:
            self._note_client((host, exchange.client_id), node)
        return self.root(node)

    def _note_client(self, instance: tuple[str, str], node: int) -> None:
        before = self._instances.get(instance)
        if before is None:
            if self._admit(*instance):
                self._instances[instance] = node
            return
        self._instances[instance] = node
        pair = (min(before, node), max(before, node))
        if before != node and pair not in self._pairs and len(self._pairs) < MAX_PAIRS:
            self._pairs.add(pair)
            self._version += 1

    def _learn(self, exchange: Exchange) -> None:
        """Takes in a message that names a cluster, or brokers of one."""
        address, api_key = exchange.connection.broker, exchange.api_key
        message = exchange.request if api_key in _ADDRESSED else exchange.response
        body = message.body if message is not None else None
        if not body or message is None:
            return
        if api_key in _ADDRESSED:
            if not exchange.errors and exchange.response is not None:
                self._told_id(exchange, message, field_text(body.get("cluster_id")))
            return
        if api_key == FIND_COORDINATOR:
            named: Any = body.get("coordinators") or [body]
        else:
            self._told_id(exchange, message, field_text(body.get("cluster_id")))
            named = body.get("brokers")
        node = self._own.get(exchange.connection.id, -1) if address in self._shared else -1
        self._join_named(address, named, node)

    def _told_id(self, exchange: Exchange, message: Message, cluster_id: str) -> None:
        """A broker has told its cluster's id, which no Metadata before version 2 has."""
        if not cluster_id:
            return
        connection = exchange.connection
        address = connection.broker
        root = self._root_at(address)
        known = self._node_of_id.get(cluster_id, -1)
        before = self._ids.get(root, "")
        if known < 0:
            if not self._admit(cluster_id):
                return
            known = root if not before and root != _OTHERS else self._new(address)
            if known == _OTHERS:
                return
            self._ids[known] = cluster_id
            self._node_of_id[cluster_id] = known
            self._version += 1
        known = self.root(known)
        told_ns = self._told.get(address)
        if before and before != cluster_id:
            if told_ns is not None:
                self._change(address, before, cluster_id, told_ns, message)
            self._nodes[address] = known
            self._version += 1
        else:
            self._join(root, known)
            known = self.root(known)
        if told_ns is not None or self._admit():
            self._told[address] = message.last_ns
        if address in self._shared and (connection.id in self._own or self._admit()):
            self._own[connection.id] = known

    def _change(self, address: str, before: str, after: str, before_ns: int, message: Message) -> None:
        """An address has another cluster id than before. Where it has had this one already, clusters share it, and who
        speaks to which of them is known by connection."""
        self._shared.add(address)
        if len(self._moved) < MAX_PAIRS:
            self._moved.add((before, after))
        if any(one.address == address and {one.before, one.after} == {before, after} for one in self.changes):
            return
        if len(self.changes) < MAX_CHANGES:
            packet = message.first_packet
            self.changes.append(ClusterChange(address, before, after, before_ns, message.last_ns, packet))

    def _join_named(self, address: str, named: Any, node: int = -1) -> None:
        """Joins brokers with the one that has named them, where they are named by an address that means the same
        everywhere."""
        if not named:
            return
        if node < 0:
            node = self._node(address)
        for one in named:
            text = address_text(one)
            if not text or text == address or not _is_same_everywhere(text, address):
                continue
            root, other = self.root(node), self._root_at(text)
            mine, its = self._ids.get(root, ""), self._ids.get(other, "")
            if (its, mine) in self._moved:  # it became the same other cluster, as far as it did not say so itself
                self._nodes[text] = root
                self._version += 1
            else:
                self._join(root, other)

    # -- nodes --------------------------------------------------------------------------------------------------

    def _node(self, address: str) -> int:
        """The node of an address, a new one where it is not known."""
        node = self._nodes.get(address, -1)
        if node < 0:
            node = self._nodes[address] = self._new(address) if self._admit(address) else _OTHERS
            if node == _OTHERS:
                del self._nodes[address]
                return _OTHERS
            self._first_nodes[address] = node
        return self.root(node)

    def _root_at(self, address: str) -> int:
        return self.root(self._node(address))

    def _new(self, address: str) -> int:
        node = len(self._parents)
        if node >= MAX_NODES:
            return _OTHERS
        self._parents.append(node)
        self._roots += 1
        self._first_addresses.append(address)
        self._hosts.setdefault(host_of(address), []).append(node)
        self._version += 1
        return node

    def _join(self, one: int, other: int) -> None:
        """Two nodes are of one cluster, unless their ids say that they are not; the older one stands for both."""
        one, other = self.root(one), self.root(other)
        if one == other or _OTHERS in (one, other):
            return
        if one > other:
            one, other = other, one
        mine, its = self._ids.get(one, ""), self._ids.get(other, "")
        if mine and its:
            return
        self._parents[other] = one
        self._roots -= 1
        if its:
            self._ids[one] = its
            del self._ids[other]
        self._version += 1

    def _admit(self, *texts: str) -> bool:
        size = _ENTRY_BYTES + sum(map(getsizeof, texts))
        if self._held_bytes + size > MAX_NAME_BYTES:
            return False
        self._held_bytes += size
        return True

    # -- clusters -----------------------------------------------------------------------------------------------

    def _resolve(self) -> dict[int, int]:
        """The cluster of each root: 0 for that of the oldest root, else the number of one of its roots.

        Roots with an id are a cluster each. The others are joined by their clients where nothing contradicts, and go to
        the one cluster that these clients speak to besides. Where nothing at all contradicts there is one cluster.
        """
        version = self.version
        if self._resolved_version == version:
            return self._resolved
        self._resolved_version = version
        roots = [node for node, parent in enumerate(self._parents) if node == parent and node != _OTHERS]
        apart = {(self.root(one), self.root(two)) for one, two in self.logs.apart}
        apart |= {(two, one) for one, two in apart}
        if len(self._ids) < 2 and all(one == two for one, two in apart):
            self._resolved = dict.fromkeys(roots, _OTHERS)
            return self._resolved
        clusters = {root: root for root in roots}
        pairs = sorted({(self.root(one), self.root(two)) for one, two in self._pairs})
        for one, two in pairs:
            if one not in self._ids and two not in self._ids and (one, two) not in apart:
                keep, give = sorted((_find(clusters, one), _find(clusters, two)))
                clusters[give] = keep
        spoken_to: dict[int, set[int]] = {}
        for one, two in [*pairs, *((two, one) for one, two in pairs)]:
            if one not in self._ids and two in self._ids and (one, two) not in apart:
                spoken_to.setdefault(_find(clusters, one), set()).add(two)
        for cluster, named in spoken_to.items():
            if len(named) == 1:
                clusters[cluster] = named.pop()
        first = _find(clusters, roots[0])
        found = {root: _find(clusters, root) for root in roots}
        self._resolved = {root: 0 if cluster == first else cluster for root, cluster in found.items()}
        return self._resolved


def _find(clusters: dict[int, int], node: int) -> int:
    while clusters[node] != node:
        node = clusters[node]
    return node


def _is_follower(request: Message | None) -> bool:
    """Whether a Fetch request is that of a broker (or controller) that follows a leader."""
    if request is None:
        return False
    if request.digest is not None:
        return request.digest.replica_id >= 0
    body = request.body or {}
    state = body.get("replica_state")
    replica_id = body.get("replica_id", state.get("replica_id", -1) if isinstance(state, dict) else -1)
    return isinstance(replica_id, int) and replica_id >= 0


def address_text(node: Body) -> str:
    """``host:port`` of a node in an answer, IPv6 in brackets; empty where it has none."""
    host, port = node.get("host"), node.get("port")
    if not isinstance(host, str) or not host or not isinstance(port, int) or port < 0:
        return ""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _is_same_everywhere(address: str, told_by: str) -> bool:
    """Whether an address that a broker names means the same for whoever reads it: a number, and not the machine
    itself unless it was told there. Each cluster may have a host called ``kafka-1``."""
    host = host_of(address)
    if not (host.startswith("[") or host.replace(".", "").isdecimal()):
        return False
    if host.startswith("127.") or host == "[::1]":
        return host_of(told_by) == host
    return True
