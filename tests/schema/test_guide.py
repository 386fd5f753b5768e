"""Every message of a release against the guide that this release of Kafka prints of itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from kwiresniff import schema
from kwiresniff.schema.grammar import grammar
from tests.schema.guide import digest, digests, grammar_of_4

NEWEST = (Path(__file__).parents[1] / "newest_release.txt").read_text("utf-8").strip()

#: What 3.9 printed otherwise: two names that changed since, and a response that 4.1 changed while it was on trial.
CHANGED_SINCE_3_9 = {
    ("ListClientMetricsResources", "response", 0),
    ("ReadShareGroupStateSummary", "response", 0),
    ("TxnOffsetCommit", "request", 3),
    ("TxnOffsetCommit", "request", 4),
}


def test_every_message_of_the_newest_release_is_as_kafka_prints_it_with_tags_and_nullability() -> None:
    guide = list(digests(NEWEST))
    assert len(guide) >= 570
    for api, direction, version, expected in guide:
        message = schema.message(api, version, "request" if direction == "request" else "response")
        assert digest(grammar_of_4(message)) == expected, (api, direction, version)


def test_every_message_of_3_9_with_the_versions_that_4_0_dropped_is_as_kafka_prints_it() -> None:
    guide = list(digests("3.9.1"))
    assert len(guide) == 610
    for api, direction, version, expected in guide:
        message = schema.message(api, version, "request" if direction == "request" else "response")
        same = digest(grammar(message._replace(name=api))) == expected
        assert same == ((api, direction, version) not in CHANGED_SINCE_3_9), (api, direction, version)


@pytest.mark.parametrize("release", ["3.9.1", NEWEST])
def test_the_guide_prints_no_message_twice(release: str) -> None:
    names = [entry[:3] for entry in digests(release)]
    assert len(set(names)) == len(names)
