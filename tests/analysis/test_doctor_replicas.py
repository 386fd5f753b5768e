"""Replicas that are missing from the ISR and from the list of brokers."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.results.findings import Finding
from tests.support.exchanges import connection
from tests.support.incidents import CLIENT, SECOND, findings, metadata, partition, produce

TWO = {1: "10.0.0.1", 2: "10.0.0.2"}


def short(index: int, in_sync: list[int], leader: int = 1) -> dict[str, Any]:
    return partition(index, leader, 4, replica_nodes=[1, 2, 3], isr_nodes=in_sync, offline_replicas=[])


def under_replicated(*events: Any) -> Finding | None:
    return next((one for one in findings(*events) if one.code == "under_replicated"), None)


def test_a_node_that_is_gone_is_missing_from_the_isr_and_from_the_list_of_brokers() -> None:
    """With how many replicas are left, and who leads."""
    seen = metadata(short(0, [1, 2]), short(1, [2, 1], 2), short(2, [1, 2]), hosts=TWO)
    found = under_replicated(seen)
    assert found is not None and (found.severity, found.subject) == ("warning", "node 3")
    assert "3 of 3 partitions are under-replicated" in found.title
    assert "node 3 is missing from the ISR and from the list of brokers" in found.title
    assert found.numbers["not_in_broker_list"] == [3] and found.numbers["least_in_sync"] == 2
    assert "min.insync.replicas=2, one more loss" in found.details[0]
    assert "node 1 leads 2 of these 3 partitions" in found.details


def test_a_node_that_is_there_and_lags_is_told_as_that() -> None:
    """The remedy is about its replication; nothing says that it is gone."""
    found = under_replicated(metadata(short(0, [1]), short(1, [1])))
    assert found is not None and found.numbers["missing"] == [2, 3]
    assert "are missing from the ISR, and in the list of brokers" in found.title
    assert "does not keep up" in found.remedy
    assert "if that one goes as well" in found.details[0]


def test_a_node_that_is_cut_off_from_the_others_is_told_as_that() -> None:
    """It is missing where others lead, and these where it leads, in one time; a node that only lags leads with all."""
    others_lead, it_leads = [short(0, [1, 2]), short(1, [1, 2], 2)], [short(2, [3], 3), short(3, [3], 3)]
    found = under_replicated(metadata(*others_lead, *it_leads))
    assert found is not None and found.subject.startswith("node 3")
    assert "node 3 (10.0.0.3:9092) and the others do not copy from each other" in found.title
    assert "inter.broker.listener.name" in found.remedy and not any("reassignment" in one for one in found.details)
    apart = "do not copy"
    for seen in (others_lead, it_leads, [*others_lead, *it_leads, short(4, [1, 3])]):
        found = under_replicated(metadata(*seen))
        assert found is not None and apart not in found.title
    found = under_replicated(metadata(*it_leads), metadata(*others_lead, at_ns=6 * SECOND))
    assert found is not None and apart not in found.title, "one after the other, as in a restart of all"
    found = under_replicated(metadata(*others_lead, *it_leads, hosts=TWO))
    assert found is not None and apart not in found.title, "it is gone"


def test_writes_that_are_refused_by_a_node_that_is_cut_off_name_it() -> None:
    """None of the others left; the replicas are its symptom."""
    answer = {"responses": [{"name": "orders", "partition_responses": [{"index": 2, "error_code": 19}]}]}
    errors = [("responses[0].partition_responses[0].error_code", 19, "NOT_ENOUGH_REPLICAS", True)]
    refused = produce(SECOND, index=2, response=answer, errors=errors, outcome="error")
    (found,) = findings(metadata(short(0, [1, 2]), short(2, [3], 3)), refused)
    assert found.code == "not_enough_replicas" and "node 3 (10.0.0.3:9092) and the others do not copy" in found.title
    assert [one.code for one in found.symptoms] == ["under_replicated"]


@pytest.mark.parametrize(("in_sync", "at_s", "named"), [([1, 3], 8, True), ([1], 8, False), ([1, 3], 60, False)])
def test_writes_waited_for_the_replica_that_then_fell_out(in_sync: list[int], at_s: int, named: bool) -> None:
    """It alone, and soon; which of two it was, nothing shows."""
    whole = metadata(short(0, [1, 2, 3]), short(1, [3, 1, 2], 3))
    waits = [
        produce(SECOND, on=connection(4, f"{CLIENT}:4"), latency_ns=6 * SECOND, queued=0, held=0),
        produce(SECOND, 1, on=connection(5, f"{CLIENT}:5", "10.0.0.3:9092"), latency_ns=6 * SECOND, queued=0, held=0),
    ]
    fell = metadata(short(0, in_sync), short(1, in_sync, 3), at_ns=at_s * SECOND)
    (found,) = [one for one in findings(whole, *waits, fell) if one.code == "replica_wait"]
    assert found.subject.startswith("node 2") == named
    assert ("node 2 (10.0.0.2:9092) stopped copying" in found.title) == named
    assert ([one.code for one in found.symptoms].count("under_replicated") == 1) == named


def test_what_is_in_sync_again_is_no_finding() -> None:
    """The last answer counts."""
    assert under_replicated(metadata(short(0, [1, 2])), metadata(short(0, [1, 2, 3]), at_ns=SECOND)) is None


@pytest.mark.parametrize(("lasted_s", "severity"), [(5, "info"), (31, "warning")])
def test_a_replica_that_has_just_left_is_good_to_know(lasted_s: int, severity: str) -> None:
    """A restart takes less than replica.lag.time.max.ms, 30 s by default."""
    gone = [metadata(short(0, [1, 2]), at_ns=(1 + second) * SECOND, hosts=TWO) for second in (0, lasted_s)]
    found = under_replicated(metadata(short(0, [1, 2, 3])), *gone)
    assert found is not None and found.severity == severity


def test_a_replica_that_is_in_sync_elsewhere_may_be_new() -> None:
    """A reassignment adds replicas that have to catch up."""
    found = under_replicated(metadata(short(0, [1, 2]), short(1, [1, 2, 3])))
    assert found is not None and "1 of 2 partitions is under-replicated" in found.title
    assert any("reassignment" in one for one in found.details)


def test_a_cluster_whose_replicas_are_all_in_sync_is_silent() -> None:
    assert findings(metadata(short(0, [1, 2, 3]), short(1, [3, 2, 1]))) == []


def test_a_replica_that_is_offline_while_its_broker_is_there_is_in_a_failed_log_directory() -> None:
    """KIP-112: Metadata names it."""
    failed = partition(0, 1, 4, replica_nodes=[1, 2, 3], isr_nodes=[1, 2], offline_replicas=[3])
    found = under_replicated(metadata(failed))
    assert found is not None and "a log directory failed" in found.title
    assert "log directory that it took offline" in found.remedy


def spread(leaders: list[int], first: int = 0) -> Any:
    """A topic whose partitions all have three replicas in sync, with these leaders; ``first`` stands first in each."""
    nodes = [[first or leader, *[node for node in (1, 2, 3) if node != (first or leader)]] for leader in leaders]
    return metadata(
        *[
            partition(index, leader, 4, replica_nodes=nodes[index], isr_nodes=nodes[index])
            for index, leader in enumerate(leaders)
        ]
    )


@pytest.mark.parametrize(
    ("leaders", "idle"),
    [
        pytest.param([1] * 9, [2, 3], id="one leads all"),
        pytest.param([1, 2] * 5, [3], id="one leads none"),
        pytest.param([1] * 8, [], id="too few to tell"),
        pytest.param([1, 2, 3] * 4, [], id="spread"),
        pytest.param([1] * 8 + [2, 3], [], id="each leads some"),
    ],
)
def test_brokers_that_lead_nothing_are_told_where_that_is_no_chance(leaders: list[int], idle: list[int]) -> None:
    """Each would lead three or more if leaders were spread."""
    found = [one for one in findings(spread(leaders)) if one.code == "leader_imbalance"]
    assert [one.numbers["nodes"] for one in found] == ([idle] if idle else [])


def test_what_to_do_about_leaders_depends_on_who_is_preferred() -> None:
    """An election brings back preferred leaders; where the assignment prefers one broker, it has to change."""
    (found,) = findings(spread([1] * 9, first=2))
    assert "kafka-leader-election" in found.remedy and found.numbers["preferred"] == 9
    (found,) = findings(spread([1] * 9, first=1))
    assert "kafka-reassign-partitions" in found.remedy and found.evidence
