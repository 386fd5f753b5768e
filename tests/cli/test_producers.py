"""``kwiresniff producers``."""

from __future__ import annotations

import json

from tests.support.command import Run
from tests.support.paths import CAPTURES

RECORDING = str(CAPTURES / "incidents" / "fenced.pcap.xz")


def test_the_table_has_a_line_for_each_transaction(kwiresniff: Run) -> None:
    done = kwiresniff("producers", RECORDING)
    assert (done.code, done.err) == (0, "")
    headline, *rest = done.out.splitlines()
    assert headline.startswith("producer 0  epochs 0 to 3  transactional payments-tx")
    assert [line.split()[0] for line in rest] == ["errors", "fenced", "committed", "fenced"]
    assert "ended by payments-new 10.9.0.2" in rest[1]


def test_json_tells_who_ended_a_transaction(kwiresniff: Run) -> None:
    (producer,) = json.loads(kwiresniff("producers", "-o", "json", RECORDING).out)
    assert (producer["kind"], producer["transactional_id"]) == ("producer", "payments-tx")
    assert producer["transaction_counts"] == {"fenced": 1, "committed": 1}
    assert producer["transactions"][0]["ended_by"] == producer["fenced"][0]["by_client"] == "payments-new 10.9.0.2"


def test_packets_are_those_of_the_requests_that_began(kwiresniff: Run) -> None:
    (producer,) = map(json.loads, kwiresniff("producers", "-o", "jsonl", RECORDING).out.splitlines())
    exchanges = map(json.loads, kwiresniff("read", "-o", "jsonl", RECORDING).out.splitlines())
    produced = {one["request"]["first_packet"] for one in exchanges if one.get("api") == "Produce"}
    assert {one["packet"] for one in producer["transactions"]} <= produced
