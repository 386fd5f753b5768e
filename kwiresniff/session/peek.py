"""The few fields that are read of every frame at every depth, so by hand. All are big-endian."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from kwiresniff import codec
from kwiresniff.base.api_keys import (
    ALTER_CONFIGS,
    ALTER_USER_SCRAM_CREDENTIALS,
    CREATE_TOPICS,
    ENVELOPE,
    EXPIRE_DELEGATION_TOKEN,
    INCREMENTAL_ALTER_CONFIGS,
    PRODUCE,
    RENEW_DELEGATION_TOKEN,
    SASL_AUTHENTICATE,
    STREAMS_GROUP_HEARTBEAT,
)
from kwiresniff.base.fastint import i16
from kwiresniff.errors import DecodeError, SchemaError
from kwiresniff.model import Body, Direction, Exchange, Problem
from kwiresniff.session.apis import read_version
from kwiresniff.stream.frame_handler import LOST_CUT, LOST_GAP, WITHHELD

if TYPE_CHECKING:
    from mypy_extensions import i64

_int16 = Struct(">h").unpack_from

#: Requests that may hold a secret: those that ``secrets`` conceals anything in.
SECRET_REQUESTS = frozenset({
    CREATE_TOPICS, ALTER_CONFIGS, SASL_AUTHENTICATE, RENEW_DELEGATION_TOKEN, EXPIRE_DELEGATION_TOKEN,
    INCREMENTAL_ALTER_CONFIGS, ALTER_USER_SCRAM_CREDENTIALS, ENVELOPE, STREAMS_GROUP_HEARTBEAT,
})  # fmt: skip
#: Requests of which a wrong length would move a secret, or a record, into the client id.
GUARDED_REQUESTS = SECRET_REQUESTS | {PRODUCE}


def missing_bytes(which: str, lost: int, size: int, code: str) -> Problem:
    """The problem of a frame with a gap in it; ``code`` is LOST_GAP, LOST_CUT or WITHHELD."""
    if code == LOST_CUT:
        what = f"{lost} of the {which}'s {size} bytes are cut off (snap length)"
        return Problem(LOST_GAP, what, None, which, None, None, {"missing_bytes": lost, "cut": True})
    if code == WITHHELD:
        what = f"{lost} of the {which}'s {size} bytes came in an earlier file and were not kept: they may be secrets"
        return Problem(LOST_GAP, what, None, which, None, None, {"missing_bytes": lost, "withheld": True})
    what = f"{lost} of the {which}'s {size} bytes are missing from the capture"
    return Problem(LOST_GAP, what, None, which, None, None, {"missing_bytes": lost})


def peek_body(exchange: Exchange, direction: Direction) -> Body | None:
    """The body of a message that every depth looks into, or None when it cannot be read."""
    message = exchange.request if direction == "request" else exchange.response
    if message is None or message.frame is None:
        return None
    try:
        version = read_version(exchange, direction)
        body, _ = codec.decoder(exchange.api_key, version, direction, "skip")(message.frame, message.body_offset, [])
    except (DecodeError, SchemaError):
        return None
    return body


def runs_into_body(client_id: str | bytes | None) -> bool:
    """Whether a client id runs on into what follows it, because its length is wrong: it has a zero byte, as an empty
    tag section and the front of a length are.
    """
    if isinstance(client_id, bytes):
        return 0 in client_id
    return client_id is not None and "\0" in client_id


def skip_tagged_fields(data: bytes, offset: int) -> int:
    """The offset behind a tagged-field section (KIP-482), or the end of the data when it does not fit."""
    end = len(data)

    def varint(at: int) -> tuple[int, int]:
        value = shift = 0
        while at < end and shift < 35:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at
            shift += 7
        return 0, end

    count, offset = varint(offset)
    while count > 0 and offset < end:
        _, offset = varint(offset)
        size, offset = varint(offset)
        offset += size
        count -= 1
    return min(offset, end)


def client_software(data: bytes, offset: i64, version: i64) -> tuple[str, str] | None:
    """Name and version of the client's software (KIP-511), as an ApiVersions request has them; empty before v3.

    None where it takes a decoder to say: every connection begins with this message, and hardly one in another form
    than two short texts, in v5 followed by a cluster id and a node id, without tagged fields.
    """
    if version < 3:
        return "", ""
    if version > 5:
        return None
    end: i64 = len(data)
    texts: list[str] = []
    for index in range(3 if version == 5 else 2):
        length: i64 = data[offset] if offset < end else 0x80  # of the text, and 1; 0 for null
        after = offset + length
        if length == 0 and index == 2:
            after = offset + 1
        elif length == 0 or length >= 0x80 or after > end:
            return None
        try:
            texts.append(data[offset + 1 : after].decode())
        except UnicodeDecodeError:
            return None
        offset = after
    if version == 5:
        offset += 4
    return (texts[0], texts[1]) if offset < end and data[offset] == 0 else None


def software_of(exchange: Exchange) -> tuple[str, str]:
    """Name and version of the client's software, as an ApiVersions request has them, or empty texts."""
    request = exchange.request
    if request is None or request.frame is None:
        return "", ""
    software = client_software(request.frame, request.body_offset, exchange.api_version)
    if software is None:
        body = peek_body(exchange, "request") or {}
        software = body.get("client_software_name") or "", body.get("client_software_version") or ""
    return software


def acks_of_produce(data: bytes, offset: i64, version: i64) -> i64:
    """The ``acks`` field of a Produce request; -1 when it cannot be read.

    It leads the body up to v2; from v3 on a transactional id comes first, compact from v9 on.
    """
    end: i64 = len(data)
    length: i64
    at: i64
    if version >= 9:
        if offset >= end:
            return -1
        length, at = data[offset], offset + 1
        if length >= 0x80:
            if at >= end:
                return -1
            length, at = (length & 0x7F) | (data[at] << 7), at + 1
        offset = at + length - 1 if length else at
    elif version >= 3:
        if offset + 2 > end:
            return -1
        length = i16(data, offset)
        offset += 2
        if length > 0:
            offset += length
    if offset + 2 > end:
        return -1
    return i16(data, offset)
