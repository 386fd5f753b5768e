"""``kwiresniff groups`` on recorded groups; captures/recipes holds the programs that were recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.capture_files import metadata_v0, save
from tests.support.command import Run

CAPTURES = Path(__file__).resolve().parents[2] / "captures"


def events(kwiresniff: Run, file: str) -> list[dict[str, Any]]:
    done = kwiresniff("groups", "-o", "jsonl", str(CAPTURES / file))
    assert done.code == 0
    return [json.loads(line) for line in done.out.splitlines()]


@pytest.mark.parametrize(
    ("file", "protocol"),
    [
        ("java-group-classic.pcap", "classic"),
        ("java-group-cooperative.pcap", "classic"),
        ("java-group-consumer.pcapng", "consumer"),
    ],
)
def test_two_members_share_four_partitions_and_leave(kwiresniff: Run, file: str, protocol: str) -> None:
    found = events(kwiresniff, file)
    assert {event["group"] for event in found} == {"warehouse"}
    assert {event["protocol"] for event in found if event["event"] == "join"} == {protocol}
    members: dict[str, list[int]] = {}
    shared = []
    for event in found:
        if event["event"] == "assigned":
            members[event["member_id"]] = event["details"]["partitions"].get("shelves", [])
            shared.append(sorted(members.values()))
    assert [[0, 1], [2, 3]] in shared
    assert len([event for event in found if event["event"] == "leave"]) == 2
    assert not [event for event in found if event["event"] == "error"]


def test_reasons_generations_and_waits_are_told(kwiresniff: Run) -> None:
    found = events(kwiresniff, "java-group-cooperative.pcap")
    joins = [event for event in found if event["event"] == "join"]
    assert "need to revoke partitions and re-join" in [event["details"]["reason"] for event in joins]
    assert {event["generation"] for event in joins} == {1, 2, 3}
    assert [event["details"]["reason"] for event in found if event["event"] == "leave"] == [
        "the consumer is being closed"
    ] * 2


def test_a_timeline_is_text_under_the_name_of_its_group(kwiresniff: Run) -> None:
    done = kwiresniff("groups", str(CAPTURES / "java-group-consumer.pcapng"))
    assert (done.code, done.err) == (0, "")
    first, *lines = done.out.splitlines()
    assert first.startswith("warehouse")
    assert any("assigned" in line and "- shelves 2-3" in line and "has shelves 0-1" in line for line in lines)


def test_a_filter_narrows_to_one_group(kwiresniff: Run) -> None:
    done = kwiresniff("groups", "-Y", "group == nobody", str(CAPTURES / "java-group-classic.pcap"))
    assert (done.code, done.out) == (0, "")


def test_nothing_about_groups_is_said(kwiresniff: Run, tmp_path: Path) -> None:
    done = kwiresniff("groups", save(tmp_path / "a.pcap", metadata_v0("orders")))
    assert (done.code, done.out) == (0, "")
    assert "nothing about groups" in done.err
