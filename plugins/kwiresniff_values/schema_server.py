"""A server that keeps schemas, asked over HTTP within bounds.

Users and passwords come from the URL, as in http://USER:PASSWORD@HOST:8081, and are in no message. A server that fails
is not asked again.
"""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

from kwiresniff_values.limits import MAX_SCHEMA_BYTES, REGISTRY_TIMEOUT_S
from kwiresniff_values.problems import Unusable

#: A schema is escaped once more inside an answer.
_MAX_ANSWER_BYTES = 4 * MAX_SCHEMA_BYTES
_PIECE = 1 << 16


class _SameHost(urllib.request.HTTPRedirectHandler):
    """Follows redirections on the same host only."""

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if urlsplit(newurl)[:2] != urlsplit(req.full_url)[:2]:
            fp.close()
            raise urllib.error.URLError("it redirects to another host")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _read(answer: Any) -> bytes:
    """The body, or somewhat more than there may be of it. Raises TimeoutError when it comes too slowly."""
    end = time.monotonic() + REGISTRY_TIMEOUT_S
    found = bytearray()
    while len(found) <= _MAX_ANSWER_BYTES and (piece := answer.read1(_PIECE)):
        found += piece
        if time.monotonic() > end:
            raise TimeoutError("timed out")
    return bytes(found)


class SchemaServer:
    """A server by its URL. The constructor raises Unusable for what is no URL; nothing is asked yet."""

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

    def json(self, path: str) -> Any:
        """The value of an answer in JSON, or None where the server has nothing; raises Unusable, once."""
        answer = self.get(path)
        if answer is None:
            return None
        try:
            return json.loads(answer)
        except (ValueError, RecursionError):
            raise self._unusable("its answer is no JSON") from None

    def get(self, path: str) -> bytes | None:
        """The answer, or None where the server has nothing; raises Unusable, once."""
        if self._failed:
            return None
        request = urllib.request.Request(self.url + path, headers={"Accept": "application/json, */*"})
        if self._credentials:
            request.add_unredirected_header("Authorization", self._credentials)
        try:
            with self._opener.open(request, timeout=REGISTRY_TIMEOUT_S) as answer:
                data = _read(answer)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in (404, 422):
                return None
            raise self._unusable(f"it answers {error.code}") from None
        except urllib.error.URLError as error:
            raise self._unusable(str(getattr(error.reason, "strerror", None) or error.reason)) from None
        except (OSError, HTTPException, ValueError) as error:
            raise self._unusable(str(getattr(error, "strerror", None) or error or type(error).__name__)) from None
        if len(data) > _MAX_ANSWER_BYTES:
            raise self._unusable(f"its answer has more than {_MAX_ANSWER_BYTES} bytes")
        return data

    def _unusable(self, why: str) -> Unusable:
        self._failed = True
        return Unusable(f"schema registry {self.url}: {why}; it is not asked again")
