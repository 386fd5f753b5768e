"""What analyses remember of the wire is bounded in bytes, and what is given up is counted.

Every program below has far more to remember than may be, in as few and as large pieces as the wire allows, or as many.
"""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.analysis import stats
from kwiresniff.analysis.doctor import Doctor, evidence, judgement
from kwiresniff.analysis.doctor.judgement import explains
from kwiresniff.analysis.groups import GroupTimeline
from kwiresniff.analysis.memory_budget import MemoryBudget, value_bytes
from kwiresniff.base.placeholders import OTHERS
from kwiresniff.results.findings import Finding
from tests.support.exchanges import exchange
from tests.support.resident import resident
from tests.support.sample import mostly_slow

MEGABYTE = 1 << 20

#: The imports and the program of each case, and the megabytes allowed: the limit, and a quarter for what is on its way.
CASES: dict[str, tuple[str, str, int]] = {
    "assignments of groups": (
        "from kwiresniff.analysis.groups import GroupTimeline",
        """
timeline = GroupTimeline()
for number in range(400):
    assigned = {"assigned_partitions": [{"topic": "t", "partitions": list(range(number, number + 10_000))}]}
    answer = {"assignment": b"..", "assignment_decoded": {"data": assigned}}
    asked = {"group_id": "g", "member_id": str(number), "generation_id": number}
    timeline.add(exchange("SyncGroup", 14, 3, request=asked, response=answer))
print(timeline.left_out > 0 and len(timeline.events()) + timeline.left_out == 400, timeline.forgotten > 0)
""",
        120,
    ),
    "commits of groups": (
        "from kwiresniff.analysis.groups import GroupTimeline",
        """
timeline = GroupTimeline()
for number in range(8_000):
    parts = [{"partition_index": 3, "committed_offset": number}]
    asked = {"group_id": "g", "member_id": "m", "topics": [{"name": f"{number:06}" * 5_000, "partitions": parts}]}
    if number % 100 == 99:
        asked["member_id"] = str(number)
    timeline.add(exchange("OffsetCommit", 8, 8, request=asked, response={}))
print(timeline.left_out > 0, timeline.forgotten)
""",
        80,
    ),
    "members with long names": (
        "from kwiresniff.analysis.groups import GroupTimeline",
        """
timeline = GroupTimeline()
for number in range(6_000):
    asked = {"group_id": f"{number:06}" * 5_000, "member_id": "m", "member_epoch": 1}
    answer = {"error_code": 0, "member_id": "m", "member_epoch": 1, "assignment": None}
    timeline.add(exchange("ConsumerGroupHeartbeat", 68, 1, request=asked, response=answer))
print(timeline.left_out, timeline.forgotten > 0)
""",
        40,
    ),
    "versions of APIs that do not exist": (
        "from kwiresniff.analysis.clients import Inventory",
        """
inventory, on = Inventory(), connection()
for number in range(12_000):
    inventory.exchange(exchange("UNKNOWN", 100 + number % 250, number // 250, on=on))
print(inventory.clients()[0].exchanges, inventory.cut, inventory.left_out)
""",
        10,
    ),
    "client ids of connections that do not end": (
        "from kwiresniff.analysis.clients import Inventory",
        """
inventory = Inventory()
for number in range(5_000):
    inventory.exchange(exchange(client_id=f"{number:06}" * 5_000, on=connection(number)))
print(len(inventory.clients()) + inventory.left_out, inventory.left_out > 2_000)
""",
        80,
    ),
    "topics of clients": (
        "from kwiresniff.analysis.clients import Inventory",
        """
inventory, on = Inventory(), [connection(number, f"10.0.{number}.1:5000") for number in range(64)]
for number in range(5_000):
    topics = [{"topic": f"{number:04}{at}" * 1_000} for at in range(8)]
    inventory.exchange(exchange(on=on[number % 64], request={"topics": topics}))
print(len(inventory.clients()) + inventory.left_out, inventory.cut > 30)
""",
        80,
    ),
    "software and users of clients": (
        "from kwiresniff.analysis.clients import Inventory",
        """
inventory = Inventory()
for number in range(4_000):
    on = connection(number)
    on.client_software = {"name": f"{number:06}" * 2_000, "version": f"{number:06}" * 2_000}
    on.sasl = {"mechanism": "PLAIN", "principal": f"{number:06}" * 2_000, "outcome": "ok"}
    inventory.connection(on)
print(len(inventory.clients()) + inventory.left_out, inventory.left_out > 1_000)
""",
        80,
    ),
    "versions that brokers offer": (
        "from kwiresniff.analysis.clients import Inventory",
        """
inventory = Inventory()
keys = [{"api_key": key, "min_version": 1, "max_version": 900} for key in range(10_000)]
for number in range(36):
    on = connection(number, f"10.0.{number}.1:5000")
    inventory.exchange(exchange("ApiVersions", 18, 3, on=on, request={}, response={"api_keys": keys}))
print(len(inventory.clients()) + inventory.left_out, inventory.left_out > 0)
""",
        80,
    ),
    "rows of a table with long keys": (
        "from kwiresniff.analysis.stats import StatsTable",
        """
table = StatsTable(("api", "topic"))
for number in range(6_000):
    table.add(exchange(topics=(f"{number:06}" * 5_000,)))
    table.add(exchange(topics=("usual",)))
rows = table.rows()
print(rows[0].key[1], rows[0].count, sum(row.count for row in rows), rows[1].key)
""",
        80,
    ),
}

SAID = {
    "rows of a table with long keys": "usual 6000 12000 ('(others)', '(others)')",
    "versions of APIs that do not exist": "12000 1 0",
    "client ids of connections that do not end": "5000 True",
    "topics of clients": "64 True",
    "software and users of clients": "4000 True",
    "versions that brokers offer": "36 True",
    "assignments of groups": "True True",
    "commits of groups": "True 0",
    "members with long names": "0 True",
}


@pytest.mark.parametrize("case", mostly_slow(CASES, 3))
def test_memory_stays_within_its_limit_and_what_went_is_counted(case: str) -> None:
    """The most that was resident, in a process of its own."""
    imports, program, megabytes = CASES[case]
    grown, printed = resident(imports, program)
    assert printed == SAID[case]
    assert grown < megabytes * MEGABYTE


def test_rows_whose_histograms_grow_too_large_become_part_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of least use go; nothing is counted twice or lost, and a key that lost its row does not get another."""
    monkeypatch.setattr(stats, "MAX_TABLE_BYTES", MEGABYTE // 2)
    table = stats.StatsTable(("client",))
    usual = exchange(client_id="usual")
    for number in range(24_000):
        rare = exchange(client_id=str(number % 40), latency_ns=1_000 * (number * 7_919 % 500_000))
        for one in (rare, usual, usual):
            table.add(one)
    rows = {row.key[0]: row for row in table.rows()}
    assert "usual 10.0.0.5" in rows
    assert OTHERS in rows
    assert len(rows) < 30
    assert sum(row.count for row in rows.values()) == 3 * 24_000
    assert sum(row.latency.count for row in rows.values() if row.latency) == 3 * 24_000
    known = set(rows)
    for number in range(40):
        table.add(exchange(client_id=str(number)))
    assert {row.key[0] for row in table.rows()} == known


class Counted(int):
    """A partition number that counts how often it is hashed."""

    hashed = 0

    def __hash__(self) -> int:
        Counted.hashed += 1
        return int(self)


def test_comparing_two_assignments_looks_at_each_partition_a_few_times() -> None:
    """Three thousand partitions to each of two members; looking each up anew would be millions."""

    def sync(first: int) -> Any:
        partitions = [Counted(number) for number in range(first, first + 3_000)]
        opened = {"data": {"assigned_partitions": [{"topic": "t", "partitions": partitions}]}}
        asked = {"group_id": "g", "member_id": "m", "generation_id": 1}
        return exchange("SyncGroup", 14, 3, request=asked, response={"assignment": b"x", "assignment_decoded": opened})

    timeline = GroupTimeline()
    timeline.add(sync(0))
    timeline.add(sync(1_000))
    _, moved = timeline.events()
    assert (moved.details["added"]["t"][0], moved.details["removed"]["t"][-1]) == (3_000, 999)
    assert Counted.hashed < 20 * 3_000


def test_a_budget_admits_what_fits_and_counts_nothing_else() -> None:
    budget = MemoryBudget(100)
    assert (budget.admit(60), budget.admit(60), budget.held_bytes) == (True, False, 60)
    budget.release(30)
    assert (budget.admit(60), budget.exceeded) == (True, False)
    budget.charge(20)
    assert budget.exceeded


@pytest.mark.parametrize(
    ("value", "least"),
    [
        ("x" * 30_000, 30_000),
        (["x" * 1_000] * 10, 10_000),
        ({"topic": list(range(1_000))}, 36_000),
        ({"a": {"b": [{"c": b"x" * 5_000}]}}, 5_000),
    ],
)
def test_a_value_is_counted_with_all_that_is_in_it(value: Any, least: int) -> None:
    assert least <= value_bytes(value) < 2 * least


def test_groups_without_end_are_a_bounded_number_of_findings_in_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each finding is held against those that may explain it, not against all."""
    held = []

    def counted(cause: Finding, symptom: Finding) -> bool:
        held.append(1)
        return explains(cause, symptom)

    monkeypatch.setattr(evidence, "MAX_SUBJECTS", 200)
    monkeypatch.setattr(judgement, "explains", counted)
    doctor = Doctor()
    for number in range(3_000):
        asked = {"group_id": f"g-{number}", "member_id": "m", "generation_id": 1}
        failed = [("error_code", 25, "UNKNOWN_MEMBER_ID", False)]
        more: dict[str, Any] = {"errors": failed, "outcome": "error", "request": asked, "response": {"error_code": 25}}
        doctor.add(exchange("Heartbeat", 12, 4, client_id=f"c-{number}", **more))
    found = doctor.findings()
    assert sum(finding.count for finding in found) >= 3_000
    assert len(held) < 3_000
