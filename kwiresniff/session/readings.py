"""How bytes read as a Kafka message: not at all, with bytes left over, or to the last byte."""

from __future__ import annotations

from typing import Final

from kwiresniff import codec
from kwiresniff.base.header_fields import unpack_request_header
from kwiresniff.errors import DecodeError, SchemaError
from kwiresniff.model import Direction
from kwiresniff.session.apis import api_facts, response_version
from kwiresniff.session.frame_search import MIN_REQUEST_BYTES
from kwiresniff.session.peek import skip_tagged_fields

#: How bytes read; old librdkafka (ApiVersions v0) and its mock broker (Metadata) leave bytes behind a message.
FAILS: Final = 0
UNKNOWN: Final = 1  # there is no such API, or no such version of it
LEFT_OVER: Final = 2
READS: Final = 3


def read_body(api_key: int, version: int, direction: Direction, frame: bytes, offset: int) -> int:
    """The grade of ``frame[offset:]`` as the body of this message: one of the values above."""
    try:
        decode = codec.decoder(api_key, version, direction, "skip")
    except SchemaError:
        return UNKNOWN
    try:
        _, end = decode(frame, offset, [])
    except DecodeError:
        return FAILS
    return READS if end == len(frame) else LEFT_OVER


def read_request(frame: bytes) -> int:
    """The grade of a frame, without its length, as the request named in its header."""
    if len(frame) < MIN_REQUEST_BYTES:
        return FAILS
    api_key, api_version, _, _ = unpack_request_header(frame)
    frame = with_plain_client_id(frame)
    try:
        offset = codec.decode_request_header(frame)[4]
    except DecodeError:
        return FAILS
    except SchemaError:
        return UNKNOWN
    return read_body(api_key, api_version, "request", frame, offset)


def read_front(front: bytes) -> int:
    """How the front of a request, without its length, reads as far as it goes: READS, FAILS, or UNKNOWN when nobody
    knows that API, or an array counts more than what there is can hold."""
    api_key, api_version, _, _ = unpack_request_header(front)
    front = with_plain_client_id(front)
    try:
        offset = codec.decode_request_header(front)[4]
        codec.decoder(api_key, api_version, "request", "skip")(front, offset, [])
    except DecodeError as error:
        return READS if error.code == "truncated" else UNKNOWN if error.code == "bad_array_count" else FAILS
    except SchemaError:
        return UNKNOWN
    return READS


def read_response(api_key: int, api_version: int, frame: bytes) -> int:
    """The grade of a frame, without its length, as a response of this API and version."""
    facts = api_facts(api_key, api_version)
    version = response_version(api_key, facts.read_as, frame)
    offset = skip_tagged_fields(frame, 4) if facts.response_header_version else 4
    return read_body(api_key, version, "response", frame, offset)


def with_plain_client_id(frame: bytes) -> bytes:
    """The request with its client id replaced by ASCII: brokers take any bytes, decoders only UTF-8."""
    length = unpack_request_header(frame)[3]
    return frame[:MIN_REQUEST_BYTES] + b"?" * length + frame[MIN_REQUEST_BYTES + length :] if length > 0 else frame
