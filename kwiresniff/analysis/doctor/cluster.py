"""What is known of the cluster: its nodes and their addresses, what versions they offer, when they last answered.

From Metadata and ApiVersions answers, and from what newer Produce and Fetch answers say beside an error (KIP-951).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kwiresniff.analysis.memory_budget import CONTAINER_BYTES, ENTRY_BYTES, NUMBER_BYTES, MemoryBudget, text_bytes
from kwiresniff.analysis.offered_versions import Offer, OfferReader
from kwiresniff.base.api_keys import (
    ADD_PARTITIONS_TO_TXN,
    API_VERSIONS,
    CONSUMER_GROUP_HEARTBEAT,
    FETCH,
    JOIN_GROUP,
    LIST_OFFSETS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    PRODUCE,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    SHARE_FETCH,
    SHARE_GROUP_HEARTBEAT,
    STREAMS_GROUP_HEARTBEAT,
)
from kwiresniff.base.field_values import field_text
from kwiresniff.base.flows import host_of
from kwiresniff.model import Body, Connection, Exchange, Message
from kwiresniff.schema import versions_in

#: Nodes remembered, and addresses. A large cluster has some hundred, each with some listeners.
MAX_NODES = 10_000
#: Addresses whose offered versions are remembered; each is a table of some eighty entries.
MAX_OFFERS = 500
#: The last times remembered of each broker at which it closed a connection, and how near to its silence that has to be.
MAX_CLOSED = 20
ABOUT_NS = 1_000_000_000
#: Connections of which is noted what was answered on them, and the notes on one, in bytes of memory.
MAX_CONNECTIONS = 20_000
NOTES_BYTES = ENTRY_BYTES + 100
#: What is remembered of a broker with these times, in bytes of memory.
CLOSED_BYTES = ENTRY_BYTES + CONTAINER_BYTES + (MAX_CLOSED + 1) * NUMBER_BYTES

#: The release that took away the versions of before 2.1 (KIP-896), and the last that had them.
NEW_RELEASE, LAST_OLD_RELEASE = "4.0", "3.9"
LEAST_PRODUCE = 3

#: What a listener that wants SASL answers before it; -1 stands for a request that the capture does not have.
BEFORE_AUTHENTICATION = frozenset({-1, SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE})
#: What a client asks the leader of a partition or the coordinator of a group for, at an address that Metadata or
#: FindCoordinator has named.
AT_ADVERTISED = frozenset({
    PRODUCE, FETCH, LIST_OFFSETS, OFFSET_COMMIT, OFFSET_FETCH, JOIN_GROUP, ADD_PARTITIONS_TO_TXN,
    CONSUMER_GROUP_HEARTBEAT, SHARE_GROUP_HEARTBEAT, SHARE_FETCH, STREAMS_GROUP_HEARTBEAT,
})  # fmt: skip


class _Notes:
    """On a connection: when the last response came, whether its client got from bootstrapping to work, and whether its
    broker is known to answer who has not authenticated."""

    __slots__ = ("answered_ns", "is_open", "is_working")

    def __init__(self) -> None:
        self.answered_ns = 0
        self.is_open = self.is_working = False


class Cluster:
    """Nodes of all clusters in the capture. A node is named by its cluster's id (empty where that is not known) and
    its own.

    ``last_answer_ns`` is, by broker address, when the last answer came from there, ``answer_before_ns`` when
    the one before the exchange that is looked at did, ``answer_on_connection_ns`` when the one before it on its
    connection did, 0 when there was none. ``unauthenticated`` are the
    addresses that have answered more than ApiVersions to somebody who had not authenticated by SASL. ``served`` are
    clients' hosts with the addresses where they got from bootstrapping to work, and their client ids. ``old`` are the
    addresses that have answered versions which brokers have not taken since ``NEW_RELEASE``.
    """

    def __init__(self, budget: MemoryBudget) -> None:
        self._budget = budget
        self._addresses: dict[tuple[str, int], str] = {}
        self._nodes: dict[str, tuple[str, int]] = {}
        self._cluster_of: dict[str, str] = {}
        self._offers: dict[str, Offer] = {}
        self._reader = OfferReader()
        self.last_answer_ns: dict[str, int] = {}
        self.answer_before_ns = self.answer_on_connection_ns = 0
        self.unauthenticated: set[str] = set()
        self.served: dict[tuple[str, str], set[str]] = {}
        self.old: set[str] = set()
        self._notes: dict[int, _Notes] = {}
        self._closed: dict[str, list[int]] = {}
        self.ended_answer_ns = 0

    def ended(self, connection: Connection) -> None:
        """Notes when a broker closed a connection, and when the last response came on it."""
        notes = self._notes.pop(connection.id, None)
        if notes is not None:
            self._budget.release(NOTES_BYTES)
        self.ended_answer_ns = notes.answered_ns if notes is not None else 0
        if connection.closed_by != "broker":
            return
        broker = connection.broker
        closed = self._closed.get(broker)
        if closed is None:
            if len(self._closed) >= MAX_NODES or not self._budget.admit(CLOSED_BYTES + text_bytes(broker)):
                return
            closed = self._closed[broker] = []
        closed.append(connection.closed_ns)
        del closed[:-MAX_CLOSED]

    def went(self, broker: str, ns: int) -> bool:
        """Whether a broker closed connections about then: one that fell silent was stopped or killed, and does not
        merely stand still."""
        return any(abs(closed_ns - ns) < ABOUT_NS for closed_ns in self.closings(broker))

    def closings(self, broker: str) -> list[int]:
        """When a broker closed connections, as far as that is remembered."""
        return self._closed.get(broker, [])

    def answered(self, exchange: Exchange, ns: int) -> None:
        """Notes a response from a broker's address."""
        broker = exchange.connection.broker
        known = self.last_answer_ns
        before = self.answer_before_ns = known.get(broker, 0)
        if ns > before and (before or len(known) < MAX_NODES):
            known[broker] = ns  # that of a connection which ends late may be told late
        notes = self._notes.get(exchange.connection.id)
        self.answer_on_connection_ns = 0
        if notes is None:
            if len(self._notes) >= MAX_CONNECTIONS or not self._budget.admit(NOTES_BYTES):
                return
            notes = self._notes[exchange.connection.id] = _Notes()
        self.answer_on_connection_ns, notes.answered_ns = notes.answered_ns, ns
        if not notes.is_open and broker in known and exchange.api_key not in BEFORE_AUTHENTICATION:
            if exchange.connection.sasl is None:
                self.unauthenticated.add(broker)
            notes.is_open = broker in self.unauthenticated
        if not notes.is_working and exchange.api_key in AT_ADVERTISED:
            notes.is_working = True
            self._works(exchange, broker)

    def _works(self, exchange: Exchange, broker: str) -> None:
        """Notes a connection on which a client got from bootstrapping to work."""
        if is_removed(exchange.api_key, exchange.api_version):
            self.old.add(broker)
        key, name = (host_of(exchange.connection.client), broker), exchange.client_id or ""
        if name not in self.served.get(key, ()) and self._budget.admit(ENTRY_BYTES + text_bytes(*key, name)):
            self.served.setdefault(key, set()).add(name)

    def learn(self, exchange: Exchange) -> None:
        """Takes in a response that names nodes or versions: Metadata, ApiVersions, and others with endpoints."""
        broker, response = exchange.connection.broker, exchange.response
        if exchange.api_key == API_VERSIONS:
            offer = self.offer_in(response)
            whole = not exchange.problems
            if offer and whole and (broker in self._offers or len(self._offers) < MAX_OFFERS):
                self._offers[broker] = offer
            return
        body = response.body if response is not None else None
        if not body:
            return
        if exchange.api_key == METADATA:
            cluster = field_text(body.get("cluster_id")) or self.of(broker)  # there is none before v2
            self._remember(self._cluster_of, broker, cluster)
        else:
            cluster = self.of(broker)
        for node in body.get("brokers" if exchange.api_key == METADATA else "node_endpoints") or ():
            self._learn_node(cluster, node)

    def _learn_node(self, cluster: str, node: Body) -> None:
        node_id, address = node.get("node_id"), address_text(node)
        if not isinstance(node_id, int) or not address:
            return
        self._remember(self._addresses, (cluster, node_id), address)
        self._remember(self._nodes, address, (cluster, node_id))
        self._remember(self._cluster_of, address, cluster)

    def _remember(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        if table.get(key) == value:
            return
        texts = [part for one in (key, value) for part in (one if isinstance(one, tuple) else (one,))]
        size = ENTRY_BYTES + text_bytes(*(text for text in texts if isinstance(text, str)))
        if key in table or (len(table) < MAX_NODES and self._budget.admit(size)):
            table[key] = value

    def offer_in(self, response: Message | None) -> Offer:
        """The versions by API in an ApiVersions response."""
        if response is None:
            return {}
        offer: Offer = self._reader.offer_in(response)
        return offer

    def of(self, broker: str) -> str:
        """The id of the cluster that an address belongs to, empty where that is not known."""
        return self._cluster_of.get(broker, "")

    def address(self, cluster: str, node_id: int) -> str:
        """The address at which a node was last advertised, or an empty text."""
        return self._addresses.get((cluster, node_id), "")

    def addresses(self, cluster: str) -> list[str]:
        """The addresses of all its nodes."""
        return [address for (of, _), address in self._addresses.items() if of == cluster]

    def node_at(self, broker: str) -> int | None:
        """The node that last advertised an address."""
        found = self._nodes.get(broker)
        return found[1] if found is not None else None

    def is_advertised(self, address: str) -> bool:
        """Whether some Metadata answer named the address."""
        return address in self._nodes

    def node_text(self, cluster: str, node_id: int) -> str:
        """A node by its id and its address, as far as that is known."""
        address = self.address(cluster, node_id)
        return f"node {node_id} ({address})" if address else f"node {node_id}"

    def broker_text(self, broker: str) -> str:
        """An address with its node, as far as that is known."""
        node_id = self.node_at(broker)
        return broker if node_id is None else f"{broker} (node {node_id})"

    def offer(self, broker: str) -> Offer:
        """The versions that a broker offers by API, or another of its cluster, where it was not asked itself."""
        found = self._offers.get(broker)
        if found is not None:
            return found
        cluster = self._cluster_of.get(broker)
        for address, offer in self._offers.items():
            if cluster is not None and self._cluster_of.get(address) == cluster:
                return offer
        return {}


def taken_since(release: str, api_key: int) -> tuple[int, int] | None:
    """The oldest and the newest version of an API that brokers of a release take."""
    span = versions_in(release).get(api_key)
    # Brokers of 4.x name older versions of Produce, because old clients stumble otherwise (KAFKA-18659).
    return span if span is None or api_key != PRODUCE else (max(span[0], LEAST_PRODUCE), span[1])


@lru_cache(maxsize=1024)  # asked once for every connection
def is_removed(api_key: int, version: int) -> bool:
    """Whether brokers since ``NEW_RELEASE`` take only newer versions of an API than this one, which the release before
    still took. APIs that are gone altogether were spoken between brokers."""
    new, before = taken_since(NEW_RELEASE, api_key), versions_in(LAST_OLD_RELEASE).get(api_key)
    return new is not None and before is not None and before[0] <= version < new[0]


def address_text(node: Body) -> str:
    """``host:port`` of a node in an answer, IPv6 in brackets; empty where it has none."""
    host, port = node.get("host"), node.get("port")
    if not isinstance(host, str) or not host or not isinstance(port, int) or port < 0:
        return ""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
