"""The comparison with old brokers' logs notices what is wrong: each text below is one value off."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.schema import message
from tests.support.log_text import differences

JOIN_GROUP: dict[str, Any] = {
    "group_id": "archive",
    "session_timeout_ms": 10000,
    "rebalance_timeout_ms": 300000,
    "member_id": "",
    "protocol_type": "consumer",
    "protocols": [{"name": "range", "metadata": b"x" * 18}],
}
SAID = (
    "{group_id=archive,session_timeout=10000,rebalance_timeout=300000,member_id=,protocol_type=consumer,"
    "group_protocols=[{protocol_name=range,protocol_metadata=java.nio.HeapByteBuffer[pos=0 lim=18 cap=18]}]}"
)
FETCH: dict[str, Any] = {
    "replica_id": 3,
    "max_wait_ms": 1000,
    "min_bytes": 1,
    "topics": [
        {"topic": "gauges", "partitions": [{"partition": 0, "fetch_offset": 7, "partition_max_bytes": 1048576}]}
    ],
}
NAMED = (
    " CorrelationId: 0; ClientId: ReplicaFetcherThread-0-1; ReplicaId: 3; MaxWait: 1000 ms; MinBytes: 1 bytes;"
    " RequestInfo: [gauges,0] -> PartitionFetchInfo(7,1048576)"
)


def test_a_body_is_its_text() -> None:
    assert differences(message(11, 1, "request").fields, JOIN_GROUP, SAID, "here") == []
    assert differences(message(1, 0, "request").fields, FETCH, NAMED, "here") == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("archive", "archives"),
        ("10000", "1000"),
        ("member_id=", "member_id=m"),
        ("lim=18", "lim=17"),
        ("}]}", ",more=1}]}"),
    ],
)
def test_another_value_in_the_text_is_a_difference(right: str, wrong: str) -> None:
    text = SAID.replace(right, wrong)
    assert text != SAID
    assert len(differences(message(11, 1, "request").fields, JOIN_GROUP, text, "here")) == 1


@pytest.mark.parametrize(("right", "wrong"), [("gauges", "gauge"), ("(7,", "(8,"), ("ReplicaId: 3", "ReplicaId: 4")])
def test_another_value_in_the_text_of_0_8_is_a_difference(right: str, wrong: str) -> None:
    text = NAMED.replace(right, wrong)
    assert text != NAMED
    assert len(differences(message(1, 0, "request").fields, FETCH, text, "here")) == 1
