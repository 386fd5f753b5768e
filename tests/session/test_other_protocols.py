"""Protocols that are not Kafka, from their first packet and from the middle, both directions: none is taken for it."""

from __future__ import annotations

import random

import pytest

from kwiresniff.model import Connection, Event, Exchange, Problem
from kwiresniff.session import Analyzer
from tests.support.conversation import Wire, events
from tests.support.other_protocols import CONVERSATIONS, Said
from tests.support.sample import sampled

#: As many data packets are enough to know that a connection is not Kafka.
FEW_PACKETS = 4
#: Noise of small numbers may read as a long request for a while.
MORE_PACKETS = {"numbers of 16 bits": 30}
#: What is named must be named so; nothing is claimed of the rest but that it is text.
NAMED = {
    "HTTP/1.1": "http", "HTTP/2": "http", "gRPC": "http", "etcd": "http", "WebSocket": "http",
    "Kubernetes watch": "http", "MQTT 3.1.1": "mqtt", "MQTT 5": "mqtt", "AMQP 0-9-1": "amqp", "AMQP 1.0": "amqp",
    "RabbitMQ streams": "rabbitmq stream",
    "STOMP": "stomp", "NATS": "nats", "Pulsar": "pulsar", "RocketMQ": "rocketmq", "Redis RESP2": "redis",
    "Redis RESP3": "redis", "PostgreSQL": "postgresql", "PostgreSQL asking for TLS": "postgresql", "MySQL": "mysql",
    "MS-TDS": "tds", "MongoDB": "mongodb", "Cassandra CQL": "cassandra", "ZooKeeper": "zookeeper",
    "Elasticsearch transport": "elasticsearch", "Thrift framed": "thrift", "SSH": "ssh", "FTP": "smtp or ftp",
    "SMTP": "smtp or ftp", "POP3": "pop3", "SIP": "sip", "RTSP": "rtsp", "XMPP": "xmpp", "SMB 2": "smb", "BGP": "bgp",
    "OPC UA": "opc ua", "BitTorrent": "bittorrent", "Zabbix": "zabbix",
    "PROXY protocol 2, then text": "text behind PROXY v2",
}  # fmt: skip


def on_the_wire(said: Said, *, opened: bool, port: int, only: int | None = None) -> Wire:
    wire = Wire(broker_port=port)
    if opened:
        wire.open()
    for side, data in said:
        if only in (None, side):
            wire.send(side, data)
    return wire


def taken_for_kafka(found: list[Event]) -> bool:
    return any(isinstance(one, (Exchange, Connection)) for one in found)


def test_there_are_more_than_forty() -> None:
    assert len(CONVERSATIONS) > 40
    assert NAMED.keys() <= CONVERSATIONS.keys()


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_it_is_told_from_kafka_by_its_first_packets(name: str) -> None:
    """Whatever comes then is only counted; what can be recognised is named. On Kafka's port and on another."""
    for port in (9092, 17_171):
        said = CONVERSATIONS[name](random.Random(port))
        analyzer = Analyzer("headers")
        wire = on_the_wire(said, opened=True, port=port)
        for segment in wire.segments[: 3 + MORE_PACKETS.get(name, FEW_PACKETS)]:
            analyzer.segment(*segment)
        assert all(analyzer.non_kafka.knows(flow, 0) for flow in wire.flows), port
        (problem,) = events(wire)
        assert isinstance(problem, Problem) and problem.code == "not_kafka" and problem.details is not None
        assert problem.details["protocol"] in ([NAMED[name]] if name in NAMED else ["unknown", "text"]), port


@pytest.mark.parametrize("name", sampled(CONVERSATIONS, 3))
def test_it_is_not_taken_for_kafka_from_the_middle(name: str) -> None:
    """From some places, with both sides or one, whole or in small packets, on Kafka's port and on another."""
    said = CONVERSATIONS[name](random.Random(1))
    for number, start in enumerate(range(0, len(said), max(len(said) // 6, 1))):
        for only in (None, number % 2):
            port = (9092, 33_333)[number % 2]
            assert not taken_for_kafka(events(on_the_wire(said[start:], opened=False, port=port, only=only))), start
    pieces = [(side, data[at : at + 7]) for side, data in said[:20] for at in range(0, min(len(data), 300), 7)]
    for opened in (False, True):
        assert not taken_for_kafka(events(on_the_wire(pieces, opened=opened, port=9092)))


#: Conversations that are as much Kafka as anything can be that is said to be.
LIKE_KAFKA = {"numbers of 16 bits", "Netty behind a length: small numbers", "zeros"}


def test_a_port_that_is_said_to_be_a_brokers_does_not_make_it_kafka() -> None:
    """What goes there is believed sooner, not anything."""
    assert CONVERSATIONS.keys() >= LIKE_KAFKA
    for name in CONVERSATIONS.keys() - LIKE_KAFKA:
        said = CONVERSATIONS[name](random.Random(2))
        assert not taken_for_kafka(events(on_the_wire(said, opened=True, port=9092), ports=[9092])), name
