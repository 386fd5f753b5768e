"""Where TLS records begin, by their headers; every connection is checked for them, so this is all that is read here.

The layout of a header is in ``kwiresniff.base.tls_record``.
"""

from __future__ import annotations

from kwiresniff.base.tls_record import (
    APPLICATION_DATA,
    CHANGE_CIPHER_SPEC,
    CLIENT_HELLO,
    HANDSHAKE,
    MAX_RECORD_BYTES,
    RECORD_HEADER_BYTES,
    SERVER_HELLO,
    record_header,
)
from kwiresniff.stream.resync_buffer import ResyncBuffer

#: Segments that are looked at for the start of a record. A buffer of usual segments has fewer; tiny ones by the
#: thousand must not make each look at it dearer.
MAX_STARTS = 64


def is_record(data: bytes | bytearray, offset: int) -> bool:
    """Whether a record's header may be at ``offset``."""
    if len(data) - offset < RECORD_HEADER_BYTES or not CHANGE_CIPHER_SPEC <= data[offset] <= APPLICATION_DATA:
        return False
    _, version, length = record_header(data, offset)
    return bool(version >> 8 == 3 and 0 < length <= MAX_RECORD_BYTES)


def hello_sender(data: bytes | bytearray, offset: int) -> int:
    """Who sent the hello in the record at ``offset``: 1 the client, -1 the server, 0 when it is no hello."""
    if len(data) <= offset + RECORD_HEADER_BYTES or data[offset] != HANDSHAKE:
        return 0
    message = data[offset + RECORD_HEADER_BYTES]
    return 1 if message == CLIENT_HELLO else -1 if message == SERVER_HELLO else 0


def find_records(buffer: ResyncBuffer) -> int:
    """Offset in a buffer of a row of TLS records, or -1.

    Believed is what begins with a segment and whose records join up until the end of the buffer, or of a segment, is
    the end of one, or twice.
    """
    data = buffer.data
    length = len(data)
    starts = [mark[0] for mark in buffer.marks[:MAX_STARTS]]
    for start in starts:
        at = start
        joined = 0
        while is_record(data, at):
            joined += 1
            at += RECORD_HEADER_BYTES + record_header(data, at)[2]
            if joined > 2 or at in starts or at == length:
                return start
    return -1
