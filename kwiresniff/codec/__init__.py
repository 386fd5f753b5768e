"""Bytes to values and back for any Kafka message: compiled decoders and encoders, and the annotating dissector."""

from kwiresniff.base.lazy_names import lazy_names
from kwiresniff.base.light_typing import TYPE_CHECKING
from kwiresniff.codec.codecs import (
    body_writer,
    data_decoder,
    data_encoder,
    decoder,
    digest_reader,
    dissect_header,
    encoder,
    error_finder,
    record_weigher,
    row_writer,
    scanner,
    text_steps,
)  # fmt: skip

if TYPE_CHECKING:
    from kwiresniff.codec.dissector import dissect
    from kwiresniff.codec.headers import RequestHeader, decode_request_header, decode_response_header

__all__ = [
    "RequestHeader",
    "body_writer",
    "data_decoder",
    "data_encoder",
    "decode_request_header",
    "decode_response_header",
    "decoder",
    "digest_reader",
    "dissect",
    "dissect_header",
    "encoder",
    "error_finder",
    "record_weigher",
    "row_writer",
    "scanner",
    "text_steps",
]

#: Where the others are. Imported on use: who only looks for error codes needs none of them.
_HOMES = {
    "RequestHeader": "headers",
    "decode_request_header": "headers",
    "decode_response_header": "headers",
    "dissect": "dissector",
}

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__, _HOMES)
