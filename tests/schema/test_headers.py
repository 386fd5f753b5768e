"""Header versions. Expected values: Kafka's ApiMessageType; test_kio.py compares every message."""

from __future__ import annotations

import pytest

from kwiresniff import schema
from kwiresniff.errors import SchemaError


@pytest.mark.parametrize(
    ("api", "version", "request_header", "response_header"),
    [
        ("Metadata", 8, 1, 0),
        ("Metadata", 9, 2, 1),
        ("SaslHandshake", 1, 1, 0),
        ("ControlledShutdown", 0, 0, 0),
        ("ControlledShutdown", 1, 1, 0),
        ("ControlledShutdown", 3, 2, 1),
        ("ApiVersions", 0, 1, 0),
        ("ApiVersions", 3, 2, 0),
        ("ApiVersions", 5, 2, 0),
        ("Vote", 0, 2, 1),
    ],
)
def test_headers_are_flexible_when_the_message_is_with_two_exceptions(
    api: str, version: int, request_header: int, response_header: int
) -> None:
    key = schema.api_by_name(api).key
    assert schema.request_header_version(key, version) == request_header
    assert schema.response_header_version(key, version) == response_header
    assert schema.message(api, version, "request").header_version == request_header
    assert schema.message(api, version, "response").header_version == response_header


def test_a_version_yet_unknown_is_as_flexible_as_the_newest() -> None:
    assert schema.request_header_version(0, 99) == 2


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(SchemaError, match="no API has key 999"):
        schema.request_header_version(999, 0)
