"""What an X.509 certificate says: the subject's common name, its DNS names and addresses, until when it holds.

Source: RFC 5280 (sections 4.1, 4.1.2.5, 4.2.1.6) and the distinguished encoding rules, X.690. Nothing is verified; only
the way to these places is walked, a fixed number of levels deep.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from ipaddress import ip_address

from kwiresniff.session.der import Element, elements

#: Names reported of one certificate. Some name hundreds of hosts; who the server is shows in the first few.
MAX_NAMES = 32
#: The longest name reported, RFC 1035's limit for a host name.
MAX_NAME_BYTES = 255

_SEQUENCE, _EXTENSIONS, _OCTETS, _OBJECT_ID = 0x30, 0xA3, 0x04, 0x06
_EXPLICIT_VERSION = 0xA0
_DNS_NAME, _ADDRESS = 0x82, 0x87
#: The two forms of a time; that with two digits for the year means 1950 to 2049.
_TIMES = {0x17: "%y%m%d%H%M%SZ", 0x18: "%Y%m%d%H%M%SZ"}
_COMMON_NAME = b"\x55\x04\x03"
_SUBJECT_ALT_NAME = b"\x55\x1d\x11"


def certificate_names(certificate: bytes) -> list[str]:
    """The common name, then the DNS names and IP addresses, none twice; as far as ``certificate`` (DER) can be read."""
    names: dict[str, None] = {}
    for raw in _raw_names(certificate):
        if 0 < len(raw) <= MAX_NAME_BYTES:
            names[raw.decode("utf-8", "backslashreplace")] = None
        if len(names) == MAX_NAMES:
            break
    return list(names)


def not_after(certificate: bytes) -> str | None:
    """Until when ``certificate`` (DER) holds, as ``2026-01-02T03:04:05Z``; None where that cannot be read."""
    fields = _fields(certificate)
    times = list(elements(certificate, *fields[3][1:])) if fields else []
    if len(times) != 2 or times[1][0] not in _TIMES:
        return None
    kind, start, end = times[1]
    try:
        ends = datetime.strptime(certificate[start:end].decode("ascii"), _TIMES[kind])
    except ValueError:
        return None
    if kind == 0x17 and ends.year >= 2050:
        ends = ends.replace(year=ends.year - 100)
    return ends.isoformat() + "Z"


def _fields(data: bytes) -> list[Element]:
    """Serial number, signature, issuer, validity, subject and what follows; none where they cannot be read."""
    fields = [
        field
        for _, start, end in list(elements(data, 0, len(data)))[:1]
        for _, inner, stop in list(elements(data, start, end))[:1]
        for field in elements(data, inner, stop)
    ]
    if fields and fields[0][0] == _EXPLICIT_VERSION:
        del fields[0]
    return fields if len(fields) >= 5 else []


def _raw_names(data: bytes) -> Iterator[bytes]:
    fields = _fields(data)
    if not fields:
        return
    for _, start, end in elements(data, *fields[4][1:]):
        for _, inner, stop in elements(data, start, end):
            pair = list(elements(data, inner, stop))
            if len(pair) == 2 and pair[0][0] == _OBJECT_ID and data[pair[0][1] : pair[0][2]] == _COMMON_NAME:
                yield data[pair[1][1] : pair[1][2]]
    for tag, start, end in fields[5:]:
        if tag == _EXTENSIONS:
            for _, inner, stop in list(elements(data, start, end))[:1]:
                for _, at, to in elements(data, inner, stop):
                    yield from _alternative_names(data, list(elements(data, at, to)))


def _alternative_names(data: bytes, extension: list[Element]) -> Iterator[bytes]:
    if not extension or extension[0][0] != _OBJECT_ID or extension[-1][0] != _OCTETS:
        return
    if data[extension[0][1] : extension[0][2]] != _SUBJECT_ALT_NAME:
        return
    for _, start, end in list(elements(data, *extension[-1][1:]))[:1]:
        for tag, at, to in elements(data, start, end):
            if tag == _DNS_NAME:
                yield data[at:to]
            elif tag == _ADDRESS and to - at in (4, 16):
                yield str(ip_address(data[at:to])).encode()
