"""Every message at every version against Kafka itself: its values are what we read, its bytes are what we write."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from kwiresniff import schema
from kwiresniff.codec.dissector import dissect
from kwiresniff.codec.node_values import plain
from kwiresniff.codec.value_reader import message_decoder
from kwiresniff.schema.types import WireField
from tests.oracle.coverage import known, missing, table
from tests.support.encoding import encode
from tests.support.kafka_vectors import Entry, entries
from tests.support.sample import sampled


@cache
def by_title() -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for entry in entries():
        found.setdefault(entry.title, []).append(entry)
    return found


TITLES = sorted(by_title())


def leaves(fields: tuple[WireField, ...]) -> Iterator[WireField]:
    for field in fields:
        yield from leaves(field.fields) if field.type == "STRUCT" else [field]


def is_sized(wire_type: str) -> bool:
    return wire_type.endswith(("STRING", "BYTES"))


def size(records: bytes) -> dict[str, int]:
    return {"size_bytes": len(records)}


@pytest.mark.parametrize("title", sampled(TITLES))
def test_what_kafka_writes_is_read_with_kafkas_values(title: str) -> None:
    for entry in by_title()[title]:
        decode = message_decoder(entry.message(), "skip")
        for vector in entry.vectors:
            body, end = decode(vector.raw, 0, [])
            expected = entry.body(vector.document, records=size)
            assert body == expected, f"version {entry.version}"
            # This also tells True from 1 and 0.0 from -0.0, and holds the fields to the order of the wire.
            assert repr(body) == repr(expected), f"version {entry.version}"
            assert end == len(vector.raw)


@pytest.mark.parametrize("title", sampled(TITLES))
def test_kafkas_values_are_written_with_kafkas_bytes(title: str) -> None:
    for entry in by_title()[title]:
        for vector in entry.vectors:
            assert encode(entry.message(), entry.body(vector.document)) == vector.raw, f"version {entry.version}"


@pytest.mark.parametrize("title", sampled(TITLES))
def test_a_walk_finds_kafkas_values_and_no_problem(title: str) -> None:
    for entry in by_title()[title]:
        message = entry.message()
        for vector in entry.vectors:
            dissected = dissect(message, vector.raw, 0, records=False)
            assert dissected.problems == [], f"version {entry.version}"
            assert plain(dissected.root) == entry.body(vector.document, records=size), f"version {entry.version}"


def test_headers_have_the_versions_that_kafka_gives_them() -> None:
    for entry in entries():
        if entry.api_key >= 0:
            of = schema.request_header_version if entry.kind == "request" else schema.response_header_version
            assert of(entry.api_key, entry.version) == entry.header_version, entry.title
            assert entry.message().header_version == entry.header_version, entry.title


def test_kafka_has_every_message_at_every_version_that_we_have_and_no_other() -> None:
    assert known() == {(entry.title, entry.version) for entry in entries()}
    assert len(known()) == len(entries())


@pytest.mark.slow
def test_every_field_has_had_every_sort_of_value() -> None:
    assert [(entry.title, entry.version, gap) for entry in entries() for gap in missing(entry)] == []


def test_the_newest_version_of_a_message_with_text_or_bytes_has_one_whose_length_takes_three_bytes() -> None:
    for title in TITLES:
        newest = max(by_title()[title], key=lambda entry: entry.version)
        if any(is_sized(leaf.type) for leaf in leaves(newest.message().fields)):
            assert max(len(vector.raw) for vector in newest.vectors) >= 2**14, title


def test_the_table_has_a_line_for_every_message() -> None:
    lines = list(table())
    assert len(lines) == len(TITLES) + 2
    assert lines[-1].startswith(f"{len(known())} of {len(known())} ")
