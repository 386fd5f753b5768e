"""Tables of exchanges, connections and what was found in them: their columns, the types and the meaning of each.

One list serves Spark (as DDL), Parquet (as an Arrow schema), CSV and the documentation. ``date`` of ``exchanges``
and ``records`` is a folder in Parquet. Names are those of the exported JSON where it has them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple


class Column(NamedTuple):
    """``type`` is a Spark SQL type as DDL."""

    name: str
    type: str
    meaning: str


#: pyarrow's names for Spark SQL's types that are neither nested nor moments.
_ARROW_NAMES = {
    "STRING": "string",
    "BINARY": "binary",
    "SMALLINT": "int16",
    "INT": "int32",
    "BIGINT": "int64",
    "BOOLEAN": "bool",
    "DATE": "date32",
}
#: A field of a STRUCT; those of a STRUCT inside it belong to its type.
_FIELD = re.compile(r"\w+: \w+(?:<(?:[^<>]|<[^<>]*>)*>)?")

#: A latency histogram that merges by adding: see ``kwiresniff.analysis.latency``.
SKETCH = (
    "STRUCT<count: BIGINT, zeros: BIGINT, sum_ns: BIGINT, min_ns: BIGINT, max_ns: BIGINT, "
    "buckets: ARRAY<STRUCT<bucket: BIGINT, count: BIGINT>>>"
)
ERRORS = "ARRAY<STRUCT<path: STRING, code: INT, name: STRING, retriable: BOOLEAN>>"

USES = "ARRAY<STRUCT<api: STRING, version: INT, exchanges: BIGINT, errors: BIGINT>>"

COUNTS = "ARRAY<STRUCT<name: STRING, count: BIGINT>>"

#: Columns that several tables have.
_SOURCE = Column("source", "STRING", "the series of files, or the file")
_BROKER = Column("broker", "STRING", "ip:port, IPv6 in brackets")
_CLIENT_ID = Column("client_id", "STRING", "as the client calls itself")
_CLIENT_HOST = Column("client_host", "STRING", "the client's address without the port")
_API = Column("api", "STRING", "official name; null when the request is missing")
_WAITING = Column("waiting", "STRING", "why the broker held the answer back on purpose, or null")
_MINUTE = Column("minute", "TIMESTAMP", "start of the UTC minute of the request")
_CLUSTER = Column("cluster", "STRING", "the cluster's id, or `cluster of` an address where no answer told the id")
_PACKET = Column("packet", "BIGINT", "1-based, counted in that file")
_FIRST_TIME = Column("first_time", "TIMESTAMP", "first seen")
_LAST_TIME = Column("last_time", "TIMESTAMP", "last seen")

#: How many exchanges a row stands for, and how long they took.
_EXCHANGE_COUNTS = (
    Column("exchanges", "BIGINT", "how many"),
    Column("error_exchanges", "BIGINT", "those with an error code"),
    Column("unanswered", "BIGINT", "those without the answer they should have had"),
    Column("request_bytes", "BIGINT", "bytes of frames without their 4-byte length"),
    Column("response_bytes", "BIGINT", "bytes of frames without their 4-byte length"),
)
_LATENCIES = (
    Column("latency", SKETCH, "nanoseconds, of those that were answered"),
    Column("broker_time", SKETCH, "nanoseconds of the broker's own time, of those where something was left to it"),
)
_CLIENT = (
    _SOURCE,
    Column("kind", "STRING", "client, broker (nodes of the cluster among themselves) or encrypted"),
    _CLIENT_ID,
    _CLIENT_HOST,
    _BROKER,
    Column("software_name", "STRING", "what the client says of itself in ApiVersions"),
    Column("software_version", "STRING", "the same"),
    Column("principal", "STRING", "who authenticated, where the mechanism shows it"),
)
_PLACE = (
    _SOURCE,
    Column("connection_id", "BIGINT", "number of the connection within its source, not that of read"),
    Column("client", "STRING", "ip:port, IPv6 in brackets"),
    _BROKER,
)


def _message(direction: str) -> tuple[Column, ...]:
    return (
        Column(f"{direction}_timestamp_ns", "BIGINT", "first byte of the frame, nanoseconds since the epoch"),
        Column(f"{direction}_file", "STRING", "the file with the first packet"),
        Column(f"{direction}_first_packet", "BIGINT", "1-based, counted in that file"),
        Column(f"{direction}_last_packet", "BIGINT", "1-based, counted in the file it is in"),
        Column(f"{direction}_size_bytes", "BIGINT", "bytes, without the 4-byte length"),
        Column(f"{direction}_header_version", "SMALLINT", "version of the header"),
        Column(f"{direction}_body", "STRING", "the decoded body as JSON"),
    )


TABLES: dict[str, tuple[Column, ...]] = {
    "exchanges": (
        Column("date", "DATE", "UTC day of the request, of the response when the request is missing"),
        _API,
        Column("time", "TIMESTAMP", "the same moment"),
        *_PLACE,
        Column("api_key", "SMALLINT", "-1 when the request is missing"),
        Column("api_version", "SMALLINT", "-1 when the request is missing"),
        Column("correlation_id", "INT", "ties response to request"),
        _CLIENT_ID,
        Column("outcome", "STRING", "ok, error, no_response_expected, unanswered, request_missing, undecoded"),
        _WAITING,
        Column("latency_ns", "BIGINT", "nanoseconds, last byte of the request to first byte of the response"),
        Column("queued_ns", "BIGINT", "nanoseconds of it, until the answer before on the connection had gone"),
        Column("held_ns", "BIGINT", "nanoseconds of it, held back by the broker on purpose"),
        Column("broker_ns", "BIGINT", "nanoseconds, the rest of it, the broker's own time"),
        Column("request_ns", "BIGINT", "nanoseconds, first to last byte of the request"),
        Column("response_ns", "BIGINT", "nanoseconds, first to last byte of the response"),
        Column("topics", "ARRAY<STRING>", "topics named in either body"),
        Column("partitions", "ARRAY<INT>", "partitions named in either body"),
        Column("groups", "ARRAY<STRING>", "groups named in either body"),
        Column("error_names", "ARRAY<STRING>", "each error of the response once"),
        Column("errors", ERRORS, "every non-zero error code of the response"),
        Column("problem_codes", "ARRAY<STRING>", "each problem of the two frames once"),
        Column("problems", "STRING", "the problems as a JSON array, null when there are none"),
        *_message("request"),
        *_message("response"),
    ),
    "connections": (
        *_PLACE,
        Column("protocol", "STRING", "kafka or tls"),
        Column("first_time", "TIMESTAMP", "first packet"),
        Column("last_time", "TIMESTAMP", "last packet"),
        Column("first_timestamp_ns", "BIGINT", "nanoseconds since the epoch"),
        Column("last_timestamp_ns", "BIGINT", "nanoseconds since the epoch"),
        Column("to_broker_bytes", "BIGINT", "bytes of TCP payload"),
        Column("to_client_bytes", "BIGINT", "bytes of TCP payload"),
        Column("exchanges", "BIGINT", "exchanges of all outcomes"),
        Column("details", "STRING", "the whole connection as the exported JSON has it"),
    ),
    "problems": (
        _SOURCE,
        Column("file", "STRING", "the file, when one is to blame"),
        _PACKET,
        Column("time", "TIMESTAMP", "when it was seen"),
        Column("code", "STRING", "what kind of problem"),
        Column("message", "STRING", "what a person should read"),
        Column("connection_id", "BIGINT", "the connection it belongs to, when it belongs to no exchange"),
        Column("details", "STRING", "the whole problem as the exported JSON has it"),
    ),
    "records": (
        Column("date", "DATE", "UTC day of the message that carried the record"),
        Column("api", "STRING", "Produce, Fetch, ..."),
        Column("time", "TIMESTAMP", "when that message was seen"),
        *_PLACE,
        _CLIENT_ID,
        Column("correlation_id", "INT", "of the exchange"),
        Column("topic", "STRING", "name; the id when the capture does not tell the name"),
        Column("partition", "INT", "partition index"),
        Column("offset", "BIGINT", "as on the wire: a producer counts from 0 in each batch"),
        Column("timestamp", "BIGINT", "of the record: milliseconds since the epoch"),
        Column("key", "BINARY", "as on the wire"),
        Column("value", "BINARY", "as on the wire"),
        Column("headers", "STRING", "as JSON"),
        Column("compression", "STRING", "of the batch"),
        Column("producer_id", "BIGINT", "of the batch, -1 without one"),
        Column("is_transactional", "BOOLEAN", "of the batch"),
        Column("is_control", "BOOLEAN", "of the batch"),
        Column("key_decoded", "STRING", "what the key was decoded to, as the exported JSON has it, or null"),
        Column("value_decoded", "STRING", "what the value was decoded to, or null"),
    ),
    "segments": (
        _SOURCE,
        Column("file", "STRING", "the file"),
        _PACKET,
        Column("time", "TIMESTAMP", "capture time"),
        Column("timestamp_ns", "BIGINT", "nanoseconds since the epoch"),
        Column("sender", "STRING", "ip:port, IPv6 in brackets"),
        Column("receiver", "STRING", "ip:port, IPv6 in brackets"),
        Column("seq", "BIGINT", "TCP sequence number"),
        Column("ack", "BIGINT", "TCP acknowledgement number"),
        Column("flags", "SMALLINT", "FIN 1, SYN 2, RST 4, PSH 8, ACK 16"),
        Column("size_bytes", "BIGINT", "bytes of payload in the capture"),
        Column("missing_bytes", "BIGINT", "bytes of payload that was on the wire and is not in the capture"),
    ),
    "latency": (
        _MINUTE,
        _API,
        _CLIENT_ID,
        _CLIENT_HOST,
        _BROKER,
        _WAITING,
        *_EXCHANGE_COUNTS,
        *_LATENCIES,
    ),
    "topic_latency": (
        _MINUTE,
        Column("topic", "STRING", "an exchange with several topics counts for each of them"),
        Column("api", "STRING", "official name"),
        _BROKER,
        _WAITING,
        *_EXCHANGE_COUNTS,
        *_LATENCIES,
    ),
    "errors": (
        _MINUTE,
        _API,
        Column("error", "STRING", "official name of the error code"),
        Column("code", "INT", "the error code"),
        Column("retriable", "BOOLEAN", "whether clients are to try again"),
        _CLIENT_ID,
        _CLIENT_HOST,
        _BROKER,
        Column("exchanges", "BIGINT", "responses with this error"),
        Column("times", "BIGINT", "how often it stood in them"),
    ),
    "clusters": (
        _SOURCE,
        _CLUSTER,
        Column("cluster_id", "STRING", "the id; null where no answer told it"),
        _BROKER,
        Column("first_time", "TIMESTAMP", "first exchange with the broker as one of this cluster; null without any"),
        Column("last_time", "TIMESTAMP", "the last one"),
    ),
    "clients": (
        *_CLIENT,
        _CLUSTER,
        _FIRST_TIME,
        _LAST_TIME,
        Column("connections", "BIGINT", "how many"),
        *_EXCHANGE_COUNTS,
        Column("uses", USES, "what it asked, by API and version"),
        Column("topics", "ARRAY<STRING>", "topics it named or was told of"),
        Column("groups", "ARRAY<STRING>", "its groups"),
        Column("transactional_ids", "ARRAY<STRING>", "its transactional ids"),
        Column("details", "STRING", "the whole client as the JSON of the command clients has it"),
    ),
    "topics": (
        _SOURCE,
        _CLUSTER,
        Column("topic", "STRING", "name; the id when nothing tells the name"),
        Column("topic_id", "STRING", "null where none was told"),
        _FIRST_TIME,
        _LAST_TIME,
        *(
            Column(f"{way}_{what}", "BIGINT", meaning)
            for way in ("produced", "consumed")
            for what, meaning in (
                ("requests", "requests that carried it"),
                ("batches", "record batches"),
                ("records", "records; a compressed message set of before Kafka 0.11 counts as one"),
                ("bytes", "bytes of the batches as they go over the wire"),
            )
        ),
        Column("producers", "ARRAY<STRING>", "client ids that produce to it"),
        Column("consumers", "ARRAY<STRING>", "client ids that consume from it, followers too"),
        Column("groups", "ARRAY<STRING>", "groups of those, and groups that commit offsets of it"),
        Column("errors", COUNTS, "its error codes, the most frequent first"),
        Column("lag", "BIGINT", "records: high watermarks less positions of consumers; null where neither is known"),
        Column("produce_to_consume_p50_ns", "BIGINT", "nanoseconds from Produce's answer to the Fetch with the batch"),
        Column("produce_to_consume_p99_ns", "BIGINT", "the same, 99th percentile"),
        Column("details", "STRING", "the whole topic as the JSON of the command topics has it"),
    ),
    "groups": (
        _SOURCE,
        _CLUSTER,
        Column("group", "STRING", "its name"),
        Column("time", "TIMESTAMP", "of the request; of commits in a row, of the first"),
        Column("event", "STRING", "join, assigned, epoch, leave, commit, rejoin or error"),
        Column("protocol", "STRING", "classic, consumer, share or streams"),
        Column("generation", "BIGINT", "the generation or the member epoch; null where it is not in the traffic"),
        _CLIENT_ID,
        Column("client", "STRING", "ip:port, IPv6 in brackets"),
        _BROKER,
        Column("member_id", "STRING", "the member"),
        Column("details", "STRING", "the whole event as the JSON of the command groups has it"),
    ),
    "producers": (
        _SOURCE,
        _CLUSTER,
        Column("producer_id", "BIGINT", "unique in a cluster"),
        Column("transactional_id", "STRING", "null without one"),
        _FIRST_TIME,
        _LAST_TIME,
        Column("clients", "ARRAY<STRING>", "those that used it, by client id and address, the last one last"),
        Column("batches", "BIGINT", "record batches that it sent"),
        Column("records", "BIGINT", "records in them"),
        Column("errors", COUNTS, "its error codes, the most frequent first"),
        Column("transactions", COUNTS, "its transactions by their state"),
        Column("details", "STRING", "the whole producer as the JSON of the command producers has it"),
    ),
    "audit": (
        *_CLIENT,
        Column("target", "STRING", "the release of Kafka it was held against"),
        Column("verdict", "STRING", "breaks, unknown, ok or not_judged"),
        Column("reason", "STRING", "why"),
        Column("details", "STRING", "the verdict as the JSON of the command audit has it"),
    ),
}

#: The tables of ``pipeline run``. Groups, producers and records only when asked for: they have all bodies read, and
#: records are most of the data. Audit only when there is something to hold clients against.
WRITABLE = (
    "exchanges", "connections", "problems", "latency", "topic_latency", "errors", "clusters", "clients", "topics",
    "groups", "producers", "audit", "records",
)  # fmt: skip
WRITTEN = WRITABLE[: WRITABLE.index("groups")]
#: The names in SQL of ``pipeline query``: the tables, and a view that joins ``topics`` and ``clusters``.
QUERYABLE = (*WRITABLE, "logs")
#: The tables of the data source; the others are aggregates that only ``pipeline run`` writes.
READABLE = ("exchanges", "connections", "problems", "records", "segments")
#: The columns that are folders in Parquet.
PARTITIONED_BY: dict[str, tuple[str, ...]] = {"exchanges": ("date",), "records": ("date",)}


#: The columns of ``exchanges`` that are known from headers.
HEADER_COLUMNS = frozenset({
    "date", "api", "time", "source", "connection_id", "client", "broker", "api_key", "api_version", "correlation_id",
    "client_id", "latency_ns", "request_ns", "response_ns",
    *(f"{side}_{name}" for side in ("request", "response") for name in (
        "timestamp_ns", "file", "first_packet", "last_packet", "size_bytes", "header_version",
    )),
})  # fmt: skip


def ddl(table: str, names: Sequence[str] = ()) -> str:
    """The schema of a table as Spark reads it, of some columns or of all."""
    by_name = {name: type for name, type, _ in TABLES[table]}
    return ", ".join(f"`{name}` {by_name[name]}" for name in names or by_name)


def arrow_schema(table: str, names: Sequence[str] = (), *, without: Sequence[str] = ()) -> Any:
    """The schema of a table for pyarrow: of some columns or of all, leaving out those ``without``."""
    by_name = {name: type for name, type, _ in TABLES[table]}
    wanted = [name for name in names or by_name if name not in without]
    return import_module("pyarrow").schema([(name, arrow_type(by_name[name])) for name in wanted])


def arrow_type(type: str) -> Any:
    """The pyarrow type of a Spark SQL type as DDL."""
    arrow = import_module("pyarrow")
    if type.startswith("ARRAY<"):
        return arrow.list_(arrow_type(type[len("ARRAY<") : -1]))
    if type == "TIMESTAMP":
        return arrow.timestamp("us", tz="UTC")
    if not type.startswith("STRUCT<"):
        return arrow.type_for_alias(_ARROW_NAMES[type])
    fields = [field.split(": ", 1) for field in _FIELD.findall(type[len("STRUCT<") : -1])]
    return arrow.struct([(name, arrow_type(inner)) for name, inner in fields])
