"""Flows made up for tests of what shows them."""

from __future__ import annotations

from typing import Any

from kwiresniff.results.flows import BrokerBytes, Flow
from kwiresniff.results.topics import NO_FLOW, TopicFlow
from tests.support.exchanges import START_NS


def made_flow(client_id: str | None, topic: str = "orders", **more: Any) -> Flow:
    """What a client of ``10.0.0.5`` produced to a topic: 10 records of 1,000 bytes in all, unless ``more`` says other.

    ``size_bytes`` and ``brokers`` (pairs of zone and bytes) may be among ``more`` beside the members of a flow.
    """
    size_bytes = more.pop("size_bytes", 1_000)
    brokers = [BrokerBytes(f"10.0.1.{at}:9092", at, zone, size) for at, (zone, size) in
               enumerate(more.pop("brokers", ()))]  # fmt: skip
    usual: dict[str, Any] = {
        "role": "producer", "topic": topic, "client_id": client_id, "address": "10.0.0.5",
        "software": ("apache-kafka-java", "4.4.0"), "principal": None, "groups": (),
        "records": TopicFlow(1, 1, 10, size_bytes), "refused": NO_FLOW, "repeated": NO_FLOW, "errors": 0,
        "unanswered": 0, "lag": None, "zone": None, "brokers": tuple(brokers), "seconds": 10.0,
        "first_ns": START_NS, "last_ns": START_NS,
    }  # fmt: skip
    return Flow(**{**usual, **more})
