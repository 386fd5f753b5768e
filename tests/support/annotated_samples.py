"""Exchanges with their dissected messages: what the tests of trees and summaries draw."""

from __future__ import annotations

from typing import Any

from kwiresniff import codec, schema
from kwiresniff.errors import DecodeError
from kwiresniff.model import Connection, Direction, Dissection, Exchange, Message, Problem
from kwiresniff.session.annotation import dissect_message
from tests.support import conversation
from tests.support.encoding import encoder

#: 2024-03-05T08:15:02.123456Z
START_NS = 1_709_626_502_123_456_000
START_MS = START_NS // 1_000_000
MS = 1_000_000

Sample = tuple[Exchange, Dissection | None, Dissection | None]


def sample(
    api_key: int,
    version: int,
    asked: dict[str, Any] | None,
    answered: dict[str, Any] | None,
    *,
    client_id: str | None = "orders-service",
    correlation_id: int = 7,
    at_ms: float = 0.0,
    latency_ms: float = 0.873,
    packet: int = 4,
    cut: int = 0,
    on: Connection | None = None,
    **more: Any,
) -> Sample:
    """An exchange and its two dissections; the request starts at ``START_NS`` plus ``at_ms``, and lacks the last
    ``cut`` bytes of its body. ``more`` sets attributes of the exchange."""
    at_ns = START_NS + int(at_ms * MS)

    def message(direction: Direction, body: dict[str, Any] | None, packet: int, ns: int) -> Message | None:
        if body is None:
            return None
        header_version = getattr(schema, f"{direction}_header_version")(api_key, version)
        tags = b"\0" if header_version == {"request": 2, "response": 1}[direction] else b""
        raw = encoder(api_key, version, direction)(body)
        if direction == "request":
            frame = conversation.request(api_key, version, correlation_id, raw, client_id, tags)[4:]
        else:
            frame = conversation.response(correlation_id, raw, tags)[4:]
        kept = frame[: len(frame) - cut] if direction == "request" else frame
        made = Message(packet, ns, packet, ns, len(kept), kept)
        made.body_offset, made.header_version, made.version = len(frame) - len(raw), header_version, version
        try:
            made.body, _ = codec.decoder(api_key, version, direction)(kept, made.body_offset, [])
        except DecodeError:
            made.body = None
        return made

    request = message("request", asked, packet, at_ns)
    response = message("response", answered, packet + 2, at_ns + int(latency_ms * MS))
    made = Exchange(on or connection(), api_key, version, correlation_id, client_id, request, response)
    made.api = schema.API_NAMES[api_key]
    if request is not None and response is not None:
        made.queued = made.held = 0
    for name, value in more.items():
        setattr(made, name, value)
    return made, dissect_message(made, "request"), dissect_message(made, "response")


def connection(id: int = 1, client: str = "10.0.0.5:51422", broker: str = "10.0.0.1:9092") -> Connection:
    return Connection(id, client, broker)


RECORDS: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]] = [
    (b"customer-17", b'{"order": 4711, "items": 3, "total": "19.90"}', [("trace", b"4bf92f3577b34da6")]),
    (b"customer-17", b'{"order": 4712, "items": 1, "total": "5.00"}', [("trace", b"00f067aa0ba902b7")]),
    (b"customer-4", None, []),
    (None, b"\x00\x01\xfe\xff\x80\x00schema-less", [("content-type", b"application/octet-stream"), ("retry", None)]),
]


def batch(base_offset: int, count: int, **more: Any) -> dict[str, Any]:
    """A record batch of so many records."""
    records = []
    for index in range(count):
        key, value, headers = RECORDS[index % len(RECORDS)]
        records.append({
            "offset": base_offset + index, "timestamp": START_MS + index, "key": key, "value": value,
            "headers": [{"key": name, "value": data} for name, data in headers],
        })  # fmt: skip
    return {"base_offset": base_offset, "partition_leader_epoch": 4, "records": records, **more}


def metadata() -> Sample:
    """Metadata v8: one topic known, one not."""
    asked = {
        "topics": [{"name": "orders"}, {"name": "payments"}],
        "allow_auto_topic_creation": True,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
    }
    partitions = [
        {
            "error_code": 0, "partition_index": index, "leader_id": 1 + index, "leader_epoch": 4,
            "replica_nodes": [1, 2, 3], "isr_nodes": [1, 2, 3] if index else [1, 2], "offline_replicas": [],
        }
        for index in range(3)
    ]  # fmt: skip
    not_asked = -2147483648
    answered = {
        "throttle_time_ms": 0,
        "brokers": [
            {"node_id": node, "host": f"kafka-{node}.example.com", "port": 9092, "rack": rack}
            for node, rack in ((1, "eu-1b"), (2, None), (3, "eu-1a"))
        ],
        "cluster_id": "bGtpbmctdGVzdC0wMQ",
        "controller_id": 2,
        "topics": [
            {
                "error_code": code, "name": name, "is_internal": False, "partitions": found,
                "topic_authorized_operations": not_asked,
            }
            for code, name, found in ((0, "orders", partitions), (3, "payments", []))
        ],
        "cluster_authorized_operations": not_asked,
    }  # fmt: skip
    errors = [("topics[1].error_code", 3, "UNKNOWN_TOPIC_OR_PARTITION", True)]
    return sample(3, 8, asked, answered, outcome="error", errors=errors)


def produce() -> Sample:
    """Produce v8: a transactional batch, one partition refused."""
    written = batch(
        0, 4, compression="zstd", is_transactional=True, producer_id=4001, producer_epoch=0, base_sequence=12
    )
    partitions = [{"index": index, "records": [written]} for index in (0, 3)]
    asked = {
        "transactional_id": "orders-tx-1", "acks": -1, "timeout_ms": 30_000,
        "topic_data": [{"name": "orders", "partition_data": partitions}],
    }  # fmt: skip
    answers: list[dict[str, Any]] = [
        {
            "index": index, "error_code": code, "base_offset": offset, "log_append_time_ms": -1,
            "log_start_offset": start, "record_errors": [], "error_message": None,
        }
        for index, code, offset, start in ((0, 0, 81_204, 0), (3, 6, -1, -1))
    ]  # fmt: skip
    answered = {"responses": [{"name": "orders", "partition_responses": answers}], "throttle_time_ms": 0}
    errors = [("responses[0].partition_responses[1].error_code", 6, "NOT_LEADER_OR_FOLLOWER", True)]
    return sample(0, 8, asked, answered, correlation_id=12, at_ms=41.2, latency_ms=2.31, outcome="error",
                  errors=errors, packet=18)  # fmt: skip


def fetch() -> Sample:
    """Fetch v11: a long poll that came back with records."""
    wanted = {
        "partition": 0, "current_leader_epoch": 4, "fetch_offset": 81_204, "log_start_offset": -1,
        "partition_max_bytes": 1_048_576,
    }  # fmt: skip
    asked = {
        "replica_id": -1, "max_wait_ms": 500, "min_bytes": 1, "max_bytes": 52_428_800, "isolation_level": 1,
        "session_id": 0, "session_epoch": 0, "topics": [{"topic": "orders", "partitions": [wanted]}],
        "forgotten_topics_data": [], "rack_id": "",
    }  # fmt: skip
    given = {
        "partition_index": 0, "error_code": 0, "high_watermark": 81_216, "last_stable_offset": 81_216,
        "log_start_offset": 0, "aborted_transactions": None, "preferred_read_replica": -1,
        "records": [batch(81_204, 12, compression="lz4")],
    }  # fmt: skip
    answered = {
        "throttle_time_ms": 0, "error_code": 0, "session_id": 1_882_031,
        "responses": [{"topic": "orders", "partitions": [given]}],
    }  # fmt: skip
    return sample(1, 11, asked, answered, client_id="billing-1", correlation_id=31, at_ms=55.4, latency_ms=467.2,
                  waiting="long poll", queued=2_400_000, held=463 * MS, on=connection(2, "10.0.0.6:40112"),
                  packet=22)  # fmt: skip


MEMBER = "billing-1-0d1c9e2c-5a0a-4a2b-9a53-8f3f1f4c9b11"


def join_group(metadata: bytes = b"\0\1\0\0\0\1\0\6orders\xff\xff\xff\xff\0\0\0\0", kind: str = "consumer") -> Sample:
    """JoinGroup v5: a rebalance, and a member id that must be asked for again."""
    asked = {
        "group_id": "billing", "session_timeout_ms": 45_000, "rebalance_timeout_ms": 300_000, "member_id": "",
        "group_instance_id": None, "protocol_type": kind,
        "protocols": [{"name": name, "metadata": metadata} for name in ("range", "cooperative-sticky")],
    }  # fmt: skip
    answered = {
        "throttle_time_ms": 0, "error_code": 79, "generation_id": -1, "protocol_name": "", "leader": "",
        "member_id": MEMBER, "members": [],
    }  # fmt: skip
    return sample(11, 5, asked, answered, client_id="billing-1", correlation_id=32, at_ms=604.0, latency_ms=1.2,
                  outcome="error", errors=[("error_code", 79, "MEMBER_ID_REQUIRED", False)],
                  on=connection(3, "[2001:db8::17]:40113", "[2001:db8::1]:9092"), packet=31)  # fmt: skip


def acks_zero() -> Sample:
    """Produce v2 with acks 0: no response will ever come."""
    messages = [
        {"magic": 1, "timestamp": START_MS + index, "records": [{"offset": index, "key": key, "value": value}]}
        for index, (key, value) in enumerate([(b"cpu", b"0.71"), (None, b"0.02")])
    ]
    partitions = [{"index": 0, "records": messages}]
    asked = {"acks": 0, "timeout_ms": 1500, "topic_data": [{"name": "metrics", "partition_data": partitions}]}
    return sample(0, 2, asked, None, client_id="", correlation_id=1, at_ms=700, outcome="no_response_expected",
                  on=connection(4, "10.0.0.7:60001"), packet=40)  # fmt: skip


EVIL = "\x1b]8;;http://evil\x07\x1b[31mclick\x1b[0m\u202egpj.exe\u200b\r\n\x9b2J"


def hostile() -> Sample:
    """A peer that sends terminal escapes in every string it has, and a body that ends in the middle."""
    asked = {
        "topics": [{"name": EVIL}], "allow_auto_topic_creation": True, "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
    }  # fmt: skip
    problem = Problem("truncated", f"1 byte needed, 0 left {EVIL}", 77, f"topics[0].{EVIL}", packet=50)
    return sample(3, 8, asked, None, cut=2, client_id=EVIL, correlation_id=-1, at_ms=800, outcome="undecoded",
                  problems=[problem], packet=50, api=EVIL, on=connection(1, EVIL))  # fmt: skip


def unanswered() -> Sample:
    """A Heartbeat that nobody answered."""
    asked = {"group_id": "billing", "generation_id": 5, "member_id": MEMBER}
    return sample(12, 1, asked, None, outcome="unanswered", at_ms=900, client_id="billing-1")


def request_missing() -> Sample:
    """A response whose request came before the capture started."""
    made, _, _ = sample(12, 1, None, {"throttle_time_ms": 0, "error_code": 0}, at_ms=1, client_id=None,
                        outcome="request_missing")  # fmt: skip
    made.api, made.api_key, made.api_version = "", -1, -1
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
