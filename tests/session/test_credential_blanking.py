"""Credentials in what is saved between two files: none stands there, and nothing else is lost."""

from __future__ import annotations

import zlib
from struct import pack

import pytest

from kwiresniff.model import Connection, Exchange
from kwiresniff.session import Analyzer
from kwiresniff.session.checkpoint import dump, load
from tests.support.conversation import Wire, api_versions_v0, api_versions_v0_response, request, response, string

SECRET = b"S3CRET"


def handshake(version: int, mechanism: str) -> Wire:
    """A connection that has agreed on a mechanism: SaslHandshake in this version, and its answer."""
    wire = Wire().open()
    wire.send(0, api_versions_v0(1))
    wire.send(1, api_versions_v0_response(1))
    wire.send(0, request(17, version, 2, string(mechanism)))
    wire.send(1, response(2, pack(">hi", 0, 1) + string(mechanism)))
    return wire


def goes_on(wire: Wire, *rest: bytes) -> tuple[bytes, list[Exchange], Connection]:
    """What is saved behind the segments of ``wire``; then the exchanges and the connection, when the client has sent
    the rest to an analyzer that goes on from there."""
    analyzer = Analyzer("records")
    list(analyzer.process(wire.segments))
    state = dump(analyzer)
    later = Analyzer("records")
    load(later, state)
    del wire.segments[:]
    for data in rest:
        wire.send(0, data)
    events = [*later.process(wire.segments), *later.finish()]
    (connection,) = (event for event in events if isinstance(event, Connection))
    return zlib.decompress(state), [event for event in events if isinstance(event, Exchange)], connection


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_token_that_was_read_is_not_saved(version: int) -> None:
    """SaslAuthenticate without an answer; who authenticated is known, and the request still decodes."""
    token = b"\0alice\0" + SECRET
    wire = handshake(1, "PLAIN")
    if version < 2:
        wire.send(0, request(36, version, 3, pack(">i", len(token)) + token))
    else:
        wire.send(0, request(36, version, 3, bytes([len(token) + 1]) + token + b"\0", tags=b"\0"))
    saved, (exchange,), connection = goes_on(wire)
    assert SECRET not in saved
    assert exchange.request is not None and exchange.request.body is not None
    assert exchange.request.body["auth_bytes"] == {"withheld": True, "size_bytes": len(token)}
    assert exchange.problems == []
    assert connection.sasl is not None and connection.sasl["principal"] == "alice"


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    ("mechanism", "token"),
    [
        ("PLAIN", b"\0alice\0" + SECRET + b"-and-more"),
        ("SCRAM-SHA-256", b"c=biws,r=nonce,p=" + SECRET + b"-and-more"),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer e30.e30." + SECRET + b"-and-more\x01\x01"),
        ("OAUTHBEARER", b"n,,\x01auth=Bearer " + SECRET + b"-and-more\x01\x01"),
        ("AWS_MSK_IAM", b'{"version":"2020_10_22","x-amz-signature":"' + SECRET + b'-and-more"}'),
    ],
)
def test_a_token_that_has_come_in_part_is_saved_without_its_credentials(
    version: int, mechanism: str, token: bytes
) -> None:
    """With a header (KIP-152) and without; the end of the token comes later."""
    if version:
        frame = request(36, 0, 3, pack(">i", len(token)) + token)
    else:
        frame = pack(">i", len(token)) + token
    wire = handshake(version, mechanism)
    wire.send(0, frame[:-4])
    saved, _, connection = goes_on(wire, frame[-4:])
    assert SECRET not in saved
    assert connection.sasl is not None and connection.sasl["mechanism"] == mechanism
    assert connection.sasl["principal"] == ("alice" if mechanism == "PLAIN" else None)


def test_other_requests_with_credentials_are_saved_without_them() -> None:
    """AlterUserScramCredentials and IncrementalAlterConfigs without an answer; what is no secret still decodes."""
    scram = b"\x01\x02" + b"\x06alice" + b"\x01" + pack(">i", 4096) + b"\x05salt" + bytes([len(SECRET) + 1]) + SECRET
    config = (
        pack(">ib", 1, 4) + string("1") + pack(">i", 1) + string("ssl.key.password") + b"\0" + string(SECRET.decode())
        + b"\0"
    )  # fmt: skip
    wire = handshake(1, "PLAIN")
    wire.send(0, request(51, 0, 4, scram + b"\0\0", tags=b"\0"))
    wire.send(0, request(44, 0, 5, config))
    saved, (credentials, configs), _ = goes_on(wire)
    assert SECRET not in saved
    assert credentials.request is not None and credentials.request.body is not None
    (upsertion,) = credentials.request.body["upsertions"]
    assert upsertion["name"] == "alice"
    assert upsertion["salted_password"] == {"withheld": True, "size_bytes": len(SECRET)}
    assert configs.request is not None and configs.request.body is not None
    assert configs.request.body["resources"][0]["configs"][0]["name"] == "ssl.key.password"


def test_a_request_with_credentials_that_has_come_in_part_is_saved_without_them() -> None:
    """All of it behind the header: nothing tells yet where the credentials stand."""
    frame = request(51, 0, 4, b"\x01\x02\x06alice\x01" + pack(">i", 4096) + b"\x05salt\x20" + SECRET, tags=b"\0")
    wire = handshake(1, "PLAIN")
    wire.send(0, pack(">i", len(frame) + 96) + frame[4:])
    saved, _, _ = goes_on(wire)
    assert SECRET not in saved and b"salt" not in saved
