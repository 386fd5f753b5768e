"""The protocol as data: every API in every version any release has had, and what its numbers mean.

The definition files under ``data/`` are in a small language of our own (``definition_language.py``), written by
``importer.py`` from Kafka's official definitions.
"""

from kwiresniff.schema.aliases import body_fields, newer_paths
from kwiresniff.schema.apis import API_NAMES, api_by_key, api_by_name, apis, find_api, version_range
from kwiresniff.schema.enums import enum_names, enum_value
from kwiresniff.schema.errorcodes import KafkaError, error, error_by_name
from kwiresniff.schema.headers import request_header_version, response_header_version
from kwiresniff.schema.index import Api
from kwiresniff.schema.registry import (
    data_message,
    data_versions,
    earlier_shapes,
    header,
    message,
    stored_records,
)
from kwiresniff.schema.release_table import find_release, release_history, releases, versions_in
from kwiresniff.schema.types import MessageVersion, WireField

__all__ = [
    "API_NAMES",
    "Api",
    "KafkaError",
    "MessageVersion",
    "WireField",
    "api_by_key",
    "api_by_name",
    "apis",
    "body_fields",
    "data_message",
    "data_versions",
    "earlier_shapes",
    "enum_names",
    "enum_value",
    "error",
    "error_by_name",
    "find_api",
    "find_release",
    "header",
    "message",
    "newer_paths",
    "release_history",
    "releases",
    "request_header_version",
    "response_header_version",
    "stored_records",
    "version_range",
    "versions_in",
]
