"""Schemas that a capture brings itself: the records of the topic ``_schemas``, where a registry keeps its schemas.

Key: {"keytype": "SCHEMA", "subject": ..., "version": ...}. Value: {"subject", "version", "id", "schema", "schemaType",
"references", "deleted"}, in newer registries with "guid".
"""

from __future__ import annotations

from typing import Any

from kwiresniff_values import json_text
from kwiresniff_values.entries import schema_of
from kwiresniff_values.limits import MAX_LEARNT_BYTES
from kwiresniff_values.schemas import Schema


class Captured:
    """The schemas seen so far; when they have more than ``MAX_LEARNT_BYTES`` together, the oldest are forgotten."""

    def __init__(self) -> None:
        self._versions: dict[tuple[str, int], tuple[Schema, tuple[tuple[str, str], ...]]] = {}
        self._by_id: dict[tuple[str, str], tuple[str, int]] = {}
        self._bytes = 0
        self.changes = 0

    def learn(self, key: bytes, value: bytes) -> None:
        """A record of ``_schemas``; what is no schema is passed over. A deleted one is still in older records."""
        where, said = json_text.parse_object(key or b""), json_text.parse_object(value or b"")
        if where is None or said is None or where.get("keytype") != "SCHEMA":
            return
        subject, version, number = said.get("subject"), said.get("version"), said.get("id")
        if not isinstance(subject, str) or not isinstance(version, int) or not isinstance(number, int):
            return
        schema = schema_of(f"{subject} version {version}", said, self._version)
        if schema is not None:
            self._keep((subject, version), schema, _ids(said))

    def _keep(self, key: tuple[str, int], schema: Schema, ids: tuple[tuple[str, str], ...]) -> None:
        known = self._versions.get(key)
        if known is not None and known[0].text == schema.text and known[1] == ids:
            return
        if known is not None:
            self._forget(key)
        self._versions[key] = schema, ids
        self._bytes += len(schema.text)
        self._by_id.update(dict.fromkeys(ids, key))
        while self._bytes > MAX_LEARNT_BYTES:
            self._forget(next(iter(self._versions)))
        self.changes += 1

    def _forget(self, key: tuple[str, int]) -> None:
        schema, ids = self._versions.pop(key)
        self._bytes -= len(schema.text)
        for one in ids:
            if self._by_id.get(one) == key:
                del self._by_id[one]

    def by_id(self, by: str, id: str) -> Schema | None:
        """The schema with an id or GUID."""
        key = self._by_id.get((by, id))
        return None if key is None else self._versions[key][0]

    def by_name(self, name: str) -> Schema | None:
        """The newest version of a subject."""
        versions = [version for subject, version in self._versions if subject == name]
        return self._version(name, max(versions)) if versions else None

    def _version(self, subject: str, version: int) -> Schema | None:
        found = self._versions.get((subject, version))
        return None if found is None else found[0]


def _ids(said: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    guid = said.get("guid")
    ids = (("id", str(said["id"])),)
    return (*ids, ("guid", guid.lower())) if isinstance(guid, str) and guid else ids
