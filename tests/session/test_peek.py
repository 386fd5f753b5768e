"""What is read of every request at every depth is what a decoder reads there."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kwiresniff.codec import decoder
from kwiresniff.errors import DecodeError
from kwiresniff.model import Connection, Exchange, Message
from kwiresniff.session.apis import api_facts
from kwiresniff.session.peek import acks_of_produce, software_of
from tests.support.encoding import encoder

PRODUCE = 0
API_VERSIONS = 18


def software(version: int, raw: bytes) -> tuple[str, str]:
    """What an ApiVersions request says of its client, ``raw`` being its body."""
    message = Message(1, 0, 1, 0, 4 + len(raw), b"head" + raw)
    message.body_offset = 4
    connection = Connection(1, "10.0.0.1:1", "10.0.0.2:9092")
    return software_of(Exchange(connection, API_VERSIONS, version, 1, None, message, None))


def decoded(version: int, raw: bytes) -> tuple[str, str]:
    """The client's software as a decoder reads it, empty texts when it does not read."""
    try:
        body, _ = decoder(API_VERSIONS, version, "request", "skip")(raw, 0, [])
    except DecodeError:
        return "", ""
    return body.get("client_software_name", ""), body.get("client_software_version", "")


def test_the_clients_software_is_read_from_every_version() -> None:
    """Versions 3 to 5 name it, those before do not."""
    body = {"client_software_name": "apache-kafka-java" * 9, "client_software_version": "4.1.0", "node_id": 3}
    for cluster_id in (None, "", "Some-cluster-id"):
        for version in range(6):
            raw = encoder(API_VERSIONS, version, "request")({**body, "cluster_id": cluster_id})
            expected = ("apache-kafka-java" * 9, "4.1.0") if version >= 3 else ("", "")
            assert software(version, raw) == expected == decoded(version, raw)


def test_it_is_told_where_a_decoder_says_the_same() -> None:
    """A byte is changed, or the end is missing, at every place; a fault in another text is not looked for."""
    rng = random.Random(3)
    told = 0
    for version in range(3, 6):
        raw = encoder(API_VERSIONS, version, "request")(
            {"client_software_name": "sarama", "client_software_version": "1.4é", "cluster_id": None, "node_id": -1}
        )
        for at in range(len(raw)):
            for byte in (0, 1, 2, 0x7F, 0x80, 0xFF, rng.randrange(256)):
                for data in (raw[:at] + bytes([byte]) + raw[at + 1 :], raw[:at], raw[:at] + bytes([byte])):
                    found = software(version, data)
                    told += found != ("", "")
                    assert found == decoded(version, data), (version, data)
    assert told > 100


@pytest.mark.parametrize("version", [0, 2, 3, 8, 9, 13])
def test_acks_are_read_behind_the_transactional_id(version: int) -> None:
    """The id comes first from version 3 on, in compact form from 9 on; of a request cut before them they are -1."""
    for transactional_id in (None, "", "t" * 200):
        for acks in (-1, 0, 1):
            body: dict[str, Any] = {
                "transactional_id": transactional_id,
                "acks": acks,
                "timeout_ms": 1,
                "topic_data": [],
            }
            raw = encoder(PRODUCE, version, "request")(body)
            facts, end = api_facts(PRODUCE, version), len(raw) - 4 - 4 + (2 if version >= 9 else 0)
            assert acks_of_produce(facts, b"head" + raw, 4) == acks
            assert acks_of_produce(facts, b"head" + raw[: end - 1], 4) == -1
