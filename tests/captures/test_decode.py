"""What kwiresniff finds in the captures is what the brokers say they were asked and answered.

The broker's request log, kept beside each capture, owes nothing to any decoder of ours: it is Kafka's own JSON of the
objects that its own code read from the wire and wrote to it.
"""

from __future__ import annotations

import gzip
import json
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.capture import open_captures, with_decryption
from kwiresniff.model import Connection, Exchange
from kwiresniff.schema import message
from tests.support import log_text
from tests.support.events import analyze
from tests.support.request_log import differences, identity, logged_identity, refused_unread
from tests.support.sample import mostly_slow

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


def exchanges(row: dict[str, Any]) -> list[Exchange]:
    captures = open_captures([str(CAPTURES / row["file"])])
    keylog = row.get("keylog")
    source = with_decryption(captures, keylog and str(CAPTURES / keylog))
    events = analyze(source, depth="bodies", show_secrets=True, tls_secrets=source.tls_secrets)
    return [event for event in events if isinstance(event, Exchange)]


def logged(row: dict[str, Any]) -> list[dict[str, Any]]:
    text = gzip.decompress((CAPTURES / row["expected"]).read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


@dataclass(frozen=True)
class Recording:
    row: dict[str, Any]
    exchanges: list[Exchange]
    logged: list[dict[str, Any]]


@pytest.fixture(scope="module", params=mostly_slow(ROWS), ids=lambda row: row["file"])
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


def asked_ns(exchange: Exchange) -> int:
    """When the request had passed; none is missing in a recording."""
    assert exchange.request is not None
    return exchange.request.last_ns


@pytest.mark.slow
def test_bodies_are_those_of_the_brokers_log(recording: Recording) -> None:
    in_order = sorted(recording.exchanges, key=asked_ns)
    last_answered_ns = {e.connection: asked_ns(e) for e in in_order if e.response is not None}
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
            if part is None and asked_ns(exchange) > last_answered_ns.get(exchange.connection, 0):
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
    assert facts == {("TLSv1.2", "broker-1.test", "10.9.0.1"), ("TLSv1.3",)}
