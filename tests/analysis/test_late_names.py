"""Topics whose names come after their ids: what is shown in the end has the names, and no topic is two."""

from __future__ import annotations

from kwiresniff.analysis.clients import Inventory
from kwiresniff.analysis.groups import GroupTimeline
from kwiresniff.analysis.late_names import renamer
from kwiresniff.analysis.stats import StatsTable
from tests.support.exchanges import exchange

ID = "2S4L3dYTSVynQUXXnGGTkg"
STRANGER = "3S4L3dYTSVynQUXXnGGTkg"


def fetch(**more: object):  # type: ignore[no-untyped-def]
    """A Fetch of a topic that is named by its id."""
    body = {"topics": [{"topic_id": ID, "partitions": [{"partition": 0}]}]}
    return exchange(request=body, response={"responses": []}, **more)  # type: ignore[arg-type]


def test_texts_lists_and_dicts_are_renamed_wherever_an_id_stands() -> None:
    """Alone, with a partition behind it, in sentences; what only looks like an id stays."""
    rename = renamer({ID: "orders"}.get)
    assert rename(ID) == "orders"
    assert rename(f"{ID}-3") == "orders-3"
    assert rename(f"topic {ID} is gone") == "topic orders is gone"
    assert rename(f"x{ID}") == f"x{ID}"
    assert rename((STRANGER, 7, None)) == (STRANGER, 7, None)
    assert rename({"partitions": {ID: [1], "orders": [2]}}) == {"partitions": {"orders": [1, 2]}}
    assert rename(frozenset({f"topic:{ID}"})) == frozenset({"topic:orders"})


def test_what_holds_no_id_is_not_made_anew() -> None:
    """Most things have none."""
    value = ["orders", ("a", "b")]
    assert renamer({ID: "orders"}.get)(value) is value


def test_a_row_by_topic_goes_by_the_name_that_came_later() -> None:
    """Two exchanges before the name was told, one after: one row of three, with all that was counted."""
    names: dict[str, str] = {}
    table = StatsTable(["topic"], names.get)
    table.add(fetch(latency_ns=1_000))
    table.add(fetch(latency_ns=9_000, queued=4_000, errors=[("e", 3, "X", True)], outcome="error"))
    table.add(fetch(latency_ns=5_000, waiting="long poll"))
    assert [row.key for row in table.rows()] == [(ID,)]
    names[ID] = "orders"
    table.add(fetch(latency_ns=2_000))
    (row,) = table.rows()
    assert (row.key, row.count, row.errors) == (("orders",), 4, 1)
    assert row.latency is not None
    assert (row.latency.count, row.latency.max_ns) == (3, 9_000)
    assert [(reason, waits.count) for reason, waits in row.waiting] == [("long poll", 1)]
    assert row.queued is not None
    assert row.queued.max_ns == 4_000


def test_a_client_has_a_topic_once() -> None:
    """By its name, though the first fetch knew only the id."""
    names: dict[str, str] = {}
    inventory = Inventory(names.get)
    inventory.exchange(fetch())
    names[ID] = "orders"
    inventory.exchange(fetch())
    (client,) = inventory.clients()
    assert client.topics == ("orders",)


def test_a_group_member_keeps_a_topic_that_got_its_name() -> None:
    """Assigned by id first and by name later is nothing new and nothing lost."""
    names: dict[str, str] = {}
    timeline = GroupTimeline(names.get)
    asked = {"group_id": "g", "member_id": "m", "member_epoch": 1}
    for partitions in ([1], [1, 2]):
        given = {"member_id": "m", "member_epoch": 2, "error_code": 0,
                 "assignment": {"topic_partitions": [{"topic_id": ID, "partitions": partitions}]}}  # fmt: skip
        timeline.add(exchange("ConsumerGroupHeartbeat", 68, 0, request=asked, response=given))
        names[ID] = "orders"
    assigned = [event.details for event in timeline.events() if event.event == "assigned"]
    assert [one["partitions"] for one in assigned] == [{"orders": [1]}, {"orders": [1, 2]}]
    assert (assigned[1]["added"], assigned[1]["removed"]) == ({"orders": [2]}, {})
