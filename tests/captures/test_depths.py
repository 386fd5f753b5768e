"""What ``stats`` sees of an exchange without decoding it is what decoding finds, in recordings of every version."""

from __future__ import annotations

import pytest

from kwiresniff.base.depths import Depth
from kwiresniff.capture import open_captures
from kwiresniff.model import Exchange
from tests.captures.coverage import CAPTURES
from tests.support.events import analyze
from tests.support.sample import mostly_slow

RECORDINGS = (
    "librdkafka-transactions.pcap",
    "java-share-group.pcap",
    "eras/era-1.1-clients.pcap.xz",
    "eras/migration-3.9.pcap.xz",
    "eras/share-4.0.pcap.xz",
    "eras/versions-3.9.pcap.xz",
    "eras/versions-4.4.pcap.xz",
)


def exchanges(recording: str, depth: Depth, *, topics: bool = False) -> list[Exchange]:
    events = analyze(open_captures([str(CAPTURES / recording)]), depth=depth, topics=topics)
    return [event for event in events if isinstance(event, Exchange)]


@pytest.mark.parametrize("recording", mostly_slow(RECORDINGS, 2))
def test_errors_outcomes_and_waits_are_the_same_at_every_depth(recording: str) -> None:
    def facts(exchange: Exchange) -> tuple[object, ...]:
        codes = sorted(code for _, code, _, _ in exchange.errors)
        return exchange.api, exchange.correlation_id, codes, exchange.outcome, exchange.waiting

    shallow = [facts(exchange) for exchange in exchanges(recording, "errors")]
    assert shallow == [facts(exchange) for exchange in exchanges(recording, "bodies")]
    assert any(codes for _, _, codes, _, _ in shallow)


@pytest.mark.parametrize("recording", RECORDINGS)
def test_topics_are_names_or_ids(recording: str) -> None:
    """An error code is not taken for a topic, whatever its field is called."""
    found = {topic for exchange in exchanges(recording, "errors", topics=True) for topic in exchange.topics}
    assert found and all(isinstance(topic, str) for topic in found)


def test_the_metadata_log_has_its_name() -> None:
    """Its id is the same in every cluster, and no message tells the name with it."""
    fetches = [e for e in exchanges("eras/share-4.4.pcap.xz", "errors", topics=True) if e.api == "Fetch"]
    raft = {topic for e in fetches if (e.client_id or "").startswith("raft-client") for topic in e.topics}
    assert raft == {"__cluster_metadata"}
