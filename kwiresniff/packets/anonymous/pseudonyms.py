"""Keyed pseudonyms: the same for the same, of the same length, and not to be told from others without the key.

Addresses keep the prefixes that they share: where two have their first n bits in common, and no more, so have their
pseudonyms (Xu, Fan, Ammar and Moon: Prefix-preserving IP address anonymization, 2002). Each bit is turned by a
keyed hash (BLAKE2b, RFC 7693) of the bits before it, where that paper has a block cipher.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import Final

from kwiresniff.base.known_ids import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_UUID
from kwiresniff.codec.embedded import INTERNAL_TOPICS

#: Addresses, texts and ids of which the pseudonyms are remembered, of each kind; others are worked out again.
MAX_REMEMBERED: Final = 50_000
#: What BLAKE2b takes as a key.
_KEY_BYTES: Final = 64
_FIRST: Final = b"abcdefghijklmnopqrstuvwxyzabcdef"
_OTHERS: Final = b"abcdefghijklmnopqrstuvwxyz012345"
_UUID_BYTES: Final = 16

#: Kafka's own words, which say nothing of who uses them: names of topics, protocols, assignors, states and features.
PUBLIC_WORDS: Final = frozenset({
    *INTERNAL_TOPICS, METADATA_TOPIC,
    "consumer", "connect", "share", "streams", "classic", "kafka",
    "range", "roundrobin", "sticky", "cooperative-sticky", "uniform", "simple", "stream", "sessioned", "compatible",
    "Stable", "Empty", "Dead", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "NotReady",
    "metadata.version", "kraft.version", "transaction.version", "group.version", "share.version", "streams.version",
    "eligible.leader.replicas.version",
    "PLAIN", "GSSAPI", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER",
    "PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL",
})  # fmt: skip
#: Ids that are the same in every cluster.
_PUBLIC_IDS: Final = frozenset({ZERO_UUID, METADATA_TOPIC_ID})


class Pseudonyms:
    """The pseudonyms of one run. The key is random unless one is given, and is kept nowhere."""

    def __init__(self, key: bytes | None = None) -> None:
        raw = os.urandom(_KEY_BYTES) if key is None else key
        self._key = raw if len(raw) <= _KEY_BYTES else blake2b(raw).digest()
        self._addresses: dict[bytes, bytes] = {}
        self._texts: dict[bytes, bytes] = {}
        self._ids: dict[bytes, bytes] = {}

    def address(self, address: bytes) -> bytes:
        """The pseudonym of an IPv4 or IPv6 address."""
        found = self._addresses.get(address)
        if found is None:
            found = _remember(self._addresses, address, self._turned(address))
        return found

    def mac(self, address: bytes) -> bytes:
        """An Ethernet address for an IP address: a local one of a single station."""
        return b"\x02" + self._digest(b"mac", address, 5)

    def text(self, raw: bytes) -> bytes:
        """Letters and digits for a text, as many as it has bytes; Kafka's own words stay."""
        if not raw:
            return raw
        found = self._texts.get(raw)
        if found is None:
            found = _remember(self._texts, raw, self._letters(raw))
        return found

    def uuid(self, raw: bytes, text: str) -> bytes:
        """An id for the 16 bytes of another, which is ``text`` as Kafka prints it."""
        if text in _PUBLIC_IDS:
            return raw
        found = self._ids.get(raw)
        if found is None:
            found = _remember(self._ids, raw, self._digest(b"id", raw, _UUID_BYTES))
        return found

    def _letters(self, raw: bytes) -> bytes:
        if raw.decode("utf-8", "replace") in PUBLIC_WORDS:
            return raw
        stream = bytearray()
        while len(stream) < len(raw):
            stream += self._digest(b"text %d" % len(stream), raw, _KEY_BYTES)
        rest = bytes(_OTHERS[byte & 31] for byte in stream[1 : len(raw)])
        return bytes((_FIRST[stream[0] & 31],)) + rest

    def _turned(self, address: bytes) -> bytes:
        bits = 8 * len(address)
        number, turned = int.from_bytes(address, "big"), 0
        for place in range(bits):
            before = number >> (bits - place)
            seed = before.to_bytes(len(address), "big")
            turned = turned << 1 | (self._digest(b"bit %d of %d" % (place, bits), seed, 1)[0] & 1)
        return (number ^ turned).to_bytes(len(address), "big")

    def _digest(self, use: bytes, data: bytes, size: int) -> bytes:
        return blake2b(use + b"\0" + data, digest_size=size, key=self._key).digest()


def _remember(table: dict[bytes, bytes], raw: bytes, pseudonym: bytes) -> bytes:
    if len(table) >= MAX_REMEMBERED:
        table.clear()
    table[raw] = pseudonym
    return pseudonym
