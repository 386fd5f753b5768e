"""Older names of fields. Expected values: the schemas in Kafka's code from 0.8.2 to 2.8 (older_names/regenerate.sh)."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwiresniff import schema
from kwiresniff.schema.aliases import newer_paths
from kwiresniff.schema.types import WireField

OLDER = Path(__file__).parent / "data" / "older_names.jsonl.xz"
#: Versions that later releases changed in place: the fields cannot be told one by one.
RESHAPED = {(11, "request", 0), (11, "response", 0), (54, "request", 0)}

Names = tuple[str, ...]


def older() -> Iterator[dict[str, Any]]:
    with lzma.open(OLDER, "rt") as lines:
        yield from map(json.loads, lines)


def ungrouped(fields: list[Any]) -> list[Any]:
    """Structures that are no arrays only group fields, and differently at times: their fields stand in their place."""
    return [each for field in fields for each in (ungrouped(field[2]) if field[1] == "struct" else [field])]


def pairs(then: list[Any], now: tuple[WireField, ...], was: Names, path: Names) -> Iterator[tuple[Names, Names]]:
    """The path of every field then, with the names of structures that only grouped left out, and its path now."""
    today = [field for field in now if field.tag is None]
    if [each[1] == "struct" for each in then] != [field.type == "STRUCT" and not field.array for field in today]:
        then = ungrouped(then)
    assert [each[1].startswith("[]") for each in then] == [field.array for field in today]
    for (name, *more), field in zip(then, today, strict=True):
        yield (*was, name), (*path, field.name)
        if len(more) == 2 and field.fields:
            yield from pairs(more[1], field.fields, (*was, name), (*path, field.name))


def test_every_name_that_a_field_ever_had_is_understood() -> None:
    count = 0
    for line in older():
        key, direction, version = line["api_key"], line["direction"], line["version"]
        if (key, direction, version) in RESHAPED:
            continue
        for was, place in pairs(line["fields"], schema.message(key, version, direction).fields, (), ()):
            if was != place and "'" not in was[-1]:  # a slip of 2.1: a name with an apostrophe
                count += 1
                assert place in newer_paths(key, direction, was), (line["release"], key, direction, version, was)
    assert count > 1000


@pytest.mark.parametrize(
    ("api_key", "direction", "path", "newer"),
    [
        (0, "request", "topic_data.data.record_set", ["topic_data.partition_data.records"]),
        (3, "response", "topic_metadata.partition_metadata.isr", ["topics.partitions.isr_nodes"]),
        (3, "response", "topics.partitions.isr_nodes", []),
        (8, "request", "consumer_id", ["member_id"]),
        (8, "request", "no_such_field.partition", []),
        (10, "request", "group_id", ["key"]),
        (11, "request", "group_protocols.protocol_metadata.user_data", ["protocols.metadata.user_data"]),
        (32, "response", "resources.config_entries.config_name", ["results.configs.name"]),
        (999, "request", "timeout", []),
    ],
)
def test_a_path_in_older_names_leads_to_the_field(api_key: int, direction: Any, path: str, newer: list[str]) -> None:
    assert [".".join(found) for found in newer_paths(api_key, direction, tuple(path.split(".")))] == newer


def test_a_name_of_several_fields_means_any_of_them() -> None:
    assert newer_paths(5, "request", ("partitions",)) == (("ungrouped_partitions",), ("topics",))
