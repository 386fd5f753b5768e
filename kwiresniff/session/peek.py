"""The few fields of requests that are read at every depth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwiresniff import codec
from kwiresniff.base.api_keys import (
    ALTER_CONFIGS,
    ALTER_USER_SCRAM_CREDENTIALS,
    API_VERSIONS,
    CREATE_TOPICS,
    ENVELOPE,
    EXPIRE_DELEGATION_TOKEN,
    INCREMENTAL_ALTER_CONFIGS,
    PRODUCE,
    RENEW_DELEGATION_TOKEN,
    SASL_AUTHENTICATE,
    STREAMS_GROUP_HEARTBEAT,
)
from kwiresniff.errors import DecodeError, SchemaError
from kwiresniff.model import Body, Direction, Exchange, Problem
from kwiresniff.session.apis import ApiFacts, read_version
from kwiresniff.stream.frame_handler import LOST_CUT, LOST_GAP, WITHHELD

if TYPE_CHECKING:
    from mypy_extensions import i64

_SOFTWARE_NAME, _SOFTWARE_VERSION = "client_software_name", "client_software_version"
_SOFTWARE = frozenset({_SOFTWARE_NAME, _SOFTWARE_VERSION})

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
    """Whether a client id runs into the body because its length is wrong: then it has a zero byte."""
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


def software_of(exchange: Exchange) -> tuple[str, str]:
    """Name and version of the client's software (KIP-511), as an ApiVersions request has them, or empty texts."""
    request = exchange.request
    if request is None or request.frame is None:
        return "", ""
    scanner = codec.scanner(API_VERSIONS, read_version(exchange, "request"), "request", _SOFTWARE, whole=True)
    found: dict[str, str] = dict(scanner.found) if scanner.scan(request.frame, request.body_offset) else {}
    return found.get(_SOFTWARE_NAME, ""), found.get(_SOFTWARE_VERSION, "")


def acks_of_produce(facts: ApiFacts, data: bytes, offset: i64) -> i64:
    """The ``acks`` field of a Produce request whose body begins at ``offset``; -1 when it cannot be read."""
    return facts.number("request", "acks").read(data, offset, -1)
