"""What the doctor remembers of what members of groups read and subscribe to is bounded."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.troubles import subscriptions, unread
from kwiresniff.analysis.doctor.troubles.subscriptions import Subscriptions
from kwiresniff.analysis.doctor.troubles.undialled import UndialledBrokers
from kwiresniff.analysis.doctor.troubles.unread import UnreadPartitions
from kwiresniff.base.body_members import DECODED
from kwiresniff.model import Exchange
from tests.support.exchanges import START_NS, exchange

SECOND = 1_000_000_000
#: As many partitions and members as anybody may claim.
MANY = 50


def assigned(client_id: str, count: int) -> Exchange:
    """A SyncGroup that assigns partitions of one topic to a member."""
    topics = [{"topic": "orders", "partitions": list(range(count))}]
    answer = {"error_code": 0, f"assignment{DECODED}": {"data": {"assigned_partitions": topics, "user_data": None}}}
    return exchange("SyncGroup", 14, 5, client_id=client_id, request={"group_id": "g"}, response=answer)


def produced(index: int, at_s: int) -> Exchange:
    batch = {
        "magic": 2, "crc": 1, "base_offset": 0, "last_offset_delta": 0, "records_count": 1, "size_bytes": 90,
        "producer_id": -1, "compression": "none",
    }  # fmt: skip
    body = {"acks": 1, "topic_data": [{"name": "orders", "partition_data": [{"index": index, "records": [batch]}]}]}
    answer = {"responses": [{"name": "orders", "partition_responses": [{"index": index, "base_offset": at_s}]}]}
    return exchange("Produce", 0, 9, request=body, response=answer, start_ns=START_NS + at_s * SECOND)


def fetched(index: int, at_s: int, client_id: str) -> Exchange:
    batch = {
        "magic": 2, "crc": 1, "base_offset": at_s, "last_offset_delta": 0, "records_count": 1, "size_bytes": 90,
        "producer_id": -1, "compression": "none",
    }  # fmt: skip
    answer = {"responses": [{"topic": "orders", "partitions": [{"partition_index": index, "records": [batch]}]}]}
    return exchange(client_id=client_id, request={"replica_id": -1}, response=answer, start_ns=START_NS + at_s * SECOND)


def heartbeat(at_s: int, client_id: str) -> Exchange:
    return exchange(
        "Heartbeat", 12, 4, client_id=client_id, request={"group_id": "g"}, response={"error_code": 0},
        start_ns=START_NS + at_s * SECOND,
    )  # fmt: skip


def joined(client_id: str, topic: str, more: int = 0) -> Exchange:
    """A JoinGroup of a member that subscribes to a topic, and to some more."""
    topics = [topic, *(f"{topic}-{number}" for number in range(more))]
    protocols = [{"name": "range", f"metadata{DECODED}": {"data": {"topics": topics}}}]
    body = {"group_id": "g", "protocols": protocols}
    return exchange("JoinGroup", 11, 7, client_id=client_id, request=body, response={"error_code": 0})


def seen(observer: Observer, *exchanges: Exchange) -> list[Any]:
    """The numbers of what was observed."""
    for one in exchanges:
        message = one.response or one.request
        assert message is not None
        observer.context.end_ns = max(observer.context.end_ns, message.last_ns)
        observer.exchange(one)
    return [one.numbers for one in observer.observations()]


def unread_of(client_id: str) -> list[Exchange]:
    """All partitions are written, and one of them is read."""
    written = [produced(index, at_s) for at_s in range(30) for index in range(4)]
    read = [fetched(0, at_s, client_id) for at_s in range(1, 30)]
    return sorted(
        [*written, *read, heartbeat(30, client_id)], key=lambda one: one.request.first_ns if one.request else 0
    )


def test_a_partition_that_is_never_read_is_told_and_those_that_are_read_are_not() -> None:
    """The three that are written for 30 s, and of which nothing is fetched."""
    (numbers,) = seen(UnreadPartitions(Context()), assigned("mailer", 4), *unread_of("mailer"))
    assert (numbers["group"], numbers["partitions"]) == ("g", ["orders-1", "orders-2", "orders-3"])
    assert (numbers["records"], numbers["reading"]) == (90, 1)


@pytest.mark.parametrize(("limit", "told"), [("MAX_ASSIGNED", 1), ("MAX_PARTITIONS", 1)])
def test_partitions_of_members_are_bounded(monkeypatch: pytest.MonkeyPatch, limit: str, told: int) -> None:
    """Of fifty that are assigned two are remembered, one of which is read."""
    monkeypatch.setattr(unread, limit, 2)
    (numbers,) = seen(UnreadPartitions(Context()), assigned("mailer", MANY), *unread_of("mailer"))
    assert len(numbers["partitions"]) == told


def test_subscriptions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients of a group, and the topics of each."""
    monkeypatch.setattr(subscriptions, "MAX_CLIENTS", 3)
    monkeypatch.setattr(subscriptions, "MAX_TOPICS", 2)
    (numbers,) = seen(Subscriptions(Context()), *[joined(f"c-{one}", f"t-{one}", MANY) for one in range(MANY)])
    assert sum(len(kind["clients"]) for kind in numbers["topics"]) == 3
    assert {len(kind["topics"]) for kind in numbers["topics"]} == {2}


def test_members_of_one_application_do_not_differ() -> None:
    """Those that have a topic in common are taken for one application, as while a deployment goes on."""
    assert seen(Subscriptions(Context()), joined("a", "orders"), joined("b", "orders", 3)) == []


@pytest.mark.parametrize(("host", "told"), [("kafka-3.internal", 1), ("10.0.0.3", 0)])
def test_a_name_that_is_never_dialled_is_told_and_an_address_is_not(host: str, told: int) -> None:
    """Where an address cannot be reached SYNs show it; without any, a consumer may have no use for that broker."""
    context = Context()
    observer = UndialledBrokers(context)
    named = [("10.0.0.1", 1), (host, 3)]
    brokers = [{"node_id": node, "host": name, "port": 9092} for name, node in named]
    partitions = [{"partition_index": node, "leader_id": node} for _, node in named]
    answer = {"brokers": brokers, "topics": [{"name": "orders", "partitions": partitions}]}
    asked = [
        exchange(
            "Metadata", 3, 12, client_id="shop", request={"topics": [{"name": "orders"}]}, response=answer,
            start_ns=START_NS + at_s * SECOND,
        )
        for at_s in range(6)
    ]  # fmt: skip
    context.cluster.served["10.0.0.5", "10.0.0.1:9092"] = {"shop"}
    assert len(seen(observer, *asked)) == told
