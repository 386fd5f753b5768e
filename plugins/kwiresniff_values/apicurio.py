"""Schemas of Apicurio Registry by its own API, version 3, which knows the global ids that its serializers may write.

https://www.apicur.io/registry/docs/apicurio-registry/3.0.x/
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from kwiresniff_values.schema_server import SchemaServer
from kwiresniff_values.schemas import Schema

#: What stands in a URL of this API.
PATH = "/apis/registry/v3"
_KINDS = ("AVRO", "PROTOBUF", "JSON")
_PARAMETERS = {"id": "contentId", "content id": "contentId", "global id": "globalId"}


class Apicurio:
    """A registry at a server."""

    def __init__(self, server: SchemaServer) -> None:
        self._server = server

    def by_id(self, by: str, id: str) -> Schema | None:
        """The schema with a content id or a global id; a frame that Confluent writes as well has a content id."""
        if by not in _PARAMETERS or not id.isdecimal():
            return None
        found = self._server.json(f"/search/versions?{_PARAMETERS[by]}={id}")
        versions = found.get("versions") if isinstance(found, dict) else None
        return self._of(versions[0]) if isinstance(versions, list) and versions else None

    def by_name(self, name: str) -> Schema | None:
        """The newest version of an artifact of the group ``default``."""
        return self._version({"artifactId": name, "version": "branch=latest"})

    def _version(self, reference: Any) -> Schema | None:
        if not isinstance(reference, dict):
            return None
        group, artifact, version = (
            quote(str(reference.get(name) or default), safe="=")
            for name, default in (("groupId", "default"), ("artifactId", ""), ("version", ""))
        )
        return self._of(self._server.json(f"/groups/{group}/artifacts/{artifact}/versions/{version}"))

    def _of(self, version: Any) -> Schema | None:
        """The schema of what is said of a version."""
        if not isinstance(version, dict) or not isinstance(version.get("globalId"), int):
            return None
        kind, place = version.get("artifactType"), f"/ids/globalIds/{version['globalId']}"
        text = self._server.get(place) if kind in _KINDS else None
        if text is None:
            return None
        references = self._server.json(f"{place}/references")
        by_name = {
            str(one.get("name")): one
            for one in (references if isinstance(references, list) else ())
            if isinstance(one, dict)
        }
        name = f"{version.get('artifactId')} version {version.get('version')}"
        return Schema(
            name,
            str(kind),
            text.decode("utf-8", "replace"),
            tuple(by_name),
            lambda other: self._version(by_name.get(other)),
        )
