"""What group members tell each other, as Kafka's own classes write it."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kwiresniff.base.api_keys import JOIN_GROUP
from kwiresniff.codec.codecs import data_decoder
from kwiresniff.codec.embedded import OPENERS, BodyView, open_assignment, open_subscription, struct_view
from kwiresniff.codec.value_reader import Decoder
from kwiresniff.model import Problem
from tests.support.embedded_vectors import VECTORS, body_holder, decoded, node_holder, texts
from tests.support.exchanges import exchange

OWNED = [{"topic": "orders", "partitions": [0, 2]}]


def value(name: str) -> bytes:
    raw = VECTORS[name].value
    assert raw is not None
    return raw


def subscription(raw: bytes, protocol_type: str | None, protocol: str | None = None) -> tuple[Any, list[Any]]:
    """What stands beside the metadata afterwards, in a body and in a tree alike, and the problems."""
    body = {"metadata": raw}
    holder, tree = body_holder(body), node_holder({"metadata": raw})
    open_subscription(holder, "metadata", protocol_type, protocol)
    open_subscription(tree, "metadata", protocol_type, protocol)
    assert body["metadata"] == raw
    found: Any = body.get("metadata_decoded")
    node = tree.node.children[0]
    assert (node.value, bool(node.children)) == (raw, found is not None)
    if found is not None and not any(name.endswith("_decoded") for name in found["data"]):
        assert decoded(node) == found["data"]
    assert texts(tree.problems) == texts(holder.problems)
    return found, texts(holder.problems)


def assignment(raw: bytes, protocol_type: str | None, protocol: str | None = None) -> Any:
    body = {"assignment": raw}
    open_assignment(body_holder(body), "assignment", protocol_type, protocol)
    return body.get("assignment_decoded")


@pytest.mark.parametrize("version", range(4))
def test_a_consumers_subscription_is_read_in_every_version(version: int) -> None:
    data: dict[str, Any] = {"topics": ["orders", "payments"], "user_data": b"\1\2\3"}
    if version >= 1:
        data["owned_partitions"] = OWNED
    if version >= 2:
        data["generation_id"] = 7
    if version >= 3:
        data["rack_id"] = "rack-a"
    expected = {"message": "ConsumerProtocolSubscription", "version": version, "data": data}
    assert subscription(value(f"subscription-{version}"), "consumer", "range") == (expected, [])


@pytest.mark.parametrize("version", range(4))
def test_a_consumers_assignment_is_read_in_every_version(version: int) -> None:
    assert assignment(value(f"assignment-{version}"), "consumer") == {
        "message": "ConsumerProtocolAssignment",
        "version": version,
        "data": {"assigned_partitions": OWNED, "user_data": b"\1\2\3"},
    }


def test_a_version_newer_than_known_is_read_as_the_newest_whatever_follows() -> None:
    found, problems = subscription(b"\0\x09" + value("subscription-3")[2:] + b"more", "consumer")
    assert (found["version"], found["data"]["rack_id"], problems) == (3, "rack-a", [])


def test_the_sticky_assignors_read_their_user_data() -> None:
    found, problems = subscription(value("sticky"), "consumer", "sticky")
    assert found["data"]["user_data_decoded"] == {
        "message": "StickyAssignorUserData",
        "version": 1,
        "data": {"previous_assignment": OWNED, "generation": 9},
    }
    assert problems == []
    found, problems = subscription(value("cooperative-sticky"), "consumer", "cooperative-sticky")
    assert found["data"]["user_data_decoded"] == {
        "message": "CooperativeStickyAssignorUserData",
        "version": 0,
        "data": {"generation": 9},
    }
    assert problems == []


def test_the_sticky_assignors_user_data_had_no_generation_before_2_3() -> None:
    raw = value("sticky")
    size = raw.index(b"\0\0\0\x1c")
    old = raw[:size] + b"\0\0\0\x18" + raw[size + 4 : size + 28] + raw[size + 32 :]
    found, problems = subscription(old, "consumer", "sticky")
    assert found["data"]["user_data_decoded"]["version"] == 0
    assert found["data"]["user_data_decoded"]["data"] == {"previous_assignment": OWNED}
    assert problems == []


def test_user_data_of_another_assignor_stays_bytes() -> None:
    found, problems = subscription(value("sticky"), "consumer", "my-own")
    assert "user_data_decoded" not in found["data"]
    assert problems == []


@pytest.mark.parametrize("version", range(3))
def test_connect_workers_are_understood(version: int) -> None:
    found, problems = subscription(value(f"connect-state-{version}"), "connect", "sessioned")
    assert problems == []
    assert (found["message"], found["version"]) == ("ConnectWorkerState", version)
    assert (found["data"]["url"], found["data"]["config_offset"]) == ("http://w1", 5)
    tasks, source = {"connector": "sink", "tasks": [0, 1]}, {"connector": "source", "tasks": [-1]}
    handed_out = {"error": 0, "leader": "w1", "leader_url": "http://w1", "config_offset": 5}
    if version:
        handed_out |= {"assignment": [tasks], "revoked": [source], "scheduled_delay": 300_000}
        assert found["data"]["allocation_decoded"]["data"] == handed_out
    else:
        handed_out |= {"assignment": [source, tasks]}
    assert assignment(value(f"connect-assignment-{version}"), "connect") == {
        "message": "ConnectAssignment",
        "version": version,
        "data": handed_out,
    }


@pytest.mark.parametrize(
    ("name", "message"),
    [("assignment-1", "ConsumerProtocolAssignment"), ("connect-assignment-1", "ConnectAssignment")],
)
def test_without_a_protocol_type_it_is_what_fits_to_the_last_byte(name: str, message: str) -> None:
    assert assignment(value(name), None)["message"] == message
    assert assignment(value(name) + b"\0", None) is None


def test_another_protocol_type_stays_bytes() -> None:
    assert subscription(value("subscription-0"), "my-own") == (None, [])


@pytest.mark.parametrize("cut", [*range(2, 31), 33])
def test_what_a_consumer_cannot_have_sent_stays_bytes_with_a_problem(cut: int) -> None:
    raw = (value("subscription-0") + b"more")[:cut]
    assert subscription(raw, "consumer", "range") == (None, [("embedded_undecoded", "metadata")])


@pytest.mark.parametrize("raw", [b"", b"\0", b"\xff\xff\0\0"])
def test_no_version_is_no_content(raw: bytes) -> None:
    assert subscription(raw, "consumer", "range") == (None, [])


def test_in_a_tree_the_content_lies_where_its_bytes_lie() -> None:
    raw = value("assignment-0")
    tree = node_holder({"before": b"12345", "assignment": raw})
    open_assignment(tree, "assignment", "consumer")
    frame = b"\0\0\0\x0512345" + len(raw).to_bytes(4, "big") + raw
    node = tree.node.children[1]
    topic, partitions = node.children[0].children[0].children
    assert frame[topic.offset : topic.offset + topic.length] == b"\0\x06orders"
    assert frame[partitions.offset : partitions.offset + 4] == b"\0\0\0\2"
    assert node.meaning == "ConsumerProtocolAssignment v0"


#: The values that Streams.java gives its objects.
PROCESS = "AQIDBAUGBwgJCgsMDQ4PEA"


def task(subtopology: int, partition: int, version: int, topology: Any) -> dict[str, Any]:
    named = {"named_topology": topology} if version >= 10 else {}
    return {"topic_group_id": subtopology, "partition": partition, **named}


@pytest.mark.parametrize("version", range(1, 12))
def test_streams_tells_its_tasks_and_their_offsets_in_every_version(version: int) -> None:
    found, problems = subscription(value(f"streams-subscription-{version}"), "consumer", "stream")
    assert problems == []
    inner = found["data"]["user_data_decoded"]
    expected: dict[str, Any] = {"version": version, "process_id": PROCESS}
    if version >= 2:
        expected["user_end_point"] = b"h1:8080"
    if version >= 3:
        expected["latest_supported_version"] = 11
    topology = "t\u00f6" if version == 10 else None
    tasks = [(task(0, 1, version, topology), -2), (task(1, 2, version, topology), 77)]
    if version <= 6:
        expected["prev_tasks"], expected["standby_tasks"] = [tasks[0][0]], [tasks[1][0]]
    elif version <= 9:
        expected["task_offset_sums"] = [
            {
                "topic_group_id": one["topic_group_id"],
                "partition_to_offset_sum": [{"partition": one["partition"], "offset_sum": offsets}],
            }
            for one, offsets in tasks
        ]
    else:
        expected["task_offset_sums"] = [{**one, "offset_sum": offsets} for one, offsets in tasks]
    if version >= 8:
        expected["unique_field"] = 3
    if version >= 9:
        expected["error_code"] = 4
    if version >= 11:
        expected["client_tags"] = [{"key": b"zone", "value": b"eu"}]
    assert inner == {"message": "SubscriptionInfoData", "version": version, "data": expected}


@pytest.mark.parametrize("version", range(1, 12))
@pytest.mark.parametrize("protocol", ["stream", None])
def test_streams_assigns_tasks_and_tells_who_has_which_partitions(version: int, protocol: str | None) -> None:
    found = assignment(value(f"streams-assignment-{version}"), "consumer", protocol)
    topology = list(map(ord, "t\u00f6")) if version == 10 else []
    expected: dict[str, Any] = {
        "version": version,
        "active_tasks": [task(0, 1, version, topology)],
        "standby_tasks": [
            {**task(1, 2, version, topology), "partitions": [{"topic": "app-store-changelog", "partition": 2}]}
        ],
    }
    if version >= 2:
        topic: dict[str, Any] = {"topic": "orders"} if version < 5 else {"topic_index": int(version > 5)}
        expected["partitions_by_host"] = [{"host": "h1", "port": 8080, "partitions": [{**topic, "partition": 1}]}]
    if version >= 3:
        expected["commonly_supported_version"] = 11
    if version >= 4:
        expected["err_code"] = 3
    if version >= 5:
        expected["topic_dictionary"] = [{"topic_index": 0, "topic": "orders"}]
    if version >= 6:
        expected["topic_dictionary"] = [
            {"topic_index": 1, "topic": "orders"},
            {"topic_index": 0, "topic": "app-store-changelog"},
        ]
        expected["standby_partitions_by_host"] = [
            {"host": "h2", "port": 8081, "partitions": [{"topic_index": 0, "partition": 2}]}
        ]
    if version >= 7:
        expected["next_rebalance_ms"] = 2**63 - 1 if version == 7 else 1_700_000_000_000
    assert found["data"]["user_data_decoded"] == {"message": "AssignmentInfo", "version": version, "data": expected}


def test_an_application_of_1_1_that_speaks_version_1_says_more_than_that_has() -> None:
    found, problems = subscription(value("streams-old-subscription"), "consumer", "stream")
    assert problems == []
    assert found["data"]["user_data_decoded"] == {
        "message": "SubscriptionInfoData",
        "version": 2,
        "data": {
            "version": 1,
            "process_id": PROCESS,
            "prev_tasks": [task(0, 1, 1, None)],
            "standby_tasks": [task(1, 2, 1, None)],
            "user_end_point": b"h1:8080",
        },
    }
    told = assignment(value("streams-old-assignment"), "consumer")["data"]["user_data_decoded"]
    hosts = [{"host": "h1", "port": 8080, "partitions": [{"topic": "orders", "partition": 1}]}]
    assert (told["version"], told["data"]["version"], told["data"]["partitions_by_host"]) == (2, 1, hosts)


def test_what_streams_of_a_version_nobody_knows_says_stays_bytes_without_a_problem() -> None:
    raw = value("streams-subscription-11").replace(b"\0\0\0\x62\0\0\0\x0b", b"\0\0\0\x66\0\0\0\x0c")
    found, problems = subscription(raw[:-10] + b"more" + raw[-10:], "consumer", "stream")
    assert found["data"]["user_data"].endswith(b"eumore")
    assert (problems, "user_data_decoded" in found["data"]) == ([], False)


def test_streams_bytes_that_end_too_early_stay_bytes_with_a_problem() -> None:
    raw = value("streams-assignment-11")
    body = {"assignment": raw.replace(b"\0\0\0\xaa\0\0\0\x0b", b"\0\0\0\xa9\0\0\0\x0b")[:-1]}
    holder = body_holder(body)
    open_assignment(holder, "assignment", "consumer", "stream")
    assert texts(holder.problems) == [("embedded_undecoded", "assignment_decoded.data.user_data")]


#: As the type says it, and as nobody says it.
@pytest.mark.parametrize(("protocol_type", "most"), [("consumer", struct_view.MAX_PROBLEMS), (None, 0)])
def test_bytes_that_hold_nothing_are_not_decoded_by_the_thousand(
    protocol_type: str | None, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of thousands of members with such bytes as many are looked at as are told; one among them that is sound is
    opened all the same, wherever it stands."""
    tried: list[str] = []

    def counted(name: str, version: int) -> Decoder:
        tried.append(name)
        return data_decoder(name, version)

    monkeypatch.setattr(struct_view, "data_decoder", counted)
    members = [{"metadata": b"\0\1\0\0\0\7" + b"\xff" * (number % 9)} for number in range(3_000)]
    members[2_000] = {"metadata": value("subscription-1")}
    holder = BodyView({"members": members}, [])
    for member in holder.each("members", "metadata"):
        open_subscription(member, "metadata", protocol_type, None)
    assert [index for index, member in enumerate(members) if "metadata_decoded" in member] == [2_000]
    assert len(holder.problems) == most
    assert [problem.path for problem in holder.problems[:2]] == ["members[0].metadata", "members[1].metadata"][:most]
    assert len(tried) == most + 1


def test_only_elements_with_something_in_a_field_are_asked_for() -> None:
    """The index in a path is that of the array."""
    body = {"members": [{"metadata": b""}, {"metadata": b"x"}, {}]}
    for holder in (body_holder(body), node_holder({"members": [{"metadata": b""}, {"metadata": b"x"}]})):
        assert [one.path for one in holder.each("members", "metadata")] == ["members[1]"]


@pytest.mark.parametrize("protocol_type", ["consumer", "connect", "", None, "other"])
def test_of_many_members_what_is_opened_is_what_would_be_alone(protocol_type: str | None) -> None:
    """Of those that hold nothing of the kind a hundred are reported, as ever."""
    rng = Random(f"many members {protocol_type}")
    raws = [vector.value for name, vector in VECTORS.items() if vector.value and name.startswith(("subscr", "assign"))]
    raws += [raw[:-1] for raw in raws] + [raw + b"\0" for raw in raws] + [b"", b"\0", b"\0\1", b"\xff" * 9, bytes(90)]
    raws += [b"\0\x63" + raw[2:] + more for raw in raws for more in (b"", b"more")]
    metadata = [rng.choice(raws) for _ in range(600)]

    def opened(some: list[bytes]) -> tuple[list[Any], list[Problem]]:
        protocols: list[dict[str, Any]] = [{"name": "range", "metadata": one} for one in some]
        problems: list[Problem] = []
        holder = BodyView({"protocol_type": protocol_type, "protocols": protocols}, problems)
        OPENERS[JOIN_GROUP, "request"](holder, exchange(), lambda topic_id: None)
        return [one.get("metadata_decoded") for one in protocols], problems

    found, problems = opened(metadata)
    alone = [opened([one]) for one in metadata]
    assert found == [one for each, _ in alone for one in each]
    expected = [
        (problem.message, problem.path.replace("[0]", f"[{at}]"))
        for at, (_, reported) in enumerate(alone)
        for problem in reported
    ]
    assert [(one.message, one.path) for one in problems] == expected[: struct_view.MAX_PROBLEMS]
    assert (len(expected) > struct_view.MAX_PROBLEMS) is (protocol_type in ("consumer", "connect"))
    assert any(found) is (protocol_type != "other")
