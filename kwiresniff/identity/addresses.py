"""What addresses are: the node of a cluster behind the address of a broker, names and zones of clients and brokers.

Sources: Metadata, DescribeCluster and the ``node_endpoints`` of newer answers name nodes with host, port and rack;
consumers name their own rack (``client.rack``, KIP-392, KIP-848). Where brokers advertise host names, no message says
which node an address is: then it is the node that leads the partitions which that address served.

Bounded: ``MAX_ENTRIES`` of each kind, texts of ``MAX_NAME_CHARS``. What comes later is not remembered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kwiresniff.base.address_names import MAX_NAME_CHARS, MAX_NAMES_OF_ONE, AddressNames, Name, host_text
from kwiresniff.base.api_keys import (
    CONSUMER_GROUP_HEARTBEAT,
    DESCRIBE_CLUSTER,
    FETCH,
    METADATA,
    PRODUCE,
    SHARE_GROUP_HEARTBEAT,
    STREAMS_GROUP_HEARTBEAT,
)
from kwiresniff.base.entities import PARTITION_INDEXES, TOPIC_ARRAYS, TOPIC_ID, TOPIC_NAMES
from kwiresniff.base.field_values import field_text
from kwiresniff.base.flows import host_of
from kwiresniff.model import Body, Connection, Exchange, ForwardingSink, Message, Sink

#: Hosts with a zone, nodes, addresses of brokers, clients: more than a large cluster has.
MAX_ENTRIES = 10_000
#: Partitions whose leaders are remembered.
MAX_LEADERS = 100_000
#: Connections that have named their rack, or were asked for it in vain: a new one is asked once.
MAX_ASKED = 4_096
#: Partitions served by an address after which its node is settled.
ENOUGH_SERVED: Final = 64
#: Requests after which an address's node is settled: they may name thousands of partitions without a known leader.
MAX_LOOKED_AT: Final = 256
#: One in so many partitions that an address served may have another leader: leaders move, clients learn it late.
_ODD_ONE_IN: Final = 10

#: Requests in which a client names its rack.
_NAMES_RACK: Final = frozenset({FETCH, CONSUMER_GROUP_HEARTBEAT, SHARE_GROUP_HEARTBEAT, STREAMS_GROUP_HEARTBEAT})
_PARTITION_ARRAYS: Final = ("partition_data", "partitions")


class Node(NamedTuple):
    """A node of a cluster as it is advertised; ``rack`` is empty where it has none."""

    node_id: int
    host: str
    port: int
    rack: str

    @property
    def address(self) -> str:
        """``host:port``, IPv6 in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class ServerNames(ForwardingSink):
    """Notes the server names of TLS (SNI) as names of the brokers, once their connections have ended."""

    def __init__(self, next: Sink, names: AddressNames) -> None:
        super().__init__(next)
        self._names = names

    def on_connection(self, connection: Connection) -> None:
        tls = connection.tls
        if tls is not None and tls["server_name"]:
            self._names.add(connection.broker, tls["server_name"], "SNI")
        self.next.on_connection(connection)


class AddressBook:
    """Learns about addresses from exchanges, beside the ``names`` and zones they were given."""

    def __init__(self, names: AddressNames | None = None) -> None:
        self._names = names or AddressNames()
        self._called: dict[tuple[str, str | None], dict[Name, None]] = {}  # by host and client id: names of its ports
        self._zones: dict[str, str] = {}  # by host
        self._nodes: dict[tuple[str, int], Node] = {}  # by cluster id and node id
        self._by_address: dict[str, Node] = {}  # as advertised
        self._cluster_of: dict[tuple[str, str | None], str] = {}  # by host and client id: whose Metadata it has
        self._leaders: dict[tuple[str, str, int], int] = {}  # by cluster id, topic (name and id) and partition
        self._served: dict[str, dict[tuple[str, int], int]] = {}  # by broker: partitions served, by who leads them
        self._looked_at: dict[str, int] = {}  # requests, by broker
        self._settled: set[str] = set()  # brokers of which enough was served
        self._asked: dict[int, None] = {}  # connections whose rack is known or was asked for
        self._last = -1  # the connection of the last exchange

    def exchange(self, exchange: Exchange) -> None:
        """Take in an exchange."""
        api_key, response = exchange.api_key, exchange.response
        if exchange.connection.id != self._last:
            self._last = exchange.connection.id
            self._name_client(exchange)
        if api_key in (METADATA, DESCRIBE_CLUSTER):
            self._metadata(exchange, (response.body if response is not None else None) or {})
            return
        if api_key in _NAMES_RACK and exchange.connection.id not in self._asked:
            self._rack(exchange)
        if api_key not in (PRODUCE, FETCH) or exchange.request is None or response is None:
            return
        if exchange.errors:
            body = response.body
            if body is not None and body.get("node_endpoints"):
                self._nodes_of(self._cluster_of.get(_client(exchange), ""), body["node_endpoints"])
        elif self._leaders and exchange.connection.broker not in self._settled:
            self._serves(exchange, exchange.request)

    def zone(self, host: str) -> str | None:
        """The zone of a host: the one that it was given, else the one that it names."""
        return self._names.zone(host) or self._zones.get(host)

    def broker_zone(self, broker: str) -> str | None:
        """The zone of a broker's address (``ip:port``): that of its host, else the rack of its node."""
        node = self.node(broker)
        return self.zone(host_of(broker)) or (node.rack if node is not None and node.rack else None)

    def client_names(self, client_id: str | None, host: str) -> tuple[Name, ...]:
        """The names of a host: the ports that a client uses, then the host."""
        return (*self._called.get((host, client_id), ()), *self._names.of_address(host))

    def broker_names(self, broker: str) -> tuple[Name, ...]:
        """The names of a broker's address (``ip:port``), the host that its node advertises last."""
        found = self._names.of(broker)
        node = self.node(broker)
        if node is not None and host_text(node.host) is None and all(one.name != node.host for one in found):
            found = [*found, Name(node.host, "Metadata")]
        return tuple(found)

    def node(self, broker: str) -> Node | None:
        """The node behind a broker's address: the one that advertises it, else the one that leads what it served."""
        advertised = self._by_address.get(broker)
        if advertised is not None:
            return advertised
        served = self._served.get(broker)
        if not served:
            return None
        likely = max(served, key=lambda key: served[key])
        odd = sum(served.values()) - served[likely]
        return self._nodes.get(likely) if odd * _ODD_ONE_IN <= served[likely] else None

    def _name_client(self, exchange: Exchange) -> None:
        """Notes the names of the port that a client uses."""
        found = self._names.of_address(exchange.connection.client)
        if not found:
            return
        key = _client(exchange)
        if key in self._called or len(self._called) < MAX_ENTRIES:
            called = self._called.setdefault(key, {})
            for name in found[: MAX_NAMES_OF_ONE - len(called)]:
                called[name] = None

    # -- what messages say --------------------------------------------------------------------------------------

    def _metadata(self, exchange: Exchange, body: Body) -> None:
        client = _client(exchange)
        cluster = field_text(body.get("cluster_id")) or self._cluster_of.get(client, "")
        if len(cluster) > MAX_NAME_CHARS:
            return
        _remember(self._cluster_of, client, cluster, MAX_ENTRIES)
        self._nodes_of(cluster, body.get("brokers"))
        for topic in _structs(body.get("topics")):
            names = [name for name in (topic.get("name"), topic.get(TOPIC_ID)) if isinstance(name, str) and name]
            for part in _structs(topic.get("partitions")):
                leader, index = part.get("leader_id"), part.get("partition_index")
                if isinstance(leader, int) and isinstance(index, int) and leader >= 0:
                    for name in names:
                        if len(name) <= MAX_NAME_CHARS:
                            _remember(self._leaders, (cluster, name, index), leader, MAX_LEADERS)

    def _nodes_of(self, cluster: str, nodes: Any) -> None:
        for one in _structs(nodes):
            node_id, host, port = one.get("node_id", one.get("broker_id")), field_text(one.get("host")), one.get("port")
            if not isinstance(node_id, int) or not isinstance(port, int) or not 0 < len(host) <= MAX_NAME_CHARS:
                continue
            rack = field_text(one.get("rack"))
            node = Node(node_id, host, port, rack if len(rack) <= MAX_NAME_CHARS else "")
            _remember(self._nodes, (cluster, node_id), node, MAX_ENTRIES)
            _remember(self._by_address, node.address, node, MAX_ENTRIES)

    def _rack(self, exchange: Exchange) -> None:
        """Notes the rack that a client names; its connection is not asked again."""
        if len(self._asked) >= MAX_ASKED:
            self._asked.clear()
        self._asked[exchange.connection.id] = None
        body = exchange.request.body if exchange.request is not None else None
        rack = field_text((body or {}).get("rack_id"))
        if 0 < len(rack) <= MAX_NAME_CHARS:
            _remember(self._zones, host_of(exchange.connection.client), rack, MAX_ENTRIES)

    def _serves(self, exchange: Exchange, request: Message) -> None:
        """Counts the partitions that a broker has served, by the nodes that lead them."""
        if exchange.api_key == FETCH and host_of(exchange.connection.client) in self._zones:
            return  # it may read from a follower in its zone (KIP-392)
        broker, cluster = exchange.connection.broker, self._cluster_of.get(_client(exchange))
        if cluster is None or (broker not in self._served and len(self._served) >= MAX_ENTRIES):
            return
        served = self._served.setdefault(broker, {})
        looked_at = self._looked_at[broker] = self._looked_at.get(broker, 0) + 1
        for topic, partition in _partitions(request):
            leader = self._leaders.get((cluster, topic, partition))
            if leader is not None and ((cluster, leader) in served or len(served) < ENOUGH_SERVED):
                served[cluster, leader] = served.get((cluster, leader), 0) + 1
        if looked_at >= MAX_LOOKED_AT or sum(served.values()) >= ENOUGH_SERVED:
            self._settled.add(broker)


def _client(exchange: Exchange) -> tuple[str, str | None]:
    client_id: str | None = exchange.client_id
    if client_id is not None:
        client_id = client_id[:MAX_NAME_CHARS]
    return host_of(exchange.connection.client), client_id


def _remember(table: dict[Any, Any], key: Any, value: Any, most: int) -> None:
    if key in table or len(table) < most:
        table[key] = value


def _structs(value: Any) -> list[Body]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _partitions(request: Message) -> Iterator[tuple[str, int]]:
    """The partitions that a Produce or Fetch names, by topic (name or id) and number."""
    if request.digest is not None:
        for named in request.digest.parts or ():
            for part in named.partitions:
                yield named.name, part.index
        return
    body = request.body or {}
    for topic in _structs(next((body[array] for array in TOPIC_ARRAYS if array in body), None)):
        name = next((topic[field] for field in (*TOPIC_NAMES, TOPIC_ID) if isinstance(topic.get(field), str)), "")
        for one in _structs(next((topic[array] for array in _PARTITION_ARRAYS if array in topic), None)):
            index = next((one[field] for field in PARTITION_INDEXES if isinstance(one.get(field), int)), None)
            if name and index is not None:
                yield name, index
