"""Bytes to values for any Kafka message: compiled decoders, scanners and headers."""

from kwiresniff.codec.codecs import (
    body_writer,
    data_decoder,
    decoder,
    digest_reader,
    dissect_header,
    number_reader,
    record_weigher,
    scanner,
    stripping_plan,
    text_steps,
)  # fmt: skip
from kwiresniff.codec.headers import RequestHeader, decode_request_header, decode_response_header

__all__ = [
    "RequestHeader",
    "body_writer",
    "data_decoder",
    "decode_request_header",
    "decode_response_header",
    "decoder",
    "digest_reader",
    "dissect_header",
    "number_reader",
    "record_weigher",
    "scanner",
    "stripping_plan",
    "text_steps",
]
