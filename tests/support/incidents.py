"""Made-up incidents: the events that several tests of the doctor share, and what it says of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from kwiresniff.analysis.cluster_evidence import learn_cluster
from kwiresniff.analysis.doctor import Doctor, Doctors
from kwiresniff.analysis.sinks import CallingSink
from kwiresniff.identity.clusters import Clusters
from kwiresniff.identity.copies import Copies
from kwiresniff.identity.held_events import HeldEvents
from kwiresniff.model import Connection, ConnectionAttempt, Event, Exchange, Segment
from kwiresniff.results.findings import Finding
from kwiresniff.session import Analyzer
from tests.support.events import analyze_with
from tests.support.exchanges import START_NS, connection, exchange, produced

SECOND = 1_000_000_000
CLIENT, BROKER = "10.0.0.5", "10.0.0.1:9092"


def findings(*events: Event) -> list[Finding]:
    """What the doctor finds in these events, of which one topic has the id ``id-1``."""
    doctor = Doctor({"id-1": "orders"}.get)
    for event in events:
        doctor.add(event)
    return doctor.findings()


def found_in(segments: Iterable[Segment], code: str = "") -> list[Finding]:
    """What the doctor finds in a capture, each cluster and each view by itself; with ``code`` only that of the code."""
    clusters = Clusters()
    analyzer = Analyzer(Doctors.NEEDS)
    doctor = Doctors(analyzer.topics.name, (), clusters)
    held = HeldEvents(Copies(CallingSink(doctor.exchange, doctor.add)), clusters, partial(learn_cluster, clusters))
    analyzer.give_to(held)
    for _ in analyze_with(analyzer, segments):
        pass
    held.release()
    return [one for one in doctor.judgement().findings if code in ("", one.code)]


def codes(*events: Event) -> list[tuple[str, str]]:
    """Code and severity of each finding."""
    return [(one.code, one.severity) for one in findings(*events)]


def closed(number: int, by: str, at_ns: int = SECOND, broker: str = BROKER, **more: Any) -> Connection:
    """A connection that has ended."""
    made = connection(number, f"{CLIENT}:{10_000 + number}", broker)
    made.client_id, made.closed_by, made.closed_ns, made.closed_packet = "billing-1", by, START_NS + at_ns, 90 + number
    made.first_ns, made.first_packet, made.handshake_seen, made.bytes = START_NS, number, True, [200, 0]
    for name, value in more.items():
        setattr(made, name, value)
    return made


def lost(on: Connection, api: str = "Metadata", key: int = 3, version: int = 12, **more: Any) -> Exchange:
    """A request without an answer."""
    on.exchanges["unanswered"] = on.exchanges.get("unanswered", 0) + 1
    return exchange(api, key, version, latency_ns=None, outcome="unanswered", on=on, **more)


def partition(index: int, leader: int, epoch: int, **more: Any) -> dict[str, Any]:
    return {"error_code": 0, "partition_index": index, "leader_id": leader, "leader_epoch": epoch, **more}


def metadata(
    *partitions: dict[str, Any],
    hosts: dict[int, str] | None = None,
    at_ns: int = 0,
    topic: str = "orders",
    on: Connection | None = None,
    **more: Any,
) -> Exchange:
    """A Metadata answer of a cluster whose nodes listen at 10.0.0.ID:9092."""
    hosts = hosts if hosts is not None else {node: f"10.0.0.{node}" for node in (1, 2, 3)}
    body = {
        "cluster_id": "c",
        "brokers": [{"node_id": node, "host": host, "port": 9092} for node, host in hosts.items()],
        "topics": [{"error_code": 0, "name": topic, "partitions": list(partitions)}],
    }
    return exchange("Metadata", 3, 12, request={}, response=body, start_ns=START_NS + at_ns, on=on, **more)


def attempt(server: str, at_ns: int = SECOND, *, refused: bool = False, number: int = 1) -> ConnectionAttempt:
    ns = START_NS + at_ns
    return ConnectionAttempt(f"{CLIENT}:{20_000 + number}", server, 50 + number, ns, ns + 3 * SECOND, 3, refused)


def produce(at_ns: int, index: int = 0, *, on: Connection | None = None, **more: Any) -> Exchange:
    batch = {"magic": 2, "records_count": 10, "size_bytes": 1000, "producer_id": 7, "producer_epoch": 0}
    return produced([batch], index=index, start_ns=START_NS + at_ns, on=on, **more)


def failed(name: str, code: int, topic: str, partition: int = 0, **more: Any) -> dict[str, Any]:
    """An answer with an error code of a partition."""
    member = {"partition_index": partition, "error_code": code, **more}
    return {
        "errors": [("topics[0].partitions[0].error_code", code, name, True)],
        "outcome": "error",
        "response": {"topics": [{"topic": topic, "partitions": [member]}]},
    }


def many(count: int, every_ns: int, make: Any = exchange, **more: Any) -> list[Exchange]:
    return [make(start_ns=START_NS + number * every_ns, **more) for number in range(count)]
