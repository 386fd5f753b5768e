"""Exchanges with their annotated messages, built field by field: what the tests of trees and summaries draw."""

from __future__ import annotations

import struct

from kwiresniff.model import Problem
from tests.support.frame_builder import Sample, Wire, connection, exchange, message, records


def metadata() -> Sample:
    """Metadata v8: one topic known, one not."""

    def request(wire: Wire) -> None:
        wire.structs("topics", ["orders", "payments"], lambda name: wire.string("name", name))
        wire.boolean("allow_auto_topic_creation", True)
        wire.boolean("include_cluster_authorized_operations", False)
        wire.boolean("include_topic_authorized_operations", False)

    def broker(wire: Wire, node_id: int) -> None:
        wire.int32("node_id", node_id)
        wire.string("host", f"kafka-{node_id}.example.com")
        wire.int32("port", 9092)
        wire.string("rack", None if node_id == 2 else f"eu-1{'abc'[node_id % 3]}")

    def partition(wire: Wire, index: int) -> None:
        wire.int16("error_code", 0, "NONE")
        wire.int32("partition_index", index)
        wire.int32("leader_id", 1 + index % 3)
        wire.int32("leader_epoch", 4)
        wire.int32s("replica_nodes", [1, 2, 3])
        wire.int32s("isr_nodes", [1, 2, 3] if index else [1, 2])
        wire.int32s("offline_replicas", [])

    def topic(wire: Wire, name: str) -> None:
        if name == "orders":
            wire.int16("error_code", 0, "NONE")
        else:
            wire.int16("error_code", 3, "UNKNOWN_TOPIC_OR_PARTITION")
        wire.string("name", name)
        wire.boolean("is_internal", False)
        wire.structs("partitions", [0, 1, 2] if name == "orders" else [], lambda index: partition(wire, index))
        wire.int32("topic_authorized_operations", -2147483648, "not asked for")

    def response(wire: Wire) -> None:
        wire.int32("throttle_time_ms", 0)
        wire.structs("brokers", [1, 2, 3], lambda node_id: broker(wire, node_id))
        wire.string("cluster_id", "bGtpbmctdGVzdC0wMQ")
        wire.int32("controller_id", 2)
        wire.structs("topics", ["orders", "payments"], lambda name: topic(wire, name))
        wire.int32("cluster_authorized_operations", -2147483648, "not asked for")

    errors = [("topics[1].error_code", 3, "UNKNOWN_TOPIC_OR_PARTITION", True)]
    return exchange("Metadata", 3, 8, request, response, outcome="error", errors=errors)


def produce() -> Sample:
    """Produce v8: a transactional batch, one partition refused."""

    def request(wire: Wire) -> None:
        wire.string("transactional_id", "orders-tx-1")
        wire.int16("acks", -1, "all in-sync replicas")
        wire.int32("timeout_ms", 30000, "30 s")

        def partition(index: int) -> None:
            wire.int32("index", index)
            records(wire, 0)

        def topic(name: str) -> None:
            wire.string("name", name)
            wire.structs("partition_data", [0, 3], partition)

        wire.structs("topic_data", ["orders"], topic)

    def response(wire: Wire) -> None:
        def partition(index: int) -> None:
            wire.int32("index", index)
            wire.int16("error_code", *((6, "NOT_LEADER_OR_FOLLOWER") if index else (0, "NONE")))
            wire.int64("base_offset", -1 if index else 81_204)
            wire.int64("log_append_time_ms", -1, "create time is used")
            wire.int64("log_start_offset", -1 if index else 0)
            wire.structs("record_errors", [], lambda _: None)
            wire.string("error_message", None)

        def topic(name: str) -> None:
            wire.string("name", name)
            wire.structs("partition_responses", [0, 3], partition)

        wire.structs("responses", ["orders"], topic)
        wire.int32("throttle_time_ms", 0)

    errors = [("responses[0].partition_responses[1].error_code", 6, "NOT_LEADER_OR_FOLLOWER", True)]
    return exchange(
        "Produce",
        0,
        8,
        request,
        response,
        correlation_id=12,
        at_ms=41.2,
        latency_ms=2.31,
        outcome="error",
        errors=errors,
        packet=18,
    )


def fetch() -> Sample:
    """Fetch v11: a long poll that came back with records."""

    def request(wire: Wire) -> None:
        wire.int32("replica_id", -1, "consumer")
        wire.int32("max_wait_ms", 500, "500 ms")
        wire.int32("min_bytes", 1)
        wire.int32("max_bytes", 52_428_800, "50.0 MB")
        wire.int8("isolation_level", 1, "read_committed")
        wire.int32("session_id", 0)
        wire.int32("session_epoch", 0)

        def partition(index: int) -> None:
            wire.int32("partition", index)
            wire.int32("current_leader_epoch", 4)
            wire.int64("fetch_offset", 81_204)
            wire.int64("log_start_offset", -1)
            wire.int32("partition_max_bytes", 1_048_576, "1.00 MB")

        def topic(name: str) -> None:
            wire.string("topic", name)
            wire.structs("partitions", [0], partition)

        wire.structs("topics", ["orders"], topic)
        wire.structs("forgotten_topics_data", [], lambda _: None)
        wire.string("rack_id", "")

    def response(wire: Wire) -> None:
        wire.int32("throttle_time_ms", 0)
        wire.int16("error_code", 0, "NONE")
        wire.int32("session_id", 1_882_031)

        def partition(index: int) -> None:
            wire.int32("partition_index", index)
            wire.int16("error_code", 0, "NONE")
            wire.int64("high_watermark", 81_216)
            wire.int64("last_stable_offset", 81_216)
            wire.int64("log_start_offset", 0)
            wire.array("aborted_transactions", None, lambda _: None)
            wire.int32("preferred_read_replica", -1)
            records(wire, 81_204, 12, codec=3, transactional=False)

        def topic(name: str) -> None:
            wire.string("topic", name)
            wire.structs("partitions", [0], partition)

        wire.structs("responses", ["orders"], topic)

    return exchange(
        "Fetch",
        1,
        11,
        request,
        response,
        client_id="billing-1",
        correlation_id=31,
        at_ms=55.4,
        latency_ms=467.2,
        waiting="long poll",
        queued_ms=2.4,
        held_ms=463.0,
        on=connection(2, "10.0.0.6:40112"),
        packet=22,
    )


def join_group() -> Sample:
    """JoinGroup v5: a rebalance, and a member id that must be asked for again."""

    def request(wire: Wire) -> None:
        wire.string("group_id", "billing")
        wire.int32("session_timeout_ms", 45000, "45 s")
        wire.int32("rebalance_timeout_ms", 300_000, "5 min")
        wire.string("member_id", "")
        wire.string("group_instance_id", None)
        wire.string("protocol_type", "consumer")

        def protocol(name: str) -> None:
            wire.string("name", name)
            wire.blob("metadata", b"\0\1\0\0\0\1\0\6orders\xff\xff\xff\xff\0\0\0\0")

        wire.structs("protocols", ["range", "cooperative-sticky"], protocol)

    def response(wire: Wire) -> None:
        wire.int32("throttle_time_ms", 0)
        wire.int16("error_code", 79, "MEMBER_ID_REQUIRED")
        wire.int32("generation_id", -1, "none")
        wire.string("protocol_name", "")
        wire.string("leader", "")
        wire.string("member_id", "billing-1-0d1c9e2c-5a0a-4a2b-9a53-8f3f1f4c9b11")
        wire.structs("members", [], lambda _: None)

    return exchange(
        "JoinGroup",
        11,
        5,
        request,
        response,
        client_id="billing-1",
        correlation_id=32,
        at_ms=604.0,
        latency_ms=1.2,
        outcome="error",
        errors=[("error_code", 79, "MEMBER_ID_REQUIRED", False)],
        on=connection(3, "[2001:db8::17]:40113", "[2001:db8::1]:9092"),
        packet=31,
    )


def acks_zero() -> Sample:
    """Produce v2 with acks 0: no response will ever come."""

    def request(wire: Wire) -> None:
        wire.int16("acks", 0, "no response")
        wire.int32("timeout_ms", 1500, "1.5 s")

        def partition(index: int) -> None:
            wire.int32("index", index)
            with wire.inside("records", "RECORDS", struct.pack(">i", 120)):
                message(wire, 0, 1, b"cpu", b"0.71")
                message(wire, 1, 1, None, b"0.02", "the CRC is 1, the data has 2980627813")

        def topic(name: str) -> None:
            wire.string("name", name)
            wire.structs("partition_data", [0], partition)

        wire.structs("topic_data", ["metrics"], topic)

    return exchange(
        "Produce",
        0,
        2,
        request,
        None,
        client_id="",
        correlation_id=1,
        at_ms=700,
        outcome="no_response_expected",
        problems=[Problem("bad_crc", "the CRC is 1, the data has 2980627813", 61, "topic_data[0].partition_data[0]")],
        on=connection(4, "10.0.0.7:60001"),
        packet=40,
    )


def hostile() -> Sample:
    """A peer that sends terminal escapes in every string it has, and a body that ends in the middle."""
    evil = "\x1b]8;;http://evil\x07\x1b[31mclick\x1b[0m\u202egpj.exe\u200b\r\n\x9b2J"

    def request(wire: Wire) -> None:
        wire.structs("topics", [evil], lambda name: wire.string("name", name))
        wire.boolean("allow_auto_topic_creation", True)
        wire.add("include_cluster_authorized_operations", "BOOLEAN", b"", None, problem="1 byte needed, 0 left")

    made, dissection, _ = exchange(
        "Metadata",
        3,
        8,
        request,
        None,
        client_id=evil,
        correlation_id=-1,
        at_ms=800,
        outcome="undecoded",
        problems=[Problem("truncated", f"1 byte needed, 0 left {evil}", 77, f"topics[0].{evil}", packet=50)],
        packet=50,
    )
    made.api = evil
    made.connection.client = evil
    return made, dissection, None


def unanswered() -> Sample:
    """A Heartbeat that nobody answered."""

    def request(wire: Wire) -> None:
        wire.string("group_id", "billing")
        wire.int32("generation_id", 5)
        wire.string("member_id", "billing-1-0d1c9e2c-5a0a-4a2b-9a53-8f3f1f4c9b11")

    return exchange("Heartbeat", 12, 1, request, None, outcome="unanswered", at_ms=900, client_id="billing-1")


def request_missing() -> Sample:
    """A response whose request came before the capture started."""
    made, _, _ = exchange(
        "", -1, -1, None, lambda wire: wire.int32("x", 0), outcome="request_missing", at_ms=1, client_id=None
    )
    return made, None, None


def all_samples() -> list[Sample]:
    return [
        metadata(),
        produce(),
        fetch(),
        join_group(),
        acks_zero(),
        unanswered(),
        request_missing(),
        hostile(),
    ]
