"""Flows: the clients and groups of topics one by one, with the zones that their bytes cross."""

from __future__ import annotations

from collections.abc import Iterable

from kwiresniff.identity.addresses import AddressBook
from kwiresniff.results.flows import BrokerBytes, Flow
from kwiresniff.results.topics import NO_FLOW, Topic, TopicClient


def flows_of(topics: Iterable[Topic], book: AddressBook) -> list[Flow]:
    """The flows of topics in their order: producers, consumers, then groups of which only commits were seen."""
    found: list[Flow] = []
    for topic in topics:
        found += [_of_client(topic, client, book) for client in (*topic.producers, *topic.consumers)]
        seen = {group for client in topic.consumers for group in client.groups}
        for group in topic.groups:
            if group.group not in seen:
                found.append(_of_group(topic, group.group, group.lag))
    return found


def _of_client(topic: Topic, client: TopicClient, book: AddressBook) -> Flow:
    return Flow(
        role=client.role,
        topic=topic.name,
        client_id=client.client_id,
        address=client.address,
        software=client.software,
        principal=client.principal,
        groups=client.groups,
        records=client.flow,
        refused=client.refused,
        repeated=client.repeated,
        errors=client.errors,
        unanswered=client.unanswered,
        lag=client.lag if client.role != "producer" else None,
        zone=book.zone(client.address),
        brokers=tuple(_broker(book, broker, size_bytes) for broker, size_bytes in client.brokers),
        seconds=topic.seconds,
        first_ns=client.first_ns,
        last_ns=client.last_ns,
        names=book.client_names(client.client_id, client.address),
        cluster=topic.cluster,
    )


def _of_group(topic: Topic, group: str, lag: int | None) -> Flow:
    return Flow(
        role="group",
        topic=topic.name,
        client_id=None,
        address="",
        software=(None, None),
        principal=None,
        groups=(group,),
        records=NO_FLOW,
        refused=NO_FLOW,
        repeated=NO_FLOW,
        errors=0,
        unanswered=0,
        lag=lag,
        zone=None,
        brokers=(),
        seconds=topic.seconds,
        first_ns=topic.first_ns,
        last_ns=topic.last_ns,
        cluster=topic.cluster,
    )


def _broker(book: AddressBook, broker: str, size_bytes: int) -> BrokerBytes:
    node = book.node(broker)
    node_id = None if node is None else node.node_id
    return BrokerBytes(broker, node_id, book.broker_zone(broker), size_bytes, book.broker_names(broker))
