"""Schemas of a registry with Confluent's API, or Apicurio's, asked when a record names one that is not known yet.

Users and passwords come from the URL, as in http://USER:PASSWORD@HOST:8081, and are in no message. A registry that does
not answer is not asked again.
"""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from kwiresniff_values.entries import schema_of
from kwiresniff_values.limits import MAX_SCHEMA_BYTES, REGISTRY_TIMEOUT_S
from kwiresniff_values.problems import Unusable
from kwiresniff_values.schemas import Schema

#: What stands in a URL of Apicurio's own API; it has Confluent's as well, below /apis/ccompat.
_APICURIO = "/apis/registry/"
_KINDS = {"AVRO", "PROTOBUF", "JSON"}
#: A schema is escaped once more inside an answer.
_MAX_ANSWER_BYTES = 4 * MAX_SCHEMA_BYTES


class _SameHost(urllib.request.HTTPRedirectHandler):
    """Follows a redirection on the same host only: elsewhere nobody asked to go."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if urlsplit(newurl)[:2] != urlsplit(req.full_url)[:2]:
            fp.close()
            raise urllib.error.URLError("it redirects to another host")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class Registry:
    """A registry by its URL. The constructor raises Unusable for what is none; nothing is asked yet."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:
            raise Unusable("schemas: that URL is not valid; give one like http://HOST:8081") from None
        if parts.scheme not in ("http", "https") or not host:
            raise Unusable("schemas: that URL is not valid; give one like http://HOST:8081")
        place = (f"[{host}]" if ":" in host else host) + (f":{port}" if port else "")
        self.url = urlunsplit((parts.scheme, place, parts.path.rstrip("/"), "", ""))
        self._credentials = ""
        if parts.username is not None:
            said = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._credentials = "Basic " + base64.b64encode(said.encode()).decode()
        self._opener = urllib.request.build_opener(_SameHost)
        self._failed = False
        self._apicurio = _APICURIO in f"{parts.path}/"

    def by_id(self, by: str, id: str) -> Schema | None:
        """The schema with an id; registries that know no such kind of id have none."""
        if self._apicurio:
            return self._apicurio_schema(by, id)
        if by in ("id", "content id"):
            return self._schema(f"id {id}", f"/schemas/ids/{quote(id, safe='')}", id)
        return self._schema(f"guid {id}", f"/schemas/guids/{quote(id, safe='')}") if by == "guid" else None

    def by_name(self, name: str) -> Schema | None:
        """The newest version of a subject."""
        return None if self._apicurio else self._schema(name, f"/subjects/{quote(name, safe='')}/versions/latest")

    def _version(self, subject: str, version: int) -> Schema | None:
        path = f"/subjects/{quote(subject, safe='')}/versions/{version}"
        return self._schema(f"{subject} version {version}", path)

    def _schema(self, name: str, path: str, id: str | None = None) -> Schema | None:
        said = self._json(path)
        if said is None:
            return None
        if said.get("schemaType") == "PROTOBUF":
            # A descriptor needs no compiler; registries that do not make one answer with the text once more.
            number = id if id is not None else said.get("id")
            other = self._json(f"/schemas/ids/{number}?format=serialized") if isinstance(number, int | str) else None
            said = {**said, **other} if other else said
        return schema_of(name, said, self._version)

    def _apicurio_schema(self, by: str, id: str) -> Schema | None:
        kind = {"id": "contentIds", "content id": "contentIds", "global id": "globalIds"}.get(by)
        if kind is None:
            return None
        answer = self._get(f"/ids/{kind}/{quote(id, safe='')}")
        if answer is None:
            return None
        text, headers = answer
        said = str(headers.get("X-Registry-ArtifactType") or "AVRO").upper()
        return Schema(f"{by} {id}", said, text.decode("utf-8", "replace")) if said in _KINDS else None

    def _json(self, path: str) -> dict[str, Any] | None:
        answer = self._get(path)
        if answer is None:
            return None
        try:
            found = json.loads(answer[0])
        except (ValueError, RecursionError):
            raise self._unusable("its answer is no JSON") from None
        return found if isinstance(found, dict) else None

    def _get(self, path: str) -> tuple[bytes, Any] | None:
        """The answer and its headers, or None where the registry has nothing; raises Unusable once."""
        if self._failed:
            return None
        request = urllib.request.Request(self.url + path, headers={"Accept": "application/json, */*"})
        if self._credentials:
            request.add_unredirected_header("Authorization", self._credentials)
        try:
            with self._opener.open(request, timeout=REGISTRY_TIMEOUT_S) as answer:
                data = answer.read(_MAX_ANSWER_BYTES + 1)
                headers = answer.headers
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in (404, 422):
                return None
            raise self._unusable(f"it answers {error.code}") from None
        except urllib.error.URLError as error:
            raise self._unusable(str(getattr(error.reason, "strerror", None) or error.reason)) from None
        except (OSError, HTTPException, ValueError) as error:
            raise self._unusable(str(getattr(error, "strerror", None) or type(error).__name__)) from None
        if len(data) > _MAX_ANSWER_BYTES:
            raise self._unusable(f"its answer has more than {_MAX_ANSWER_BYTES} bytes")
        return data, headers

    def _unusable(self, why: str) -> Unusable:
        self._failed = True
        return Unusable(f"schema registry {self.url}: {why}; it is not asked again")
