"""Credentials in what is saved between two files: none stands there, and nothing else is lost."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from struct import pack

import pytest

from kwiresniff.model import Connection, Exchange, Segment
from kwiresniff.session import Analyzer
from kwiresniff.session.checkpoint import dump, load
from tests.support.conversation import (
    Wire,
    api_versions_v0,
    api_versions_v0_response,
    known_wire,
    request,
    response,
    string,
)
from tests.support.events import finish, process
from tests.support.secret_messages import (
    CONNECT_CONFIGS,
    SECRET,
    exchanges,
    record_batch,
    sasl_exchanges,
)


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
    list(process(analyzer, wire.segments))
    state = dump(analyzer)
    later = Analyzer("records")
    load(later, state)
    del wire.segments[:]
    for data in rest:
        wire.send(0, data)
    events = [*process(later, wire.segments), *finish(later)]
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


def saved(segments: Sequence[Segment]) -> bytes:
    """What is saved behind these segments."""
    analyzer = Analyzer("records")
    list(process(analyzer, segments))
    return zlib.decompress(dump(analyzer))


def parts(segment: Segment, at: int) -> tuple[Segment, Segment]:
    """A segment as two, of which the first has ``at`` bytes."""
    packet, ns, flow, seq, ack, flags, buffer, start, end, missing = segment
    return (
        (packet, ns, flow, seq, ack, flags, buffer, start, start + at, 0),
        (packet, ns, flow, seq + at, ack, flags, buffer, start + at, end, missing),
    )


def whole_and_cut(wire: Wire, way: int, frame: bytes) -> None:
    """Sends a frame, and looks for the secret in what is saved behind it, and where it is cut in or behind a secret."""
    wire.send(way, frame)
    *earlier, last = wire.segments
    if SECRET in frame:
        at, behind = frame.index(SECRET), frame.rindex(SECRET) + len(SECRET)
        for size in sorted({at + 6, at + len(SECRET), behind, len(frame) - 1} - {len(frame)}):
            assert SECRET[:6] not in saved([*earlier, parts(last, size)[0]]), (frame[:12], way, size)
        assert SECRET not in saved(wire.segments)


def test_a_message_with_credentials_is_saved_without_them_wherever_it_is_cut() -> None:
    """Both directions of every message that holds any, whole and in part."""
    for asked, answered in exchanges():
        wire = known_wire()
        whole_and_cut(wire, 0, asked)
        whole_and_cut(wire, 1, answered)


def test_a_token_is_saved_without_its_credentials_wherever_it_is_cut() -> None:
    """SaslAuthenticate of every mechanism that is read, and of one that is not."""
    for mechanism, asked, answered in sasl_exchanges():
        wire = handshake(1, mechanism)
        whole_and_cut(wire, 0, asked)
        whole_and_cut(wire, 1, answered)


def test_a_request_with_credentials_is_not_saved_before_its_connection_is_known() -> None:
    """A capture that begins with it, or with a part of it, or a connection on which the bytes before it are lost."""
    requests = [asked for asked, _ in exchanges()] + [asked for _, asked, _ in sasl_exchanges()]
    for asked in requests:
        (segment,) = Wire().up(asked).segments
        lossy = known_wire()
        lossy.send(0, b"?" * 40, drop=True)
        lossy.send(0, asked)
        for some in ([segment], [parts(segment, len(asked) - 1)[0]], lossy.segments):
            assert SECRET not in saved(some), asked[:12]


@pytest.mark.parametrize("version", [0, 1])
def test_tokens_out_of_order_are_not_saved(version: int) -> None:
    """The segment with the end of a token comes first; its front is lost, and the connection goes on behind it."""
    token = b"\0alice\0" + SECRET
    frame = pack(">i", len(token)) + token if version == 0 else request(36, 1, 3, pack(">i", len(token)) + token)
    wire = handshake(version, "PLAIN")
    wire.send(0, frame[:-8], drop=True)
    wire.send(0, frame[-8:])
    state, _, connection = goes_on(wire, request(3, 0, 4, pack(">i", 0)))
    assert SECRET not in state
    assert connection.sasl is not None and connection.sasl["mechanism"] == "PLAIN"


def test_a_request_with_configs_that_has_come_in_part_is_paired_and_its_bytes_are_told_as_withheld() -> None:
    """AlterConfigs with a password; its response comes after the rest of it."""
    secret = string("ssl.key.password") + string(SECRET.decode())
    body = pack(">ib", 1, 4) + string("1") + pack(">i", 2) + secret + secret + b"\0"
    frame = request(33, 0, 3, body)
    wire = handshake(1, "PLAIN")
    wire.send(0, frame[:-12])
    state, (exchange,), _ = goes_on(wire, frame[-12:])
    assert SECRET not in state
    assert (exchange.api_key, exchange.correlation_id) == (33, 3)
    assert exchange.request is not None and exchange.request.size_bytes == len(frame) - 4
    problem = next(one for one in exchange.problems if one.code == "gap")
    header = len(request(33, 0, 3)) - 4
    assert problem.details == {"missing_bytes": len(frame) - 12 - 4 - header, "withheld": True}


def produce(topic: str, records: bytes) -> bytes:
    """A Produce v8 request with acks=1 for one partition."""
    partition = pack(">iii", 1, 0, len(records)) + records
    return request(0, 8, 3, string(None) + pack(">hii", 1, 1000, 1) + string(topic) + partition)


@pytest.mark.parametrize("codec", [0, 1])
def test_records_of_connect_that_wait_for_an_answer_are_saved_without_their_secrets(codec: int) -> None:
    """Produce with acks=1; the topic and what stands before the records still decode."""
    records = record_batch(b"connector-a", CONNECT_CONFIGS, codec=codec)
    wire = handshake(1, "PLAIN")
    wire.send(0, produce("connect-configs", records))
    state, (exchange,), _ = goes_on(wire)
    assert SECRET not in state and records[-20:] not in state
    assert exchange.request is not None and exchange.request.body is not None
    assert exchange.request.body["topic_data"][0]["name"] == "connect-configs"
    gaps = [one.details for one in exchange.problems if one.code == "gap"]
    assert gaps == [{"missing_bytes": len(records), "withheld": True}]


def test_other_records_that_wait_for_an_answer_are_saved_as_they_are() -> None:
    """They are decoded when the answer comes."""
    records = record_batch(b"k", b"v")
    wire = handshake(1, "PLAIN")
    wire.send(0, produce("orders", records))
    state, (exchange,), _ = goes_on(wire)
    assert records in state and exchange.problems == []
