"""The header version of each message: a short rule and its exceptions.

A flexible request (KIP-482) has header version 2 and its response header version 1, which end with tagged fields;
any other request has header version 1 and its response header version 0.

Kafka decides the same in the generated class ``ApiMessageType``.
"""

from __future__ import annotations

from kwiresniff.base.api_keys import API_VERSIONS, CONTROLLED_SHUTDOWN
from kwiresniff.schema.apis import known_api


def header_version(kind: str, api_key: int, version: int, flexible: bool) -> int:
    """The header version of a request or response at ``version``; -1 for what has no header."""
    if kind == "request":
        # The brokers of 0.8 sent it to their controller before headers had a client id (KAFKA-1955 kept it readable).
        if api_key == CONTROLLED_SHUTDOWN and version == 0:
            return 0
        return 2 if flexible else 1
    if kind == "response":
        # Answers to unknown versions are in version 0 (KIP-511), so the header is the same in all.
        if api_key == API_VERSIONS:
            return 0
        return 1 if flexible else 0
    return -1


def request_header_version(api_key: int, version: int) -> int:
    """The header version of a request, without its definition. Raises SchemaError for an unknown API."""
    return header_version("request", api_key, version, _flexible(api_key, version))


def response_header_version(api_key: int, version: int) -> int:
    """The header version of a response, see ``request_header_version``."""
    return header_version("response", api_key, version, _flexible(api_key, version))


def _flexible(api_key: int, version: int) -> bool:
    since = known_api(api_key).flexible_from
    return since is not None and version >= since
