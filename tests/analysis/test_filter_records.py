"""Filters that look into records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import kwiresniff
from kwiresniff.analysis.body_entities import record_sets
from kwiresniff.analysis.filter import compile_filter
from kwiresniff.analysis.filter.record_fields import MAX_JSON_BYTES
from kwiresniff.base.body_members import BATCH_MEMBERS, HEADER_MEMBERS, RECORD_MEMBERS
from kwiresniff.errors import FilterError
from kwiresniff.model import Exchange
from tests.support.exchanges import exchange

CAPTURES = Path(__file__).parents[2] / "captures"
BATCHES = "request.body.topic_data.partition_data.records"


def record(key: bytes | None, value: bytes | None, decoded: Any = None, **headers: bytes) -> dict[str, Any]:
    found = {
        "offset": 0,
        "key": key,
        "value": value,
        "headers": [{"key": name.replace("_", "-"), "value": one} for name, one in headers.items()],
    }
    return found if decoded is None else {**found, "decoded": {"value": {"plugin": "p", "data": decoded}}}


def produce(*records: dict[str, Any]) -> Exchange:
    partition = {"index": 0, "records": [{"records": list(records)}]}
    return exchange("Produce", 0, 9, request={"topic_data": [{"name": "orders", "partition_data": [partition]}]})


SEEN = produce(
    record(b"user-1", b'{"customer": {"id": 7, "tags": [["a"], ["b"]]}, "paid": true, "sum": 9.5}', trace_id=b"abc"),
    record(b"job-2", None),
    record(None, b"\x00\x00\x00\x00\x07\x02x", {"customer": {"id": 8}, "name": "ada", "raw": b"\xff"}),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('record.key ~ "^user-"', True),
        ('record.key ~ "^customer-"', False),
        ("record.key in (job-2, job-3)", True),
        ("record.value.customer.id == 7", True),
        ("record.value.customer.id == 8", True),
        ("record.value.customer.id > 8", False),
        ("record.value.customer.id not in (7, 8)", False),
        ("record.value.customer.tags == b", True),
        ("record.value.customer.tags[0] == a", True),
        ("record.value.customer.tags[0] == b", False),
        ("record.value.paid == true", True),
        ("record.value.sum >= 9.5", True),
        ("record.value.name == ada", True),
        ("record.value.missing", False),
        ("record.value == null", True),
        ("record.value != null", False),
        ("record.header.trace-id == abc", True),
        ("record.header.Trace-Id == abc", False),
        ("record.header.trace-id == null", True),
        ('record.value ~ "ada"', True),
        ("api == Produce and not record.key == nobody", True),
    ],
)
def test_any_record_of_the_exchange_may_pass(text: str, expected: bool) -> None:
    """Keys and values as they are, as JSON text, and as a plugin read them; ``null`` finds a record without one."""
    assert compile_filter(text).matches(SEEN) is expected


@pytest.mark.parametrize("text", ["record.key == null", 'record.value ~ ""', "record.value.a == 1", "record.key"])
def test_an_exchange_without_records_passes_nothing(text: str) -> None:
    """Neither one whose body was not read."""
    for given in (exchange("Metadata", 3, 12, request={"topics": []}), exchange("Produce", 0, 9)):
        assert compile_filter(text).matches(given) is False


def test_records_are_needed_and_known_late() -> None:
    """No verdict is possible before bodies are decoded."""
    found = compile_filter("record.key == a")
    assert found.needs.depth == "records"
    assert found.reads_decoded
    assert found.matches_header(SEEN) is None
    assert not compile_filter("request.body.acks == 0").reads_decoded


@pytest.mark.parametrize("value", [b"{", b"[" * 100_000, b'{"a": 1', b"\xff\xfe", b'{"a": 1}' + b" " * MAX_JSON_BYTES])
def test_a_value_that_is_no_json_or_too_long_has_nothing_inside(value: bytes) -> None:
    """Nor is it an error: whoever wrote the record decides what is in it."""
    assert compile_filter("record.value.a == 1").matches(produce(record(None, value))) is False


def test_a_value_as_long_as_may_be_is_read() -> None:
    """To the last byte of the limit."""
    value = b'{"a": 1}'.ljust(MAX_JSON_BYTES)
    assert compile_filter("record.value.a == 1").matches(produce(record(None, value)))


@pytest.mark.parametrize(
    ("text", "position", "says"),
    [
        ("request.body.ackz == 0", 13, "acks"),
        (f"{BATCHES}.recrods.key == a", len(BATCHES) + 1, "(near it: records, records_count)"),
        (f"{BATCHES}.records.keys == a", len(BATCHES) + 9, "(near it: key)"),
        (f"{BATCHES}[0].base_ofset == 0", len(BATCHES) + 4, "(near it: base_offset"),
        (f"{BATCHES}.records.headers.vale == a", len(BATCHES) + 17, "(near it: value)"),
        (f"{BATCHES}.records.value.id == 7", len(BATCHES) + 15, "(near it: record.value.id)"),
        ("record.vlaue == 1", 0, "expected a field (near it: record.value, "),
        ("clientid == a", 0, "expected a field (near it: client_id, "),
    ],
)
def test_a_path_that_nothing_has_is_answered_with_what_comes_near(text: str, position: int, says: str) -> None:
    """Below record sets as well."""
    with pytest.raises(FilterError) as caught:
        compile_filter(text)
    assert caught.value.position == position
    assert says in str(caught.value)


@pytest.mark.parametrize("path", ["records.decoded.value.data.id", "records.control.type", "records[0].key", "crc"])
def test_a_path_below_record_sets_that_may_be_there_is_taken(path: str) -> None:
    """What stands below decoded and control records is not checked."""
    compile_filter(f"{BATCHES}.{path}")


@pytest.mark.parametrize("name", ["java-produce.pcap", "java-transactions.pcap", "old-java-0.10-group.pcap"])
def test_the_members_of_records_are_those_of_recorded_ones(name: str) -> None:
    """Of both formats of message sets and of batches."""
    for seen in kwiresniff.read(CAPTURES / name):
        for message in (seen.request, seen.response):
            for _, _, batches in record_sets(message.body if message else None):
                for batch in batches:
                    assert BATCH_MEMBERS.issuperset(batch)
                    for one in batch.get("records", ()):
                        assert RECORD_MEMBERS.issuperset(one)
                        assert all(set(header) == HEADER_MEMBERS for header in one.get("headers", ()))


def test_a_recording_has_the_order_that_is_looked_for() -> None:
    """first-look.pcap: the Produce that writes five orders, and the Fetch that reads them."""
    found = list(kwiresniff.read(CAPTURES / "first-look.pcap", filter="record.value.order == 1003"))
    assert [one.api for one in found] == ["Produce", "Fetch"]
    request = found[0].request
    assert request is not None
    ((_, _, batches),) = record_sets(request.body)
    assert 1003 in [json.loads(one["value"])["order"] for one in batches[0]["records"]]
