"""The names in an X.509 certificate: the subject's common name and its DNS names.

Source: RFC 5280 (sections 4.1, 4.2.1.6) and the distinguished encoding rules, X.690. Nothing is verified; only the
way to the two places with names is walked, a fixed number of levels deep.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.session.der import Element, elements

#: Names reported of one certificate. Some name hundreds of hosts; who the server is shows in the first few.
MAX_NAMES = 32
#: The longest name reported, RFC 1035's limit for a host name.
MAX_NAME_BYTES = 255

_SEQUENCE, _EXTENSIONS, _OCTETS, _OBJECT_ID = 0x30, 0xA3, 0x04, 0x06
_EXPLICIT_VERSION = 0xA0
_DNS_NAME = 0x82
_COMMON_NAME = b"\x55\x04\x03"
_SUBJECT_ALT_NAME = b"\x55\x1d\x11"


def certificate_names(certificate: bytes) -> list[str]:
    """The common name, then the DNS names, none twice; as far as ``certificate`` (DER) can be read."""
    names: dict[str, None] = {}
    for raw in _raw_names(certificate):
        if 0 < len(raw) <= MAX_NAME_BYTES:
            names[raw.decode("utf-8", "backslashreplace")] = None
        if len(names) == MAX_NAMES:
            break
    return list(names)


def _raw_names(data: bytes) -> Iterator[bytes]:
    fields = [
        field
        for _, start, end in list(elements(data, 0, len(data)))[:1]
        for _, inner, stop in list(elements(data, start, end))[:1]
        for field in elements(data, inner, stop)
    ]
    if fields and fields[0][0] == _EXPLICIT_VERSION:
        del fields[0]
    if len(fields) < 5:  # serial number, signature, issuer, validity, subject
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
        yield from (data[at:to] for tag, at, to in elements(data, start, end) if tag == _DNS_NAME)
