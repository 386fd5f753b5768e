"""A node of a tree as a structure whose bytes can be opened, see ``kwiresniff.codec.embedded``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwiresniff import schema
from kwiresniff.base.body_members import DECODED
from kwiresniff.codec.codecs import dissect_header
from kwiresniff.codec.dissector import FOLDED, FOLDED_VALUE, count_nodes, dissect
from kwiresniff.codec.embedded.embedded_format import Content, Contents
from kwiresniff.codec.embedded.struct_view import BodyView, Meaning, complain, content_of, note
from kwiresniff.codec.folding import dissect_shown
from kwiresniff.codec.headers import RequestHeader
from kwiresniff.errors import SchemaError
from kwiresniff.model import Body, Direction, Dissection, Node, Problem
from kwiresniff.schema.types import MessageVersion

#: Nodes added to the tree of one message. A tree is for reading; at some 300 bytes each this is 30 MB.
MAX_NODES = 100_000

#: In a tree, the bytes of a message that follow the field nobody could read.
UNDECODED = "undecoded"


class NodeView:
    """A structure of a tree; ``problems`` and ``room`` for nodes are shared. ``folded``: see ``codec.folding``."""

    __slots__ = ("folded", "node", "path", "problems", "room")

    def __init__(
        self,
        node: Node,
        problems: list[Problem],
        path: str = "",
        room: list[int] | None = None,
        *,
        folded: bool = False,
    ) -> None:
        self.folded = folded
        self.node = node
        self.path = path
        self.problems = problems
        self.room = [MAX_NODES] if room is None else room

    def get(self, name: str) -> Any:
        child = self._child(name)
        return None if child is None else child.value

    def each(self, name: str, having: str = "", holding: Contents | None = None) -> Iterator[NodeView]:
        array = self._child(name)
        for child in () if array is None else array.children:
            if child is not FOLDED:
                inner = self._inner(child, f"{self._path(name)}{child.name}")
                if not having or inner.get(having):
                    yield inner

    def records(self, name: str) -> Iterator[NodeView]:
        for batch in self.each(name):
            inner = batch._child("records")
            for record in [batch] if inner is None else batch.each("records"):
                if record._child("control") is None:
                    yield record

    def open(self, name: str, content: Content | None) -> NodeView | None:
        node = self._child(name)
        if content is None or node is None or self.room[0] <= 0:
            return None
        raw = node.value
        found = self._dissect(schema.data_message(content.message, content.version), raw, content.start)
        problems = [one for one in found.problems if content.exact or one.code != "trailing_bytes"]
        if problems:
            # The fast decoder decides, so that trees and bodies agree.
            checked = BodyView({name: raw}, [], self.path)
            if checked.open(name, content) is None:
                for problem in checked.problems:
                    node.problem = problem.message
                    note(self.problems, problem)
                return None
        self._hang(node, found.root.children)
        node.meaning = content.title
        return self._inner(node, f"{self._path(name)}{DECODED}.data")

    def open_frame(self, name: str, direction: Direction, header: RequestHeader) -> None:
        node = self._child(name)
        if node is None:
            return
        content = content_of(header, direction)
        front = dissect_header(direction, header.header_version, node.value)
        front.root.name = "header"
        try:
            message = schema.message(header.api_key, header.api_version, direction)
        except SchemaError as error:
            node.problem = complain(self, name, content.title, str(error), sure=content.sure)
            return
        body = self._dissect(message, node.value, header.body_offset)
        body.root.name = "body"
        parts = [front.root, body.root]
        if body.problems:
            node.problem = complain(self, name, content.title, body.problems[0].message, sure=content.sure)
            if left := node.value[body.end :]:
                parts.append(Node(UNDECODED, "BYTES", body.end, len(left), left))
        self._hang(node, parts)
        node.meaning = content.title

    def put(self, name: str, found: Body, title: str, meaning: Meaning) -> None:
        node = self._child(name)
        if node is None:
            return
        children = [_node(key, value, meaning) for key, value in found["data"].items()]
        count = sum(map(count_nodes, children))
        if count > self.room[0]:
            node.meaning = f"{title}, too much to show"
            return
        self.room[0] -= count
        node.children = children
        node.meaning = title

    def complain(self, name: str, title: str, reason: str) -> None:
        text = complain(self, name, title, reason)
        node = self._child(name)
        if node is not None:
            node.problem = text

    def hint(self, name: str, text: str) -> None:
        node = self._child(name)
        if node is not None:
            node.hint = text

    def _hang(self, node: Node, children: list[Node]) -> None:
        """Put the nodes of its content below a node; the bytes are the last of those it lies on."""
        self.room[0] -= sum(map(count_nodes, children))
        base = node.offset + node.length - len(node.value)
        todo = list(children)
        while todo:
            one = todo.pop()
            if one is FOLDED or one is FOLDED_VALUE:
                continue
            one.offset += base
            one.derived |= node.derived
            todo += one.children
        node.children = children

    def _inner(self, node: Node, path: str) -> NodeView:
        return NodeView(node, self.problems, path, self.room, folded=self.folded)

    def _dissect(self, message: MessageVersion, raw: bytes, offset: int) -> Dissection:
        return dissect_shown(message, raw, offset, opened=True) if self.folded else dissect(message, raw, offset)

    def _child(self, name: str) -> Node | None:
        return next((child for child in self.node.children if child.name == name), None)

    def _path(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name


def _node(name: str, value: Any, meaning: Meaning) -> Node:
    """A plain value and all below it as nodes that lie nowhere in the frame."""
    if isinstance(value, dict):
        children = [_node(key, each, meaning) for key, each in value.items()]
        return Node(name, "STRUCT", -1, 0, derived=True, children=children)
    if isinstance(value, list):
        children = [_node(f"[{index}]", each, meaning) for index, each in enumerate(value)]
        return Node(name, "ARRAY", -1, 0, derived=True, children=children)
    return Node(name, "", -1, 0, value, meaning(name, value), derived=True)
