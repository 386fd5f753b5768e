"""What Kafka's own classes write into bytes fields; ``data/embedded_vectors/Embedded.java`` says with which values."""

from __future__ import annotations

from typing import NamedTuple

from kwiresniff.codec.embedded import BodyView
from kwiresniff.codec.node_view import NodeView
from kwiresniff.model import Body, Node, Problem
from tests.support.paths import TESTS

FILE = TESTS / "codec" / "data" / "embedded_vectors.txt"


class Vector(NamedTuple):
    key: bytes | None
    value: bytes | None


def vectors() -> dict[str, Vector]:
    """By name."""
    found = {}
    for line in FILE.read_text("utf-8").splitlines():
        name, *texts = line.split()
        found[name] = Vector(*(None if text == "-" else bytes.fromhex(text) for text in texts))
    return found


VECTORS = vectors()


def body_holder(body: Body) -> BodyView:
    return BodyView(body, [])


def node_holder(body: Body) -> NodeView:
    """A tree of the same values; bytes lie one after another, each behind a length of four bytes."""
    return NodeView(_tree("root", body, [0]), [])


def _tree(name: str, value: object, at: list[int]) -> Node:
    if isinstance(value, dict):
        return Node(name, "STRUCT", 0, 0, children=[_tree(key, each, at) for key, each in value.items()])
    if isinstance(value, list):
        children = [_tree(f"[{index}]", each, at) for index, each in enumerate(value)]
        return Node(name, "RECORDS" if name == "records" else "ARRAY", 0, 0, children=children)
    if isinstance(value, bytes):
        start = at[0]
        at[0] += 4 + len(value)
        return Node(name, "BYTES", start, 4 + len(value), value)
    return Node(name, "STRING", 0, 0, value)


def decoded(node: Node) -> object:
    """What hangs below an opened node, as plain values."""
    from kwiresniff.codec.node_values import plain

    return plain(Node("content", "STRUCT", 0, 0, children=node.children))


def texts(problems: list[Problem]) -> list[tuple[str, str]]:
    return [(problem.code, problem.path) for problem in problems]
