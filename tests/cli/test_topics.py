"""``kwiresniff topics``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.support.command import Done

Run = Callable[..., Done]
CAPTURES = Path(__file__).resolve().parents[2] / "captures"
RECORDING = str(CAPTURES / "java-group-consumer.pcapng")


def test_the_table_has_a_block_for_each_topic(kwiresniff: Run) -> None:
    done = kwiresniff("topics", RECORDING)
    assert (done.code, done.err) == (0, "")
    headline, *rest = done.out.splitlines()
    assert headline.startswith("shelves  4 partitions  in 8 records 688 B")
    assert [line.split()[:2] for line in rest] == [
        ["producer", "shop"],
        ["consumer", "member-1"],
        ["consumer", "member-2"],
        ["group", "warehouse"],
        ["delay", "p50"],
    ]


def test_json_and_json_lines_have_the_same_objects(kwiresniff: Run) -> None:
    lines = [json.loads(line) for line in kwiresniff("topics", "-o", "jsonl", RECORDING).out.splitlines()]
    assert json.loads(kwiresniff("topics", "-o", "json", RECORDING).out) == lines
    (topic,) = lines
    assert (topic["schema_version"], topic["kind"], topic["topic"]) == (1, "topic", "shelves")
    assert topic["produced"]["records"] == 8
    assert topic["groups"][0]["partitions"][0] == {"partition": 0, "committed_offset": 2, "lag": 0}


def test_a_filter_chooses_what_counts(kwiresniff: Run) -> None:
    done = kwiresniff("topics", "-o", "jsonl", "-Y", "api == Produce", RECORDING)
    (topic,) = map(json.loads, done.out.splitlines())
    assert (topic["produced"]["records"], topic["consumed"]["records"], topic["groups"]) == (8, 0, [])


def test_a_capture_without_topics_prints_nothing(kwiresniff: Run) -> None:
    assert kwiresniff("topics", "-Y", "api == ApiVersions", RECORDING).out == ""
