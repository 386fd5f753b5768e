"""Annotated nodes turned back into the plain values that the fast decoder gives."""

from __future__ import annotations

from typing import Any

from kwiresniff.codec.node_types import ARRAY, ELEMENTS, STRUCT, TAGGED_FIELDS
from kwiresniff.codec.record_values import plain_batches
from kwiresniff.model import Node


def plain(node: Node) -> Any:
    """The decoder's value of a node, as far as it was read; fields that could not be read are left out."""
    if node.null:
        return None
    if node.value is not None:
        return node.value
    if node.type == STRUCT:
        return {child.name: plain(child) for child in node.children if not _failed(child)}
    if node.type == TAGGED_FIELDS:
        return {child.tag: child.value for child in node.children}
    if node.type == ARRAY:
        values: list[Any] = []
        for child in node.children:
            if child.type == ELEMENTS:
                values += child.value
            elif not _failed(child):
                values.append(plain(child))
        return values
    if node.type in ("RECORDS", "COMPACT_RECORDS"):
        return plain_batches(node.children)
    return node.value


def _failed(node: Node) -> bool:
    return bool(node.problem) and node.value is None and not node.children
