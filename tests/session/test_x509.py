"""The names in a certificate, as far as it can be read: made by a small encoder of X.690, and by OpenSSL."""

from __future__ import annotations

import random
import ssl
from datetime import datetime
from typing import Any

from kwiresniff.session.x509 import MAX_NAME_BYTES, MAX_NAMES, certificate_names, not_after
from tests.support.tls_conversation import DATA

SEQUENCE, SET, INTEGER, OCTETS, OBJECT_ID, UTF8 = 0x30, 0x31, 0x02, 0x04, 0x06, 0x0C
COMMON_NAME, ORGANIZATION = b"\x55\x04\x03", b"\x55\x04\x0a"
SUBJECT_ALT_NAME, KEY_USAGE = b"\x55\x1d\x11", b"\x55\x1d\x0f"
MAIL, DNS, ADDRESS = 0x81, 0x82, 0x87


def element(tag: int, *contents: bytes) -> bytes:
    """Tag, length, contents (X.690, section 8.1)."""
    data = b"".join(contents)
    size = len(data)
    if size < 0x80:
        return bytes([tag, size]) + data
    octets = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(octets)]) + octets + data


def name(*parts: tuple[bytes, bytes]) -> bytes:
    """A distinguished name (RFC 5280, section 4.1.2.4)."""
    return element(
        SEQUENCE,
        *[element(SET, element(SEQUENCE, element(OBJECT_ID, kind), element(UTF8, value))) for kind, value in parts],
    )


def extension(kind: bytes, value: bytes, *, critical: bool = False) -> bytes:
    return element(SEQUENCE, element(OBJECT_ID, kind), b"\x01\x01\xff" if critical else b"", element(OCTETS, value))


def certificate(subject: bytes, *extensions: bytes, version: bool = True, validity: bytes = b"\x30\0") -> bytes:
    """RFC 5280, section 4.1, with whatever of it has no names left empty."""
    fields = [
        element(0xA0, element(INTEGER, b"\2")) if version else b"",
        element(INTEGER, b"\x7f"),
        element(SEQUENCE),
        name((COMMON_NAME, b"the issuer, who is not asked")),
        validity,
        subject,
        element(SEQUENCE),
        element(0xA3, element(SEQUENCE, *extensions)) if extensions else b"",
    ]
    return element(SEQUENCE, element(SEQUENCE, *fields), element(SEQUENCE), element(0x03, b"\0" * 64))


def alternatives(*hosts: bytes) -> bytes:
    return extension(SUBJECT_ALT_NAME, element(SEQUENCE, *[element(DNS, host) for host in hosts]))


def test_the_common_name_comes_first_then_the_hosts_each_once() -> None:
    subject = name((ORGANIZATION, b"Example"), (COMMON_NAME, b"broker-1"))
    hosts = alternatives(b"broker-1", b"broker-1.test", b"*.kafka.test")
    assert certificate_names(certificate(subject, hosts)) == ["broker-1", "broker-1.test", "*.kafka.test"]


def test_other_extensions_and_other_kinds_of_names_are_passed_over() -> None:
    """A critical extension has a truth value between its identifier and its value."""
    usage = extension(KEY_USAGE, b"\x03\x02\x05\xa0", critical=True)
    value = element(SEQUENCE, element(MAIL, b"root@host.test"), element(DNS, b"host.test"))
    names = extension(SUBJECT_ALT_NAME, value, critical=True)
    assert certificate_names(certificate(name((ORGANIZATION, b"Example")), usage, names)) == ["host.test"]


def test_addresses_are_names_too() -> None:
    """Of version 4 and 6 (RFC 5280, section 4.2.1.6: four and sixteen bytes); others are none."""
    addresses = (b"\x0a\0\0\1", bytes(15) + b"\1", b"\x0a\0\0")
    value = element(SEQUENCE, *(element(ADDRESS, one) for one in addresses))
    whole = certificate(name((ORGANIZATION, b"Example")), extension(SUBJECT_ALT_NAME, value, critical=True))
    assert certificate_names(whole) == ["10.0.0.1", "::1"]


def test_a_certificate_of_version_1_has_no_version_and_no_extensions() -> None:
    assert certificate_names(certificate(name((COMMON_NAME, b"old")), version=False)) == ["old"]


def test_names_are_bounded_in_length_and_number() -> None:
    """What is too long or empty is left out; what is too many comes last."""
    subject = name((COMMON_NAME, b"x" * (MAX_NAME_BYTES + 1)), (COMMON_NAME, b""))
    hosts = [b"%d.test" % number for number in range(MAX_NAMES + 50)]
    found = certificate_names(certificate(subject, alternatives(b"y" * MAX_NAME_BYTES, *hosts)))
    assert found == ["y" * MAX_NAME_BYTES, *[host.decode() for host in hosts[: MAX_NAMES - 1]]]


def test_a_name_that_is_no_text_is_shown_escaped() -> None:
    assert certificate_names(certificate(name((COMMON_NAME, b"k\xfchl")))) == [r"k\xfchl"]


def test_openssls_certificate_is_read() -> None:
    """The names that OpenSSL's own reader finds in it."""
    path = DATA / "broker.pem"
    text = path.read_text(encoding="ascii")
    text = (
        text[text.index("-----BEGIN CERTIFICATE") : text.index("-----END CERTIFICATE")] + "-----END CERTIFICATE-----\n"
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(path)
    known: dict[str, Any] = (context.get_ca_certs() or [{}])[0]
    expected = [value for part in known.get("subject", ()) for kind, value in part if kind == "commonName"]
    expected += [value for kind, value in known.get("subjectAltName", ()) if kind in ("DNS", "IP Address")]
    found = certificate_names(ssl.PEM_cert_to_DER_cert(text))
    assert found and (not expected or found == list(dict.fromkeys(expected)))
    until = not_after(ssl.PEM_cert_to_DER_cert(text))
    assert until is not None
    seconds = datetime.fromisoformat(until).timestamp()
    assert "notAfter" not in known or seconds == ssl.cert_time_to_seconds(known["notAfter"])


def test_until_when_a_certificate_holds_is_told_in_both_forms_of_a_time() -> None:
    """RFC 5280, section 4.1.2.5: two digits of the year are 1950 to 2049, four are any; what is no time is none."""
    for kind, text, expected in (
        (0x17, b"250630235959Z", "2025-06-30T23:59:59Z"),
        (0x17, b"500101000000Z", "1950-01-01T00:00:00Z"),
        (0x17, b"491231235959Z", "2049-12-31T23:59:59Z"),
        (0x18, b"20991231235959Z", "2099-12-31T23:59:59Z"),
        (0x18, b"20991331235959Z", None),
        (0x18, b"\xff" * 15, None),
        (0x04, b"250630235959Z", None),
    ):
        validity = element(SEQUENCE, element(0x17, b"240101000000Z"), element(kind, text))
        assert not_after(certificate(name((COMMON_NAME, b"broker-1")), validity=validity)) == expected
    assert not_after(b"") is None


def test_bytes_that_are_no_certificate_have_the_names_that_can_be_read() -> None:
    """Cut anywhere, with any byte another one, and noise: names or none, no exception."""
    whole = certificate(name((COMMON_NAME, b"broker-1")), alternatives(b"broker-1.test"))
    assert all(set(certificate_names(whole[:at])) <= {"broker-1", "broker-1.test"} for at in range(len(whole)))
    for at in range(len(whole)):
        for value in (0, 0x30, 0x7F, 0x80, 0x84, 0xFF):
            assert len(certificate_names(whole[:at] + bytes([value]) + whole[at + 1 :])) <= MAX_NAMES
    made = random.Random(1)
    for size in range(300):
        assert len(certificate_names(made.randbytes(size))) <= MAX_NAMES
