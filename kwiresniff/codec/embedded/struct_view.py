"""One interface to look into a structure and to open its bytes, whether it is a decoded body or a node of a tree.

What bytes hold is put beside them: in a body as a member ``<field>_decoded``, a dict of ``message``, ``version`` and
``data``; in a tree as the children of the field's node. Bytes that should hold something and do not are a problem
``embedded_undecoded``, and stay as they are.

Bytes that are in no form of Kafka's are read by somebody else, who hands over what they hold with ``put``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

from kwiresniff import schema
from kwiresniff.base.body_members import DECODED
from kwiresniff.codec.codecs import KEPT, data_decoder, decoder, dissect_header
from kwiresniff.codec.dissector import FOLDED, FOLDED_VALUE, count_nodes, dissect
from kwiresniff.codec.element_skipper import MessageSkipper
from kwiresniff.codec.embedded.embedded_format import Content
from kwiresniff.codec.folding import dissect_shown, front_of, problems_of
from kwiresniff.codec.headers import RequestHeader
from kwiresniff.errors import DecodeError, SchemaError
from kwiresniff.model import Body, Direction, Dissection, Node, Problem
from kwiresniff.schema.types import MessageVersion

#: Nodes added to the tree of one message. A tree is for reading; at some 300 bytes each this is 30 MB.
MAX_NODES = 100_000
#: Problems reported of what is embedded in one message: more of the same add nothing.
MAX_PROBLEMS = 100

#: In a tree, the bytes of a message that follow the field nobody could read.
UNDECODED = "undecoded"

#: ``meaning(name, value)``: what a person wants to read beside a value, or an empty text.
Meaning = Callable[[str, Any], str]


class StructView(Protocol):
    """A structure whose fields can be read and opened."""

    def get(self, name: str) -> Any:
        """The plain value of a field, or None when there is none."""

    def each(self, name: str, having: str = "") -> Iterator[StructView]:
        """The structures of an array, or none; those alone in which the field ``having``, if named, is not empty."""

    def records(self, name: str) -> Iterator[StructView]:
        """The records of a record set, control records left out."""

    def open(self, name: str, content: Content | None) -> StructView | None:
        """Decode a field's bytes as ``content``; what they hold, or None."""

    def open_frame(self, name: str, direction: Direction, header: RequestHeader) -> None:
        """Decode a field's bytes as a whole request or response whose header has been read."""

    def put(self, name: str, found: Body, title: str, meaning: Meaning) -> None:
        """Put beside a field's bytes what they hold: a dict of ``message``, ``version`` and ``data``."""

    def complain(self, name: str, title: str, reason: str) -> None:
        """Say why a field's bytes do not hold what they should, which is called ``title``."""

    def hint(self, name: str, text: str) -> None:
        """Say how more could be seen of a field's bytes; only a tree has a place for it."""


#: Where a structure of a body is: its path, or what it is part of, the field there, and its index or -1. A message may
#: have as many structures as bytes, and hardly any has a problem that names its path.
Place: TypeAlias = "str | tuple[BodyView, str, int]"


class BodyView:
    """A structure of a decoded body. ``problems`` is shared by all that come from one message."""

    __slots__ = ("_place", "body", "problems")

    def __init__(self, body: Body, problems: list[Problem], place: Place = "") -> None:
        self.body = body
        self.problems = problems
        self._place = place

    @property
    def path(self) -> str:
        """The path from the message to the structure."""
        place = self._place
        if isinstance(place, str):
            return place
        above, name, index = place
        return above._path(name) if index < 0 else f"{above._path(name)}[{index}]"

    def get(self, name: str) -> Any:
        return self.body.get(name)

    def each(self, name: str, having: str = "") -> Iterator[BodyView]:
        for index, element in enumerate(self.body.get(name) or ()):
            if not having or element.get(having):
                yield BodyView(element, self.problems, (self, name, index))

    def records(self, name: str) -> Iterator[BodyView]:
        batches = self.body.get(name)
        for at, batch in enumerate(batches if isinstance(batches, list) else ()):
            if not batch.get("is_control"):
                field = f"{name}[{at}].records"
                for index, record in enumerate(batch.get("records") or ()):
                    yield _RecordView(record, self.problems, (self, field, index))

    def open(self, name: str, content: Content | None) -> BodyView | None:
        raw = self.body[name]
        if content is None:
            return None
        is_reported = content.sure and len(self.problems) < MAX_PROBLEMS
        if not is_reported and not _fits(raw, content):
            return None
        try:
            data, end = data_decoder(content.message, content.version)(raw, content.start, [])
        except DecodeError as error:
            if is_reported:
                _complain(self, name, content.title, str(error))
            return None
        if content.exact and end != len(raw):
            _complain(self, name, content.title, f"{len(raw) - end} bytes follow its end", sure=content.sure)
            return None
        return self._put(name, {"message": content.message, "version": content.version, "data": data})

    def open_frame(self, name: str, direction: Direction, header: RequestHeader) -> None:
        raw = self.body[name]
        content = _content_of(header, direction)
        issues: list[Problem] = []
        try:
            inner, end = decoder(header.api_key, header.api_version, direction)(raw, header.body_offset, issues)
        except SchemaError as error:
            _complain(self, name, content.title, str(error), sure=content.sure)
            return
        except DecodeError:
            inner, end = {}, -1
        if issues or end != len(raw):
            message = schema.message(header.api_key, header.api_version, direction)
            if end < 0:
                inner, problems = front_of(message, raw, header.body_offset)
            else:
                problems = problems_of(message, raw, header.body_offset)
            for problem in problems[:1]:  # which says it best
                _complain(self, name, content.title, problem.message, sure=content.sure)
        members = {
            "api_key": header.api_key,
            "api": schema.API_NAMES[header.api_key],
            "api_version": header.api_version,
            "correlation_id": header.correlation_id,
        }
        if direction == "request":
            members["client_id"] = header.client_id
        self.body[name + DECODED] = {**members, "body": inner}

    def put(self, name: str, found: Body, title: str, meaning: Meaning) -> None:
        self._put(name, found)

    def complain(self, name: str, title: str, reason: str) -> None:
        _complain(self, name, title, reason)

    def hint(self, name: str, text: str) -> None:
        pass

    def _put(self, name: str, found: Body) -> BodyView:
        self.body[name + DECODED] = found
        return BodyView(found["data"], self.problems, (self, f"{name}{DECODED}.data", -1))

    def _path(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name


class _RecordView(BodyView):
    """A record: what its key and value hold stands together under ``decoded``."""

    __slots__ = ()

    def _put(self, name: str, found: Body) -> BodyView:
        self.body.setdefault("decoded", {})[name] = found
        return BodyView(found["data"], self.problems, (self, f"decoded.{name}.data", -1))


class NodeView:
    """A structure of a tree. ``problems`` and ``room`` (nodes that may still be added) are shared.

    With ``folded`` the tree shows the first elements of an array (``codec.folding``).
    """

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

    def each(self, name: str, having: str = "") -> Iterator[NodeView]:
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
                    _note(self.problems, problem)
                return None
        self._hang(node, found.root.children)
        node.meaning = content.title
        return self._inner(node, f"{self._path(name)}{DECODED}.data")

    def open_frame(self, name: str, direction: Direction, header: RequestHeader) -> None:
        node = self._child(name)
        if node is None:
            return
        content = _content_of(header, direction)
        front = dissect_header(direction, header.header_version, node.value)
        front.root.name = "header"
        try:
            message = schema.message(header.api_key, header.api_version, direction)
        except SchemaError as error:
            node.problem = _complain(self, name, content.title, str(error), sure=content.sure)
            return
        body = self._dissect(message, node.value, header.body_offset)
        body.root.name = "body"
        parts = [front.root, body.root]
        if body.problems:
            node.problem = _complain(self, name, content.title, body.problems[0].message, sure=content.sure)
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
        text = _complain(self, name, title, reason)
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


def _fits(raw: bytes, content: Content) -> bool:
    """Whether bytes can be decoded as that; jumping over them takes a tenth of failing to."""
    skipper = _skipper(content.message, content.version)
    end = skipper.skip(raw, content.start)
    return end == len(raw) or (end >= 0 and not content.exact)


@lru_cache(KEPT)
def _skipper(message: str, version: int) -> MessageSkipper:
    return MessageSkipper(schema.data_message(message, version))


def _content_of(header: RequestHeader, direction: Direction) -> Content:
    return Content(f"{schema.API_NAMES[header.api_key]} {direction}", header.api_version, header.body_offset)


def _complain(struct: BodyView | NodeView, name: str, title: str, reason: str, *, sure: bool = True) -> str:
    text = f"{name} should hold {title}: {reason}"
    if sure:
        path = f"{struct.path}.{name}" if struct.path else name
        _note(struct.problems, Problem("embedded_undecoded", text, path=path))
    return text


def _node(name: str, value: Any, meaning: Meaning) -> Node:
    """A plain value and all below it as nodes that lie nowhere in the frame."""
    if isinstance(value, dict):
        children = [_node(key, each, meaning) for key, each in value.items()]
        return Node(name, "STRUCT", -1, 0, derived=True, children=children)
    if isinstance(value, list):
        children = [_node(f"[{index}]", each, meaning) for index, each in enumerate(value)]
        return Node(name, "ARRAY", -1, 0, derived=True, children=children)
    return Node(name, "", -1, 0, value, meaning(name, value), derived=True)


def _note(problems: list[Problem], problem: Problem) -> None:
    if len(problems) < MAX_PROBLEMS:
        problems.append(problem)
