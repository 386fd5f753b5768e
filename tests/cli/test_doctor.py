"""``kwiresniff doctor`` on recordings whose programs do something wrong on purpose."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command import Run

CAPTURES = Path(__file__).resolve().parents[2] / "captures"


@pytest.mark.parametrize(
    ("file", "code", "subject"),
    [
        ("java-sasl-plain.pcap", "sasl_authentication_failed", "mallory 10.9.0.2"),
        ("java-produce.pcap", "message_too_large", "too-large 10.9.0.2"),
        ("java-fetch.pcapng", "offset_out_of_range", "reader 10.9.0.2"),
        ("old-kafka-python-0.9.pcap", "old_message_format", "codec-gzip 10.9.0.2"),
    ],
)
def test_what_was_done_wrong_is_found(kwiresniff: Run, file: str, code: str, subject: str) -> None:
    done = kwiresniff("doctor", "-o", "jsonl", str(CAPTURES / file))
    found = {(one["code"], one["subject"]): one for one in map(json.loads, done.out.splitlines())}
    finding = found[code, subject]
    assert finding["kind"] == "finding"
    exchanges = map(json.loads, kwiresniff("read", "-o", "jsonl", str(CAPTURES / file)).out.splitlines())
    packets = {one[side]["first_packet"] for one in exchanges for side in ("request", "response") if one.get(side)}
    assert finding["evidence"] and {one["packet"] for one in finding["evidence"]} <= packets


@pytest.mark.parametrize(
    "name",
    [
        "aiokafka.pcap", "first-look.pcap", "franz-go.pcap", "java-group-classic.pcap", "java-group-consumer.pcapng",
        "java-group-cooperative.pcap", "java-moved-leader.pcap", "java-share-group.pcap", "java-telemetry.pcap",
        "java-tls.pcap", "kafka-python.pcap", "librdkafka-transactions.pcap", "librdkafka.pcap",
        "old-java-0.10-produce.pcap", "sarama.pcap",
    ],
)  # fmt: skip
def test_where_nothing_is_wrong_nothing_is_above_info(kwiresniff: Run, name: str) -> None:
    """What clients and brokers ordinarily say with error codes is told as such or not at all."""
    done = kwiresniff("doctor", "-o", "jsonl", "--fail-on", "warning", str(CAPTURES / name))
    assert [one for one in map(json.loads, done.out.splitlines()) if one["severity"] != "info"] == []
    assert done.code == 0


def test_a_finding_says_from_when_to_when_and_whom_it_is_about(kwiresniff: Run) -> None:
    """Members of the JSON form that stand beside the older ones."""
    done = kwiresniff("doctor", "-o", "jsonl", str(CAPTURES / "java-sasl-plain.pcap"))
    (finding,) = map(json.loads, done.out.splitlines())
    assert finding["clients"] == ["mallory 10.9.0.2"] and finding["brokers"] == ["10.9.0.1:9092"]
    assert finding["first_timestamp_ns"] == finding["evidence"][0]["timestamp_ns"] and finding["last_time"]
    assert finding["details"] == ["the broker says: Authentication failed: Invalid username or password"]
    assert finding["symptoms"] == [] and finding["numbers"]["users"] == ["alice"]


def test_the_exit_code_follows_fail_on(kwiresniff: Run) -> None:
    failing, calm = str(CAPTURES / "java-sasl-plain.pcap"), str(CAPTURES / "first-look.pcap")
    assert kwiresniff("doctor", failing).code == 1
    assert kwiresniff("doctor", "--fail-on", "never", failing).code == 0
    assert kwiresniff("doctor", calm).code == 0
    assert kwiresniff("doctor", "--fail-on", "info", calm).code == 1
    assert kwiresniff("doctor", "--fail-on", "sometimes", calm).code == 2


def test_a_finding_names_evidence_and_remedy(kwiresniff: Run) -> None:
    done = kwiresniff("doctor", str(CAPTURES / "java-sasl-plain.pcap"))
    assert done.out.startswith("error   mallory 10.9.0.2")
    assert "evidence packet 37" in done.out
    assert "remedy   Check user" in done.out
    assert done.err == "kwiresniff: 9 exchanges, findings: 1 error\n"
