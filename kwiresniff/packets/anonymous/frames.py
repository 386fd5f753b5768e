"""Frames without what they say of anybody: pseudonyms for texts and ids, zeros for bytes, nothing in records.

Numbers stay: versions, partitions, offsets, times, sizes, error codes. A message that does not read as its definition
says, as far as it was captured, keeps the numbers of its header alone: nobody knows what the rest of it is. Bytes
behind a message are zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff import codec, schema
from kwiresniff.base.entities import RECORD_SET_TYPES
from kwiresniff.codec.dissector import dissect
from kwiresniff.codec.embedded import OPENERS
from kwiresniff.codec.node_view import NodeView
from kwiresniff.model import Direction, Dissection, Exchange, Message, Node
from kwiresniff.packets.anonymous.pseudonyms import Pseudonyms
from kwiresniff.packets.anonymous.record_sets import without_content
from kwiresniff.session.secrets import is_sound

#: Bytes of a header that are numbers: API, version and correlation id; in a response the correlation id alone.
_NUMBERS: Final[dict[str, int]] = {"request": 8, "response": 4}
#: Texts that tell which software it is, or how it authenticates.
_KEPT_FIELDS: Final = frozenset({"client_software_name", "client_software_version", "mechanism", "mechanisms"})
_RECORDS_LENGTH_BYTES: Final = 4
_TRAILING: Final = "trailing_bytes"
_ARRAY: Final = "ARRAY"
_CONTAINERS: Final = frozenset({"STRUCT", "ARRAY", "TAGGED_FIELDS"})
_UUID_BYTES: Final = 16
#: The longest version in front of a message inside bytes.
_VERSION_BYTES: Final = 4


class FrameAnonymizer:
    """Makes frames anonymous, each of the length that it had."""

    def __init__(self, pseudonyms: Pseudonyms) -> None:
        self._pseudonyms = pseudonyms

    def frame(self, exchange: Exchange, which: Direction) -> bytes:
        """One side of an exchange, as much of it as was kept; empty where it is not there."""
        message = exchange.request if which == "request" else exchange.response
        if message is None or message.frame is None:
            return b""
        frame = message.frame
        out = bytearray(len(frame))
        numbers = _NUMBERS[which]
        out[:numbers] = frame[:numbers]
        for part in _parts(exchange, which, message, frame):
            start, end = part.root.offset, part.end
            out[start:end] = frame[start:end]
            self._cover(part.root, frame, out, "")
        return bytes(out)

    def _cover(self, node: Node, frame: bytes, out: bytearray, array: str) -> None:
        """Overwrites what a node and those below it hold; ``array`` is the name of the array around it."""
        end = node.offset + node.length
        if node.type in RECORD_SET_TYPES:
            start = node.offset + _prefix_bytes(node, frame)
            out[start:end] = without_content(frame[start:end])
            return
        value = node.value
        if isinstance(value, bytes):
            self._cover_bytes(node, frame, out, end - len(value), end)
            return
        if isinstance(value, str):
            size = _UUID_BYTES if node.type == "UUID" else len(value.encode())
            if node.length:
                out[end - size : end] = self._pseudonym(node, frame[end - size : end], array)
        elif value is None and not node.children and node.type not in _CONTAINERS and not node.null:
            out[node.offset : end] = bytes(node.length)
        for child in node.children:
            self._cover(child, frame, out, node.name if node.type == _ARRAY else "")

    def _cover_bytes(self, node: Node, frame: bytes, out: bytearray, start: int, end: int) -> None:
        """Of bytes that hold a message its fields stay, and its version in front of them; others are zeros."""
        out[start:end] = bytes(end - start)
        if any(child.derived or child.offset < start for child in node.children):
            return
        for child in node.children:
            if child is node.children[0] and child.offset - start <= _VERSION_BYTES:
                out[start : child.offset] = frame[start : child.offset]
            last = child.offset + child.length
            out[child.offset : last] = frame[child.offset : last]
            self._cover(child, frame, out, "")

    def _pseudonym(self, node: Node, raw: bytes, array: str) -> bytes:
        if node.type == "UUID":
            return self._pseudonyms.uuid(raw, node.value)
        return raw if _KEPT_FIELDS & {node.name, array} else self._pseudonyms.text(raw)


def _prefix_bytes(node: Node, frame: bytes) -> int:
    """Bytes of the length in front of a record set."""
    if node.type == "RECORDS":
        return _RECORDS_LENGTH_BYTES
    at = node.offset
    while at < node.offset + node.length and frame[at] > 0x7F:
        at += 1
    return at + 1 - node.offset


def _parts(exchange: Exchange, which: Direction, message: Message, frame: bytes) -> Iterator[Dissection]:
    """The header and the body, if they read as they should."""
    if message.header_version < 0 or exchange.request is None:
        return
    header = codec.dissect_header(which, message.header_version, frame)
    if header.problems or header.end != message.body_offset:
        return
    yield header
    if message.version < 0:
        return
    definition = schema.message(exchange.api_key, message.version, which)
    missing = message.size_bytes - len(frame)
    body = dissect(definition, frame, message.body_offset, records=False, missing=missing)
    if body.is_whole and (is_sound(body.problems, missing) or {one.code for one in body.problems} == {_TRAILING}):
        opener = OPENERS.get((exchange.api_key, which))
        if opener is not None:  # what cannot be opened stays bytes
            opener(NodeView(body.root, []), exchange, _no_name)
        yield body


def _no_name(topic_id: str) -> str | None:
    """Topics by their ids alone: which records are opened makes no difference."""
    return None
