"""What passes inside clusters of 2015 to 2019: the records that the recipes' programs wrote, and markers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.capture import open_captures
from kwiresniff.model import Connection, Exchange
from tests.support.events import analyze

ERAS = Path(__file__).parents[2] / "captures" / "eras"
CODECS = ("none", "gzip", "snappy", "lz4")
#: OldProduce.java: eight records for each codec, the first without a key.
WRITTEN = {
    (codec, number): (None if number == 0 else f"{codec}-{number}".encode(), f"reading number {number}".encode())
    for codec in (*CODECS, "zstd")
    for number in range(8)
}
#: Each cluster with the magic of its records and the codecs that were produced to it.
CLUSTERS = [
    ("era-0.8-cluster", 0, CODECS),
    ("era-0.9-cluster", 0, CODECS),
    ("era-0.10.0-cluster", 1, CODECS),
    ("era-0.10-cluster", 1, CODECS),
    ("era-0.11-cluster", 2, CODECS),
    ("era-1.1-cluster", 2, CODECS),
    ("era-2.3-cluster", 2, ("gzip", "zstd")),
]


@cache
def exchanges(name: str) -> list[Exchange]:
    events = analyze(open_captures([str(ERAS / f"{name}.pcap.xz")]), depth="records")
    return [event for event in events if isinstance(event, Exchange)]


def batches(exchange: Exchange, topic_name: str) -> Iterator[dict[str, Any]]:
    """The record sets of a topic in a Produce request or a Fetch response."""
    part = exchange.request if exchange.api == "Produce" else exchange.response
    if part is None or part.body is None:
        return
    for topic in part.body["topic_data" if exchange.api == "Produce" else "responses"]:
        if topic_name in (topic.get("name"), topic.get("topic")):
            for partition in topic["partition_data" if exchange.api == "Produce" else "partitions"]:
                yield from partition["records"] or ()


def records(found: list[dict[str, Any]]) -> list[tuple[str, bytes | None, bytes | None]]:
    return sorted(
        (batch["compression"], record["key"] or b"", record["value"])
        for batch in found
        for record in batch.get("records", ())
    )


@pytest.mark.parametrize(("name", "magic", "codecs"), CLUSTERS, ids=[cluster[0] for cluster in CLUSTERS])
def test_what_was_produced_is_what_the_program_wrote(name: str, magic: int, codecs: tuple[str, ...]) -> None:
    """Not one record more: the retries of these recordings had not been written."""
    found = [
        batch
        for exchange in exchanges(name)
        if exchange.api == "Produce" and exchange.client_id in codecs
        for batch in batches(exchange, "gauges")
    ]
    assert {batch["magic"] for batch in found} == {magic}
    assert all(batch["crc_valid"] for batch in found)
    wanted = sorted((codec, WRITTEN[codec, n][0] or b"", WRITTEN[codec, n][1]) for codec in codecs for n in range(8))
    assert records(found) == wanted


@pytest.mark.parametrize(("name", "magic", "codecs"), CLUSTERS, ids=[cluster[0] for cluster in CLUSTERS])
def test_replicas_fetch_every_record(name: str, magic: int, codecs: tuple[str, ...]) -> None:
    """A follower gets the bytes that the producer sent."""
    found = [
        batch
        for exchange in exchanges(name)
        if exchange.api == "Fetch" and exchange.request is not None and (exchange.request.body or {})["replica_id"] > 0
        for batch in batches(exchange, "gauges")
    ]
    assert {batch["magic"] for batch in found} == {magic}
    assert all(batch["crc_valid"] for batch in found)
    wanted = {(codec, WRITTEN[codec, n][0] or b"", WRITTEN[codec, n][1]) for codec in codecs for n in range(8)}
    assert set(records(found)) == wanted


@pytest.mark.parametrize(
    ("name", "version", "magic"),
    [("era-0.10-clients", 0, 0), ("era-1.1-clients", 0, 0), ("era-2.3-clients", 0, 0), ("era-1.1-clients", 3, 1)],
)
def test_a_broker_turns_records_back_for_older_clients(name: str, version: int, magic: int) -> None:
    """A Fetch of version 0 or 1 is answered in magic 0, one of version 2 or 3 in magic 0 or 1.

    What is shorter after that is filled up with a part of the next message.
    """
    found = [
        batch
        for exchange in exchanges(name)
        if (exchange.api, exchange.api_version, exchange.client_id) == ("Fetch", version, "archive")
        for topic in ("python", "old")
        for batch in batches(exchange, topic)
    ]
    assert magic in {batch["magic"] for batch in found} <= set(range(magic + 1))
    assert all(batch["crc_valid"] for batch in found if "truncated" not in batch)


@pytest.mark.parametrize("name", ["era-1.1-cluster", "era-2.3-cluster"])
def test_a_coordinator_sends_markers_to_the_leaders_of_all_partitions(name: str) -> None:
    """OldTransactions.java: one transaction commits, one aborts, each with three partitions of one topic."""
    markers = [
        (marker["transaction_result"], topic["name"], partition)
        for exchange in exchanges(name)
        if exchange.api == "WriteTxnMarkers" and exchange.request is not None and exchange.request.body is not None
        for marker in exchange.request.body["markers"]
        for topic in marker["topics"]
        for partition in topic["partition_indexes"]
        if topic["name"] == "outgoing"
    ]
    assert sorted(markers) == [(result, "outgoing", partition) for result in (False, True) for partition in range(3)]
    controls = [
        record["control"]["type"]
        for exchange in exchanges(name)
        if exchange.api == "Fetch" and exchange.client_id == "auditor"
        for batch in batches(exchange, "outgoing")
        if batch["is_control"]
        for record in batch["records"]
    ]
    assert controls == ["commit", "abort"]


@pytest.mark.parametrize("name", ["era-0.10-failover", "era-1.1-failover", "era-2.3-failover"])
def test_a_reader_gets_every_record_while_leaders_change(name: str) -> None:
    """OldSteady.java numbers what it sends and goes on until it has read as much."""
    sent, seen = (
        {
            record["value"]
            for exchange in exchanges(name)
            if (exchange.api, exchange.client_id) == (api, client)
            for batch in batches(exchange, "climate")
            for record in batch["records"]
        }
        for api, client in (("Produce", "thermometer"), ("Fetch", "display"))
    )
    assert len(sent) > 40
    assert sent == {b'{"celsius": %d}' % number for number in range(len(sent))}
    assert seen == sent
    assert {code for exchange in exchanges(name) for _, _, code, _ in exchange.errors} & {
        "NOT_LEADER_OR_FOLLOWER",
        "UNKNOWN_TOPIC_OR_PARTITION",
    }


@pytest.mark.parametrize(
    ("client_id", "codec", "acks"),
    [("none1", "none", 1), ("gzip-1", "gzip", -1), ("snappy1", "snappy", 1), ("none0", "none", 0)],
)
def test_the_scala_producer_is_read_too(client_id: str, codec: str, acks: int) -> None:
    """OldScala.java: four messages for each codec and kind of acknowledgement, over two partitions."""
    asked = [e for e in exchanges("era-0.8-scala") if (e.api, e.client_id) == ("Produce", client_id)]
    assert {e.request.body["acks"] for e in asked if e.request is not None and e.request.body is not None} == {acks}
    assert {e.outcome for e in asked} == {"no_response_expected" if acks == 0 else "ok"}
    found = [batch for exchange in asked for batch in batches(exchange, "books")]
    wanted = [(codec, b"shelf-%d" % n, b'{"codec": "%s", "item": %d}' % (codec.encode(), n)) for n in range(4)]
    assert records(found) == wanted


@pytest.mark.parametrize(
    ("name", "principals"),
    [
        ("era-0.10-sasl", {("PLAIN", "broker"), ("PLAIN", "alice"), ("SCRAM-SHA-256", "alice")}),
        ("era-1.1-sasl", {("SCRAM-SHA-256", "broker"), ("SCRAM-SHA-256", "alice"), ("PLAIN", "alice")}),
        ("era-2.3-sasl", {("SCRAM-SHA-256", "broker"), ("SCRAM-SHA-256", "alice")}),
        ("era-2.3-oauthbearer", {("OAUTHBEARER", "broker"), ("OAUTHBEARER", "alice")}),
    ],
)
def test_brokers_and_clients_authenticate(name: str, principals: set[tuple[str, str]]) -> None:
    """By bare tokens until 0.11, then by SaslAuthenticate; delegation tokens have names of their own."""
    said = [
        (event.sasl["mechanism"], event.sasl["principal"])
        for event in analyze(open_captures([str(ERAS / f"{name}.pcap.xz")]))
        if isinstance(event, Connection) and event.sasl is not None and event.sasl["outcome"] == "ok"
    ]
    assert {pair for pair in said if pair[1] in ("alice", "broker")} == principals
    bearers = {principal for mechanism, principal in said} - {"alice", "broker"}
    assert len(bearers) == (1 if name in ("era-1.1-sasl", "era-2.3-sasl") else 0)


def test_an_upgraded_broker_speaks_the_old_protocol_until_all_are() -> None:
    """First each node fetches by version 0 from the other, in the end by version 3."""
    versions: dict[int, list[int]] = {}
    for exchange in exchanges("era-0.8-upgrade"):
        if exchange.api == "Fetch" and exchange.request is not None and exchange.request.body is not None:
            versions.setdefault(exchange.request.body["replica_id"], []).append(exchange.api_version)
    del versions[-1]  # the group
    assert versions.keys() == {1, 2}
    assert all(asked == sorted(asked) and set(asked) == {0, 3} for asked in versions.values())
