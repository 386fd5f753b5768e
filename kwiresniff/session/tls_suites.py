"""Cipher suites whose records can be opened: what their names say of keys, hashes and MACs.

Sources: RFC 8446 (appendix B.4), RFC 5246 (appendix C), RFC 5288, RFC 5289, RFC 6655, RFC 7251, RFC 7905.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from kwiresniff.session.tls_names import cipher_suite_name

CCM_MODE, CCM_8_MODE, CBC_MODE, CHACHA = "CCM", "CCM_8", "CBC", "POLY1305"
_NAME = re.compile(r"TLS_(?:\w+_WITH_)?(?:AES_(128|256)_(GCM|CBC|CCM_8|CCM)|CHACHA20_(POLY1305))(?:_(SHA\d*))?\Z")
_MACS = {"SHA": ("sha1", 20), "SHA256": ("sha256", 32), "SHA384": ("sha384", 48)}


class Suite(NamedTuple):
    """A cipher suite: ``hash`` of the key schedule and ``mac`` of records by hashlib's names, sizes in bytes."""

    mode: str
    key_bytes: int
    iv_bytes: int
    tag_bytes: int
    hash: str
    mac: str
    mac_bytes: int

    @property
    def mac_key_bytes(self) -> int:
        """As long as the MAC itself."""
        return self.mac_bytes


@cache
def suite_of(number: int) -> Suite | None:
    """The suite with this number (IANA), or None when its records cannot be opened."""
    found = _NAME.match(cipher_suite_name(number))
    if found is None:
        return None
    bits, mode, chacha, mac = found.groups()
    hash_name = "sha384" if mac == "SHA384" else "sha256"
    if mode == CBC_MODE:
        name, size = _MACS[mac or "SHA"]
        return Suite(CBC_MODE, int(bits) // 8, 0, 0, hash_name, name, size)
    key_bytes = 32 if chacha else int(bits) // 8
    return Suite(mode or chacha, key_bytes, 12 if chacha else 4, 8 if mode == CCM_8_MODE else 16, hash_name, "", 0)


#: The suites of TLS 1.3 that clients and brokers offer unasked.
TLS_1_3_SUITES = (0x1302, 0x1301, 0x1303)


def tls13_suites(secret: bytes) -> list[int]:
    """The numbers of the suites of TLS 1.3 that a traffic secret of this length may belong to."""
    of_length = {"sha256": 32, "sha384": 48}
    suites = ((number, suite_of(number)) for number in TLS_1_3_SUITES)
    return [number for number, suite in suites if suite is not None and of_length[suite.hash] == len(secret)]
