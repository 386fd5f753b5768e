"""Schemas that a capture brings itself: the records of the topic ``_schemas``, where a registry keeps its schemas.

Key: {"keytype": "SCHEMA", "subject": ..., "version": ...}. Value: {"subject", "version", "id", "schema", "schemaType",
"references", "deleted"}, in newer registries with "guid".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from kwiresniff_values import json_text
from kwiresniff_values.entries import schema_of
from kwiresniff_values.limits import MAX_LEARNT_BYTES
from kwiresniff_values.problems import Unusable
from kwiresniff_values.schemas import Schema


class _Key(NamedTuple):
    """A version of a subject, as a node of the clusters in the capture tells it (see ``Captured.enter``)."""

    node: int
    subject: str
    version: int


class Captured:
    """The schemas seen so far, the oldest forgotten beyond MAX_LEARNT_BYTES. An id is looked for in the records'
    cluster, else in the only one there is: a registry may keep its schemas in another cluster.
    """

    def __init__(self) -> None:
        self._versions: dict[_Key, tuple[Schema, tuple[tuple[str, str], ...]]] = {}
        self._by_id: dict[tuple[str, str], dict[_Key, None]] = {}
        self._bytes = 0
        self._node = 0
        self._scope: Callable[[int], int] = lambda node: 0
        self._told: set[str] = set()

    def enter(self, node: int, scope: Callable[[int], int]) -> None:
        """Sets the ``node`` of what follows; nodes of the same ``scope`` are one cluster."""
        self._node, self._scope = node, scope

    def learn(self, key: bytes, value: bytes) -> None:
        """A record of ``_schemas``; what is no schema is passed over. A deleted one is still in older records."""
        where, said = json_text.parse_object(key or b""), json_text.parse_object(value or b"")
        if where is None or said is None or where.get("keytype") != "SCHEMA":
            return
        subject, version, number = said.get("subject"), said.get("version"), said.get("id")
        if not isinstance(subject, str) or not isinstance(version, int) or not isinstance(number, int):
            return
        node = self._node
        schema = schema_of(f"{subject} version {version}", said, partial(self._version, node))
        if schema is not None:
            self._keep(_Key(node, subject, version), replace(schema, origin=node), _ids(said))

    def _keep(self, key: _Key, schema: Schema, ids: tuple[tuple[str, str], ...]) -> None:
        known = self._versions.get(key)
        if known is not None and known[0].text == schema.text and known[1] == ids:
            return
        if known is not None:
            self._forget(key)
        self._versions[key] = schema, ids
        self._bytes += len(schema.text)
        for one in ids:
            self._by_id.setdefault(one, {})[key] = None
        while self._bytes > MAX_LEARNT_BYTES:
            self._forget(next(iter(self._versions)))

    def _forget(self, key: _Key) -> None:
        schema, ids = self._versions.pop(key)
        self._bytes -= len(schema.text)
        for one in ids:
            del self._by_id[one][key]
            if not self._by_id[one]:
                del self._by_id[one]

    def by_id(self, by: str, id: str) -> Schema | None:
        """The schema with an id or GUID; raises Unusable, once, where that depends on the cluster."""
        keys = self._chosen(self._by_id.get((by, id), ()), f"{by} {id}", self._node)
        return self._versions[keys[-1]][0] if keys else None

    def by_name(self, name: str) -> Schema | None:
        """The newest version of a subject; raises Unusable, once, where that depends on the cluster."""
        keys = self._chosen([key for key in self._versions if key.subject == name], name, self._node)
        return self._versions[max(keys, key=lambda key: key.version)][0] if keys else None

    def _version(self, node: int, subject: str, version: int) -> Schema | None:
        named = [key for key in self._versions if key[1:] == (subject, version)]
        keys = self._chosen(named, f"{subject} version {version}", node)
        return self._versions[keys[-1]][0] if keys else None

    def _chosen(self, keys: Iterable[_Key], what: str, node: int) -> list[_Key]:
        """Those of the cluster of ``node``, or of the only cluster that has any; all where their schemas are equal."""
        by_cluster: dict[int, list[_Key]] = {}
        for key in keys:
            by_cluster.setdefault(self._scope(key.node), []).append(key)
        own = by_cluster.get(self._scope(node))
        if own is not None or not by_cluster:
            return own or []
        texts = [{self._versions[key][0].text for key in found} for found in by_cluster.values()]
        if all(one == texts[0] for one in texts):
            return next(iter(by_cluster.values()))
        if what in self._told:
            return []
        self._told.add(what)
        raise Unusable(f"{len(by_cluster)} clusters each have a schema {what}, and that of these records has none")


def _ids(said: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    guid = said.get("guid")
    ids = (("id", str(said["id"])),)
    return (*ids, ("guid", guid.lower())) if isinstance(guid, str) and guid else ids
