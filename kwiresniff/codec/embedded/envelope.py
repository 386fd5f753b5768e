"""A request inside another: what a broker forwards to the controller for a client (KIP-590).

``request_data`` and ``response_data`` are whole messages with their headers; the response does not say what it
answers, so its request is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwiresniff import codec, schema
from kwiresniff.base.api_keys import ENVELOPE
from kwiresniff.base.body_members import DECODED
from kwiresniff.codec.codecs import decoder
from kwiresniff.codec.embedded.embedded_format import versioned
from kwiresniff.codec.embedded.openers import Openers
from kwiresniff.codec.embedded.struct_view import StructView
from kwiresniff.errors import DecodeError, KwiresniffError
from kwiresniff.model import Exchange, Message, TopicNames

if TYPE_CHECKING:
    from kwiresniff.codec.headers import RequestHeader

REQUEST, RESPONSE, PRINCIPAL = "request_data", "response_data", "request_principal"
#: Where a body has the answer that the controller gave.
ANSWER = RESPONSE + DECODED


def open_enveloped_request(struct: StructView) -> None:
    """Opens the forwarded request and the principal who sent it; a principal of a custom class stays bytes."""
    raw = struct.get(REQUEST)
    try:
        struct.open_frame(REQUEST, "request", _header(raw))
    except KwiresniffError as error:
        struct.complain(REQUEST, "a request", str(error))
    principal = struct.get(PRINCIPAL)
    if isinstance(principal, bytes) and principal:
        struct.open(PRINCIPAL, versioned("DefaultPrincipalData", principal, sure=False))


def open_enveloped_response(struct: StructView, request: RequestHeader | None) -> None:
    """Opens the controller's answer to the request with this header."""
    raw = struct.get(RESPONSE)
    if request is None or not isinstance(raw, bytes) or not raw:
        return
    try:
        header = answer_header(raw, request)
    except KwiresniffError as error:
        struct.complain(RESPONSE, f"{schema.API_NAMES[request.api_key]} response", str(error))
        return
    struct.open_frame(RESPONSE, "response", header)


def answer_header(raw: bytes, request: RequestHeader) -> RequestHeader:
    """Header of the answer ``raw`` to the request with this header; raises DecodeError or SchemaError."""
    header_version = schema.response_header_version(request.api_key, request.api_version)
    correlation_id, body_offset = codec.decode_response_header(raw, header_version)
    return request._replace(correlation_id=correlation_id, body_offset=body_offset, header_version=header_version)


def enveloped_header(raw: object) -> RequestHeader | None:
    """The header of a forwarded request; None when it cannot be read, or is an envelope itself."""
    try:
        return _header(raw)
    except KwiresniffError:
        return None


def _header(raw: object) -> RequestHeader:
    """Header of a forwarded request; raises DecodeError or SchemaError."""
    if not isinstance(raw, bytes):
        raise DecodeError("there are no bytes", code="truncated")
    header = codec.decode_request_header(raw)
    if header.api_key == ENVELOPE:
        raise DecodeError("it is an envelope itself", code="unknown_api")
    return header


def forwarded(exchange: Exchange) -> RequestHeader | None:
    """The header of the request inside an Envelope, read from the frame: the body may lack it."""
    request = exchange.request
    if exchange.api_key != ENVELOPE or request is None or request.frame is None:
        return None
    try:
        body, _ = decoder(ENVELOPE, _version(exchange, request), "request")(request.frame, request.body_offset, [])
    except KwiresniffError:
        return None
    return enveloped_header(body["request_data"])


def forwarded_answer(exchange: Exchange) -> tuple[RequestHeader, bytes] | None:
    """The header and the frame of the answer inside an Envelope, read from the Envelope's frame."""
    header, response = forwarded(exchange), exchange.response
    if header is None or response is None or response.frame is None:
        return None
    try:
        body, _ = decoder(ENVELOPE, _version(exchange, response), "response")(response.frame, response.body_offset, [])
        raw = body["response_data"]
        return (answer_header(raw, header), raw) if raw else None
    except KwiresniffError:
        return None


def _version(exchange: Exchange, message: Message) -> int:
    """The version that a message was read as or, before it is read, the requested one."""
    return message.version if message.version >= 0 else exchange.api_version


def _request(struct: StructView, exchange: Exchange, topic_name: TopicNames) -> None:
    open_enveloped_request(struct)


def _response(struct: StructView, exchange: Exchange, topic_name: TopicNames) -> None:
    open_enveloped_response(struct, forwarded(exchange))


OPENERS: Openers = {
    (ENVELOPE, "request"): _request,
    (ENVELOPE, "response"): _response,
}
