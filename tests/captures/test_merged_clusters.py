"""Recordings of two clusters in one capture: what each says of itself alone is what both say together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.analysis.clients import Inventory
from kwiresniff.analysis.cluster_evidence import learn_cluster
from kwiresniff.analysis.doctor import Doctors
from kwiresniff.analysis.groups import GroupTimeline
from kwiresniff.analysis.producer_ledger import ProducerLedger
from kwiresniff.analysis.sinks import CallingSink
from kwiresniff.analysis.topic_traffic import TopicTraffic
from kwiresniff.base.needs import Needs
from kwiresniff.export.clients import client_json
from kwiresniff.export.encode import json_line
from kwiresniff.export.findings import finding_json
from kwiresniff.export.groups import group_event_json
from kwiresniff.export.producers import producer_json
from kwiresniff.export.topics import topic_json
from kwiresniff.identity.clusters import Clusters
from kwiresniff.identity.held_events import HeldEvents
from kwiresniff.model import Connection, Event, Exchange, Segment, feed_of
from kwiresniff.session import Analyzer
from tests.support.events import analyze_with
from tests.support.exchanges import START_NS
from tests.support.merged import Network, merged, segments_of
from tests.support.paths import ROOT
from tests.support.sample import mostly_slow, one_in

CAPTURES = ROOT / "captures"

#: Recordings of the same recipe by brokers of several releases: topics, groups and clients have the same names in all.
RECORDINGS = [
    "era-0.10-clients", "era-0.10-failover", "era-0.11-cluster", "era-1.1-admin", "era-1.1-cluster", "era-1.1-failover",
    "era-2.3-clients", "era-2.3-groups", "era-2.3-cluster", "zookeeper-2.8",
]  # fmt: skip
#: Recordings in which brokers start and try to reach others before anybody has named these: of which cluster such an
#: attempt is, nobody can say. And one whose requests without an answer are told when the capture ends, which is later.
LEFT_OUT = ("kraft-", "migration-", "share-", "streams-", "broker-frozen")
#: What depends on where a packet stands, on which captures there are, and on how long they last together.
_PLACES = {"cluster", "evidence", "packet", "first_packet", "records_per_second", "bytes_per_second", "file"}


def said(segments: Iterable[Segment]) -> Counter[bytes]:
    """Topics, groups, producers, clients and findings, each as a line."""
    analyzer = Analyzer(Doctors.NEEDS)
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

    held = HeldEvents(CallingSink(take, take_other), clusters, partial(learn_cluster, clusters))
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
    """What is left of results, without what is said of a topic that the other cluster has."""
    if isinstance(value, dict):
        return {name: _without_places(part) for name, part in value.items() if name not in _PLACES}
    if isinstance(value, list):
        parts = [_without_places(part) for part in value]
        return [part for part in parts if not (isinstance(part, str) and "another one does" in part)]
    return value


def told_by(segments: Iterable[Segment]) -> set[str]:
    """The cluster ids that a recording tells."""
    clusters = Clusters()
    for event in analyze_with(Analyzer(Needs("bodies", digests=True)), segments):
        if isinstance(event, Exchange):
            clusters.of(event)
    return {clusters.id_of(clusters.node_at(address)) for address in clusters.addresses()}


def pairs() -> list[Any]:
    """Each of some with the next, and every other one of the others, most of them slow, with one of these."""
    some = [str(CAPTURES / "eras" / f"{name}.pcap.xz") for name in RECORDINGS]
    found = one_in(2, sorted(path for path in CAPTURES.rglob("*.pcap*") if "expected" not in path.parts))
    others = [str(path) for path in found if str(path) not in some and not path.name.startswith(LEFT_OUT)]
    return [
        *pairwise([*some, some[0]]),
        *mostly_slow([(path, some[at % len(some)]) for at, path in enumerate(others)], 15),
    ]


@pytest.mark.parametrize("pair", pairs(), ids=lambda pair: " and ".join(Path(path).name for path in pair))
def test_two_clusters_say_together_what_each_says_alone(pair: tuple[str, str]) -> None:
    """Neither lag, nor a group's members, nor a producer's sequences, nor a finding mixes what is of two clusters."""
    one, other = pair
    first = segments_of(one, begin_ns=START_NS)
    second = segments_of(other, begin_ns=START_NS + 50_000_000, network=Network("10.9.0.", "10.8.0."))
    if not first or "" in told_by(first):
        pytest.skip("nothing in it tells its cluster")
    assert said(merged(first, second)) == said(first) + said(second)
