"""Decodes one message by itself: bytes from a log, a debugger or a hex dump, without a connection around them."""

from __future__ import annotations

from kwiresniff import codec, schema
from kwiresniff.base.light_typing import Literal, TypeAlias
from kwiresniff.errors import DecodeError, SchemaError
from kwiresniff.model import Connection, Direction, Exchange, Message
from kwiresniff.session.apis import api_facts
from kwiresniff.session.decode import BodyDecoder
from kwiresniff.session.peek import SECRET_REQUESTS, runs_into_body
from kwiresniff.session.topic_ids import TopicNameTable

#: Where the bytes begin: with the 4-byte length, with the header, or with the body.
Start: TypeAlias = Literal["length", "header", "body"]

_LENGTH_BYTES = 4


def decode_message(
    data: bytes,
    direction: Direction,
    api_key: int | None,
    version: int | None,
    start: Start | None = None,
    *,
    show_secrets: bool = False,
) -> Exchange:
    """The message in ``data`` as an exchange of which only that side is there.

    Without ``start`` the first way that fits to the last byte is taken, of body, header and length (of header and
    length when API or version have to be read from a request's header). When none fits, the exchange shows how far
    the likeliest went. Raises SchemaError for an API that is not known or not given, DecodeError when not even a header
    can be read.
    """
    given = api_key is not None and version is not None
    if direction == "response" and not given:
        raise SchemaError("a response does not say what it answers: give its API and version")
    if start == "body" and not given:
        raise SchemaError("a body does not say what it is: give its API and version")
    ways: tuple[Start, ...] = (start,) if start else ("body", "header", "length") if given else ("header", "length")
    best: Exchange | None = None
    trouble: DecodeError | SchemaError | None = None
    for way in ways:
        try:
            found = _read(data, direction, api_key, version, way, show_secrets)
        except (DecodeError, SchemaError) as error:
            trouble = trouble or error
            continue
        if not found.problems:
            return found
        if best is None or len(found.problems) < len(best.problems):
            best = found
    if best is None:
        assert trouble is not None
        raise trouble
    return best


def _read(
    data: bytes, direction: Direction, api_key: int | None, version: int | None, start: Start, show_secrets: bool
) -> Exchange:
    frame = data
    if start == "length":
        size = int.from_bytes(data[:_LENGTH_BYTES], "big", signed=True)
        if size != len(data) - _LENGTH_BYTES:
            what = f"a length of {size} before {max(len(data) - _LENGTH_BYTES, 0)} bytes"
            raise DecodeError(what, code="bad_length", offset=0)
        frame = data[_LENGTH_BYTES:]
    correlation_id, client_id, offset, header_version = 0, None, 0, -1
    if start != "body" and direction == "request":
        header = codec.decode_request_header(frame)
        for name, asked, there in (("API key", api_key, header.api_key), ("version", version, header.api_version)):
            if asked is not None and asked != there:
                raise DecodeError(f"{name} {there} in the header, {asked} was asked for", code="bad_header", offset=0)
        api_key, version = header.api_key, header.api_version
        correlation_id, client_id = header.correlation_id, header.client_id
        if api_key in SECRET_REQUESTS and runs_into_body(client_id) and not show_secrets:
            client_id = None
        offset, header_version = header.body_offset, header.header_version
    assert api_key is not None and version is not None
    facts = api_facts(api_key, version)
    if not facts.known:
        low, high = schema.version_range(api_key)
        raise SchemaError(f"{facts.name} has no version {version}; known are {low} to {high}")
    if start != "body" and direction == "response":
        header_version = facts.response_header_version
        correlation_id, offset = codec.decode_response_header(frame, header_version)
    message = Message(0, 0, 0, 0, len(frame), frame)
    message.body_offset, message.header_version = offset, header_version
    exchange = Exchange(Connection(0, "", ""), api_key, version, correlation_id, client_id, None, None)
    exchange.api = facts.name
    # A response is read as its request says; of that nothing but API and version is known.
    exchange.request = message if direction == "request" else Message(0, 0, 0, 0, 0, None)
    if direction == "response":
        exchange.response = message
    BodyDecoder("full", TopicNameTable(), show_secrets=show_secrets).decode_side(exchange, direction)
    return exchange
