"""Where TLS records begin, by their headers; every connection is checked for them, so this is all that is read here.

The layout of a header is in ``kwiresniff.base.tls_record``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwiresniff.base.fastint import u16
from kwiresniff.base.tls_record import (
    APPLICATION_DATA,
    CHANGE_CIPHER_SPEC,
    CLIENT_HELLO,
    HANDSHAKE,
    MAX_RECORD_BYTES,
    RECORD_HEADER_BYTES,
    SERVER_HELLO,
)
from kwiresniff.stream.resync_buffer import ResyncBuffer

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Segments looked at for the start of a record, so that thousands of tiny ones cost no more.
MAX_STARTS = 64


def is_record(data: bytes, offset: i64) -> bool:
    """Whether a record's header may be at ``offset``."""
    if len(data) - offset < RECORD_HEADER_BYTES or not CHANGE_CIPHER_SPEC <= data[offset] <= APPLICATION_DATA:
        return False
    return data[offset + 1] == 3 and 0 < record_length(data, offset) <= MAX_RECORD_BYTES


def record_length(data: bytes, offset: i64) -> i64:
    """The length of the record at ``offset``, without its header."""
    return u16(data, offset + 3)


def hello_sender(data: bytes, offset: i64) -> int:
    """The sender of the hello in the record at ``offset``: 1 the client, -1 the server, 0 for no hello."""
    if len(data) <= offset + RECORD_HEADER_BYTES or data[offset] != HANDSHAKE:
        return 0
    message = data[offset + RECORD_HEADER_BYTES]
    return 1 if message == CLIENT_HELLO else -1 if message == SERVER_HELLO else 0


def find_records(buffer: ResyncBuffer) -> int:
    """The offset of a row of TLS records, or -1: one that begins with a segment and ends with the buffer, or twice with
    a segment.
    """
    data = buffer.data
    length: i64 = len(data)
    starts: list[int] | None = None  # of segments; most hold no record
    for mark in buffer.marks[:MAX_STARTS]:
        start = mark[0]
        at: i64 = start
        joined = 0
        while is_record(data, at):
            if starts is None:
                starts = buffer.starts()[:MAX_STARTS]
            joined += 1
            at += RECORD_HEADER_BYTES + record_length(data, at)
            if joined > 2 or at in starts or at == length:
                return start
    return -1
