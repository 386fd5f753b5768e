"""The replacement of a secret in bodies and in trees: how long it is, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kwiresniff.model import Node

#: A number of more bits than that may be several letters; one in a row of numbers, some of them.
_NUMBER_BITS: Final = 31
_ROW_BITS: Final = 7


def withheld(value: Any) -> Any:
    """The replacement of a text or of bytes; empty ones and null stay what they are."""
    return {"withheld": True, "size_bytes": len(value)} if value and isinstance(value, str | bytes) else value


def without_text(value: Any) -> None:
    """Withholds in a dict or a list, at any depth, what text may have become: text, bytes, long numbers."""
    if isinstance(value, dict):
        for name, member in value.items():
            if isinstance(member, (dict, list)):
                without_text(member)
            else:
                value[name] = _without_text(member, _NUMBER_BITS)
    elif isinstance(value, list):
        for index, member in enumerate(value):
            if isinstance(member, (dict, list)):
                without_text(member)
            else:
                value[index] = _without_text(member, _ROW_BITS)


def _without_text(value: Any, most_bits: int) -> Any:
    """The replacement of a value that is no container."""
    if not _is_long(value, most_bits):
        return withheld(value)
    bits = value.bit_length() if isinstance(value, int) else 64
    return {"withheld": True, "size_bytes": 2 if bits < 16 else 4 if bits < 32 else 8}


def _is_long(value: Any, most_bits: int) -> bool:
    """Whether a value is a number that text may have become."""
    if isinstance(value, int):
        return value.bit_length() > most_bits
    return isinstance(value, float)


def all_nodes(root: Node) -> Iterator[Node]:
    """A node and all below it; what is hung below one while it is looked at is met as well."""
    todo = [root]
    while todo:
        node = todo.pop()
        yield node
        todo += node.children


def hide(node: Node) -> None:
    """Withholds what a node holds; one with children keeps those."""
    if node.value and isinstance(node.value, str | bytes):
        node.value = withheld(node.value)
        node.derived = True
        if not node.children:
            node.meaning = "withheld"


def hide_bytes(node: Node) -> None:
    """Withholds the bytes that a node lies on, whatever it says of them."""
    node.value, node.derived = {"withheld": True, "size_bytes": node.length}, True


def hide_text(root: Node) -> None:
    """Withholds below a node what text may have become."""
    for node in all_nodes(root):
        if _is_long(node.value, _ROW_BITS if node.name.startswith("[") else _NUMBER_BITS):
            hide_bytes(node)
        else:
            hide(node)
