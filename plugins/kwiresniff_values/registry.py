"""Schemas of a registry with Confluent's API, asked for when a record names one that is not known yet.

https://docs.confluent.io/platform/current/schema-registry/develop/api.html; Karapace and Apicurio Registry, below
/apis/ccompat/v7, have the same.
"""

from __future__ import annotations

from urllib.parse import quote

from kwiresniff_values.entries import schema_of
from kwiresniff_values.schema_server import SchemaServer
from kwiresniff_values.schemas import Schema


class Registry:
    """A registry at a server."""

    def __init__(self, server: SchemaServer) -> None:
        self._server = server

    def by_id(self, by: str, id: str) -> Schema | None:
        """The schema with an id; registries that know no such kind of id have none."""
        if by in ("id", "content id"):
            return self._schema(f"id {id}", f"/schemas/ids/{quote(id, safe='')}", id)
        return self._schema(f"guid {id}", f"/schemas/guids/{quote(id, safe='')}") if by == "guid" else None

    def by_name(self, name: str) -> Schema | None:
        """The newest version of a subject."""
        return self._schema(name, f"/subjects/{quote(name, safe='')}/versions/latest")

    def _version(self, subject: str, version: int) -> Schema | None:
        path = f"/subjects/{quote(subject, safe='')}/versions/{version}"
        return self._schema(f"{subject} version {version}", path)

    def _schema(self, name: str, path: str, id: str | None = None) -> Schema | None:
        said = self._server.json(path)
        if not isinstance(said, dict):
            return None
        if said.get("schemaType") == "PROTOBUF":
            # A descriptor needs no compiler; registries that do not make one answer with the text once more.
            number = id if id is not None else said.get("id")
            other = (
                self._server.json(f"/schemas/ids/{number}?format=serialized") if isinstance(number, int | str) else None
            )
            said = {**said, **other} if isinstance(other, dict) else said
        return schema_of(name, said, self._version)
