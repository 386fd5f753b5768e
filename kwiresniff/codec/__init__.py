"""Bytes to values and back for any Kafka message: compiled decoders and encoders, and the annotating walker."""

from kwiresniff.codec.headers import RequestHeader, decode_request_header, decode_response_header
from kwiresniff.codec.lookup import (
    body_writer,
    data_decoder,
    data_encoder,
    decoder,
    encoder,
    error_finder,
    error_skimmer,
    scanner,
    text_steps,
    walk_header,
)  # fmt: skip
from kwiresniff.codec.plain import plain
from kwiresniff.codec.walker import walk

__all__ = [
    "RequestHeader",
    "body_writer",
    "data_decoder",
    "data_encoder",
    "decode_request_header",
    "decode_response_header",
    "decoder",
    "encoder",
    "error_finder",
    "error_skimmer",
    "plain",
    "scanner",
    "text_steps",
    "walk",
    "walk_header",
]
