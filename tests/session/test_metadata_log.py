"""Records of the metadata log, by Fetch and by snapshot: read, and their credentials withheld."""

from __future__ import annotations

from io import StringIO

import pytest

from kwiresniff import schema
from kwiresniff.capture import open_captures
from kwiresniff.model import Body, Exchange, Node
from kwiresniff.render.tree import TreeWriter
from kwiresniff.session.annotation import dissect_message
from tests.support.embedded_vectors import VECTORS
from tests.support.encoding import encode_record_set
from tests.support.events import analyze
from tests.support.made_up_bodies import batch, body_of, conversation, inner
from tests.support.paths import CAPTURES

METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def fetched(version: int, *names: str, show_secrets: bool = False) -> tuple[list[Body], list[str]]:
    """Records of the metadata log after a Fetch or, with version -1, a FetchSnapshot; and everything in the tree."""
    api_key, version, topics, records = (
        (59, 0, "topics", "unaligned_records") if version < 0 else (1, version, "responses", "records")
    )
    asked = body_of(schema.message(api_key, version, "request").fields)
    fields = schema.message(api_key, version, "response").fields
    topic_fields = inner(fields, topics)
    values = [VECTORS[name].value or b"" for name in names]
    partition = body_of(inner(topic_fields, "partitions"), **{records: [batch(*values)]})
    named = {"topic": "__cluster_metadata", "name": "__cluster_metadata", "topic_id": METADATA_TOPIC_ID}
    topic = body_of(topic_fields, partitions=[partition], **named)
    answered = body_of(fields, **{topics: [topic]})
    exchange, known = conversation(api_key, version, asked, answered, show_secrets=show_secrets)
    assert exchange.problems == []
    assert exchange.response is not None and exchange.response.body is not None
    dissection = dissect_message(exchange, "response", known, show_secrets=show_secrets)
    assert dissection is not None and dissection.problems == []
    seen: list[str] = []
    todo: list[Node] = [dissection.root]
    while todo:
        node = todo.pop()
        seen.append(f"{node.name} {node.value!r} {node.meaning}")
        todo += node.children
    return exchange.response.body[topics][0]["partitions"][0][records][0]["records"], seen


@pytest.mark.parametrize("version", [12, 17, -1], ids=["by name", "by id", "snapshot"])
def test_records_of_the_metadata_log_are_read_by_whatever_way_they_come(version: int) -> None:
    (record,), seen = fetched(version, "metadata-topic")
    assert record["decoded"]["value"]["data"]["name"] == "orders"
    assert "name 'orders' " in seen


@pytest.mark.parametrize("version", [12, 17, -1], ids=["by name", "by id", "snapshot"])
def test_credentials_in_the_metadata_log_are_withheld_decoded_or_not(version: int) -> None:
    records, seen = fetched(version, "metadata-scram", "metadata-password", "metadata-config")
    scram, password, config = records
    assert scram["value"] == {"withheld": True, "size_bytes": len(VECTORS["metadata-scram"].value or b"")}
    assert scram["decoded"]["value"]["data"] == {
        "name": "alice",
        "mechanism": 1,
        "salt": {"withheld": True, "size_bytes": 14},
        "stored_key": {"withheld": True, "size_bytes": 13},
        "server_key": {"withheld": True, "size_bytes": 13},
        "iterations": 4096,
    }
    assert password["decoded"]["value"]["data"]["value"] == {"withheld": True, "size_bytes": 14}
    assert config["decoded"]["value"]["data"]["value"] == "2"
    assert config["value"] == VECTORS["metadata-config"].value
    for text in (repr(records), *seen):
        assert not any(secret in text for secret in ("salt-salt", "stored-stored", "server-server", "hunter2"))
    assert "iterations 4096 " in seen


def test_credentials_in_the_metadata_log_are_shown_when_asked_for() -> None:
    (record,), seen = fetched(17, "metadata-scram", show_secrets=True)
    assert record["decoded"]["value"]["data"]["stored_key"] == b"stored-stored"
    assert "stored_key b'stored-stored' " in seen


def test_a_piece_of_a_snapshot_keeps_its_secrets_and_its_whole_batches() -> None:
    """The piece begins inside a batch with a credential and ends inside another."""
    secret = encode_record_set([batch(VECTORS["metadata-scram"].value or b"")])
    piece = secret[40:] + encode_record_set([batch(VECTORS["metadata-topic"].value or b"")]) + secret[:-20]
    fields = schema.message(59, 0, "response").fields
    topics = inner(fields, "topics")
    partition = body_of(inner(topics, "partitions"), unaligned_records=piece)
    answered = body_of(fields, topics=[body_of(topics, name="__cluster_metadata", partitions=[partition])])
    exchange, known = conversation(59, 0, body_of(schema.message(59, 0, "request").fields), answered)
    assert (exchange.problems, exchange.outcome) == ([], "ok")
    assert exchange.response is not None and exchange.response.body is not None
    front, whole, end = exchange.response.body["topics"][0]["partitions"][0]["unaligned_records"]
    assert front == {"truncated": True, "size_bytes": len(secret) - 40}
    assert whole["records"][0]["decoded"]["value"]["message"] == "TopicRecord"
    assert (end["truncated"], end["size_bytes"]) == (True, len(secret) - 20)
    dissection = dissect_message(exchange, "response", known)
    assert dissection is not None and dissection.problems == []
    out = StringIO()
    TreeWriter(out, None, False, 2).write(exchange, None, dissection)
    shown = "".join(line[8:56] for line in out.getvalue().splitlines())
    assert b"orders".hex(" ") in shown
    assert b"sto".hex(" ") not in shown and b"ser".hex(" ") not in shown  # stored-stored, server-server


def test_a_broker_that_follows_the_metadata_log_is_understood_to_the_last_record() -> None:
    names, kinds = set(), set()
    for exchange in analyze(open_captures([str(CAPTURES / "cluster-inside.pcap.xz")]), depth="records"):
        if isinstance(exchange, Exchange) and exchange.api == "Fetch" and exchange.response is not None:
            for topic in (exchange.response.body or {}).get("responses", ()):
                for partition in topic["partitions"]:
                    for record in (record for one in partition["records"] or () for record in one.get("records", ())):
                        if topic["topic_id"] == METADATA_TOPIC_ID and "control" not in record:
                            found = record["decoded"]["value"]
                            kinds.add(found["message"])
                            names.add(found["data"].get("name"))
    assert {"ledger", "__transaction_state", "metadata.version"} <= names
    assert {"RegisterBrokerRecord", "TopicRecord", "PartitionRecord", "ProducerIdsRecord"} <= kinds
