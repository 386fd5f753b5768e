"""Nodes and zones of addresses, from what messages say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwiresniff.base.address_names import AddressNames
from kwiresniff.capture import open_captures
from kwiresniff.identity import addresses
from kwiresniff.identity.addresses import ENOUGH_SERVED, MAX_LOOKED_AT, AddressBook, ServerNames
from kwiresniff.model import EventList, Exchange
from kwiresniff.session import Analyzer
from tests.support.events import analyze_with
from tests.support.exchanges import connection, exchange

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
CLIENT = "10.0.0.5:50000"
HOSTS = ("kafka-1.example", "kafka-2.example")


def metadata(
    hosts: tuple[str, ...] = HOSTS, *, leaders: tuple[int, ...] = (1, 2), cluster: str = "c", **more: Any
) -> Exchange:
    """Nodes from 1 on, each in a zone of its own (``z1``, ...), which lead the partitions of ``orders``."""
    brokers = [{"node_id": at + 1, "host": host, "port": 9092, "rack": f"z{at + 1}"} for at, host in enumerate(hosts)]
    parts = [{"partition_index": at, "leader_id": node} for at, node in enumerate(leaders)]
    answer = {"cluster_id": cluster, "brokers": brokers, "topics": [{"name": "orders", "partitions": parts}]}
    return exchange("Metadata", 3, 12, request={}, response=answer, **more)


def produce(partition: int, broker: str, client: str = CLIENT, **more: Any) -> Exchange:
    parts = [{"index": partition, "records": []}]
    request = {"topic_data": [{"name": "orders", "partition_data": parts}]}
    on = connection(hash(broker) & 0xFFFF, client, broker)
    return exchange("Produce", 0, 9, request=request, response={"responses": []}, on=on, **more)


def fetch(partition: int, broker: str, rack: str, client: str = CLIENT, number: int = 7) -> Exchange:
    parts = [{"partition": partition, "fetch_offset": 0}]
    request = {"topics": [{"topic": "orders", "partitions": parts}], "rack_id": rack}
    on = connection(number, client, broker)
    return exchange("Fetch", 1, 12, request=request, response={"responses": []}, on=on)


def book_of(*given: Exchange) -> AddressBook:
    book = AddressBook()
    for one in given:
        book.exchange(one)
    return book


def node_id(book: AddressBook, broker: str) -> int | None:
    node = book.node(broker)
    return None if node is None else node.node_id


def test_the_zone_of_a_client_is_the_rack_that_it_names() -> None:
    """In Fetch (KIP-392) or in a heartbeat (KIP-848); an empty one is none."""
    beat = exchange("ConsumerGroupHeartbeat", 68, 0, request={"rack_id": "b"}, on=connection(9, "10.0.0.6:1"))
    book = book_of(fetch(0, "10.1.0.1:9092", "a"), beat, fetch(0, "10.1.0.1:9092", "", "10.0.0.7:1", 8))
    assert [book.zone(f"10.0.0.{last}") for last in (5, 6, 7)] == ["a", "b", None]


def test_an_address_that_is_advertised_is_its_node() -> None:
    """Also one of IPv6, which has brackets as an address of the wire has."""
    book = book_of(metadata(("10.1.0.1", "fd00::2")))
    assert (node_id(book, "10.1.0.1:9092"), book.broker_zone("10.1.0.1:9092")) == (1, "z1")
    assert (node_id(book, "[fd00::2]:9092"), book.broker_zone("[fd00::2]:9092")) == (2, "z2")
    assert node_id(book, "10.1.0.1:9093") is None


def test_behind_a_host_name_stands_the_node_that_leads_what_the_address_serves() -> None:
    """No message says what address a name has."""
    book = book_of(metadata(), produce(0, "10.1.0.1:9092"), produce(1, "10.1.0.2:9092"))
    assert [node_id(book, f"10.1.0.{last}:9092") for last in (1, 2, 3)] == [1, 2, None]
    assert book.broker_zone("10.1.0.2:9092") == "z2"


def test_an_address_that_serves_everybody_is_no_node() -> None:
    """A proxy or a load balancer carries requests for all leaders."""
    book = book_of(metadata(), produce(0, "10.1.0.9:9092"), produce(1, "10.1.0.9:9092"))
    assert node_id(book, "10.1.0.9:9092") is None


def test_what_was_refused_or_read_in_the_own_zone_says_nothing() -> None:
    """A broker that does not lead refuses; a follower serves those of its zone (KIP-392)."""
    refused = produce(0, "10.1.0.2:9092", errors=[("x", 6, "NOT_LEADER_OR_FOLLOWER", True)])
    book = book_of(metadata(), refused, fetch(0, "10.1.0.3:9092", "z3"))
    assert [node_id(book, f"10.1.0.{last}:9092") for last in (2, 3)] == [None, None]


def test_topics_of_one_name_in_two_clusters_are_kept_apart() -> None:
    """A client goes by the Metadata that it has."""
    other = connection(3, "10.0.0.6:50000", "10.2.0.1:9092")
    book = book_of(
        metadata(),
        metadata(("mirror.example",), leaders=(1,), cluster="d", on=other),
        produce(0, "10.1.0.1:9092"),
        produce(0, "10.2.0.1:9092", "10.0.0.6:50000"),
    )
    nodes = [book.node(broker) for broker in ("10.1.0.1:9092", "10.2.0.1:9092")]
    assert [None if node is None else node.host for node in nodes] == ["kafka-1.example", "mirror.example"]


def test_endpoints_beside_an_error_name_nodes() -> None:
    """KIP-951: who was asked and does not lead any more says who does."""
    moved = fetch(0, "10.1.0.1:9092", "")
    assert moved.response is not None
    moved.response.body = {"node_endpoints": [{"node_id": 5, "host": "10.1.0.5", "port": 9092, "rack": "z5"}]}
    moved.errors = [("x", 6, "NOT_LEADER_OR_FOLLOWER", True)]
    assert book_of(moved).broker_zone("10.1.0.5:9092") == "z5"


def test_enough_is_enough() -> None:
    """What an address serves later is not looked at."""
    many = [produce(0, "10.1.0.1:9092") for _ in range(ENOUGH_SERVED)]
    later = [produce(1, "10.1.0.1:9092") for _ in range(ENOUGH_SERVED)]
    assert node_id(book_of(metadata(), *many, *later), "10.1.0.1:9092") == 1


def test_requests_about_unknown_leaders_are_looked_at_so_many_times() -> None:
    """Each may name thousands of partitions."""
    for others, told in ((MAX_LOOKED_AT - 1, 1), (MAX_LOOKED_AT, None)):
        unknown = [produce(7, "10.1.0.1:9092") for _ in range(others)]
        assert node_id(book_of(metadata(), *unknown, produce(0, "10.1.0.1:9092")), "10.1.0.1:9092") == told


def test_no_traffic_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes beyond a limit is not remembered, what was stays."""
    for name in ("MAX_ENTRIES", "MAX_LEADERS", "MAX_ASKED"):
        monkeypatch.setattr(addresses, name, 10)
    book = AddressBook()
    for number in range(100):
        client = f"10.0.{number}.5:1"
        book.exchange(metadata(tuple(f"10.{number}.0.{last}" for last in range(9)), leaders=(1,) * 100,
                               cluster=f"c{number}", on=connection(number, client)))  # fmt: skip
        book.exchange(fetch(0, f"10.1.0.{number}:9092", f"a{number}", client, number))
        book.exchange(produce(0, f"10.1.0.{number}:9092", client))
    tables = ("_zones", "_nodes", "_by_address", "_cluster_of", "_leaders", "_served", "_asked", "_called")
    assert [len(getattr(book, table)) for table in tables] == [10, 10, 10, 10, 10, 10, 10, 0]
    assert book.zone("10.0.0.5") == "a0"


def test_long_names_are_none() -> None:
    """Longer than a host name may be (RFC 1035): they would fill the memory."""
    book = book_of(metadata(("h" * 256, "10.1.0.2")), fetch(0, "10.1.0.1:9092", "z" * 256))
    assert (book.node(f"{'h' * 256}:9092"), book.zone("10.0.0.5")) == (None, None)
    assert node_id(book, "10.1.0.2:9092") == 2


def test_the_server_name_of_tls_is_a_name_of_the_broker() -> None:
    """Clients ask for it when they begin (SNI), without keys too; some send none."""
    names, seen = AddressNames(), EventList()
    sink = ServerNames(seen, names)
    for number, name in enumerate(("kafka-1.example.com", None, "kafka-1.example.com")):
        ended = connection(number)
        ended.tls = {"version": "TLS 1.3", "server_name": name, "decrypted": False}
        sink.on_connection(ended)
    sink.on_connection(connection(9))
    assert [tuple(one) for one in names.of_address("10.0.0.1:9092")] == [("kafka-1.example.com", "SNI")]
    assert len(seen.take()) == 4


@pytest.mark.parametrize("name", ["eras/era-0.10-cluster", "incidents/reassignment", "incidents/rolling-restart"])
def test_recorded_clusters_show_by_their_leaders_what_they_advertise(name: str) -> None:
    """These brokers advertise addresses: what is told without them must be the same nodes."""
    book, brokers = AddressBook(), set()
    for event in analyze_with(Analyzer("bodies"), open_captures([str(CAPTURES / f"{name}.pcap.xz")])):
        if isinstance(event, Exchange):
            book.exchange(event)
            brokers.add(event.connection.broker)
    advertised = {broker: node_id(book, broker) for broker in brokers}
    book._by_address.clear()  # as where they advertise host names
    told = {broker: found for broker in brokers if (found := node_id(book, broker)) is not None}
    assert told
    assert told == {broker: advertised[broker] for broker in told}
