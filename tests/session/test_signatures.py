"""First bytes and the protocol that they give away."""

from __future__ import annotations

from struct import pack

import pytest

from kwiresniff.session.signatures import (
    guess_protocol,
    is_certain_response,
    is_gssapi_token,
    is_zookeeper,
    reads_like_responses,
    response_protocol,
)

#: The first bytes as the protocols' specifications have them.
FIRST = [
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "tls"),
    (b"\x15\x03\x03\x00\x02\x02\x50", "tls"),
    (b"GET / HTTP/1.1\r\n", "http"),
    (b"HTTP/1.1 400 Bad Request\r\n", "http"),
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "http"),
    (b"CONNECT broker:9092 HTTP/1.1\r\n", "http"),
    (b'CONNECT {"verbose":false}\r\n', "nats"),
    (b"CONNECT\naccept-version:1.2\n\n\0", "stomp"),
    (b"OPTIONS sip:carol@example.org SIP/2.0\r\n", "sip"),
    (b"OPTIONS rtsp://example.org/media RTSP/1.0\r\n", "rtsp"),
    (b"SSH-2.0-OpenSSH_9.2\r\n", "ssh"),
    (b"PROXY TCP4 10.0.0.1 10.0.0.2 40000 9092\r\n", "proxy protocol"),
    (b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c", "proxy protocol"),
    (pack(">iiqiqi", 44, 0, 0, 30_000, 0, 16) + b"\0" * 16, "zookeeper"),
    (b"ruok", "zookeeper"),
    (b"mntr\n", "zookeeper"),
    (b"ruokay\r\n", "text"),
    (b"\x4a\0\0\0\x0a8.0.36\0", "mysql"),
    (pack(">ii", 8, 80877103), "postgresql"),
    (b"*1\r\n$4\r\nPING\r\n", "redis"),
    (b"PING\r\n", "redis"),
    (b"-ERR unknown command\r\n", "redis"),
    (b"+OK POP3 server ready\r\n", "pop3"),
    (b"\x10\x15\0\4MQTT\4\2\0\x3c\0\x09client-12", "mqtt"),
    (b"\x10\x80\x01\0\6MQIsdp\3", "mqtt"),
    (b"AMQP\0\0\x09\1", "amqp"),
    (b"220 mail.example.org ESMTP\r\n", "smtp or ftp"),
    (b"NICK me\r\n", "text"),
    (b"\xde\xad\xbe\xef", "unknown"),
    (b"\x16\x03\x05\x00", "unknown"),
    (b"", "unknown"),
    (b"\0", "unknown"),
]


@pytest.mark.parametrize(("first", "name"), FIRST)
def test_a_protocol_is_named_by_its_first_bytes(first: bytes, name: str) -> None:
    assert guess_protocol(first) == name


@pytest.mark.parametrize(("first", "name"), FIRST)
def test_any_number_of_first_bytes_is_a_name_or_none(first: bytes, name: str) -> None:
    """Cut anywhere they give away less, nothing that is contrary to what follows but that it is text."""
    allowed = {name, "text", "unknown", {"pop3": "redis", "sip": "http", "rtsp": "http"}.get(name, name)}
    if first.startswith(b"ruok"):
        allowed.add("zookeeper")
    assert {guess_protocol(first[:at]) for at in range(len(first))} <= allowed


def test_an_alert_says_what_it_is_about() -> None:
    """RFC 8446, section 6: handshake_failure is 40, internal_error 80; nobody knows 250."""
    alert = b"\x15\x03\x03\x00\x02\x02"
    assert response_protocol(alert + b"\x28") == ("tls", "handshake_failure")
    assert response_protocol(alert + b"\x50") == ("tls", "internal_error")
    assert response_protocol(alert) == ("tls", None)
    assert response_protocol(b"\x16\x03\x03\x00\x02\x02\x28") == ("tls", None)
    assert response_protocol(b"HTTP/1.1 400 Bad Request\r\n") == ("http", None)
    assert response_protocol(b"\xde\xad\xbe\xef") is None


def test_only_a_whole_alert_and_a_status_line_are_sure_anywhere() -> None:
    """In the middle of a stream other bytes look like text or records by chance."""
    alert = b"\x15\x03\x03\x00\x02\x02\x28"
    assert is_certain_response(alert) and is_certain_response(b"HTTP/1.1 400 Bad Request\r\n")
    for first in (b"", alert[:6], alert + b"\0", b"HTTP/1.1", b"HTTP/1.1 sings", b"220 mail ESMTP\r\n", b"text\r\n"):
        assert not is_certain_response(first)


@pytest.mark.parametrize(("size", "session"), [(44, True), (45, True), (36, False), (37, False)])
def test_zookeeper_is_told_by_the_password_of_its_session(size: int, session: bool) -> None:
    """Sixteen bytes, in the request behind two times and an id, in the answer behind a time and an id."""
    front = pack(">iiqiqi", size, 0, 0, 30_000, 0, 16) if session else pack(">iiiqi", size, 0, 30_000, 9, 16)
    assert is_zookeeper(front + b"\0" * 16)
    assert not is_zookeeper(front[:28])
    assert not is_zookeeper(pack(">i", size + 9) + front[4:] + b"\0" * 16)


def test_a_kerberos_token_is_told_by_its_object_identifier() -> None:
    """1.2.840.113554.1.2.2, in the first bytes of an initial token (RFC 2743, section 3.1)."""
    token = b"\x60\x82\x02\x40\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01\x00"
    assert is_gssapi_token(token)
    assert not is_gssapi_token(b"\x61" + token[1:])
    assert not is_gssapi_token(token.replace(b"\x2a", b"\x2b"))
    assert not is_gssapi_token(b"")


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([1, 2, 3], True),
        ([7, 9, 40], True),
        ([1, 2], False),
        ([3, 2, 1], False),
        ([1, 2, 5000], False),
        ([0, 0, 0], False),
    ],
)
def test_responses_alone_are_known_by_their_lengths_and_rising_correlation_ids(ids: list[int], expected: bool) -> None:
    """Three that rise by little; behind bytes of one that began before the capture, in the segment after them."""
    row = b"".join(pack(">ii", 10, one) + b"\0" * 6 for one in ids)
    assert reads_like_responses(row, [0]) is expected
    assert reads_like_responses(b"the rest of one" + row, [0, 15]) is expected
    assert not reads_like_responses(b"the rest of one" + row, [0])
