"""Exchanges made by hand, with the annotated nodes a dissector gives, their offsets taken from the bytes beside them.

``Wire`` writes a field's bytes and makes its node at once, in wire order, so that offsets and lengths are true."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kwiresniff.model import Connection, Dissection, Exchange, Message, Node, Outcome, Problem

#: 2024-03-05T08:15:02.123456Z
START_NS = 1_709_626_502_123_456_000


START_MS = START_NS // 1_000_000


MS = 1_000_000


class Wire:
    """A frame under construction and the tree of its nodes."""

    def __init__(self) -> None:
        self.frame = bytearray()
        self.root = Node("", "STRUCT", 0, 0)
        self._open = [self.root]

    def add(self, name: str, type: str, data: bytes, value: Any, meaning: str = "", **more: Any) -> Node:
        node = Node(name, type, len(self.frame), len(data), value, meaning, **more)
        self.frame += data
        self._open[-1].children.append(node)
        return node

    def int8(self, name: str, value: int, meaning: str = "", **more: Any) -> Node:
        return self.add(name, "INT8", struct.pack(">b", value), value, meaning, **more)

    def int16(self, name: str, value: int, meaning: str = "", **more: Any) -> Node:
        return self.add(name, "INT16", struct.pack(">h", value), value, meaning, **more)

    def int32(self, name: str, value: int, meaning: str = "", **more: Any) -> Node:
        return self.add(name, "INT32", struct.pack(">i", value), value, meaning, **more)

    def int64(self, name: str, value: int, meaning: str = "", **more: Any) -> Node:
        return self.add(name, "INT64", struct.pack(">q", value), value, meaning, **more)

    def boolean(self, name: str, value: bool) -> Node:
        return self.add(name, "BOOLEAN", bytes([value]), value)

    def string(self, name: str, value: str | None, meaning: str = "") -> Node:
        data = b"\xff\xff" if value is None else struct.pack(">h", len(value.encode())) + value.encode()
        return self.add(name, "STRING" if value is not None else "NULLABLE_STRING", data, value, meaning)

    def blob(self, name: str, value: bytes | None, meaning: str = "") -> Node:
        data = b"\xff\xff\xff\xff" if value is None else struct.pack(">i", len(value)) + value
        return self.add(name, "BYTES", data, value, meaning)

    @contextmanager
    def inside(self, name: str, type: str = "STRUCT", head: bytes = b"") -> Iterator[Node]:
        node = self.add(name, type, head, None)
        self._open.append(node)
        yield node
        self._open.pop()
        node.length = len(self.frame) - node.offset

    def array(self, name: str, elements: list[Any] | None, write: Callable[[Any], object]) -> Node:
        count = -1 if elements is None else len(elements)
        with self.inside(name, "ARRAY", struct.pack(">i", count)) as node:
            node.null = elements is None
            for element in elements or ():
                write(element)
        return node

    def structs(self, name: str, elements: list[Any], write: Callable[[Any], object]) -> Node:
        def one(element: Any) -> None:
            with self.inside(name):
                write(element)

        return self.array(name, elements, one)

    def int32s(self, name: str, values: list[int]) -> Node:
        return self.array(name, values, lambda value: self.int32("", value))


def plain(node: Node) -> Any:
    """The value of a node as the decoder gives it, record batches with their header fields only."""
    if node.type in ("RECORD_BATCH", "MESSAGE"):
        fields = {child.name: child.value for child in node.children if not child.children}
        codec = ("none", "gzip", "snappy", "lz4", "zstd")[fields["attributes"] & 7]
        return {**fields, "compression": codec, "size_bytes": node.length}
    if node.type in ("ARRAY", "RECORDS"):
        return None if node.null else [plain(child) for child in node.children]
    if node.children or node.type == "STRUCT":
        return {child.name: plain(child) for child in node.children}
    return node.value


def frame_of(wire: Wire, body_offset: int, packet: int, at_ns: int, version: int, header_version: int) -> Message:
    wire.root.length = len(wire.frame)
    made = Message(packet, at_ns, packet, at_ns, len(wire.frame), bytes(wire.frame))
    made.body_offset = body_offset
    made.version = version
    made.header_version = header_version
    made.body = plain(wire.root.children[1])
    return made


def connection(id: int = 1, client: str = "10.0.0.5:51422", broker: str = "10.0.0.1:9092") -> Connection:
    return Connection(id, client, broker)


Sample = tuple[Exchange, Dissection | None, Dissection | None]


def exchange(
    api: str,
    api_key: int,
    version: int,
    write_request: Callable[[Wire], object] | None,
    write_response: Callable[[Wire], object] | None,
    *,
    client_id: str | None = "orders-service",
    correlation_id: int = 7,
    at_ms: float = 0.0,
    latency_ms: float = 0.873,
    outcome: Outcome = "ok",
    waiting: str = "",
    queued_ms: float = 0.0,
    held_ms: float = 0.0,
    errors: list[tuple[str, int, str, bool]] | None = None,
    problems: list[Problem] | None = None,
    on: Connection | None = None,
    packet: int = 4,
) -> Sample:
    """An exchange and its two walks; the request starts at ``START_NS`` plus ``at_ms``."""
    at_ns = START_NS + int(at_ms * MS)
    request = response = request_walk = response_walk = None
    if write_request is not None:
        wire = Wire()
        with wire.inside("header"):
            wire.int16("request_api_key", api_key, api)
            wire.int16("request_api_version", version)
            wire.int32("correlation_id", correlation_id)
            wire.string("client_id", client_id)
        body_offset = len(wire.frame)
        with wire.inside("body"):
            write_request(wire)
        request = frame_of(wire, body_offset, packet, at_ns, version, 1)
        request_walk = Dissection(wire.root, len(wire.frame))
    if write_response is not None:
        wire = Wire()
        with wire.inside("header"):
            wire.int32("correlation_id", correlation_id)
        body_offset = len(wire.frame)
        with wire.inside("body"):
            write_response(wire)
        response = frame_of(wire, body_offset, packet + 2, at_ns + int(latency_ms * MS), version, 0)
        response_walk = Dissection(wire.root, len(wire.frame))
    made = Exchange(on or connection(), api_key, version, correlation_id, client_id, request, response)
    made.api = api
    made.outcome = outcome
    made.waiting = waiting
    if request is not None and response is not None:
        made.queued, made.held = int(queued_ms * MS), int(held_ms * MS)
    made.errors = errors or []
    made.problems = problems or []
    return made, request_walk, response_walk


RECORDS: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]] = [
    (b"customer-17", b'{"order": 4711, "items": 3, "total": "19.90"}', [("trace", b"4bf92f3577b34da6")]),
    (b"customer-17", b'{"order": 4712, "items": 1, "total": "5.00"}', [("trace", b"00f067aa0ba902b7")]),
    (b"customer-4", None, []),
    (None, b"\x00\x01\xfe\xff\x80\x00schema-less", [("content-type", b"application/octet-stream"), ("retry", None)]),
]


def records(
    wire: Wire, base_offset: int, count: int = len(RECORDS), *, codec: int = 4, transactional: bool = True
) -> None:
    """A RECORDS field with one batch; with a codec its records are derived nodes."""
    with wire.inside("records", "RECORDS", struct.pack(">i", 300)), wire.inside("[0]", "RECORD_BATCH") as batch:
        words = [("none", "gzip", "snappy", "lz4", "zstd")[codec], "create time"]
        wire.int64("base_offset", base_offset)
        wire.int32("batch_length", 288)
        wire.int32("partition_leader_epoch", 4)
        wire.int8("magic", 2)
        wire.add("crc", "UINT32", struct.pack(">I", 0x4E81DEDC), 0x4E81DEDC, "ok")
        wire.int16("attributes", codec | transactional << 4, ", ".join(words + ["transactional"] * transactional))
        wire.int32("last_offset_delta", count - 1, f"to offset {base_offset + count - 1}")
        wire.int64("base_timestamp", START_MS, "2024-03-05 08:15:02.123 UTC")
        wire.int64("max_timestamp", START_MS + count, "2024-03-05 08:15:02.127 UTC")
        wire.int64("producer_id", 4001 if transactional else -1, "" if transactional else "none")
        wire.int16("producer_epoch", 0 if transactional else -1, "" if transactional else "none")
        wire.int32("base_sequence", 12 if transactional else -1, "" if transactional else "none")
        wire.int32("records_count", count)
        start = len(wire.frame)
        wire.frame += bytes(range(239))
        if codec:
            batch.children.append(Node("uncompressed_size_bytes", "INT32", start, 0, 812, derived=True))
        batch.children.append(_record_nodes(start, base_offset, count, bool(codec)))


def _record_nodes(start: int, base_offset: int, count: int, derived: bool) -> Node:
    array = Node("records", "ARRAY", start, 239)
    at = 0 if derived else start
    for index in range(count):
        key, value, headers = RECORDS[index % len(RECORDS)]
        record = Node(f"[{index}]", "RECORD", at, 60, derived=derived)
        record.children = [
            Node("length", "VARINT", at, 1, 59, derived=derived),
            Node("attributes", "INT8", at + 1, 1, 0, derived=derived),
            Node("timestamp", "VARLONG", at + 2, 1, START_MS + index, f"+{index} ms", derived=derived),
            Node("offset", "VARINT", at + 3, 1, base_offset + index, f"+{index}", derived=derived),
            Node("key", "BYTES", at + 4, 12, key, "none" if key is None else "", derived=derived),
            Node("value", "BYTES", at + 16, 34, value, "tombstone" if value is None else "", derived=derived),
        ]
        header_array = Node("headers", "ARRAY", at + 50, 10, derived=derived)
        for name, data in headers:
            header = Node("[0]", "HEADER", at + 51, 9, derived=derived)
            header.children = [
                Node("key", "STRING", at + 51, 5, name, derived=derived),
                Node("value", "BYTES", at + 56, 4, data, derived=derived),
            ]
            header_array.children.append(header)
        record.children.append(header_array)
        array.children.append(record)
        at += 60
    return array


def message(wire: Wire, index: int, magic: int, key: bytes | None, value: bytes, problem: str = "") -> None:
    """An uncompressed message of a message set."""
    with wire.inside(f"[{index}]", "MESSAGE"):
        wire.int64("base_offset", index)
        wire.int32("message_size", 28)
        wire.add("crc", "UINT32", b"\0\0\0\1", 1, "mismatch" if problem else "ok", problem=problem)
        wire.int8("magic", magic)
        wire.int8("attributes", 0, "none")
        if magic:
            wire.int64("timestamp", START_MS + index, "2024-03-05 08:15:02.123 UTC")
        wire.blob("key", key)
        wire.blob("value", value)
