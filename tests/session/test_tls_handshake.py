"""The plaintext front of one direction of TLS: what is read from hellos made by hand, and when it is over."""

from __future__ import annotations

from struct import pack

import pytest

from kwiresniff.session.tls_handshake import MAX_HANDSHAKE_BYTES, MAX_PROTOCOLS, HandshakeParser
from tests.support.tls_conversation import TlsTalk

CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, APPLICATION_DATA = 20, 21, 22, 23
CLIENT_HELLO, SERVER_HELLO, CERTIFICATE, CERTIFICATE_REQUEST, SERVER_HELLO_DONE = 1, 2, 11, 13, 14
#: TLS_AES_128_GCM_SHA256 and TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, by IANA's numbers.
AES_128_GCM, ECDHE_AES_128_GCM = 0x1301, 0xC02F


def vector(size: int, data: bytes) -> bytes:
    return len(data).to_bytes(size, "big") + data


def record(kind: int, data: bytes) -> bytes:
    return pack(">BH", kind, 0x0303) + vector(2, data)


def message(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + vector(3, body)


def extensions(**named: bytes) -> bytes:
    numbers = {"server_name": 0, "protocols": 16, "versions": 43, "other": 0xFE0D}
    return vector(2, b"".join(pack(">H", numbers[name]) + vector(2, data) for name, data in named.items()))


def client_hello(with_extensions: bytes = b"") -> bytes:
    front = pack(">H", 0x0303) + b"r" * 32 + vector(1, b"s" * 32)
    return message(CLIENT_HELLO, front + vector(2, pack(">H", AES_128_GCM)) + vector(1, b"\0") + with_extensions)


def server_hello(cipher: int = ECDHE_AES_128_GCM, with_extensions: bytes = b"") -> bytes:
    front = pack(">H", 0x0303) + b"r" * 32 + vector(1, b"s" * 32)
    return message(SERVER_HELLO, front + pack(">H", cipher) + b"\0" + with_extensions)


def host(name: bytes) -> bytes:
    return vector(2, b"\0" + vector(2, name))


def protocols(*names: bytes) -> bytes:
    return vector(2, b"".join(vector(1, name) for name in names))


def fed(*records: bytes) -> HandshakeParser:
    front = HandshakeParser()
    for data in records:
        front.feed(data)
    return front


def test_a_client_says_whom_it_wants_and_what_it_can_speak() -> None:
    """Among extensions that nobody asks for (RFC 6066, section 3; RFC 7301)."""
    wishes = extensions(other=b"\1\2\3", server_name=host(b"broker-1.test"), protocols=protocols(b"h2", b"http/1.1"))
    front = fed(record(HANDSHAKE, client_hello(wishes)))
    assert front.hello and not front.done
    assert (front.server_name, front.offered) == ("broker-1.test", ["h2", "http/1.1"])
    assert (front.version, front.cipher, front.protocol) == (None, None, None)


def test_a_hello_without_extensions_is_a_hello() -> None:
    front = fed(record(HANDSHAKE, client_hello()))
    assert front.hello and front.server_name is None and front.offered is None


def test_a_server_chooses() -> None:
    """In TLS 1.2 in its hello, and what follows is read on."""
    front = fed(record(HANDSHAKE, server_hello(with_extensions=extensions(protocols=protocols(b"h2")))))
    assert front.hello and not front.done
    assert (front.version_name, front.cipher) == ("TLSv1.2", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256")
    assert front.protocol == "h2"


def test_a_server_of_tls_1_3_says_so_in_an_extension_and_is_read_no_further() -> None:
    """What follows its hello is encrypted (RFC 8446, section 4.2.1)."""
    hello = server_hello(AES_128_GCM, extensions(versions=pack(">H", 0x0304)))
    front = fed(record(HANDSHAKE, hello), record(HANDSHAKE, message(SERVER_HELLO_DONE, b"")))
    assert front.done
    assert (front.version_name, front.cipher) == ("TLSv1.3", "TLS_AES_128_GCM_SHA256")


def test_messages_may_begin_and_end_anywhere_in_records() -> None:
    """Two in one record, one in several, in pieces of any size."""
    hello = server_hello()
    rest = message(CERTIFICATE, vector(3, b"")) + message(CERTIFICATE_REQUEST, b"??") + message(SERVER_HELLO_DONE, b"")
    for cut in range(1, len(hello + rest)):
        said = record(HANDSHAKE, (hello + rest)[:cut]) + record(HANDSHAKE, (hello + rest)[cut:])
        for size in (1, 10, len(said)):
            front = fed(*[said[at : at + size] for at in range(0, len(said), size)])
            assert (front.done, front.sent_certificate) == (False, False)
            assert front.certificate == []


@pytest.mark.parametrize("kind", [CHANGE_CIPHER_SPEC, APPLICATION_DATA])
def test_it_is_over_when_encryption_begins(kind: int) -> None:
    """By the header of the record, before its end."""
    front = fed(record(HANDSHAKE, client_hello()), record(kind, b"\1")[:5])
    assert front.done and front.encrypted


def test_an_alert_in_the_clear_is_the_end() -> None:
    """unknown_ca is 48 (RFC 8446, section 6.2); an encrypted alert is longer and says nothing."""
    assert fed(record(ALERT, b"\2\x30")).alert == "unknown_ca"
    encrypted = fed(record(ALERT, b"x" * 26))
    assert encrypted.done and encrypted.alert is None


def test_what_is_no_record_or_no_hello_is_the_end() -> None:
    """Bytes that do not fit are not guessed at."""
    assert fed(b"GET / HTTP/1.1\r\n").done
    for broken in (client_hello()[:10], message(CLIENT_HELLO, b"\3\3"), message(SERVER_HELLO, b"\3\3" + b"r" * 40)):
        front = fed(record(HANDSHAKE, broken + b"\0" * (4 - len(broken) % 4)))
        assert not front.hello


def test_what_is_read_is_bounded() -> None:
    """A message that never ends, and protocols without end."""
    front = HandshakeParser()
    endless = pack(">B", CLIENT_HELLO) + b"\xff\xff\xff"
    fed_bytes = 0
    while not front.done:
        piece = record(HANDSHAKE, endless + b"x" * 10_000)
        endless = b""
        front.feed(piece)
        fed_bytes += len(piece)
    assert MAX_HANDSHAKE_BYTES <= fed_bytes <= MAX_HANDSHAKE_BYTES + 11_000
    many = fed(record(HANDSHAKE, client_hello(extensions(protocols=protocols(*[b"p%d" % n for n in range(100)])))))
    assert many.offered == [f"p{n}" for n in range(MAX_PROTOCOLS)]


def test_nothing_is_kept_when_it_is_over() -> None:
    """Not of what came, nor of what comes."""
    front = fed(record(HANDSHAKE, server_hello())[:-5], b"x" * 5, record(ALERT, b"\2\x28") + b"x" * 1000)
    front.feed(b"y" * 1000)
    assert front.done
    assert not front._buffer and not front._messages


def test_openssls_first_flight_is_read_byte_by_byte() -> None:
    """The name and the protocols that its client was told to ask for."""
    flight = TlsTalk(protocols=(["h2"], ["h2"])).shake().flights[0][1]
    front = fed(*[flight[at : at + 1] for at in range(len(flight))])
    assert (front.hello, front.server_name, front.offered) == (True, "broker-1.test", ["h2"])
