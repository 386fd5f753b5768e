"""Nodes of a dissected record set turned back into the dicts that ``decode_record_set`` gives in full mode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kwiresniff.base.batch_layout import (
    CODEC_MASK,
    CONTROL,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
)
from kwiresniff.base.body_members import CUT_SHORT
from kwiresniff.codec.compression import codec_name
from kwiresniff.model import Node


def plain_batches(nodes: Iterable[Node]) -> list[dict[str, Any]]:
    """The batch dicts of the nodes that ``dissect_record_set`` gave."""
    return [_plain_batch(node) for node in nodes]


def _plain_batch(node: Node) -> dict[str, Any]:
    parts = {child.name: child for child in node.children}
    fields = {name: part.value for name, part in parts.items() if name not in _NOT_HEADER}
    size = {"size_bytes": node.length}
    if node.meaning == CUT_SHORT:
        return {"truncated": True, **size, **fields}
    if "attributes" not in fields:
        return {**fields, **size}
    attributes, magic = fields["attributes"], fields["magic"]
    fields["compression"] = codec_name(attributes & CODEC_MASK)
    if magic > 0:
        fields["timestamp_type"] = "log_append_time" if attributes & LOG_APPEND_TIME else "create_time"
    if magic > 1:
        fields["is_transactional"] = attributes & TRANSACTIONAL != 0
        fields["is_control"] = attributes & CONTROL != 0
    fields.update(size)
    if attributes & CODEC_MASK:
        uncompressed = parts.get("uncompressed_size_bytes")
        fields["uncompressed_size_bytes"] = uncompressed.value if uncompressed else None
    else:
        fields["uncompressed_size_bytes"] = parts["records"].length if magic > 1 else node.length
    fields["crc_valid"] = not parts["crc"].problem
    fields["records"] = list(_messages(node) if magic < 2 else map(_record, _complete(parts["records"])))
    return fields


_NOT_HEADER = frozenset({"records", "key", "value", "uncompressed_size_bytes"})


def _complete(records: Node) -> Iterator[Node]:
    return (node for node in records.children if not node.problem)


def _record(node: Node) -> dict[str, Any]:
    parts = {child.name: child for child in node.children}
    record = {name: parts[name].value for name in ("offset", "timestamp", "key", "value")}
    record["headers"] = [{part.name: part.value for part in header.children} for header in parts["headers"].children]
    if "control" in parts:
        record["control"] = _tree(parts["control"])
    return record


def _messages(node: Node) -> Iterator[dict[str, Any]]:
    """The record of an uncompressed message, or those of the messages inside it."""
    parts = {child.name: child for child in node.children}
    if "records" in parts:
        for inner in parts["records"].children:
            yield from _messages(inner)
    elif "value" in parts:
        record = {"offset": node.children[0].value}
        record.update((name, parts[name].value) for name in ("timestamp", "key", "value") if name in parts)
        yield record


def _tree(node: Node) -> Any:
    if node.type == "STRUCT":
        return {child.name: _tree(child) for child in node.children}
    if node.type == "ARRAY":
        return [_tree(child) for child in node.children]
    return node.value
