"""The header of a TLS record: type, version, 16-bit length, big-endian (RFC 8446, section 5.1; RFC 5246, 6.2.1)."""

from __future__ import annotations

from typing import Final

RECORD_HEADER_BYTES: Final = 5
#: The largest record: 16 KiB and what TLS 1.2 allows encryption to add.
MAX_RECORD_BYTES: Final = 16_384 + 2_048

#: Types of records.
CHANGE_CIPHER_SPEC: Final = 20
ALERT: Final = 21
HANDSHAKE: Final = 22
APPLICATION_DATA: Final = 23

#: Types of the handshake messages that begin a connection.
CLIENT_HELLO: Final = 1
SERVER_HELLO: Final = 2
