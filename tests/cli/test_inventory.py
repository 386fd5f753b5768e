"""``kwiresniff clients`` and ``kwiresniff audit`` on recorded captures."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from kwiresniff.schema import find_api
from tests.support.command import Run

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
ROWS = {row["file"]: row for row in tomllib.loads((CAPTURES / "MANIFEST.toml").read_text("utf-8"))["capture"]}


@pytest.mark.parametrize("file", ["first-look.pcap", "java-transactions.pcap", "kafka-python.pcap", "sarama.pcap"])
def test_requests_are_counted_as_the_broker_counted_them(kwiresniff: Run, file: str) -> None:
    done = kwiresniff("clients", "-o", "jsonl", str(CAPTURES / file))
    counts: Counter[tuple[int, int]] = Counter()
    for line in done.out.splitlines():
        for use in json.loads(line)["apis"]:
            counts[use["api_key"], use["api_version"]] += use["count"]
    logged: Counter[tuple[int, int]] = Counter()
    for table in (ROWS[file]["requests"], ROWS[file]["not_logged"]):
        for name, count in table.items():
            api, _, version = name.partition(" v")
            logged[find_api(api.title().replace("_", "")).key, int(version)] += count
    assert counts == logged


def test_the_inventory_of_a_recording(kwiresniff: Run) -> None:
    done = kwiresniff("clients", "-o", "json", str(CAPTURES / "first-look.pcap"))
    clients = {row["client_id"]: row for row in json.loads(done.out)}
    assert set(clients) == {"billing", "shop", "deploy"}
    billing = clients["billing"]
    assert billing["client_software"] == {"name": "apache-kafka-java", "version": "4.4.0"}
    assert (billing["groups"], billing["topics"], billing["negotiates"]) == (["billing"], ["orders"], True)
    done = kwiresniff("clients", str(CAPTURES / "first-look.pcap"))
    assert (done.code, done.err) == (0, "")
    assert "apache-kafka-java 4.4.0" in done.out


def test_an_authentication_that_failed_is_a_client_of_its_own(kwiresniff: Run) -> None:
    done = kwiresniff("clients", "-o", "jsonl", str(CAPTURES / "java-sasl-plain.pcap"))
    users = {(row["client_id"], row["sasl"]["outcome"]) for row in map(json.loads, done.out.splitlines())}
    assert users == {("alice", "ok"), ("mallory", "failed")}


@pytest.mark.parametrize(
    ("file", "target", "code"),
    [
        ("old-kafka-python-0.9.pcap", "4.0", 1),  # KIP-896 lists what 4.0 no longer takes: Produce below v3
        ("old-kafka-python-0.9.pcap", "3.9", 0),
        ("first-look.pcap", "4.0", 0),
    ],
)
def test_the_audit_exits_with_1_when_a_client_would_break(kwiresniff: Run, file: str, target: str, code: int) -> None:
    done = kwiresniff("audit", "--target", target, str(CAPTURES / file))
    assert done.code == code
    assert ("✗ breaks" in done.out) == bool(code)


def test_evidence_names_packet_and_versions(kwiresniff: Run) -> None:
    done = kwiresniff("audit", "--target", "4.0", "-o", "jsonl", str(CAPTURES / "old-java-0.10-group.pcap"))
    (row,) = map(json.loads, done.out.splitlines())
    assert (row["kind"], row["verdict"], row["target"], row["client_id"]) == ("audit", "breaks", "4.0", "archive")
    fetch = row["findings"][0]
    assert (fetch["api"], fetch["api_version"], fetch["target_versions"], fetch["breaks"]) == (
        "Fetch",
        3,
        [4, 17],
        True,
    )
    exchanges = map(
        json.loads, kwiresniff("read", "-o", "jsonl", str(CAPTURES / "old-java-0.10-group.pcap")).out.splitlines()
    )
    first = next(one for one in exchanges if one.get("api") == "Fetch")
    assert fetch["first_packet"] == first["request"]["first_packet"]


def test_an_unknown_release_is_one_line(kwiresniff: Run) -> None:
    done = kwiresniff("audit", "--target", "9.9", str(CAPTURES / "first-look.pcap"))
    assert (done.code, done.out) == (2, "")
    assert "no Kafka release '9.9' is known; known are 0.8.2, " in done.err
    assert kwiresniff("audit", str(CAPTURES / "first-look.pcap")).code == 2
