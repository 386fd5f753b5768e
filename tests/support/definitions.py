"""Definitions written by hand after the protocol guide, and the bytes of messages written by hand after them."""

from __future__ import annotations

from kwiresniff.schema.types import MessageVersion, WireField


def field(name: str, type: str, *fields: WireField, **more: object) -> WireField:
    return WireField(name, type, fields=fields, **more)  # type: ignore[arg-type]


def array(name: str, type: str, *fields: WireField, **more: object) -> WireField:
    return field(name, type, *fields, array=True, **more)


def message(*fields: WireField, flexible: bool = False, kind: str = "response", name: str = "Test") -> MessageVersion:
    return MessageVersion(name, 0, kind, 0, flexible, 0, fields)


PRODUCE_RESPONSE_V8 = message(
    array(
        "responses",
        "STRUCT",
        field("name", "STRING", entity="topicName"),
        array(
            "partition_responses",
            "STRUCT",
            field("index", "INT32"),
            field("error_code", "INT16", enum="error_code"),
            field("base_offset", "INT64"),
            field("log_append_time_ms", "INT64"),
            field("log_start_offset", "INT64"),
            array(
                "record_errors",
                "STRUCT",
                field("batch_index", "INT32"),
                field("batch_index_error_message", "NULLABLE_STRING"),
            ),
            field("error_message", "NULLABLE_STRING"),
        ),
    ),
    field("throttle_time_ms", "INT32"),
    name="Produce",
)

#: One topic "t", partition 3, NOT_LEADER_OR_FOLLOWER (6), one record error without a message, throttled 100 ms.
PRODUCE_RESPONSE_V8_BYTES = bytes.fromhex(
    "00000001"  # responses: 1
    "0001 74"  # name "t"
    "00000001"  # partition_responses: 1
    "00000003 0006 ffffffffffffffff ffffffffffffffff 0000000000000007"
    "00000001 00000002 ffff"  # record_errors: batch index 2, null message
    "0003 6e6f21"  # error_message "no!"
    "00000064"
)

PRODUCE_RESPONSE_V8_BODY = {
    "responses": [
        {
            "name": "t",
            "partition_responses": [
                {
                    "index": 3,
                    "error_code": 6,
                    "base_offset": -1,
                    "log_append_time_ms": -1,
                    "log_start_offset": 7,
                    "record_errors": [{"batch_index": 2, "batch_index_error_message": None}],
                    "error_message": "no!",
                }
            ],
        }
    ],
    "throttle_time_ms": 100,
}

#: A message with every kind of field a flexible version can have.
EVERYTHING = message(
    field("flag", "BOOLEAN"),
    field("small", "INT8"),
    field("port", "UINT16"),
    field("crc", "UINT32"),
    field("ratio", "FLOAT64"),
    field("topic_id", "UUID"),
    field("name", "COMPACT_STRING", entity="topicName"),
    field("rack", "COMPACT_NULLABLE_STRING"),
    field("blob", "COMPACT_BYTES"),
    field("maybe_blob", "COMPACT_NULLABLE_BYTES"),
    array("replicas", "INT32", nullable=True),
    array("ids", "UUID"),
    array("pairs", "STRUCT", field("partition", "INT32"), field("error_code", "INT16", enum="error_code")),
    field("cursor", "STRUCT", field("offset", "INT64"), nullable=True),
    field("nested", "STRUCT", field("a", "INT16"), field("b", "COMPACT_STRING")),
    field("epoch", "INT32", tag=0, default=-1),
    array("endpoints", "STRUCT", field("host", "COMPACT_STRING"), field("port", "INT32"), tag=1, default=[]),
    field("leader", "STRUCT", field("leader_id", "INT32", default=-1), tag=3, default={"leader_id": -1}),
    flexible=True,
    name="Everything",
)

EVERYTHING_BYTES = bytes.fromhex(
    "01 ff ffff 80000001"
    "3ff8000000000000"  # 1.5
    "00112233445566778899aabbccddeeff"
    "03 6162"  # "ab"
    "00"  # null
    "03 00ff"  # two bytes
    "01"  # empty
    "03 00000001 ffffffff"  # two replicas
    "02 00000000000000000000000000000000"  # one id
    "03 00000001 0003 00  00000002 0000 00"  # two pairs
    "01 0000000000000009 00"  # cursor, present
    "0007 01 00"  # nested: 7, ""
    "03"  # three tagged fields
    "00 04 00000005"  # epoch
    "01 08 02 02 68 00000001 00"  # endpoints: one, "h", port 1
    "07 02 cafe"  # an unknown one
)

EVERYTHING_BODY = {
    "flag": True,
    "small": -1,
    "port": 65535,
    "crc": 2147483649,
    "ratio": 1.5,
    "topic_id": "ABEiM0RVZneImaq7zN3u_w",
    "name": "ab",
    "rack": None,
    "blob": b"\x00\xff",
    "maybe_blob": b"",
    "replicas": [1, -1],
    "ids": ["AAAAAAAAAAAAAAAAAAAAAA"],
    "pairs": [{"partition": 1, "error_code": 3}, {"partition": 2, "error_code": 0}],
    "cursor": {"offset": 9},
    "nested": {"a": 7, "b": ""},
    "epoch": 5,
    "endpoints": [{"host": "h", "port": 1}],
    "leader": {"leader_id": -1},
    "_tagged_fields": {7: b"\xca\xfe"},
}
