"""``kwiresniff topics``."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.command import Run

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


def test_json_tells_what_was_produced_and_committed(kwiresniff: Run) -> None:
    (topic,) = json.loads(kwiresniff("topics", "-o", "json", RECORDING).out)
    assert (topic["kind"], topic["topic"]) == ("topic", "shelves")
    assert topic["produced"]["records"] == 8
    assert topic["groups"][0]["partitions"][0] == {"partition": 0, "committed_offset": 2, "lag": 0}


def test_a_filter_chooses_what_counts(kwiresniff: Run) -> None:
    done = kwiresniff("topics", "-o", "jsonl", "-Y", "api == Produce", RECORDING)
    (topic,) = map(json.loads, done.out.splitlines())
    assert (topic["produced"]["records"], topic["consumed"]["records"], topic["groups"]) == (8, 0, [])


def test_lines_have_a_column_for_each_title(kwiresniff: Run) -> None:
    """So that a script finds what it looks for by the head; names keep no space."""
    for command in ("topics", "clients"):
        head, *rows = (line.split() for line in kwiresniff(command, "-o", "lines", RECORDING).out.splitlines())
        assert rows and {len(row) for row in rows} == {len(head)}
    by_title = dict(zip(*(line.split() for line in kwiresniff("topics", "-o", "lines", RECORDING).out.splitlines()),
                        strict=True))  # fmt: skip
    assert (by_title["topic"], by_title["records_in"], by_title["records_out"], by_title["lag"]) == (
        "shelves",
        "8",
        "8",
        "0",
    )
