"""SASL tokens without a header: what tells them from requests, and when they are over."""

from __future__ import annotations

from struct import pack

import pytest

from kwiresniff.export.json_objects import event_json
from kwiresniff.model import ACK, FIN
from kwiresniff.session.apis import known_versions
from kwiresniff.session.sasl_opaque import OpaqueTokens, is_request, token_mechanism
from tests.support.conversation import (
    api_versions_v0,
    events,
    exchanges,
    heartbeat,
    known_wire,
    problems,
    request,
    response,
    string,
)
from tests.support.incidents import findings

#: First tokens as the RFCs have them: 4121, 4616, 5802 and 7628.
TOKENS = {
    "GSSAPI": bytes.fromhex("6082010006092a864886f71201020201006e") + b"k" * 200,
    "PLAIN": b"\0alice\0secret",
    "SCRAM": b"n,,n=alice,r=fyko+d2lbbFgONRv9qkxdawL",
    "OAUTHBEARER": b"n,a=alice,\x01auth=Bearer a.secret.c\x01\x01",
}


@pytest.mark.parametrize("token", [b"", b"\0alice\0secret", b"n,,n=alice,r=fyko", bytes(range(100)), b"\0\x0c\0\0"])
def test_a_token_is_no_request(token: bytes) -> None:
    """Of PLAIN, of SCRAM, and of what is any bytes."""
    assert not is_request(len(token), token, known_versions())


@pytest.mark.parametrize("frame", [heartbeat(1)[4:], api_versions_v0(7)[4:]])
def test_a_request_is_told_by_its_header(frame: bytes) -> None:
    """A request after opaque tokens shows that they were accepted."""
    assert is_request(len(frame), frame, known_versions())


def test_tokens_are_over_when_neither_side_sends_any() -> None:
    """Each side ends by itself, and they may begin anew."""
    tokens = OpaqueTokens()
    assert tokens.is_over()
    for _ in range(2):
        tokens.begin()
        assert tokens.expected and not tokens.is_over()
        tokens.from_client = False
        assert not tokens.is_over()
        tokens.from_broker = False
        assert tokens.is_over()


def test_first_tokens_are_known_by_their_content() -> None:
    """GSSAPI by its object identifier, SCRAM and OAUTHBEARER by their GS2 header, PLAIN by its two NULs."""
    for mechanism, token in TOKENS.items():
        assert token_mechanism(token) == mechanism
    strangers = (request(12, 99, 1)[4:], request(200, 0, 1)[4:], b"\0\0password", b"\0user\0", b"n,,", b"\0a\xff\0b")
    assert not any(token_mechanism(frame) for frame in strangers)


@pytest.mark.parametrize("mechanism", TOKENS)
@pytest.mark.parametrize(("version", "wanted"), [(None, "SaslHandshake"), (1, "SaslAuthenticate")])
def test_a_token_where_a_request_has_to_come_is_told_as_that(mechanism: str, version: int | None, wanted: str) -> None:
    """KIP-152: without a handshake, or after SaslHandshake v1, a token without a header is no request of any API."""
    wire = known_wire()
    if version is not None:
        wire.up(request(17, version, 2, string(mechanism))).down(response(2, pack(">hi", 0, 0)))
    token = TOKENS[mechanism]
    wire.up(pack(">i", len(token)) + token)
    wire.send(1, flags=FIN | ACK)
    found = events(wire, depth="bodies")
    assert {one.api for one in exchanges(found)} <= {"ApiVersions", "SaslHandshake"}
    (problem,) = problems(found)
    assert problem.code == "stray_sasl_token"
    assert problem.details is not None
    assert (problem.details["mechanism"], problem.details["wanted"]) == (mechanism, wanted)
    (finding,) = findings(*found)
    assert (finding.code, finding.severity) == ("stray_sasl_token", "error")
    assert mechanism in finding.title and wanted in finding.title and "closes the connection" in finding.title
    assert "secret" not in repr([event_json(event) for event in found])
