"""Names by the thousand: what is worked out in the end takes no more time and memory than what was remembered."""

from __future__ import annotations

from time import process_time

import pytest

from kwiresniff.analysis.doctor import Doctor, judgement
from kwiresniff.analysis.doctor.cluster import Cluster
from kwiresniff.analysis.doctor.troubles import acl_changes
from kwiresniff.analysis.late_names import renamer
from kwiresniff.analysis.memory_budget import MemoryBudget
from kwiresniff.analysis.topic_table import MAX_GROUPS
from kwiresniff.analysis.topic_traffic import TopicTraffic
from kwiresniff.model import Connection
from kwiresniff.results.findings import Finding, scope_of
from tests.support.exchanges import START_NS, connection, exchange
from tests.support.resident import resident

MEGABYTE = 1 << 20


def test_a_client_in_all_groups_that_reads_all_topics_has_the_first_groups_under_each() -> None:
    """Two thousand of each: every group under every topic took 700 MB and minutes where there were some more."""
    program = """
traffic = TopicTraffic()
on = connection()
for number in range(2_000):
    topics = [{"topic": f"topic-{number}", "partitions": [{"partition": 0, "fetch_offset": 3}]}]
    traffic.exchange(exchange("Fetch", 1, 11, on=on, request={"topics": topics}, response={"responses": []}))
    asked = {"group_id": f"group-{number}", "member_id": "m", "generation_id": 1}
    traffic.exchange(exchange("Heartbeat", 12, 4, on=on, request=asked, response={"error_code": 0}))
found = traffic.topics()
print(len(found), {len(one.groups) for topic in found for one in topic.consumers}, traffic.left_out)
"""
    grown, printed = resident("from kwiresniff.analysis.topic_traffic import TopicTraffic", program)
    assert printed == f"2000 {{{MAX_GROUPS}}} {2_000 - MAX_GROUPS}"
    assert grown < 16 * MEGABYTE


def seconds_to_list(clients: int) -> float:
    """Of one topic that so many clients write to, the half of which have not named their software."""
    traffic = TopicTraffic()
    for number in range(clients):
        on = connection(number, f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}:5000")
        on.client_software = {"name": "s", "version": "1"} if number % 2 else None
        body = {"acks": 1, "topic_data": [{"name": "orders", "partition_data": [{"index": 0, "records": []}]}]}
        traffic.exchange(exchange("Produce", 0, 8, on=on, request=body, response={"responses": []}))
    began = process_time()
    (topic,) = traffic.topics()
    assert len(topic.producers) == clients
    return process_time() - began


def test_clients_without_software_are_looked_for_once() -> None:
    """Four times as many take about four times as long, not sixteen times."""
    seconds_to_list(100)
    assert min(seconds_to_list(4_000) for _ in range(2)) < 9 * min(seconds_to_list(1_000) for _ in range(3))


def test_changes_of_acls_beyond_those_that_are_remembered_are_not_put_into_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A request has room for tens of thousands, and each needs its time of day."""
    worded: list[int] = []

    def clock(ns: int) -> str:
        worded.append(ns)
        return "12:00"

    monkeypatch.setattr(acl_changes, "clock", clock)
    acl = {"resource_type": 2, "resource_name": "t", "resource_pattern_type": 3, "principal": "User:a"}
    denials = [{**acl, "permission_type": 2} for _ in range(20_000)]
    doctor = Doctor()
    answer = {"results": [{"error_code": 0}] * 20_000}
    doctor.add(exchange("CreateAcls", 30, 2, request={"creations": denials}, response=answer))
    assert len(worded) == acl_changes.MAX_CHANGES


def test_what_holds_no_topic_id_is_given_back_as_it_is() -> None:
    """A dict, too, where it was made anew for every event."""
    details = {"partitions": {"orders": list(range(1_000))}, "wait_ns": 5, "reason": None}
    assert renamer(lambda _: None)(details) is details


def test_clients_that_connect_again_and_again_are_remembered_once() -> None:
    """The budget is charged for who got to work on which broker, not for each connection on which they did."""
    budget = MemoryBudget(1 << 30)
    cluster = Cluster(budget)

    def work(number: int) -> Connection:
        one = exchange("Fetch", 1, 11, on=connection(number))
        cluster.answered(one, START_NS + number)
        return one.connection

    cluster.ended(work(1))
    held = budget.held_bytes
    for number in range(2, 1_000):
        cluster.ended(work(number))
    assert budget.held_bytes == held


def seconds_to_merge(count: int) -> float:
    """Of findings of the same kind, each about another broker."""
    alike = [
        Finding("slow", "error", f"broker {number}", "", "", 1, (), {}, 1, 2, scope=scope_of("broker", [str(number)]))
        for number in range(count)
    ]
    began = process_time()
    (whole,) = judgement.merged_alike(alike)
    assert len(whole.scope) == count
    return process_time() - began


def test_findings_about_thousands_are_merged_in_time_that_grows_with_them() -> None:
    """Eight times as many take about eight times as long, not sixty-four times: a flood of refused SYNs has 10,000."""
    assert min(seconds_to_merge(16_000) for _ in range(2)) < 24 * min(seconds_to_merge(2_000) for _ in range(3))


def seconds_to_examine(partitions: int, replicas: int) -> float:
    """Of Metadata that names so many partitions and brokers, each with so many replicas of which one is not in sync."""
    nodes = [list(range(number, number + replicas)) for number in range(partitions)]
    listed = [
        {"partition_index": number, "leader_id": 0, "replica_nodes": found, "isr_nodes": found[1:]}
        for number, found in enumerate(nodes)
    ]
    brokers = [{"node_id": number} for number in range(partitions)]
    answer = {"brokers": brokers, "topics": [{"name": "orders", "partitions": listed}]}
    doctor = Doctor()
    doctor.add(exchange("Metadata", 3, 12, response=answer))
    began = process_time()
    assert any(one.code == "under_replicated" for one in doctor.findings())
    return process_time() - began


@pytest.mark.parametrize(("partitions", "replicas"), [(1_500, 2), (1, 6_000)])
def test_many_brokers_and_many_replicas_are_compared_in_time_that_grows_with_them(
    partitions: int, replicas: int
) -> None:
    """Each broker was looked for in each partition, and each replica among those in sync: five seconds a megabyte."""
    few = min(seconds_to_examine(partitions, replicas) for _ in range(2))
    more = (partitions * 8, replicas) if partitions > 1 else (1, replicas * 8)
    assert seconds_to_examine(*more) < 24 * few + 0.1
