"""Record keys, values and headers replaced by their length and a keyed hash, and what may quote them: the texts of
errors, enveloped messages, tagged fields that nobody knows.

The hash lets equal values be recognised as equal within one output; without the key it cannot be reversed by trying
likely values. The key is random for each run unless one is given.

In a message with records that does not read as its definition says, a wrong length may have moved a record into any
other field. So nothing of its body is left.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

from kwiresniff.base.api_keys import ENVELOPE, FETCH, FETCH_SNAPSHOT, PRODUCE, SHARE_FETCH
from kwiresniff.base.body_members import HEADER_MEMBERS, REDACTED, UNKNOWN_TAGS
from kwiresniff.base.entities import RECORD_SET_TYPES, RECORD_SETS
from kwiresniff.base.secret_texts import EXPLANATIONS
from kwiresniff.model import Body, Direction, Dissection, Exchange, Node, Problem

#: 64 bits: among a billion different values a collision has a chance of 3 %.
HASH_BYTES = 8
#: The longest key of BLAKE2b (RFC 7693); a longer passphrase is hashed down to it.
MAX_KEY_BYTES = 64

#: Messages with records, or with another message in them.
RECORD_MESSAGES = frozenset(
    {
        (PRODUCE, "request"),
        (FETCH, "response"),
        (FETCH_SNAPSHOT, "response"),
        (SHARE_FETCH, "response"),
        (ENVELOPE, "request"),
        (ENVELOPE, "response"),
    }
)
#: The bytes of fields of records that have nothing in them.
_EMPTY = {"headers": 1}
_ENVELOPED = frozenset({"request_data", "response_data"})


def is_damaged(problems: Iterable[Problem], missing: int) -> bool:
    """Whether fields of a message may be out of place: something is wrong with it outside of its records, and not only
    that its last ``missing`` bytes were not captured.
    """
    codes = [problem.code for problem in problems if not any(f"{name}[" in problem.path for name in RECORD_SETS)]
    return bool(codes) and not (missing > 0 and codes == ["truncated"])


class Redactor:
    """Replaces in place; what it has been given is no longer there afterwards."""

    __slots__ = ("_key",)

    def __init__(self, key: str | None = None) -> None:
        raw = os.urandom(32) if key is None else key.encode("utf-8", "surrogateescape")
        self._key = raw if len(raw) <= MAX_KEY_BYTES else blake2b(raw).digest()

    def value(self, data: bytes | str) -> dict[str, Any]:
        """The replacement of ``data``."""
        raw = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
        digest = blake2b(raw, digest_size=HASH_BYTES, key=self._key).hexdigest()
        return {REDACTED: True, "size_bytes": len(raw), "hash": digest}

    def exchange(self, exchange: Exchange) -> None:
        """Redacts both bodies of an exchange."""
        sides: tuple[Direction, ...] = ("request", "response")
        for message, direction in zip((exchange.request, exchange.response), sides, strict=True):
            if message is None or message.body is None:
                continue
            problems = [
                one for one in exchange.problems if (one.details or {}).get("direction", direction) == direction
            ]
            missing = message.size_bytes - len(message.frame or b"")
            if (exchange.api_key, direction) in RECORD_MESSAGES and is_damaged(problems, missing):
                message.body = None
            else:
                self.body(message.body)

    def body(self, body: Body) -> None:
        """Redacts a decoded body, in place."""
        todo = [body]
        while todo:
            member = todo.pop()
            for name, value in member.items():
                if name in RECORD_SETS:
                    if isinstance(value, bytes):
                        member[name] = self.value(value)
                    elif isinstance(value, list):
                        for batch in value:
                            self._batch(batch)
                elif isinstance(value, dict):
                    if name == UNKNOWN_TAGS:
                        value.update((tag, self.value(data)) for tag, data in value.items() if isinstance(data, bytes))
                    else:
                        todo.append(value)
                elif isinstance(value, list):
                    if value and isinstance(value[0], dict):
                        todo += value
                elif value and isinstance(value, bytes | str) and (name.endswith(EXPLANATIONS) or name in _ENVELOPED):
                    member[name] = self.value(value)

    def _batch(self, batch: Body) -> None:
        for name, value in batch.items():
            if isinstance(value, bytes):  # a batch that could not be decoded is kept as it was
                batch[name] = self.value(value)
        for record in batch.get("records") or ():
            self._pair(record)
            _leave(record)
            for header in record.get("headers") or ():
                self._pair(header)

    def _pair(self, pair: Body) -> None:
        for name in HEADER_MEMBERS:
            value = pair.get(name)
            if isinstance(value, bytes | str):
                pair[name] = self.value(value)

    def dissect(self, dissection: Dissection, where: tuple[int, Direction], missing: int) -> None:
        """Redacts an annotated message: ``where`` is its API key and direction, ``missing`` bytes were not captured.

        Leaves whose value was replaced no longer point to bytes of the frame.
        """
        if where in RECORD_MESSAGES and is_damaged(dissection.problems, missing):
            for node in (dissection.root, *dissection.root.children):
                if node.name == "body":
                    node.children = [Node("body", "BYTES", node.offset, node.length, _unread(node), derived=True)]
            return
        todo: list[tuple[Node, bool]] = [(dissection.root, False)]
        while todo:
            node, in_records = todo.pop()
            value = node.value
            if node.type in RECORD_SET_TYPES:
                in_records = True
                if not node.children and value is None and node.length > 4:
                    node.value, node.derived = _unread(node), True
                node.derived |= not node.children  # batches that were not decoded: their bytes are all there is
            elif isinstance(value, bytes | str) and (
                (in_records and (isinstance(value, bytes) or node.name in HEADER_MEMBERS))
                or (value and node.name.endswith(EXPLANATIONS))
                or node.name in _ENVELOPED
                or UNKNOWN_TAGS in node.name
            ):
                node.value, node.meaning, node.derived = self.value(value), "", True
                if node.name not in _ENVELOPED:
                    node.children = []  # what was decoded of it
            elif in_records and node.name in HEADER_MEMBERS:
                node.children, node.meaning, node.derived = [], "", True
            elif in_records and not node.children and value is None and node.length > _EMPTY.get(node.name, 0):
                node.value, node.derived = _unread(node), True  # its content is not known
            todo += [(child, in_records) for child in node.children]


def _leave(record: Body) -> None:
    """Takes away what was decoded of a record, but for what plugins have redacted themselves."""
    decoded = record.pop("decoded", None)
    if isinstance(decoded, dict):
        left = {
            part: one for part, one in decoded.items() if isinstance(one, dict) and "plugin" in one and REDACTED in one
        }
        if left:
            record["decoded"] = left


def _unread(node: Node) -> dict[str, Any]:
    """The replacement of bytes that were not read."""
    return {REDACTED: True, "size_bytes": node.length}
