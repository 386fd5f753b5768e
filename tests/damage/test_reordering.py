"""Recorded captures whose packets are in another order than on the wire, in both directions and over their openings.

A capture point with several queues does that. No byte is missing, so nothing may be lost, not even near the disorder.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

from kwiresniff.base.depths import Depth
from kwiresniff.capture import open_captures
from kwiresniff.export.json_objects import exchange_json
from kwiresniff.model import FIN, Connection, Exchange, Problem, Segment
from kwiresniff.session import Analyzer
from tests.support.capture_files import save
from tests.support.command import Run
from tests.support.comparison import Truth
from tests.support.conversation import Wire, heartbeat, heartbeat_response
from tests.support.events import analyze, analyze_with
from tests.support.sample import mostly_slow

CAPTURES = Path(__file__).parents[2] / "captures"
#: Bare SASL tokens (before KIP-152) and TLS records carry no number that a response could be told by.
NAMES = sorted(
    path.name
    for path in CAPTURES.iterdir()
    if ".pcap" in path.name and not path.name.startswith(("seed", "old-sasl")) and "-tls" not in path.name
)
PLACES = (2, 4, 8, 16)
ROUNDS = 2
EXHAUSTIVE_ROUNDS = 50
PACKET_NS = 10_000


def reordered(segments: Sequence[Segment], places: int, rng: random.Random) -> list[Segment]:
    """Each segment up to ``places`` places from where it was. Segments that are the same stay in their order, since
    the first of them is the one that counts."""
    order = sorted(range(len(segments)), key=lambda index: index + rng.uniform(0, places))
    same: dict[tuple[object, ...], list[Segment]] = defaultdict(list)
    for segment in segments:
        same[segment[2:6]].append(segment)
    return [same[segments[index][2:6]].pop(0) for index in order]


@pytest.mark.parametrize("name", mostly_slow(NAMES, 3))
def test_reordered_packets_cost_nothing(name: str, pytestconfig: pytest.Config) -> None:
    """At a busy capture point (100,000 packets a second) the disorder lasts less than a millisecond."""
    recorded = open_captures([str(CAPTURES / name)])
    segments = [(segment[0], 10**18 + index * PACKET_NS, *segment[2:]) for index, segment in enumerate(recorded)]
    truth = Truth(segments)
    for places in PLACES:
        for seed in range(EXHAUSTIVE_ROUNDS if pytestconfig.getoption("--exhaustive") else ROUNDS):
            found = truth.differences(reordered(segments, places, random.Random(f"{places} {seed}")), tolerance=0)
            assert found == [], f"{places} places, seed {seed}"


def in_halves(segments: Sequence[Segment]) -> list[Segment]:
    """Each segment that carries more than a byte as two, the packets counted anew."""
    halves = []
    for segment in segments:
        _, ns, flow, seq, ack, flags, buffer, start, end, missing = segment
        middle = (start + end) // 2
        if start < middle:
            halves.append((0, ns, flow, seq, ack, flags & ~FIN, buffer, start, middle, 0))
            halves.append((0, ns, flow, seq + middle - start & 0xFFFFFFFF, ack, flags, buffer, middle, end, missing))
        else:
            halves.append(segment)
    return [(packet, *segment[1:]) for packet, segment in enumerate(halves, 1)]


def test_no_message_takes_less_than_no_time() -> None:
    """A message is there when its first and its last byte are; of a response before its request no latency is known."""
    segments = in_halves(list(open_captures([str(CAPTURES / "java-group-classic.pcap")])))
    backwards: Counter[str] = Counter()
    for seed in range(4):
        mixed = [  # each packet has the time at which it is captured
            (segment[0], 10**18 + index * PACKET_NS, *segment[2:])
            for index, segment in enumerate(reordered(segments, 8, random.Random(seed)))
        ]
        times = {segment[0]: segment[1] for segment in mixed}
        for event in analyze(mixed, depth="headers"):
            if isinstance(event, Connection):
                assert event.handshake_rtt_ns is None or event.handshake_rtt_ns >= 0
                assert event.first_ns <= event.last_ns
            if not isinstance(event, Exchange) or event.request is None or event.response is None:
                continue
            asked, answered = (
                (times[message.first_packet], times[message.last_packet]) for message in (event.request, event.response)
            )
            steps = {
                "request_ns": asked[1] - asked[0],
                "wait_ns": answered[0] - max(asked),
                "response_ns": answered[1] - answered[0],
            }
            early = steps["wait_ns"] < 0
            expected = {name: max(step, 0) for name, step in steps.items()} | ({"wait_ns": None} if early else {})
            codes = [problem.code for problem in event.problems]
            assert codes.count("response_before_request") == int(early)
            timing = exchange_json(event)["timing"]
            assert {name: timing[name] for name in expected} == expected
            backwards.update(name for name, step in steps.items() if step < 0)
    assert len(backwards) == 3 and min(backwards.values()) > 10


def early(count: int, ahead_ns: int | None) -> Wire:
    """Heartbeats, each answered after a millisecond, that the capture has behind all their answers; each answer has a
    time ``ahead_ns`` before that of its request, None for the right one.
    """
    wire = Wire().open()
    for number in range(count):
        wire.up(heartbeat(number)).down(heartbeat_response(number))
    sent = wire.segments[3:]
    asked, answered = sent[::2], sent[1::2]
    if ahead_ns is not None:
        answered = [(one[0], ask[1] - ahead_ns, *one[2:]) for ask, one in zip(asked, answered, strict=True)]
    mixed = [*wire.segments[:3], *answered, *asked]
    wire.segments = [(packet, *segment[1:]) for packet, segment in enumerate(mixed, 1)]
    return wire


@pytest.mark.parametrize("depth", ["headers", "errors", "bodies"])
@pytest.mark.parametrize(("ahead_ns", "by_time"), [(400_000, True), (1, True), (None, False)])
def test_responses_before_their_requests_are_paired_and_told(depth: Depth, ahead_ns: int | None, by_time: bool) -> None:
    """Once for a capture, with the first and how many; by their times, or by the order of packets alone."""
    found = list(analyze_with(Analyzer(depth), early(5, ahead_ns).segments))
    exchanges = [one for one in found if isinstance(one, Exchange)]
    assert [(one.correlation_id, one.outcome) for one in exchanges] == [(number, "ok") for number in range(5)]
    assert [one.latency_ns for one in exchanges] == [None if by_time else 1_000_000] * 5
    told = [problem.code for one in exchanges for problem in one.problems]
    assert told == ["response_before_request"] * (5 if by_time else 0)
    (problem,) = (one for one in found if isinstance(one, Problem))
    assert (problem.code, problem.packet) == ("response_before_request", 4)
    assert problem.details == {"responses": 5, "by_time": by_time, "ahead_ns": ahead_ns}
    assert "reordercap" in problem.message


@pytest.mark.parametrize("ahead_ns", [400_000, None])
def test_no_output_has_a_negative_time(kwiresniff: Run, tmp_path: Path, ahead_ns: int | None) -> None:
    """JSON, CSV, trees, summaries and statistics agree: the latency is right, or there is none; stderr has one line."""
    name = save(tmp_path / "early.pcap", early(5, ahead_ns))
    known = ahead_ns is None
    lines = [json.loads(line) for line in kwiresniff("read", "-o", "jsonl", name).out.splitlines()]
    timings = [(one["latency_ns"], one["timing"]) for one in lines if one["kind"] == "exchange"]
    for latency_ns, timing in timings:
        assert latency_ns == timing["wait_ns"] == timing["broker_ns"] == (1_000_000 if known else None)
        assert timing["queued_ns"] == timing["held_ns"] == (0 if known else None)
    (row,) = json.loads(kwiresniff("stats", "-o", "json", name).out)
    assert row["count"] == 5
    assert (row["latency"] or {}).get("count", 0) == (5 if known else 0)
    done = kwiresniff("read", "-o", "summary", name)
    assert ("1.00 ms" in done.out, "-" in done.out) == (known, True)
    assert done.err.count("\n") == 1 and "reordercap" in done.err
    kwiresniff("export", "-O", str(tmp_path / "early.csv"), name)
    for text in (kwiresniff("read", name).out, kwiresniff("stats", name).out, (tmp_path / "early.csv").read_text()):
        assert not re.search(r"(?<![\w.:])-\d+ [µm]?s|,-\d", text)
    (finding,) = json.loads(kwiresniff("doctor", "-o", "json", name).out)
    assert (finding["code"], finding["severity"]) == ("response_before_request", "info")
    assert finding["numbers"] == {"by_time": 0 if known else 5, "by_packet": 5 if known else 0}
