"""Which brokers are one cluster, by what they say of each other, and which are not."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.identity import clusters as room
from kwiresniff.identity.clusters import Clusters
from kwiresniff.model import Exchange
from tests.support.brokers import A, B, C, fetch, metadata, on
from tests.support.exchanges import START_NS

S = 1_000_000_000


def learned(*given: Exchange) -> Clusters:
    made = Clusters()
    for one in given:
        made.of(one)
    return made


def test_brokers_of_one_metadata_answer_are_one_cluster() -> None:
    """Those that it names, and the one that has answered, before and after they were met."""
    made = learned(fetch(B), metadata(A, "blue", A, B))
    assert made.node_at(A) == made.node_at(B) != 0
    assert made.id_of(made.node_at(B)) == "blue"
    assert made.labels() == {}


def test_two_cluster_ids_are_two_clusters() -> None:
    """Each with its id for a name."""
    made = learned(metadata(A, "blue", A), metadata(C, "green", C))
    assert sorted(made.labels().values()) == ["blue", "green"]
    assert not made.is_one(A, C)


def test_without_any_contradiction_there_is_one_cluster() -> None:
    """Brokers that say nothing of each other, and of which one has an id."""
    made = learned(metadata(A, "blue", A), fetch(C, client="10.0.0.6:1", client_id="other"))
    assert made.labels() == {}
    assert made.scope(made.node_at(A)) == made.scope(made.node_at(C))
    assert not made.is_one(A, C)


@pytest.mark.parametrize(
    ("api", "api_key", "answer"),
    [
        ("FindCoordinator", 10, {"host": "10.1.0.3", "port": 9092, "node_id": 2}),
        ("FindCoordinator", 10, {"coordinators": [{"host": "10.1.0.3", "port": 9092, "node_id": 2}]}),
        ("DescribeCluster", 60, {"cluster_id": None, "brokers": [{"host": "10.1.0.3", "port": 9092, "broker_id": 2}]}),
    ],
)
def test_answers_that_name_brokers_join_them(api: str, api_key: int, answer: dict[str, Any]) -> None:
    """By a coordinator, in both forms of the answer, and by DescribeCluster."""
    made = learned(on(A, api=api, api_key=api_key, request={}, response=answer))
    assert made.node_at(A) == made.node_at(B)


def test_the_endpoints_of_a_new_leader_join_it() -> None:
    """Produce and Fetch name them beside an error (KIP-951)."""
    answer = {"responses": [], "node_endpoints": [{"node_id": 2, "host": "10.1.0.3", "port": 9092}]}
    error = ("responses[0].partitions[0].error_code", 6, "NOT_LEADER_OR_FOLLOWER", True)
    made = learned(on(A, request={}, response=answer, errors=[error]))
    assert made.node_at(A) == made.node_at(B)


def test_a_follower_is_of_its_leaders_cluster() -> None:
    """It fetches from the host where it is a broker itself."""
    request = {"replica_id": 2, "topics": []}
    made = learned(fetch(B), on(A, client="10.1.0.3:40000", request=request, response={"responses": []}))
    assert made.node_at(A) == made.node_at(B)


def test_names_and_loopback_addresses_join_nobody_elsewhere() -> None:
    """Each of two clusters may call its broker ``kafka-1``, or itself localhost."""
    made = learned(
        metadata(A, None, "kafka-1:9092", "127.0.0.1:9092"), metadata(C, None, "kafka-1:9092", "127.0.0.1:9092")
    )
    assert made.node_at(A) != made.node_at(C)
    assert made.node_at("127.0.0.1:9092") == made.node_at("kafka-1:9092") == 0


def test_a_broker_without_an_id_goes_with_its_clients() -> None:
    """Where two clusters are known, to that with which it shares a client, if it shares none with the other."""
    known = [metadata(A, "blue", A, client_id="one"), metadata(C, "green", C, client_id="two")]
    made = learned(*known, fetch(B, client_id="one"))
    assert made.scope(made.node_at(B)) == made.scope(made.node_at(A)) != made.scope(made.node_at(C))
    assert made.is_one(A, B)
    made = learned(*known, fetch(B, client_id="one"), fetch(B, client_id="two", id=9))
    assert sorted(made.labels().values()) == ["blue", f"cluster of {B}", "green"]


def test_an_address_becomes_another_cluster() -> None:
    """What came before is of the old one; the change has the times between which it was."""
    made = Clusters()
    old = made.of(metadata(A, "blue", A, start_ns=START_NS))
    assert made.of(fetch(A, id=2)) == old
    new = made.of(metadata(A, "green", A, start_ns=START_NS + S, id=3))
    assert made.of(fetch(A, id=4)) == new != old
    assert (made.id_of(old), made.id_of(new)) == ("blue", "green")
    (change,) = made.changes
    assert (change.address, change.before, change.after) == (A, "blue", "green")
    assert change.before_ns < START_NS + S < change.ns


def test_the_other_brokers_change_with_the_first() -> None:
    """A rolling replacement: the new cluster names an address that only the old one had told before."""
    made = learned(
        metadata(A, "blue", A, B), metadata(B, "blue", A, B), metadata(A, "green", A, B, id=3), fetch(B, id=4)
    )
    assert made.id_of(made.node_at(B)) == "green"


def test_an_address_that_two_clusters_share_is_told_apart_by_connection() -> None:
    """A gateway leads to either; the first change is told, those back and forth are not."""
    made = Clusters()
    for _ in range(3):
        made.of(metadata(A, "blue", A, id=1))
        made.of(metadata(A, "green", A, id=2))
    assert made.id_of(made.of(fetch(A, id=1))) == "blue"
    assert made.id_of(made.of(fetch(A, id=2))) == "green"
    assert len(made.changes) == 1


def test_a_request_that_names_its_cluster_tells_its_id() -> None:
    """A vote among controllers (KIP-595); one that is refused means another cluster."""
    vote = on(A, api="Vote", api_key=52, request={"cluster_id": "blue"}, response={"error_code": 0})
    assert (made := learned(vote)).id_of(made.node_at(A)) == "blue"
    refused = on(A, api="Vote", api_key=52, request={"cluster_id": "blue"}, response={}, errors=[("", 104, "", False)])
    assert (made := learned(refused)).id_of(made.node_at(A)) == ""


def test_what_is_remembered_of_clusters_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Metadata with thousands of brokers, and as many clients and ids: addresses beyond the limits are one node."""
    monkeypatch.setattr(room, "MAX_NODES", 50)
    monkeypatch.setattr(room, "MAX_PAIRS", 20)
    monkeypatch.setattr(room, "MAX_CHANGES", 5)
    made = Clusters()
    for number in range(300):
        host = f"10.3.{number >> 8}.{number & 255}:9092"
        made.of(fetch(host, id=number + 1, client_id=f"client {number % 7}"))
        made.of(metadata(A, f"id {number}", host, id=number + 1_000))
    assert len(made._parents) == 50
    assert made.node_at("10.3.0.255:9092") == 0
    assert len(made._pairs) == 20
    assert len(made.changes) == 5
    assert len(made.labels()) <= 50


def test_names_of_clusters_are_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids and client ids as long as messages are."""
    monkeypatch.setattr(room, "MAX_NAME_BYTES", 100_000)
    made = Clusters()
    for number in range(100):
        made.of(metadata(A, f"{number}" + "i" * 10_000, id=number + 1))
        made.of(fetch(A, id=number + 1_000, client_id=f"{number}" + "c" * 10_000))
    assert made._held_bytes <= 100_000
