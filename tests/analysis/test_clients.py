"""The inventory of clients."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.analysis import client_traffic, clients
from kwiresniff.analysis.clients import Inventory, NamesInTraffic
from kwiresniff.model import Connection, Exchange
from kwiresniff.results.clients import Client
from kwiresniff.session.fetch_sessions import FetchSession
from tests.support.exchanges import START_NS, connection, exchange


def inventory(*given: Exchange, ended: tuple[Connection, ...] = ()) -> Inventory:
    made = Inventory()
    for one in given:
        made.exchange(one)
    for closed in ended:
        made.connection(closed)
    return made


def only(*given: Exchange, ended: tuple[Connection, ...] = ()) -> Client:
    (client,) = inventory(*given, ended=ended).clients()
    return client


def api_versions(on: Connection, offered: list[tuple[int, int, int]], **more: Any) -> Exchange:
    keys = [{"api_key": key, "min_version": low, "max_version": high} for key, low, high in offered]
    return exchange("ApiVersions", 18, 3, on=on, request={}, response={"api_keys": keys}, **more)


def test_a_client_is_counted_over_its_connections() -> None:
    one, two = connection(1, "10.0.0.5:1111"), connection(2, "10.0.0.5:2222")
    client = only(
        exchange(on=one, request={"topics": [{"topic": "a"}]}, request_bytes=10, response_bytes=100),
        exchange(on=two, request={"topics": [{"topic": "b"}]}, request_bytes=20, response_bytes=200,
                 errors=[("", 6, "NOT_LEADER_OR_FOLLOWER", True)], outcome="error", start_ns=START_NS + 5),
        exchange("Heartbeat", 12, 4, on=two, request={"group_id": "g"}, latency_ns=None, outcome="unanswered"),
        ended=(one, two),
    )  # fmt: skip
    assert (client.address, client.broker, client.client_id) == ("10.0.0.5", "10.0.0.1:9092", "billing-1")
    assert (client.connections, client.exchanges, client.errors, client.unanswered) == (2, 3, 1, 1)
    assert (client.request_bytes, client.response_bytes) == (130, 300)
    assert (client.topics, client.groups) == (("a", "b"), ("g",))
    assert [(use.api, use.version, use.count, use.errors) for use in client.uses] == [
        ("Fetch", 12, 2, 1),
        ("Heartbeat", 4, 1, 0),
    ]
    assert (client.uses[0].first_ns, client.first_ns) == (START_NS, START_NS)


def test_clients_behind_a_proxy_are_told_apart_by_what_it_tells() -> None:
    """By the address of the real client, without its port, and by the broker that was dialled."""
    given = []
    for number, (client, broker) in enumerate(
        [("203.0.113.7:1", None), ("203.0.113.7:2", None), ("203.0.113.8:1", None), (None, "kafka-1:9092")], 1
    ):
        on = connection(number)
        on.proxied = {"client": client, "broker": broker, "by": "PROXY v1" if client else "SOCKS5"}
        given.append(exchange(on=on))
    found = inventory(*given, ended=tuple(one.connection for one in given)).clients()
    assert sorted((one.connections, str(one.proxied)) for one in found) == [
        (1, "{'client': '203.0.113.8', 'broker': None, 'by': 'PROXY v1'}"),
        (1, "{'client': None, 'broker': 'kafka-1:9092', 'by': 'SOCKS5'}"),
        (2, "{'client': '203.0.113.7', 'broker': None, 'by': 'PROXY v1'}"),
    ]


def test_steps_of_the_protocol_are_no_errors_of_a_client() -> None:
    """What ``stats`` counts as negotiation: a rebalance that is announced, a long poll under way at the end."""
    rebalance = [("error_code", 27, "REBALANCE_IN_PROGRESS", True)]
    client = only(
        exchange("Heartbeat", 12, 4, request={"group_id": "g"}, response={}, errors=rebalance, outcome="error"),
        exchange(request={}, latency_ns=None, outcome="unanswered", waiting="long poll"),
        ended=(connection(),),
    )
    assert (client.exchanges, client.errors, client.unanswered) == (2, 0, 0)
    assert [use.errors for use in client.uses] == [0, 0]


def test_topics_of_a_fetch_session_are_taken_once_by_each_client() -> None:
    """A fetch of a hundred bytes may be about a thousand topics; two clients share a connection by way of a proxy."""
    told, on, session = NamesInTraffic(), connection(1), FetchSession(is_whole=True)
    session.add([{"topic": name, "partitions": [0]} for name in ("t0", "t1")])
    standing = exchange(on=on, fetched=session.content())
    session.add([{"topic": "t2", "partitions": [0]}])
    grown = [exchange(on=on, fetched=session.content(), client_id=who) for who in ("billing-1", "a", "b")]
    assert [told(one)[0] for one in (standing, standing, *grown, grown[1])] == [
        ["t0", "t1"], [], ["t2"], ["t0", "t1", "t2"], ["t0", "t1", "t2"], [],
    ]  # fmt: skip
    assert only(standing, standing).topics == ("t0", "t1")


def test_different_software_user_or_broker_is_another_client() -> None:
    given = [connection(number) for number in range(4)]
    given[1].client_software = {"name": "librdkafka", "version": "2.5"}
    given[2].sasl = {"mechanism": "PLAIN", "principal": "bob", "outcome": "ok", "duration_ns": 1}
    given[3].broker = "10.0.0.2:9092"
    found = inventory(*[exchange(on=one) for one in given], ended=tuple(given)).clients()
    assert len(found) == 4
    assert {client.software for client in found} == {(None, None), ("librdkafka", "2.5")}
    assert [client.sasl for client in found if client.sasl] == [
        {"mechanism": "PLAIN", "principal": "bob", "outcome": "ok"}
    ]


@pytest.mark.parametrize(
    ("handshake", "asked", "negotiates"),
    [(True, True, True), (False, True, True), (True, False, False), (False, False, None)],
)
def test_whether_it_negotiates_is_only_said_when_the_beginning_was_seen(
    handshake: bool, asked: bool, negotiates: bool | None
) -> None:
    on = connection()
    on.handshake_seen = handshake
    first = [api_versions(on, [(1, 4, 17)])] if asked else []
    client = only(*first, exchange(on=on), ended=(on,))
    assert client.negotiates is negotiates
    assert client.offered == ({1: (4, 17)} if asked else {})


@pytest.mark.parametrize(
    ("api", "key", "version", "request_body", "kind"),
    [
        ("LeaderAndIsr", 4, 0, {}, "broker"),
        ("Fetch", 1, 4, {"replica_id": 2}, "broker"),
        ("Fetch", 1, 4, {"replica_id": -1}, "client"),
        ("Fetch", 1, 15, {"replica_state": {"replica_id": 2, "replica_epoch": 1}}, "broker"),
        ("Fetch", 1, 15, {}, "client"),
        ("AddPartitionsToTxn", 24, 4, {}, "broker"),
        ("AddPartitionsToTxn", 24, 3, {}, "client"),
    ],
)
def test_nodes_of_the_cluster_are_told_from_clients(
    api: str, key: int, version: int, request_body: dict[str, Any], kind: str
) -> None:
    assert only(exchange(api, key, version, request=request_body)).kind == kind


def test_what_is_encrypted_is_an_entry_of_its_own() -> None:
    on = connection()
    on.protocol, on.bytes = "tls", [70, 700]
    on.tls = {"version": "TLSv1.3", "server_name": "kafka.example", "decrypted": False, "cipher": None}
    client = only(ended=(on,))
    assert (client.kind, client.exchanges, client.connections) == ("encrypted", 0, 1)
    assert client.tls == {"version": "TLSv1.3", "server_name": "kafka.example", "decrypted": False}
    assert (client.request_bytes, client.response_bytes) == (70, 700)


def test_a_response_alone_belongs_to_the_client_of_its_connection() -> None:
    on = connection()
    lone = exchange("", -1, -1, on=on, client_id=None, outcome="request_missing")
    lone.response, lone.request = lone.request, None
    client = only(lone, exchange(on=on), ended=(on,))
    assert (client.client_id, client.exchanges, [use.api for use in client.uses]) == ("billing-1", 2, ["Fetch"])


def test_clients_that_share_a_connection_are_told_apart_whoever_comes_next() -> None:
    """A proxy sends requests of two clients by turns, answers without a request, and a follower that also produces."""
    on = connection()
    lone = exchange("", -1, -1, on=on, client_id=None, outcome="request_missing")
    lone.response, lone.request = lone.request, None
    given = [exchange(on=on, client_id=who) for who in "abbab"]
    given += [lone, exchange("Produce", 0, 3, on=on, client_id="b", request={"topics": [{"topic": "t"}]})]
    given += [exchange(on=on, client_id="b", request={"replica_id": 3}), exchange(on=on, client_id="a")]
    found = {client.client_id: client for client in inventory(*given, ended=(on,)).clients()}
    assert {name: client.exchanges for name, client in found.items()} == {"a": 4, "b": 5}
    assert {name: [(use.api, use.count) for use in client.uses] for name, client in found.items()} == {
        "a": [("Fetch", 3)],
        "b": [("Produce", 1), ("Fetch", 4)],
    }
    assert (found["a"].kind, found["b"].kind, found["b"].topics) == ("client", "broker", ("t",))


def test_tables_are_bounded_and_what_is_left_out_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "MAX_CLIENTS", 2)
    monkeypatch.setattr(client_traffic, "MAX_NAMES", 3)
    monkeypatch.setattr(clients, "MAX_IDS", 4)
    on = connection()
    topics = {"topics": [{"topic": str(number)} for number in range(9)]}
    made = inventory(*[exchange(client_id=str(number), on=on, request=topics) for number in range(6)], ended=(on,))
    assert [len(client.topics) for client in made.clients()] == [3, 3]
    assert (made.left_out, made.cut) == (4, 2)
