"""Error codes and names in responses that break off: ``stats``, which decodes nothing, finds what ``read`` decodes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from kwiresniff.base.depths import Depth
from kwiresniff.base.needs import Needs
from kwiresniff.capture import open_captures
from kwiresniff.model import Exchange, Segment
from kwiresniff.session import Analyzer
from tests.support.conversation import Wire, request, response
from tests.support.damages import SNAP_LENGTHS, dropped, snapped, thinned
from tests.support.encoding import encoder
from tests.support.events import analyze, analyze_with
from tests.support.sample import mostly_slow

CAPTURES = Path(__file__).parents[2] / "captures"
RECORDINGS = (
    "java-admin-topics.pcap",
    "java-transactions.pcap",
    "eras/era-1.1-admin.pcap.xz",
    "eras/era-2.3-admin.pcap.xz",
    "eras/versions-3.9.pcap.xz",
)


def damaged(recording: str) -> list[list[Segment]]:
    """Snapped to several lengths, and without a part of the segments."""
    segments = list(open_captures([str(CAPTURES / recording)]))
    rng = random.Random(recording)
    return [
        *(snapped(segments, length) for length in (*SNAP_LENGTHS, 512)),
        *(thinned(segments, share, rng) for share in (0.05, 0.2)),
    ]


def codes(segments: Sequence[Segment], depth: Depth) -> list[tuple[object, ...]]:
    """What there is to compare of each exchange that is both: in error, and with bytes missing from its response."""
    found = (event for event in analyze(segments, depth=depth) if isinstance(event, Exchange) and event.errors)
    return [
        (exchange.connection.client, exchange.api, exchange.correlation_id, exchange.outcome, told)
        for exchange in found
        if any(problem.code == "gap" and problem.path == "response" for problem in exchange.problems)
        for told in [sorted(code for _, code, _, _ in exchange.errors)]
    ]


@pytest.mark.parametrize("recording", mostly_slow(RECORDINGS, 2))
def test_the_codes_that_are_there_are_found_without_decoding(recording: str) -> None:
    told = 0
    for segments in damaged(recording):
        decoded = codes(segments, "bodies")
        assert codes(segments, "errors") == decoded
        told += len(decoded)
    assert told


@pytest.mark.parametrize("recording", ["java-admin-topics.pcap", "java-moved-leader.pcap", "eras/versions-4.4.pcap.xz"])
def test_topic_ids_have_the_names_that_are_there(recording: str) -> None:
    """Names are learned from Metadata, CreateTopics and DeleteTopics responses up to where they break off."""
    told = 0
    for segments in damaged(recording):
        scanned, decoded = Analyzer(Needs("errors", topics=True)), Analyzer("bodies")
        list(analyze_with(scanned, segments))
        for event in analyze_with(decoded, segments):
            response = event.response if isinstance(event, Exchange) else None
            body = (response and response.body) or {}
            for topic in body.get("topics") or body.get("responses") or ():
                if topic_id := topic.get("topic_id"):
                    assert scanned.topics.name(topic_id) == decoded.topics.name(topic_id)
                    told += 1
    assert told


def test_a_fetch_response_whose_record_sets_are_passed_over_loses_no_code_before_its_hole() -> None:
    """Twelve partitions, every third in error, in 60 kB; each segment of it lost in turn."""
    partitions = [
        {"partition_index": index, "error_code": 0 if index % 3 else 3, "high_watermark": 9, "last_stable_offset": 9,
         "log_start_offset": 0, "aborted_transactions": None, "preferred_read_replica": -1, "records": b""}
        for index in range(12)
    ]  # fmt: skip
    body = {"throttle_time_ms": 0, "error_code": 0, "session_id": 0,
            "responses": [{"topic": "orders", "partitions": partitions}]}  # fmt: skip
    raw = encoder(1, 11, "response")(body)
    batch = bytes(5_000)
    raw = raw.replace(b"\xff\xff\xff\xff" + bytes(4), b"\xff\xff\xff\xff" + len(batch).to_bytes(4, "big") + batch)
    assert len(raw) > 60_000
    asked = encoder(1, 11, "request")(
        {"replica_id": -1, "max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "isolation_level": 0,
         "session_id": 0, "session_epoch": -1, "topics": [], "forgotten_topics_data": [], "rack_id": ""}
    )  # fmt: skip
    answer = response(1, raw)
    wire = Wire().open().up(request(1, 11, 1, asked))
    for start in range(0, len(answer), 1400):
        wire.down(answer[start : start + 1400])
    wire.up(request(1, 11, 2, asked)).down(response(2, encoder(1, 11, "response")(body | {"responses": []})))
    first = next(at for at, segment in enumerate(wire.segments) if segment[8] - segment[7] == 1400)
    seen = set()
    for at in range(first + 1, first + len(answer) // 1400):
        segments = dropped(wire.segments, at)
        decoded = codes(segments, "bodies")
        assert codes(segments, "errors") == decoded
        seen |= {len(told) for *_, told in decoded if isinstance(told, list)}
    assert seen == {1, 2, 3, 4}
