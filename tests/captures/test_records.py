"""The records in the captures are those that the recipes' programs wrote (``captures/recipes/clients``)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.capture import open_captures
from kwiresniff.model import Exchange
from tests.support.events import analyze

CAPTURES = Path(__file__).parents[2] / "captures"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
NOON = 1767265200000  # 2026-01-01T11:00:00Z, Produce.java's clock


def exchanges(capture: str, api: str) -> list[Exchange]:
    events = analyze(open_captures([str(CAPTURES / capture)]), depth="records")
    return [event for event in events if isinstance(event, Exchange) and event.api == api]


def produced(capture: str) -> Iterator[tuple[Exchange, dict[str, Any]]]:
    """Every batch of every Produce request."""
    for exchange in exchanges(capture, "Produce"):
        assert exchange.problems == []
        assert exchange.request is not None and exchange.request.body is not None
        for topic in exchange.request.body["topic_data"]:
            for partition in topic["partition_data"]:
                for batch in partition["records"]:
                    yield exchange, batch


def fetched(capture: str) -> Iterator[dict[str, Any]]:
    """Every batch of every Fetch response."""
    for exchange in exchanges(capture, "Fetch"):
        assert exchange.problems == []
        if exchange.response is None:
            continue
        assert exchange.response.body is not None
        for topic in exchange.response.body["responses"]:
            for partition in topic["partitions"]:
                yield from partition["records"] or ()


def sensor(codec: str, number: int) -> tuple[int, bytes, bytes]:
    """Timestamp, key and value of one record of Produce.java."""
    value = f'{{"sensor": "greenhouse-{number % 4}", "celsius": {18 + number}}}'
    return NOON + number, f"{codec}-{number}".encode(), value.encode()


@pytest.mark.parametrize("codec", CODECS)
def test_a_java_batch_of_every_codec_holds_the_twenty_records_written(codec: str) -> None:
    batches = [batch for exchange, batch in produced("java-produce.pcap") if exchange.client_id == codec]
    assert {batch["compression"] for batch in batches} == {codec}
    assert all(batch["crc_valid"] for batch in batches)
    records = [(r["timestamp"], r["key"], r["value"]) for batch in batches for r in batch["records"]]
    assert records == [sensor(codec, number) for number in range(20)]


def test_headers_null_keys_tombstones_and_empty_values_are_kept_apart() -> None:
    odd = [r for e, b in produced("java-produce.pcap") if e.client_id == "odd-records" for r in b["records"]]
    assert [(r["key"], r["value"]) for r in odd] == [
        (b"with headers", b"value"),
        (None, b"no key"),
        (b"tombstone", None),
        (b"", b""),
        ("unicode \u2603".encode(), "\u017eiv\u00ed jo \U0001f680".encode()),
    ]
    assert [(h["key"], h["value"]) for h in odd[0]["headers"]] == [
        ("trace-id", b"4bf92f3577b34da6"),
        ("binary", b"\x00\xff\x10"),
        ("empty", b""),
        ("null", None),
        ("trace-id", b"a second one"),
    ]
    assert odd[4]["timestamp"] - odd[0]["timestamp"] == 86_400_000


def test_a_fetch_gives_the_records_of_every_codec_with_the_offsets_of_the_log() -> None:
    records = [(r["offset"], r["key"], r["value"]) for b in fetched("java-fetch.pcapng") for r in b.get("records", ())]
    by_offset = {offset: (key, value) for offset, key, value in records}
    assert sorted(by_offset) == list(range(108))
    for place, codec in enumerate(CODECS):
        for number in range(20):
            assert by_offset[20 * place + number] == sensor(codec, number)[1:]


@pytest.mark.parametrize(("capture", "magic"), [("old-java-0.8-produce.pcap", 0), ("old-java-0.10-produce.pcap", 1)])
@pytest.mark.parametrize("codec", CODECS[:-1])
def test_message_sets_of_every_codec_hold_the_eight_messages_written(capture: str, magic: int, codec: str) -> None:
    sets = [message for exchange, message in produced(capture) if exchange.client_id == codec]
    assert {message["magic"] for message in sets} == {magic}
    assert {message["compression"] for message in sets} == {codec}
    assert all(message["crc_valid"] for message in sets)
    records = [(r["key"], r["value"]) for message in sets for r in message["records"]]
    keys = [None, *(f"{codec}-{number}".encode() for number in range(1, 8))]
    assert records == [(key, f"reading number {number}".encode()) for number, key in enumerate(keys)]
    assert all(("timestamp" in r) == (magic == 1) for message in sets for r in message["records"])


def test_an_old_consumer_gets_message_sets_with_absolute_offsets() -> None:
    records = [r for message in fetched("old-java-0.10-group.pcap") for r in message.get("records", ())]
    assert sorted({r["offset"] for r in records}) == list(range(32))


def test_lz4_with_the_early_header_checksum_is_read() -> None:
    """Until 0.10 Kafka's lz4 frames had a wrong header checksum, and clients of the time still make them."""
    sets = [message for exchange, message in produced("old-kafka-python-0.9.pcap") if exchange.client_id == "codec-lz4"]
    assert {(message["magic"], message["compression"]) for message in sets} == {(0, "lz4")}
    values = [r["value"] for message in sets for r in message["records"]]
    assert values == [b"reading number %d" % number for number in range(6)]


def test_a_read_committed_fetch_shows_the_markers_that_end_transactions() -> None:
    auditor = [e for e in exchanges("java-transactions.pcap", "Fetch") if e.client_id == "auditor"]
    partitions = [
        partition
        for exchange in auditor
        if exchange.response is not None and exchange.response.body is not None
        for topic in exchange.response.body["responses"]
        for partition in topic["partitions"]
    ]
    batches = {batch["base_offset"]: batch for partition in partitions for batch in partition["records"] or ()}
    seen = [
        batch["records"][0]["control"]["type"] if batch["is_control"] else batch["records"][0]["value"]
        for _, batch in sorted(batches.items())
    ]
    assert seen[:4] == [b"committed", "commit", b"aborted", "abort"]
    assert any(partition["aborted_transactions"] for partition in partitions)
