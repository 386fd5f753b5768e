"""Record keys, values and headers replaced by their length and a keyed hash.

The hash lets equal values be recognised as equal within one output; without the key it cannot be reversed by trying
likely values. The key is random for each run unless one is given.
"""

from __future__ import annotations

import secrets
from hashlib import blake2b

from kwiresniff.analysis.body_entities import record_sets
from kwiresniff.base.entities import RECORD_SETS
from kwiresniff.base.light_typing import Any
from kwiresniff.model import Body, Dissection, Node

#: 64 bits: among a billion different values a collision has a chance of 3 %.
HASH_BYTES = 8
#: What BLAKE2b takes as a key at most (RFC 7693); a longer passphrase is hashed down to it.
MAX_KEY_BYTES = 64

_RECORD_TYPES = frozenset({"RECORDS", "COMPACT_RECORDS"})
#: Fields of records and of their headers that hold what a user wrote.
_USER_FIELDS = frozenset({"key", "value"})


class Redactor:
    """Replaces in place; what it has been given is no longer there afterwards."""

    __slots__ = ("_key",)

    def __init__(self, key: str | None = None) -> None:
        raw = secrets.token_bytes(32) if key is None else key.encode("utf-8", "surrogateescape")
        self._key = raw if len(raw) <= MAX_KEY_BYTES else blake2b(raw).digest()

    def value(self, data: bytes | str) -> dict[str, Any]:
        """What stands in the place of ``data``."""
        raw = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
        digest = blake2b(raw, digest_size=HASH_BYTES, key=self._key).hexdigest()
        return {"redacted": True, "size_bytes": len(raw), "hash": digest}

    def body(self, body: Body | None) -> None:
        """Redacts every record set of a decoded body."""
        for _, holder, records in record_sets(body):
            if isinstance(records, bytes):
                holder.update((name, self.value(records)) for name in RECORD_SETS if name in holder)
            elif isinstance(records, list):
                for batch in records:
                    self._batch(batch)

    def _batch(self, batch: Body) -> None:
        for name, value in batch.items():
            if isinstance(value, bytes):  # a batch that could not be decoded is kept as it was
                batch[name] = self.value(value)
        for record in batch.get("records") or ():
            self._pair(record)
            record.pop("decoded", None)
            for header in record.get("headers") or ():
                self._pair(header)

    def _pair(self, pair: Body) -> None:
        for name in _USER_FIELDS:
            value = pair.get(name)
            if isinstance(value, bytes | str):
                pair[name] = self.value(value)

    def dissect(self, dissection: Dissection) -> None:
        """Redacts an annotated message; leaves whose value was replaced no longer point to bytes of the frame."""
        todo: list[tuple[Node, bool]] = [(dissection.root, False)]
        while todo:
            node, in_records = todo.pop()
            if node.type in _RECORD_TYPES:
                in_records = True
                node.derived |= not node.children  # batches nobody looked into: their bytes are all there is
            elif in_records and (isinstance(node.value, bytes) or node.name in _USER_FIELDS):
                if isinstance(node.value, bytes | str):
                    node.value = self.value(node.value)
                    node.children = []  # what was decoded of it
                node.meaning = ""
                node.derived = True
            todo += [(child, in_records) for child in node.children]
