"""Bytes to values and back for any Kafka message: compiled decoders and encoders, and the annotating dissector."""

from kwiresniff.codec.codecs import (
    body_writer,
    data_decoder,
    data_encoder,
    decoder,
    digest_reader,
    dissect_header,
    encoder,
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
    "data_encoder",
    "decode_request_header",
    "decode_response_header",
    "decoder",
    "digest_reader",
    "dissect",
    "dissect_header",
    "encoder",
    "record_weigher",
    "scanner",
    "stripping_plan",
    "text_steps",
]
