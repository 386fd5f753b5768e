"""The header before every body, read fast: API, version, correlation id, client, and where the body starts.

Request header v0 is api_key, api_version, correlation_id; v1 adds client_id as a NULLABLE_STRING; v2 adds a tag
section, while client_id stays a NULLABLE_STRING with an INT16 length so that a broker can read a header whose
version it does not know (KIP-482, KIP-511). Response header v0 is correlation_id; v1 adds a tag section.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from kwiresniff.base.header_fields import unpack_request_header_v0
from kwiresniff.codec.decode_errors import bad_length, invalid_utf8, truncated
from kwiresniff.codec.primitives import skip_tags
from kwiresniff.errors import DecodeError
from kwiresniff.schema import request_header_version

_INT16 = Struct(">h")
_INT32 = Struct(">i")

#: Bytes of request header v0, and of the front of all later ones.
REQUEST_FRONT_SIZE = 8


class RequestHeader(NamedTuple):
    """A request's header; ``body_offset`` is where the body starts in the frame."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_offset: int
    header_version: int


def decode_request_header(frame: bytes) -> RequestHeader:
    """Reads a request's header, whose version follows from API and version. Raises DecodeError with the offset,
    SchemaError for an unknown API or version.
    """
    if len(frame) < REQUEST_FRONT_SIZE:
        raise _at(truncated("the request header", REQUEST_FRONT_SIZE - len(frame)), 0)
    api_key, api_version, correlation_id = unpack_request_header_v0(frame)
    header_version = request_header_version(api_key, api_version)
    client_id: str | None = None
    position = REQUEST_FRONT_SIZE
    if header_version >= 1:
        client_id, position = _read_client_id(frame, position)
    if header_version >= 2:
        position = _skip_tag_section(frame, position)
    return RequestHeader(api_key, api_version, correlation_id, client_id, position, header_version)


def decode_response_header(frame: bytes, header_version: int) -> tuple[int, int]:
    """The correlation id and the body's offset in a response. Raises DecodeError with the offset."""
    if len(frame) < _INT32.size:
        raise _at(truncated("the response header", _INT32.size - len(frame)), 0)
    (correlation_id,) = _INT32.unpack_from(frame)
    return correlation_id, _skip_tag_section(frame, _INT32.size) if header_version >= 1 else _INT32.size


def _read_client_id(frame: bytes, position: int) -> tuple[str | None, int]:
    start = position + _INT16.size
    if start > len(frame):
        raise _at(truncated("client_id", start - len(frame)), position)
    (length,) = _INT16.unpack_from(frame, position)
    if length < 0:
        if length < -1:
            raise _at(bad_length(length, "client_id"), position)
        return None, start
    stop = start + length
    if stop > len(frame):
        raise _at(truncated("client_id", stop - len(frame)), position)
    try:
        return frame[start:stop].decode(), stop
    except UnicodeDecodeError as error:
        raise _at(invalid_utf8("client_id"), start + error.start) from None


def _skip_tag_section(frame: bytes, position: int) -> int:
    if position >= len(frame):
        raise _at(truncated("the header's tagged fields", 1), position)
    first = frame[position]
    if not first:
        return position + 1
    try:
        return skip_tags(frame, position + 1, first)
    except DecodeError as error:
        raise _at(error, position) from None


def _at(error: DecodeError, offset: int) -> DecodeError:
    error.offset = offset
    return error
