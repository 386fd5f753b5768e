"""Keys and values in a tree, shown as plugins read them (the member ``decoded`` of a record, see docs/output.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kwiresniff.base.entities import RECORD_SETS
from kwiresniff.model import Body, Dissection, Node

#: A tree is for reading; JSON has all of a large value.
MAX_TEXT_CHARS = 4_096

_PARTS = ("key", "value")
_STRUCT = "STRUCT"


def decoded_text(member: Body) -> str:
    """A key or value as a plugin decoded it, in one line."""
    data = member["data"]
    if isinstance(data, str):
        return data[:MAX_TEXT_CHARS]
    return json.dumps(data, ensure_ascii=False, default=_bytes_text)[:MAX_TEXT_CHARS]


def decoded_meaning(member: Body) -> str:
    """The plugin, the format and the schema: ``avro_values: avro, orders-value``."""
    by = ", ".join(str(member[name]) for name in ("format", "schema") if name in member)
    return f"{member['plugin']}: {by}" if by else str(member["plugin"])


def is_of_plugin(member: Any) -> bool:
    """Whether a member of ``decoded`` comes from a plugin, not from a message that Kafka itself stores."""
    return isinstance(member, dict) and "plugin" in member


def show_decoded(dissection: Dissection, body: Body) -> None:
    """Puts what plugins made of the keys and values of ``body`` in their places among the nodes of the same message."""
    whole = {child.name: child for child in dissection.root.children if child.type == _STRUCT}
    # A dissection of a body alone has no header, and its root is the body.
    todo: list[tuple[Node, Any]] = [(whole.get("body", dissection.root), body)]
    while todo:
        node, value = todo.pop()
        for child in node.children:
            if isinstance(value, dict):
                member = value.get(child.name)
                if child.name in RECORD_SETS and isinstance(member, list):
                    _show_in_batches(child, member)
                elif isinstance(member, dict | list):
                    todo.append((child, member))
            elif isinstance(value, list) and (index := _index(child)) is not None and index < len(value):
                todo.append((child, value[index]))


def _show_in_batches(record_set: Node, batches: list[Body]) -> None:
    for node in record_set.children:
        index = _index(node)
        if index is not None and index < len(batches):
            records = batches[index].get("records") or ()
            for position, record_node in _record_nodes(node):
                if position < len(records):
                    _show(record_node, records[position].get("decoded"))


def _record_nodes(batch: Node) -> Iterator[tuple[int, Node]]:
    """The nodes of the records of a batch, or of messages inside a message, each with its number among them."""
    inner = next((child.children for child in batch.children if child.name == "records"), None)
    if inner is None:
        yield 0, batch
        return
    for node in inner:
        index = _index(node)
        if index is not None:
            yield index, node


def _show(record: Node, decoded: Any) -> None:
    if not isinstance(decoded, dict):
        return
    for child in record.children:
        member: Any = decoded.get(child.name)
        if child.name in _PARTS and is_of_plugin(member):
            child.meaning, child.value = decoded_meaning(member), decoded_text(member)


def _index(node: Node) -> int | None:
    """The number of an element, a batch or a record, by its name ``[3]``."""
    number = node.name.rpartition("[")[2].removesuffix("]")
    return int(number) if node.name.endswith("]") and number.isdigit() else None


def _bytes_text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")
