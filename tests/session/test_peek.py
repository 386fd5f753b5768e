"""What is read by hand at the front of frames is what a decoder reads there."""

from __future__ import annotations

import random

from kwiresniff.codec import decoder, encoder
from kwiresniff.errors import DecodeError
from kwiresniff.session.peek import client_software

API_VERSIONS = 18


def decoded(version: int, raw: bytes) -> tuple[str, str] | None:
    """The client's software as a decoder reads it, None when it does not read."""
    try:
        body, _ = decoder(API_VERSIONS, version, "request", "skip")(raw, 0, [])
    except DecodeError:
        return None
    return body.get("client_software_name", ""), body.get("client_software_version", "")


def test_the_clients_software_is_read_from_every_version() -> None:
    body = {"client_software_name": "apache-kafka-java", "client_software_version": "4.1.0", "node_id": 3}
    for cluster_id in (None, "", "Some-cluster-id"):
        for version in range(6):
            raw = encoder(API_VERSIONS, version, "request")({**body, "cluster_id": cluster_id})
            expected = ("apache-kafka-java", "4.1.0") if version >= 3 else ("", "")
            assert client_software(b"head" + raw, 4, version) == expected == decoded(version, raw)


def test_it_is_only_told_where_a_decoder_says_the_same() -> None:
    """A byte is changed, or the end is missing, at every place."""
    rng = random.Random(3)
    certain = 0
    for version in range(3, 6):
        raw = encoder(API_VERSIONS, version, "request")(
            {"client_software_name": "sarama", "client_software_version": "1.4é", "cluster_id": "c", "node_id": -1}
        )
        for at in range(len(raw)):
            for byte in (0, 1, 2, 0x7F, 0x80, 0xFF, rng.randrange(256)):
                for data in (raw[:at] + bytes([byte]) + raw[at + 1 :], raw[:at], raw[:at] + bytes([byte])):
                    found = client_software(data, 0, version)
                    if found is not None:
                        certain += 1
                        assert found == decoded(version, data), (version, data)
    assert certain > 100


def test_long_names_and_versions_to_come_are_left_to_a_decoder() -> None:
    raw = encoder(API_VERSIONS, 3, "request")({"client_software_name": "x" * 127, "client_software_version": "1"})
    assert client_software(raw, 0, 3) is None
    assert client_software(raw, 0, 6) is None
