"""Bytes to values for any Kafka message: compiled decoders, and the annotating dissector."""

from kwiresniff.codec.codecs import (
    body_writer,
    data_decoder,
    decoder,
    digest_reader,
    dissect_header,
    record_weigher,
    scanner,
    stripping_plan,
    text_steps,
)  # fmt: skip
from kwiresniff.codec.dissector import dissect
from kwiresniff.codec.headers import RequestHeader, decode_request_header, decode_response_header

__all__ = [
    "RequestHeader",
    "body_writer",
    "data_decoder",
    "decode_request_header",
    "decode_response_header",
    "decoder",
    "digest_reader",
    "dissect",
    "dissect_header",
    "record_weigher",
    "scanner",
    "stripping_plan",
    "text_steps",
]
