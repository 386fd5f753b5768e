"""What bytes fields hold, in whole conversations: where it is found, and that no secret comes out with it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kwiresniff import codec, schema
from kwiresniff.analysis.body_entities import record_sets
from kwiresniff.capture import open_captures
from kwiresniff.codec.dissector import dissect
from kwiresniff.codec.embedded import OPENERS, BodyView
from kwiresniff.codec.node_view import NodeView
from kwiresniff.model import Body, Connection, Direction, Exchange, Problem
from kwiresniff.session.annotation import dissect_message
from tests.support.embedded_vectors import VECTORS
from tests.support.encoding import encoder
from tests.support.events import analyze
from tests.support.made_up_bodies import batch, body_of, conversation, inner
from tests.support.paths import CAPTURES

CONNECTION = Connection(1, "client:1", "broker:9092")


def test_the_answer_to_an_old_join_is_read_by_what_was_asked() -> None:
    subscription = VECTORS["connect-state-1"].value
    asked = body_of(schema.message(11, 5, "request").fields, group_id="workers", protocol_type="connect")
    asked["protocols"] = [{"name": "compatible", "metadata": subscription}]
    fields = schema.message(11, 5, "response").fields
    member = body_of(inner(fields, "members"), member_id="m-1", metadata=subscription)
    answered = body_of(fields, protocol_name="compatible", members=[member])
    exchange, _ = conversation(11, 5, asked, answered)
    for message, array in ((exchange.request, "protocols"), (exchange.response, "members")):
        assert message is not None and message.body is not None
        assert message.body[array][0]["metadata_decoded"]["message"] == "ConnectWorkerState"


def test_what_a_consumer_should_have_sent_and_did_not_is_a_problem_of_the_exchange() -> None:
    asked = body_of(schema.message(11, 5, "request").fields, group_id="g", protocol_type="consumer")
    asked["protocols"] = [{"name": "range", "metadata": b"\0\0\0\0\0\7"}]
    exchange, topics = conversation(11, 5, asked, body_of(schema.message(11, 5, "response").fields, members=[]))
    (problem,) = exchange.problems
    assert (problem.code, problem.path) == ("embedded_undecoded", "protocols[0].metadata")
    assert problem.details == {"direction": "request"}
    dissection = dissect_message(exchange, "request", topics)
    assert dissection is not None
    assert [one.message for one in dissection.problems] == [problem.message]


@pytest.mark.parametrize(
    "name",
    [
        "aiokafka.pcap", "franz-go.pcap", "java-group-classic.pcap", "java-group-cooperative.pcap", "kafka-python.pcap",
        "kafkajs.pcap", "librdkafka.pcap", "old-java-0.10-group.pcap", "old-kafka-python-0.9.pcap", "sarama.pcap",
    ],
)  # fmt: skip
def test_every_clients_members_are_understood(name: str) -> None:
    found = [
        exchange
        for exchange in analyze(open_captures([str(CAPTURES / name)]), depth="bodies")
        if isinstance(exchange, Exchange) and exchange.api in ("JoinGroup", "SyncGroup", "DescribeGroups")
    ]
    opened = 0
    for exchange in found:
        assert exchange.problems == []
        for message in (exchange.request, exchange.response):
            body = (message.body if message is not None else None) or {}
            for array, field in (("protocols", "metadata"), ("members", "metadata"), ("assignments", "assignment")):
                for element in body.get(array, ()):
                    assert element[f"{field}_decoded"]["message"].startswith("ConsumerProtocol")
                    opened += 1
    assert opened > 1


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        (
            "kraft-3.7.pcap.xz",
            {
                "ConsumerGroupCurrentMemberAssignmentValue@3.7",
                "ConsumerGroupMemberMetadataValue@3.7",
                "ConsumerGroupPartitionMetadataValue@3.7",
                "ConsumerGroupTargetAssignmentMemberValue@3.7",
            },
        ),
        ("share-4.0.pcap.xz", {"ShareGroupMetadataValue@4.0", "ShareSnapshotValue@4.0", "ShareUpdateValue@4.0"}),
    ],
)
def test_what_coordinators_stored_on_trial_is_read_in_its_own_shape(name: str, shapes: set[str]) -> None:
    found: dict[str, list[Body]] = {}
    for exchange in analyze(open_captures([str(CAPTURES / "eras" / name)]), depth="records"):
        if isinstance(exchange, Exchange) and exchange.api == "Fetch":
            assert [problem for problem in exchange.problems if problem.code == "embedded_undecoded"] == []
            body = exchange.response.body if exchange.response is not None else None
            for _, _, batches in record_sets(body):
                for one in batches if isinstance(batches, list) else ():
                    for record in one.get("records", ()):
                        value = record.get("decoded", {}).get("value")
                        if value is not None and "@" in value["message"]:
                            found.setdefault(value["message"], []).append(value["data"])
    assert found.keys() == shapes
    for state in found.get("ShareUpdateValue@4.0", ()):
        assert {one["delivery_state"] for one in state["state_batches"]} <= {0, 2, 4}
    for member in found.get("ConsumerGroupMemberMetadataValue@3.7", ()):
        assert member["client_id"].startswith("member-") and member["subscribed_topic_names"] == ["shelves"]


def test_a_streams_application_assigns_its_tasks_partition_by_partition() -> None:
    """The assignor puts a member's active tasks in the order of its partitions, so each stands for the other."""
    synced = [
        exchange
        for exchange in analyze(open_captures([str(CAPTURES / "eras" / "streams-4.4.pcap.xz")]), depth="bodies")
        if isinstance(exchange, Exchange) and exchange.api in ("JoinGroup", "SyncGroup")
    ]
    assignments, subscriptions = [], []
    for exchange in synced:
        assert exchange.problems == []
        asked = (exchange.request.body if exchange.request is not None else None) or {}
        assignments += [one["assignment_decoded"]["data"] for one in asked.get("assignments", ())]
        subscriptions += [
            one["metadata_decoded"]["data"] for one in asked.get("protocols", ()) if one["name"] == "stream"
        ]
    streams = [one for one in assignments if "user_data_decoded" in one]
    assert len(streams) > 3
    for one in streams:
        partitions = [partition for topic in one["assigned_partitions"] for partition in topic["partitions"]]
        tasks = one["user_data_decoded"]["data"]["active_tasks"]
        assert sorted(task["partition"] for task in tasks) == sorted(partitions)
        assert one["user_data_decoded"]["data"]["err_code"] == 0
    assert len(subscriptions) > 3
    assert all(one["user_data_decoded"]["data"]["latest_supported_version"] == 11 for one in subscriptions)


@pytest.mark.parametrize(("api_key", "direction"), sorted(OPENERS))
def test_whatever_is_in_the_bytes_nothing_is_raised_and_the_bytes_stay(api_key: int, direction: Direction) -> None:
    """Content cut anywhere, and bytes of no meaning, in every place where something is looked for."""
    chance = random.Random(api_key)
    contents = [raw for vector in VECTORS.values() for raw in vector if raw]
    low, high = schema.version_range(api_key)
    opener = OPENERS[api_key, direction]
    for _ in range(200):
        content = chance.choice(contents)
        content = bytes(byte if chance.random() > 0.05 else chance.randrange(256) for byte in content)
        content = content[: chance.randrange(len(content) + 1)]
        version = chance.randint(low, high)
        fields = schema.message(api_key, version, direction).fields
        body = filled(fields, content, chance)
        raw = encoder(api_key, version, direction)(body)
        read, _ = codec.decoder(api_key, version, direction)(raw, 0, [])
        dissected = dissect(schema.message(api_key, version, direction), raw, 0)
        before, exchange = repr(read), Exchange(CONNECTION, api_key, version, 1, None, None, None)
        problems: list[Problem] = []
        opener(BodyView(read, problems), exchange, lambda _: None)
        opener(NodeView(dissected.root, dissected.problems), exchange, lambda _: None)
        assert repr(without_content(read)) == before
        assert [problem.message for problem in dissected.problems] == [problem.message for problem in problems]


def filled(fields: tuple[schema.WireField, ...], content: bytes, chance: random.Random) -> Body:
    """A structure with ``content`` in all its bytes, one element in every array, and names that are looked for."""
    names = ("__consumer_offsets", "__transaction_state", "__cluster_metadata", "__remote_log_metadata", "sticky")
    found = body_of(fields)
    for field in fields:
        value: Any = found[field.name]
        if field.name == "protocol_type":
            value = chance.choice(["consumer", "connect"])
        elif field.type == "STRUCT":
            value = filled(field.fields, content, chance)
        elif field.type.endswith("STRING"):
            value = chance.choice(names)
        elif field.type.endswith("BYTES"):
            value = content
        elif field.type.endswith("RECORDS"):
            value = [batch(content)]
            value[0]["records"][0]["key"] = content
        found[field.name] = [value] if field.array else value
    return found


def without_content(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_content(v) for k, v in value.items() if not k.endswith("_decoded") and k != "decoded"}
    return [without_content(each) for each in value] if isinstance(value, list) else value
