"""What kwiresniff finds in the captures is what the brokers say they were asked and answered.

The broker's request log, kept beside each capture, owes nothing to any decoder of ours: it is Kafka's own JSON of the
objects that its own code read from the wire and wrote to it.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import shutil
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.capture import open_captures, with_decryption
from kwiresniff.model import Connection, Exchange
from kwiresniff.schema import message
from kwiresniff.schema.types import WireField
from kwiresniff.session import analyze
from tests.captures import log_text

CAPTURES = Path(__file__).parents[2] / "captures"
ROWS: list[dict[str, Any]] = tomllib.loads((CAPTURES / "MANIFEST.toml").read_text(encoding="utf-8"))["capture"]

NOT_LOGGED = {
    17: "SASL_HANDSHAKE",
    18: "API_VERSIONS",
    36: "SASL_AUTHENTICATE",
    52: "VOTE",
    54: "END_QUORUM_EPOCH",
    58: "ENVELOPE",
}
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


def exchanges(row: dict[str, Any]) -> list[Exchange]:
    captures = open_captures([str(CAPTURES / row["file"])])
    keylog = row.get("keylog")
    if keylog is not None and shutil.which("tshark") is None and not os.environ.get("CI"):
        pytest.skip("tshark is not installed")
    source = with_decryption(captures, keylog and str(CAPTURES / keylog))
    events = analyze(source, depth="bodies", show_secrets=True)
    return [event for event in events if isinstance(event, Exchange)]


def logged(row: dict[str, Any]) -> list[dict[str, Any]]:
    text = gzip.decompress((CAPTURES / row["expected"]).read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


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
        return said["request"] == "{}"
    return said["response"]["errorCode"] == UNSUPPORTED_VERSION


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


@dataclass(frozen=True)
class Recording:
    row: dict[str, Any]
    exchanges: list[Exchange]
    logged: list[dict[str, Any]]


@pytest.fixture(scope="module", params=ROWS, ids=lambda row: row["file"])
def recording(request: pytest.FixtureRequest) -> Recording:
    """A recording, decoded once for all tests of it."""
    return Recording(request.param, exchanges(request.param), logged(request.param))


def test_requests_are_those_of_the_brokers_log(recording: Recording) -> None:
    ours = Counter(identity(e) for e in recording.exchanges)
    theirs = Counter(logged_identity(said) for said in recording.logged)
    assert not theirs - ours
    names = {said["api_key"]: said["api"] for said in recording.logged} | NOT_LOGGED
    beyond: Counter[str] = Counter()
    for (_, _, _, api_key, api_version, _), count in (ours - theirs).items():
        beyond[f"{names[api_key]} v{api_version}"] += count
    assert beyond == recording.row["not_logged"]


def test_bodies_are_those_of_the_brokers_log(recording: Recording) -> None:
    in_order = sorted(recording.exchanges, key=lambda e: e.request.last_ns)
    last_answered_ns = {e.connection: e.request.last_ns for e in in_order if e.response is not None}
    ours: dict[tuple[object, ...], list[Exchange]] = {}
    for exchange in in_order:
        ours.setdefault(identity(exchange), []).append(exchange)  # old clients give every request the same number
    found = []
    for said in recording.logged:
        exchange = ours[logged_identity(said)].pop(0)
        name = f"{said['api']} v{said['api_version']} {said['correlation_id']}"
        for direction, part in (("request", exchange.request), ("response", exchange.response)):
            if said[direction] is None or (direction == "request" and refused_unread(said)):
                continue
            if part is None and exchange.request.last_ns > last_answered_ns.get(exchange.connection, 0):
                continue  # the client hung up before the answer to its last questions
            if part is None or part.body is None:
                found.append(f"{name} {direction} has no body: {[p.message for p in exchange.problems]}")
                continue
            fields = message(said["api_key"], part.version, direction).fields
            differ = log_text.differences if isinstance(said[direction], str) else differences
            found += differ(fields, part.body, said[direction], f"{name} {direction}")
    assert found == []


def test_a_tls_recording_tells_who_spoke_which_version_without_keys() -> None:
    """The client of the recipe asked for them; the certificate is the recipe's."""
    (row,) = (row for row in ROWS if row["file"] == "kafka-python-tls.pcap")
    events = list(analyze(open_captures([str(CAPTURES / row["file"])])))
    connections = [event for event in events if isinstance(event, Connection)]
    assert len(connections) == len(events)
    assert {connection.broker for connection in connections} == {said["broker"] for said in logged(row)}
    assert {connection.client for connection in connections} == {said["client"] for said in logged(row)}
    facts = {(one.tls["version"], *(one.tls["server_certificate_names"] or ())) for one in connections if one.tls}
    assert facts == {("TLSv1.2", "broker-1.test"), ("TLSv1.3",)}
