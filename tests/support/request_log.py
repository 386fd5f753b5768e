"""What the broker's request log says beside a capture, held against what was decoded."""

from __future__ import annotations

import base64
import re
from typing import Any

from kwiresniff.model import Exchange
from kwiresniff.schema.types import WireField

UNSUPPORTED_VERSION = 35
#: Fields by the name that the log of an older broker has for them, or that its JSON makes of theirs.
RENAMED = (
    ("generation_id", "generation_id_or_member_epoch"),
    ("client_metrics_resources", "config_resources"),
    ("k_raft_version_feature", "kraft_version_feature"),
    ("zk_version", "partition_epoch"),
    ("current_isr_version", "partition_epoch"),
    ("partition_responses", "partitions"),
    ("partition_id", "partitions"),
    ("partition", "partition_index"),
    ("candidate_epoch", "replica_epoch"),
    ("candidate_id", "replica_id"),
    ("candidate_directory_id", "replica_directory_id"),
    ("name", "topic_name"),
    ("transactional_id", "v3_and_below_transactional_id"),
    ("producer_id", "v3_and_below_producer_id"),
    ("producer_epoch", "v3_and_below_producer_epoch"),
    ("topics", "v3_and_below_topics"),
    ("results", "results_by_topic_v3_and_below"),
    ("results", "results_by_partition"),
    ("error_code", "partition_error_code"),
    ("record_set_size_in_bytes", "records_size_in_bytes"),
)
RECORDS_SIZE = "records_size_in_bytes"  # all that the log says of a record set


def identity(exchange: Exchange) -> tuple[object, ...]:
    connection = exchange.connection
    return (
        connection.client,
        connection.broker,
        exchange.correlation_id,
        exchange.api_key,
        exchange.api_version,
        exchange.client_id,
    )


def logged_identity(said: dict[str, Any]) -> tuple[object, ...]:
    return (
        said["client"],
        said["broker"],
        said["correlation_id"],
        said["api_key"],
        said["api_version"],
        said["client_id"],
    )


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def refused_unread(said: dict[str, Any]) -> bool:
    """Whether the broker answered an ApiVersions request of a version it does not know, without reading its body."""
    if said["api"] != "API_VERSIONS":
        return False
    if isinstance(said["response"], str):
        return bool(said["request"] == "{}")
    return bool(said["response"]["errorCode"] == UNSUPPORTED_VERSION)


def differences(fields: tuple[WireField, ...], ours: dict[str, Any], theirs: dict[str, Any], path: str) -> list[str]:
    """Where a decoded structure and Kafka's JSON of it disagree."""
    by_name = {field.name: field for field in fields}
    found = []
    said = {snake_case(name): value for name, value in theirs.items()}
    for older, newer in RENAMED:
        if newer in (*by_name, RECORDS_SIZE) and newer not in said and older in said and older not in by_name:
            said[newer] = said.pop(older)
    for name, field in by_name.items():
        here = f"{path}.{name}"
        if name not in ours:
            found.append(f"{here} is missing")
        elif field.type.endswith("RECORDS"):
            size = sum(batch["size_bytes"] for batch in ours[name] or ())
            if size != max(0, said.pop(RECORDS_SIZE, size)):  # the log is silent about those of ShareFetch
                found.append(f"{here} has {size} bytes")
            said.pop(name, None)
        elif name not in said:
            if field.tag is None:
                found.append(f"{here} is not in the log")
        else:
            found += value_differences(field, ours[name], said.pop(name), here)
    found += [f"{path}.{name} is only in the log" for name in said]
    return found


def value_differences(field: WireField, ours: Any, theirs: Any, path: str) -> list[str]:
    if isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            return [f"{path} has {len(ours)} elements, in the log {len(theirs)}"]
        pairs = zip(ours, theirs, strict=True)
        return [
            text
            for index, (mine, other) in enumerate(pairs)
            for text in value_differences(field, mine, other, f"{path}[{index}]")
        ]
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return differences(field.fields, ours, theirs, path)
    if isinstance(ours, bytes):
        ours = base64.b64encode(ours).decode()
    return [] if ours == theirs else [f"{path} is {ours!r}, in the log {theirs!r}"]
