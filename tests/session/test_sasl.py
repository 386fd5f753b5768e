"""Authentications as recorded from real brokers: who, how, until when, how often; never with what secret.

How often a client authenticated is what the manifest row has from tshark, the rest is what the recipe asked for.
"""

from __future__ import annotations

import base64
import json
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.base.depths import Depth
from kwiresniff.capture import open_captures
from kwiresniff.export.json_objects import event_json
from kwiresniff.model import Connection, Exchange
from kwiresniff.session.sasl import MAX_AUTHENTICATIONS, Sasl
from kwiresniff.session.sasl_tokens import MAX_CLAIMS_BYTES, read_token
from tests.support.events import analyze

CAPTURES = Path(__file__).parents[2] / "captures"
ROWS = {row["file"]: row for row in tomllib.loads((CAPTURES / "MANIFEST.toml").read_text(encoding="utf-8"))["capture"]}
SECOND_NS = 1_000_000_000


def connections(name: str, depth: Depth = "bodies") -> list[Connection]:
    events = analyze(open_captures([str(CAPTURES / name)]), depth=depth)
    return [event for event in events if isinstance(event, Connection)]


def authentications(name: str, depth: Depth = "bodies") -> list[dict[str, Any]]:
    return [one for connection in connections(name, depth) for one in (connection.sasl or {})["authentications"]]


@pytest.mark.parametrize("depth", ["errors", "bodies"])
@pytest.mark.parametrize("name", ["java-sasl-oauthbearer.pcap", "librdkafka-sasl-oauthbearer.pcap"])
def test_the_subject_and_expiry_of_a_bearer_token_are_told(name: str, depth: Depth) -> None:
    """The recipes make tokens of alice for ten minutes, shortly before they show them."""
    for one in authentications(name, depth):
        assert (one["mechanism"], one["principal"], one["outcome"]) == ("OAUTHBEARER", "alice", "ok")
        assert one["token_subject"] == "alice"
        assert 590 * SECOND_NS < one["token_expiry_ns"] - one["timestamp_ns"] <= 600 * SECOND_NS


@pytest.mark.parametrize(
    ("name", "mechanism"),
    [
        ("java-sasl-oauthbearer.pcap", "OAUTHBEARER"),
        ("java-sasl-plain-renewed.pcap", "PLAIN"),
        ("java-sasl-scram-renewed.pcap", "SCRAM-SHA-512"),
    ],
)
def test_every_authentication_of_a_session_is_followed(name: str, mechanism: str) -> None:
    """KIP-368: the broker gives 1.5 s, and the client comes again when 85 to 95 % of them have passed."""
    found = connections(name)
    handshakes = ROWS[name]["not_logged"]["SASL_HANDSHAKE v1"]
    assert sum((one.sasl or {})["authentication_count"] for one in found) == handshakes > len(found)
    for connection in found:
        assert connection.sasl is not None
        told = connection.sasl["authentications"]
        assert len(told) == connection.sasl["authentication_count"]
        for one in told:
            assert (one["mechanism"], one["principal"], one["outcome"]) == (mechanism, "alice", "ok")
            assert one["session_lifetime_ms"] == 1500
            assert 0 < one["duration_ns"] < SECOND_NS
        for before, after in pairwise(told):
            apart = after["timestamp_ns"] - before["timestamp_ns"] - before["duration_ns"]
            assert 1.2 * SECOND_NS < apart < 2 * SECOND_NS


def test_a_ticket_tells_its_service_and_not_who_shows_it() -> None:
    """GSS-API: three tokens to the broker, of which the first has the ticket."""
    (one,) = authentications("java-sasl-gssapi.pcap")
    assert (one["mechanism"], one["principal"], one["outcome"]) == ("GSSAPI", None, "ok")
    assert one["service"] == "kafka/10.9.0.1@KWIRESNIFF.TEST"


def test_a_delegation_token_is_told_by_its_id() -> None:
    """Where SCRAM has the user stands the token's id; the broker limits the session to the token's life."""
    found = authentications("java-sasl-token.pcap")
    by_token = [one for one in found if one["delegation_token_id"]]
    assert {one["principal"] for one in found if one not in by_token} == {"alice"}
    assert len({one["delegation_token_id"] for one in by_token}) == 1
    assert all(one["principal"] is None and 590_000 < one["session_lifetime_ms"] <= 600_000 for one in by_token)


@pytest.mark.parametrize("name", sorted(name for name in ROWS if "sasl" in name and "/" not in name))
def test_outcomes_are_those_of_the_recipes_and_no_secret_is_told(name: str) -> None:
    """Passwords, proofs and tokens are in the captures, not in what is told of the connections."""
    for connection in connections(name):
        if connection.sasl is None:
            continue
        refused = connection.exchanges.get("error", 0) > 0
        assert connection.sasl["outcome"] in (("failed", "unknown") if refused else ("ok", "unknown"))
        text = json.dumps(event_json(connection))
        assert "not-a-secret" not in text
        assert "eyJ" not in text
        assert ",p=" not in text


def test_a_broker_that_closes_instead_of_an_answer_has_refused() -> None:
    """0.10 has no word for it. The client with the wrong password is called mallory."""
    clients: dict[str | None, set[str]] = {"mallory": set(), "alice": set()}
    for event in analyze(open_captures([str(CAPTURES / "eras/era-0.10-sasl.pcap.xz")])):
        if isinstance(event, Exchange) and event.client_id in clients and event.api == "SaslHandshake":
            clients[event.client_id].add(event.connection.client)
    told = {one.client: (one.sasl or {}).get("outcome") for one in connections("eras/era-0.10-sasl.pcap.xz")}
    assert [told[client] for client in clients["mallory"]] == ["failed"] * 3
    assert {told[client] for client in clients["alice"]} == {"ok"}


def bearer(claims: bytes, front: bytes = b"n,,") -> bytes:
    """An OAUTHBEARER token of RFC 7628 around an unsecured JSON Web Token."""
    parts = (base64.urlsafe_b64encode(part).rstrip(b"=") for part in (b'{"alg":"none"}', claims))
    return front + b"\x01auth=Bearer " + b".".join(parts) + b".\x01\x01"


@pytest.mark.parametrize(
    ("token", "told"),
    [
        (bearer(b'{"sub":"u","exp":1.5}'), {"principal": "u", "token_subject": "u", "token_expiry_ns": 1_500_000_000}),
        (bearer(b'{"sub":"u"}', b"n,a=v,"), {"principal": "v", "token_subject": "u"}),
        (bearer(b'{"sub":7,"exp":"soon"}'), {}),
        (bearer(b'{"exp":true}'), {}),
        (bearer(b'{"exp":1e400}'), {}),
        (bearer(b'{"exp":-1}'), {}),
        (bearer(b'{"sub":"' + b"x" * 2000 + b'"}'), {}),
        (bearer(b'{"sub":"u","pad":"' + b"x" * MAX_CLAIMS_BYTES + b'"}'), {}),
        (bearer(b"[" * 10_000), {}),
        (bearer(b'"sub"'), {}),
        (bearer(b"\xff\xfe{"), {}),
        (b"n,,\x01auth=Bearer opaque-token\x01\x01", {}),
        (b"n,,\x01auth=Bearer a.!!.c\x01\x01", {}),
        (b"", {}),
    ],
)
def test_bearer_tokens_that_are_no_web_tokens_tell_nothing(token: bytes, told: dict[str, Any]) -> None:
    assert read_token("OAUTHBEARER", token) == told


def iam(**said: Any) -> bytes:
    """The first token of aws-msk-iam-auth, as its README prints it."""
    token = {
        "version": "2020_10_22",
        "host": "b-1.example.kafka.us-east-1.amazonaws.com",
        "user-agent": "agent",
        "action": "kafka-cluster:Connect",
        "x-amz-algorithm": "AWS4-HMAC-SHA256",
        "x-amz-credential": "AKIAIOSFODNN7EXAMPLE/20240101/us-east-1/kafka-cluster/aws4_request",
        "x-amz-security-token": "hunter2",
        "x-amz-signature": "hunter3",
    }
    return json.dumps(token | {name.replace("_", "-"): value for name, value in said.items()}).encode()


@pytest.mark.parametrize(
    ("token", "told"),
    [
        (iam(), {"principal": "AKIAIOSFODNN7EXAMPLE"}),
        (iam(x_amz_credential="AKIAIOSFODNN7EXAMPLE"), {}),
        (iam(x_amz_credential="wJalrXUtnFEMI+K7MDENG/bPxRfiCYEXAMPLEKEY"), {}),
        (iam(x_amz_credential=7), {}),
        (iam(pad="x" * MAX_CLAIMS_BYTES), {}),
        (b"[" * 10_000, {}),
        (b"\xff{", {}),
        (b"", {}),
    ],
)
def test_of_an_iam_token_the_access_key_id_is_told_and_nothing_else(token: bytes, told: dict[str, Any]) -> None:
    """The user of AWS_MSK_IAM; in the place of a scope may be a secret access key, which has other letters, too."""
    assert read_token("AWS_MSK_IAM", token) == told


def test_a_ticket_cut_anywhere_or_with_any_byte_changed_is_read_without_trouble() -> None:
    """The token that the client of the recording showed."""
    (exchange,) = (
        event
        for event in analyze(
            open_captures([str(CAPTURES / "java-sasl-gssapi.pcap")]), depth="bodies", show_secrets=True
        )
        if getattr(event, "api", "") == "SaslAuthenticate" and event.request.size_bytes > 200  # type: ignore[union-attr]
    )
    token = exchange.request.body["auth_bytes"]  # type: ignore[union-attr, index]
    assert read_token("GSSAPI", token) == {"service": "kafka/10.9.0.1@KWIRESNIFF.TEST"}
    for at in range(min(len(token), 150)):
        assert set(read_token("GSSAPI", token[:at])) <= {"service"}
        for changed in (0, 0x7F, 0x80, 0xFF):
            assert set(read_token("GSSAPI", token[:at] + bytes([changed]) + token[at + 1 :])) <= {"service"}


def test_a_plain_token_of_another_form_tells_no_name() -> None:
    """RFC 4616 has two NULs in it; with fewer or more of them a password could be taken for the name."""
    assert read_token("PLAIN", b"\0alice\0secret") == {"principal": "alice"}
    assert read_token("PLAIN", b"owner\0alice\0secret") == {"principal": "alice"}
    for token in (b"alice secret", b"\0alice secret", b"\0alice secret\0\0", b"\0\0alice\0secret"):
        assert read_token("PLAIN", token) == {}


@pytest.mark.slow
def test_authentications_without_end_are_counted_and_the_first_and_last_told() -> None:
    """A session of a second, for a day."""
    connection = Connection(1, "c", "b")
    sasl = Sasl(connection)
    for number in range(86_400):
        sasl.begin("PLAIN", 1 + number)
        sasl.client_token(b"\0u%d\0secret" % number)
        sasl.authenticate_answered({"error_code": 0, "auth_bytes": b""}, 2 + number)
    assert connection.sasl is not None
    assert connection.sasl["authentication_count"] == 86_400
    told = [one["principal"] for one in connection.sasl["authentications"]]
    assert told == [f"u{number}" for number in range(MAX_AUTHENTICATIONS - 1)] + ["u86399"]
    assert connection.sasl["principal"] == "u86399"


def test_what_is_told_of_a_connection_is_its_last_authentication() -> None:
    """At every step, and again when another one begins: all but when that was."""
    connection = Connection(1, "10.0.0.1:5000", "10.0.0.2:9092")
    sasl = Sasl(connection)

    def check() -> None:
        told = dict(connection.sasl or {})
        authentications = told.pop("authentications")
        assert told.pop("authentication_count") == len(authentications)
        assert {"timestamp_ns": authentications[-1]["timestamp_ns"], **told} == authentications[-1]

    for number, mechanism in enumerate(("PLAIN", None), 1):
        sasl.begin(mechanism, 1000 * number)
        check()
        sasl.client_token(b"\0user\0password")
        check()
        sasl.authenticate_answered({"error_code": 0, "session_lifetime_ms": 60_000}, 1000 * number + 7)
        check()
    first, last = (connection.sasl or {})["authentications"]
    assert [first[name] for name in ("timestamp_ns", "principal", "duration_ns")] == [1000, "user", 7]
    assert [last[name] for name in ("timestamp_ns", "principal", "duration_ns")] == [2000, None, 7]
