"""Nodes of record batches and of messages from before Kafka 0.11: their headers, checksums, attributes."""

from __future__ import annotations

from typing import Any

from kwiresniff.base.batch_layout import CODEC_MASK, CONTROL, DELETE_HORIZON, LOG_APPEND_TIME, TRANSACTIONAL
from kwiresniff.codec.batch_header import header_fields
from kwiresniff.codec.compression import codec_name
from kwiresniff.codec.record_batch import crc_problem
from kwiresniff.codec.record_limits import (
    BATCH_NODES,
    COMPRESSED_NODES,
    HEADER_NODES,
    RECORD_NODES,
    RecordBudget,
)
from kwiresniff.errors import DecodeError
from kwiresniff.model import Body, Node, Problem
from kwiresniff.schema.value_labels import time_meaning

#: Nodes of one record set. At some 250 bytes each this is 50 MB, and ten thousand times what anyone reads.
MAX_NODES = 200_000

_TYPES = {"q": "INT64", "i": "INT32", "I": "UINT32", "h": "INT16", "b": "INT8"}
_NONE_AT_MINUS_ONE = frozenset({"partition_leader_epoch", "producer_id", "producer_epoch", "base_sequence"})


def are_too_many(nodes: int) -> bool:
    """Whether a record set with so many nodes gets no more."""
    return nodes >= MAX_NODES


def node_count(batch: Body) -> int:
    """The number of nodes of a sound decoded batch of magic 2 without control records; 0 for any other."""
    if batch.get("truncated"):
        return len(batch) - 1  # itself and the fields that are there
    if batch["magic"] < 2 or batch["is_control"]:
        return 0
    count = BATCH_NODES + (COMPRESSED_NODES if batch["attributes"] & CODEC_MASK else 0)
    for record in batch["records"]:
        count += RECORD_NODES + HEADER_NODES * len(record["headers"])
    return count


class BatchNodes:
    """The ``batches``, ``problems`` and number of ``nodes`` of a record set; ``says_meanings`` adds meanings."""

    def __init__(self, buf: bytes, budget: RecordBudget, says_meanings: bool = True) -> None:
        self.says_meanings = says_meanings
        self.buf = buf
        self.batches: list[Node] = []
        self.problems: list[Problem] = []
        self.budget = budget
        self.nodes = 0

    def is_full(self) -> bool:
        """Whether the limit on nodes is reached, so that no more are made."""
        return are_too_many(self.nodes)

    def header(self, node: Node, data: bytes, end: int) -> None:
        """Add the fields of the batch or message that begins at the node's offset in ``data[:end]``."""
        for name, code, at, width, value in header_fields(data, node.offset, end):
            meaning = _field_meaning(name, value) if self.says_meanings else ""
            self.add(node, name, _TYPES[code], at, width, value, meaning)

    def add(
        self, parent: Node, name: str, type: str, offset: int, length: int, value: Any = None, meaning: str = ""
    ) -> Node:
        """Add a node to ``parent``."""
        node = Node(name, type, offset, length, value, meaning, derived=parent.derived)
        parent.children.append(node)
        self.nodes += 1
        return node

    def fail(self, node: Node, error: DecodeError, path: str, offset: int) -> None:
        """Marks a node with what is wrong with it, at ``offset``."""
        node.problem = str(error)
        self.problems.append(Problem(error.code, str(error), offset, path))

    def check_crc(self, node: Node, declared: int, actual: int, path: str) -> None:
        """Marks the node when the ``declared`` checksum is not the ``actual`` one, both UINT32."""
        crc = child_of(node, "crc")
        crc.meaning = "ok" if declared == actual else "mismatch"
        if declared != actual:
            problem = crc_problem(declared, actual, crc.offset)
            crc.problem = problem.message
            self.problems.append(Problem(problem.code, problem.message, problem.offset, f"{path}.crc"))

    def uncompressed(self, node: Node, records: Node, codec: int, size: int) -> None:
        """Adds that decompression by ``codec`` (1 to 4) gave ``size`` bytes; ``records`` is the last child so far."""
        ratio = size / records.length if records.length else 0
        records.meaning = f"{codec_name(codec)} {ratio:.1f}x, {records.length:,} -> {size:,} bytes"
        note = Node("uncompressed_size_bytes", "INT32", records.offset, 0, size, derived=True)
        node.children.insert(-1, note)


def child_of(node: Node, name: str) -> Node:
    """The child of that name."""
    for child in node.children:
        if child.name == name:
            return child
    raise KeyError(name)


def _field_meaning(name: str, value: int) -> str:
    if name.endswith("timestamp"):
        return "none" if value == -1 else time_meaning(value)
    return "none" if value == -1 and name in _NONE_AT_MINUS_ONE else ""


def attributes_meaning(attributes: int, magic: int = 2) -> str:
    """The meaning of the bits of ``attributes`` in the format ``magic``: ``zstd, create time, transactional``."""
    words = [codec_name(attributes & CODEC_MASK)]
    if magic > 0:
        words.append("log append time" if attributes & LOG_APPEND_TIME else "create time")
    if magic > 1:
        flags = ((TRANSACTIONAL, "transactional"), (CONTROL, "control"), (DELETE_HORIZON, "delete horizon"))
        words += [word for bit, word in flags if attributes & bit]
    return joined(*words)


def bytes_meaning(name: str, value: bytes | None) -> str:
    """The meaning of a null key or value."""
    return "" if value is not None else "tombstone" if name == "value" else "none"


def append_time_meaning(client_ms: int) -> str:
    """The meaning of a record's timestamp ``client_ms`` that the broker replaced by its own time."""
    return f"log append time, the client's was {time_meaning(client_ms)}"


def joined(*phrases: str) -> str:
    """The phrases that are not empty, separated by commas."""
    return ", ".join(filter(None, phrases))
