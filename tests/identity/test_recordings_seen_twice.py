"""Recordings whose traffic is in the capture twice: what is counted and concluded is what it was."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.analysis.doctor import Doctor
from kwiresniff.analysis.stats import StatsTable
from kwiresniff.analysis.topic_traffic import TopicTraffic
from kwiresniff.capture import open_captures
from kwiresniff.export.json_objects import stat_json
from kwiresniff.export.topics import topic_json
from kwiresniff.model import Connection, Event, Exchange, Problem
from kwiresniff.session import Analyzer
from tests.support.copies import DOUBLINGS, counted, proxied
from tests.support.events import analyze_with
from tests.support.paths import CAPTURES
from tests.support.sample import sampled, third_of

RECORDINGS = (
    *sorted(path for path in CAPTURES.iterdir() if ".pcap" in path.name and not path.name.startswith("seed-")),
    *sorted((CAPTURES / "incidents").glob("*.pcap.xz")),
)
#: Far enough apart that a client, recorded beside its broker, acts on what the broker has not sent yet.
ACAUSAL = {"two points 25 ms apart"}
#: Which view is nearer to the broker is not known where a connection ends without an answer; nor is how far it is, if
#: the recording was made beside the client.
ENDINGS = {"connection-rate", "connections-per-ip", "far-away", "silence"}
#: On a path that loses packets some views of a connection lack what others have, so that what the loss cost is told in
#: another way; that packets are lost is told of each.
LOSSES = {"loss-to-one-broker"}
#: What is known to be wrong. Of a broker that one host alone cannot reach, seen by two names, it is not told. Copies
#: 200 ms later look like packets sent again where a connection has few, and hide that one was sent again. Two points on
#: a path that loses packets tell of late writes, and not of the loss.
KNOWN = {
    ("one-host-shut-out", "DNAT"), ("kafkajs", "mirrored 200 ms later"), ("idle-forgotten", "mirrored 200 ms later"),
    ("loss-to-one-broker", "two points 0.5 ms apart"),
}  # fmt: skip
CASES = [
    (path, name)
    for path in RECORDINGS
    for name in DOUBLINGS
    if name in third_of(DOUBLINGS, path.name) or (path.name.partition(".")[0], name) in KNOWN
]
#: What a view counts of an exchange, beside its times.
COUNTS = ("api", "count", "errors", "unanswered", "negotiation", "request_bytes", "response_bytes")
TOPIC_COUNTS = ("topic", "partitions", "refused", "repeated", "lag")


def numbers(events: Iterable[Event]) -> list[dict[str, Any]]:
    """What ``stats`` and ``topics`` count."""
    stats, topics = StatsTable(("api",), str, records=True), TopicTraffic(str)
    for event in events:
        if isinstance(event, Exchange):
            stats.add(event)
            topics.exchange(event)
    rows = [stat_json(row) for row in stats.rows()]
    found = [{name: row.get(name) for name in COUNTS} for row in rows]
    found += [{name: row.get(name) for name in TOPIC_COUNTS} for row in map(topic_json, topics.topics())]
    return sorted(found, key=str)


def codes(events: Iterable[Event]) -> set[str]:
    """What the doctor finds above info."""
    doctor = Doctor(str)
    for event in events:
        doctor.add(event)
    return {one.code for one in doctor.findings() if one.severity != "info"}


@pytest.mark.parametrize("case", sampled(CASES, 8), ids=lambda case: f"{case[0].name}-{case[1]}")
def test_a_recording_seen_twice_counts_once(case: tuple[Path, str], request: pytest.FixtureRequest) -> None:
    """By a mirror, NAT, a proxy and two capture points: equal counts, and no findings that were not there."""
    path, name = case
    if (path.name.partition(".")[0], name) in KNOWN:
        request.node.add_marker(pytest.mark.xfail(strict=True, reason="known"))
    segments = list(open_captures([str(path)]))
    whole = list(analyze_with(Analyzer(Doctor.NEEDS), segments))
    once = counted(DOUBLINGS[name](segments))
    assert numbers(once) == numbers(whole)
    if name not in ACAUSAL and path.name.partition(".")[0] not in ENDINGS | LOSSES:
        assert codes(once) == codes(whole)
    elif path.name.partition(".")[0] in LOSSES:
        assert "retransmits" in codes(once)


@pytest.mark.parametrize("name", ["DNAT", "SNAT", "proxied"])
def test_the_other_view_is_named(name: str) -> None:
    """All views are shown where nothing is counted: each other view says of which connection it is one."""
    segments = list(open_captures([str(CAPTURES / "java-produce.pcap")]))
    events = counted(DOUBLINGS[name](segments), all_views=True)
    views = [event for event in events if isinstance(event, Connection)]
    copies = [view for view in views if view.copy_of is not None]
    assert len(copies) * 2 == len(views)
    assert {view.copy_of for view in copies} == {view.id for view in views if view.copy_of is None}
    assert {view.via for view in copies} == {"proxy" if name == "proxied" else "nat"}
    apart_ns = {view.apart_ns for view in copies} - {None}
    assert apart_ns == ({600_000} if name == "proxied" else {24_000})
    (problem,) = (event for event in events if isinstance(event, Problem) and event.code == "other_view")
    assert problem.details is not None and problem.details["via"] == copies[0].via


@pytest.mark.parametrize("name", ["kafkajs.pcap", "java-group-classic.pcap", "aiokafka.pcap"])
def test_a_proxy_that_less_speaks_for_counts_once(name: str) -> None:
    """One with a clock of its own, or with other addresses on either side: then the messages of short connections that
    came before are not enough."""
    segments = list(open_captures([str(CAPTURES / name)]))
    whole = list(analyze_with(Analyzer(Doctor.NEEDS), segments))
    assert numbers(counted(proxied(segments, 5_000_000))) == numbers(whole)
    elsewhere = counted(proxied(segments, apart=True))
    assert codes(elsewhere) == codes(whole)
    again = sum(isinstance(one, Exchange) for one in elsewhere) - sum(isinstance(one, Exchange) for one in whole)
    assert 0 <= again < 10


@pytest.mark.parametrize("apart_ns", [500_000, 25_000_000])
def test_two_capture_points_are_no_retransmissions(apart_ns: int) -> None:
    """Latencies are those of the recording, which is the point nearest to the broker."""
    segments = list(open_captures([str(CAPTURES / "kafkajs.pcap")]))
    whole = counted(segments)
    twice = counted(DOUBLINGS[f"two points {'0.5' if apart_ns < 10**6 else '25'} ms apart"](segments))
    latencies, again = (
        [event.latency_ns for event in events if isinstance(event, Exchange)] for events in (whole, twice)
    )
    assert sorted(map(str, again)) == sorted(map(str, latencies))
    found = [event for event in twice if isinstance(event, Connection)]
    before = {event.client: event for event in whole if isinstance(event, Connection)}
    assert all(one.is_twice and one.later_ns == apart_ns for one in found if one.exchanges)
    assert all(one.bytes == before[one.client].bytes for one in found)
    assert all(sum(one.retransmits) <= sum(before[one.client].retransmits) for one in found)
