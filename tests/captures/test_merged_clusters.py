"""Recordings of two clusters in one capture: what each says of itself alone is what both say together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain, pairwise
from typing import Any

import pytest

from kwiresniff.analysis.clients import Inventory
from kwiresniff.analysis.cluster_evidence import cluster_of
from kwiresniff.analysis.doctor import Doctors
from kwiresniff.analysis.groups import GroupTimeline
from kwiresniff.analysis.producer_ledger import ProducerLedger
from kwiresniff.analysis.sinks import CallingSink
from kwiresniff.analysis.topic_traffic import TopicTraffic
from kwiresniff.export import json_line
from kwiresniff.export.clients import client_json
from kwiresniff.export.findings import finding_json
from kwiresniff.export.groups import group_event_json
from kwiresniff.export.producers import producer_json
from kwiresniff.export.topics import topic_json
from kwiresniff.identity.clusters import Clusters
from kwiresniff.identity.held_events import HeldEvents
from kwiresniff.model import Connection, Event, Exchange, Segment, feed_of
from kwiresniff.session import Analyzer
from tests.support.exchanges import START_NS
from tests.support.merged import Network, merged, segments_of
from tests.support.paths import ROOT

#: Recordings of the same recipe by brokers of several releases: topics, groups and clients have the same names in all.
RECORDINGS = [
    "era-0.10-clients", "era-0.10-failover", "era-0.11-cluster", "era-1.1-admin", "era-1.1-cluster", "era-1.1-failover",
    "era-2.3-clients", "era-2.3-groups", "era-2.3-cluster", "zookeeper-2.8",
]  # fmt: skip
#: What depends on where a packet stands, on which captures there are, and on how long they last together.
_PLACES = {"cluster", "evidence", "packet", "first_packet", "records_per_second", "bytes_per_second", "file"}


def said(segments: Iterable[Segment]) -> Counter[bytes]:
    """Topics, groups, producers, clients and findings, each as a line."""
    analyzer = Analyzer("bodies", sessions=True, attempts=True, digests=True)
    name, clusters = analyzer.topics.name, Clusters()
    inventory, topics = Inventory(name, clusters), TopicTraffic(name, clusters)
    timeline, ledger = GroupTimeline(name, clusters), ProducerLedger(name, clusters)
    doctor = Doctors(name, clusters=clusters)

    def take(exchange: Exchange) -> None:
        for call in (doctor.exchange, inventory.exchange, topics.exchange, timeline.add, ledger.exchange):
            call(exchange)

    def take_other(event: Event) -> None:
        doctor.add(event)
        if isinstance(event, Connection):
            inventory.connection(event)

    held = HeldEvents(CallingSink(take, take_other), clusters, partial(cluster_of, clusters))
    analyzer.give_to(held)
    for _ in chain(analyzer.read(feed_of(segments)), analyzer.end()):
        pass
    held.release()
    found: list[dict[str, Any]] = [
        *map(topic_json, topics.topics()), *map(group_event_json, timeline.events()),
        *map(producer_json, ledger.producers()), *map(client_json, inventory.clients()),
        *map(finding_json, doctor.findings()),
    ]  # fmt: skip
    return Counter(json_line(_without_places(one)) for one in found)


def _without_places(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_places(part) for name, part in value.items() if name not in _PLACES}
    return [_without_places(part) for part in value] if isinstance(value, list) else value


def pairs() -> Iterator[tuple[str, str]]:
    return pairwise([*RECORDINGS, RECORDINGS[0]])


@pytest.mark.parametrize(("one", "other"), list(pairs()))
def test_two_clusters_say_together_what_each_says_alone(one: str, other: str) -> None:
    """Neither lag, nor a group's members, nor a producer's sequences, nor a finding mixes what is of two clusters."""
    folder = ROOT / "captures" / "eras"
    first = segments_of(str(folder / f"{one}.pcap.xz"), begin_ns=START_NS)
    second = segments_of(
        str(folder / f"{other}.pcap.xz"), begin_ns=START_NS + 50_000_000, network=Network("10.9.0.", "10.8.0.")
    )
    assert said(merged(first, second)) == said(first) + said(second)
