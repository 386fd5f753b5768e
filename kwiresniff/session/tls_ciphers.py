"""Ciphers of TLS records: what opens a record, given its number.

Sources: RFC 8446 (section 5.2), RFC 5246 (6.2.3), RFC 5288 (GCM), RFC 6655 (CCM), RFC 7905 (ChaCha20-Poly1305), RFC
7366 (encrypt-then-MAC). Importing this loads ``cryptography``, so it is done when the first record is opened.
"""

from __future__ import annotations

import hmac
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC

from kwiresniff.base.tls_record import APPLICATION_DATA, HANDSHAKE
from kwiresniff.session.tls_cipher import RecordCipher
from kwiresniff.session.tls_suites import CBC_MODE, CCM_8_MODE, CCM_MODE, CHACHA, Suite

_EXPLICIT_BYTES = 8
_BLOCK_BYTES = 16


def _aead(suite: Suite, key: bytes) -> Any:
    if suite.mode == CHACHA:
        return ChaCha20Poly1305(key)
    if suite.mode in (CCM_MODE, CCM_8_MODE):
        return AESCCM(key, suite.tag_bytes)
    return AESGCM(key)


class Tls13Cipher(RecordCipher):
    """AEAD of TLS 1.3: the record's number is in the nonce, its type is the last byte inside that is not zero."""

    def __init__(self, suite: Suite, key: bytes, iv: bytes) -> None:
        super().__init__(suite.tag_bytes + 1, False)
        self._iv = int.from_bytes(iv, "big")
        self._decrypt = _aead(suite, key).decrypt

    def open(self, number: int, header: bytes, body: bytes) -> bytes | None:
        try:
            inner: bytes = self._decrypt((self._iv ^ number).to_bytes(12, "big"), body, header)
        except (InvalidTag, ValueError):
            return None
        if inner and inner[-1] == APPLICATION_DATA:
            return inner[:-1]
        inner = inner.rstrip(b"\0")
        return inner[:-1] if inner and inner[-1] == APPLICATION_DATA else b""

    def handshake(self, number: int, header: bytes, body: bytes) -> bytes:
        try:
            inner: bytes = self._decrypt((self._iv ^ number).to_bytes(12, "big"), body, header).rstrip(b"\0")
        except (InvalidTag, ValueError):
            return b""
        return inner[:-1] if inner and inner[-1] == HANDSHAKE else b""


class Tls12Aead(RecordCipher):
    """AEAD of TLS 1.2: the record's number is in what is authenticated besides."""

    def __init__(self, suite: Suite, key: bytes, iv: bytes) -> None:
        counts = suite.mode != CHACHA
        super().__init__(suite.tag_bytes + (_EXPLICIT_BYTES if counts else 0), counts)
        self._salt = iv
        self._iv = int.from_bytes(iv, "big")
        self._decrypt = _aead(suite, key).decrypt

    def open(self, number: int, header: bytes, body: bytes) -> bytes | None:
        size = len(body) - self.overhead
        if size < 0:
            return None
        if self.counts:
            nonce, sealed = self._salt + body[:_EXPLICIT_BYTES], body[_EXPLICIT_BYTES:]
        else:
            nonce, sealed = (self._iv ^ number).to_bytes(12, "big"), body
        more = number.to_bytes(8, "big") + header[:3] + size.to_bytes(2, "big")
        try:
            data: bytes = self._decrypt(nonce, sealed, more)
        except (InvalidTag, ValueError):
            return None
        return data if header[0] == APPLICATION_DATA else b""


class Tls12Cbc(RecordCipher):
    """AES-CBC of TLS 1.2 with an HMAC, which is inside what is encrypted, or behind it (encrypt-then-MAC)."""

    def __init__(self, suite: Suite, key: bytes, mac_key: bytes, mac_behind: bool) -> None:
        super().__init__(-1, False)
        self._aes = AES(key)
        self._mac_key = mac_key
        self._mac = suite.mac
        self._mac_bytes = suite.mac_bytes
        self._mac_behind = mac_behind

    def open(self, number: int, header: bytes, body: bytes) -> bytes | None:
        end = len(body) - (self._mac_bytes if self._mac_behind else 0)
        if end < 2 * _BLOCK_BYTES or end % _BLOCK_BYTES:
            return None
        if self._mac_behind and not self._is_right(number, header, body[:end], body[end:]):
            return None
        decryptor = Cipher(self._aes, CBC(body[:_BLOCK_BYTES])).decryptor()
        data = decryptor.update(body[_BLOCK_BYTES:end]) + decryptor.finalize()
        size = len(data) - data[-1] - 1
        if not self._mac_behind:
            size -= self._mac_bytes
            if size < 0 or not self._is_right(number, header, data[:size], data[size : size + self._mac_bytes]):
                return None
        return data[: max(size, 0)] if header[0] == APPLICATION_DATA else b""

    def _is_right(self, number: int, header: bytes, data: bytes, mac: bytes) -> bool:
        whole = number.to_bytes(8, "big") + header[:3] + len(data).to_bytes(2, "big") + data
        return hmac.compare_digest(hmac.digest(self._mac_key, whole, self._mac), mac)


def expand_label(hash_name: str, secret: bytes, label: str, size: int) -> bytes:
    """HKDF-Expand-Label without a context (RFC 8446, section 7.1); ``size`` is at most one output of the hash."""
    name = b"tls13 " + label.encode()
    info = size.to_bytes(2, "big") + bytes([len(name)]) + name + b"\0"
    return hmac.digest(secret, info + b"\1", hash_name)[:size]


def tls13_cipher(suite: Suite, secret: bytes) -> RecordCipher:
    """The cipher of a traffic secret (RFC 8446, section 7.3)."""
    key = expand_label(suite.hash, secret, "key", suite.key_bytes)
    return Tls13Cipher(suite, key, expand_label(suite.hash, secret, "iv", 12))


def updated(suite: Suite, secret: bytes, times: int) -> bytes:
    """The traffic secret after so many key updates (RFC 8446, section 7.2)."""
    for _ in range(times):
        secret = expand_label(suite.hash, secret, "traffic upd", len(secret))
    return secret


def tls12_ciphers(
    suite: Suite, master: bytes, client_random: bytes, server_random: bytes, mac_behind: bool
) -> tuple[RecordCipher, RecordCipher]:
    """The ciphers of both directions, the client's first (RFC 5246, section 6.3)."""
    sizes = (suite.mac_key_bytes, suite.key_bytes, suite.iv_bytes)
    block = _prf(suite.hash, master, b"key expansion" + server_random + client_random, 2 * sum(sizes))
    parts, at = [], 0
    for size in sizes:
        parts.append((block[at : at + size], block[at + size : at + 2 * size]))
        at += 2 * size

    def cipher(side: int) -> RecordCipher:
        mac_key, key, iv = (part[side] for part in parts)
        return Tls12Cbc(suite, key, mac_key, mac_behind) if suite.mode == CBC_MODE else Tls12Aead(suite, key, iv)

    return cipher(0), cipher(1)


def _prf(hash_name: str, secret: bytes, seed: bytes, size: int) -> bytes:
    """P_hash (RFC 5246, section 5)."""
    found, chained = b"", seed
    while len(found) < size:
        chained = hmac.digest(secret, chained, hash_name)
        found += hmac.digest(secret, chained + seed, hash_name)
    return found[:size]
