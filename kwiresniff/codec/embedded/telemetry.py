"""Metrics that clients push to brokers: PushTelemetry's ``metrics``, an OTLP MetricsData (KIP-714).

The published protobuf package (opentelemetry-proto) reads them; without it the bytes stay bytes. Names are those of
``opentelemetry/proto/metrics/v1/metrics.proto``; a field that has its default value is not on the wire and not in what
is found.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from functools import cache
from typing import Any

from kwiresniff.base.api_keys import PUSH_TELEMETRY
from kwiresniff.codec.compression import NONE, codec_name, decompress
from kwiresniff.codec.embedded.openers import Openers
from kwiresniff.codec.embedded.struct_view import StructView
from kwiresniff.codec.primitives import float_value
from kwiresniff.codec.record_limits import RecordBudget
from kwiresniff.errors import DecodeError
from kwiresniff.model import Exchange, TopicNames
from kwiresniff.schema.value_labels import time_meaning

METRICS = "metrics"
#: What stands as ``message`` and ``version`` beside the metrics; the package is opentelemetry.proto.metrics.v1.
MESSAGE, VERSION = "MetricsData", 1
TITLE = "OTLP metrics"

#: A broker takes 1 MiB of compressed metrics (telemetry.max.bytes); a Java client pushes some 40 KiB uncompressed.
MAX_METRICS_BYTES = 4 * 1024 * 1024
#: Values of one push: a client has some 200 metrics of about 20 values each. Each costs some 100 bytes in Python.
MAX_VALUES = 100_000
#: Messages inside messages. A metric's attribute is nine deep; only an attribute that is a list or map goes deeper.
MAX_NESTING = 24

_NANOSECONDS_PER_MILLISECOND = 1_000_000
#: metrics.proto, AggregationTemporality: Kafka's clients push either, as the subscription asks (``delta_temporality``).
_TEMPORALITIES = {0: "unspecified", 1: "delta", 2: "cumulative"}

_HINT = 'OTLP metrics; to see them: pip install "kwiresniff[otlp]"'


def open_metrics(struct: StructView) -> None:
    """The metrics of a PushTelemetry request, whatever they are compressed with."""
    raw = struct.get(METRICS)
    if not isinstance(raw, bytes) or not raw:
        return
    parser = _parser()
    if parser is None:
        struct.hint(METRICS, _HINT)
        return
    compression = struct.get("compression_type") or NONE
    try:
        if compression != NONE:
            raw = decompress(compression, raw, min(MAX_METRICS_BYTES, RecordBudget(len(raw)).decompressed_bytes))
        elif len(raw) > MAX_METRICS_BYTES:
            raise DecodeError(f"more than {MAX_METRICS_BYTES:,} bytes", code="too_many_values")
        data = _Reader().message(parse(parser, raw), 0)
    except DecodeError as error:
        struct.complain(METRICS, TITLE, str(error))
        return
    title = TITLE if compression == NONE else f"{TITLE}, {codec_name(compression)}, {len(raw):,} bytes uncompressed"
    struct.put(METRICS, {"message": MESSAGE, "version": VERSION, "data": data}, title, _meaning)


@cache
def _parser() -> Any:
    """The class of MetricsData, or None when the package is not there."""
    try:
        from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
    except ImportError:
        return None
    return MetricsData


def parse(parser: Any, raw: bytes) -> Any:
    """The protobuf message; raises DecodeError when ``raw`` is none, or has nothing in it that is known."""
    from google.protobuf.message import DecodeError as ProtobufError

    try:
        found = parser.FromString(raw)
    except (ProtobufError, RecursionError) as error:
        raise DecodeError(f"not in protobuf's form: {error}", code="bad_protobuf") from error
    if not found.ListFields():
        raise DecodeError("it has none of their fields", code="bad_protobuf")
    return found


class _Reader:
    """Protobuf messages to dicts, with a limit on how much there may be."""

    def __init__(self) -> None:
        self._left = MAX_VALUES

    def message(self, message: Any, depth: int) -> dict[str, Any]:
        if depth > MAX_NESTING:
            raise DecodeError(f"more than {MAX_NESTING} messages inside each other", code="nested_too_deep")
        return {field.name: self._value(value, depth + 1) for field, value in message.ListFields()}

    def _value(self, value: Any, depth: int) -> Any:
        if isinstance(value, MutableSequence):
            self._take(len(value))
            return [self._single(each, depth) for each in value]
        self._take(1)
        return self._single(value, depth)

    def _single(self, value: Any, depth: int) -> Any:
        if isinstance(value, float):
            return float_value(value)
        return value if isinstance(value, int | str | bytes) else self.message(value, depth)

    def _take(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise DecodeError(f"more than {MAX_VALUES:,} values", code="too_many_values")


def _meaning(name: str, value: Any) -> str:
    """The meaning of a value, for people."""
    if name.endswith("time_unix_nano"):
        return time_meaning(value // _NANOSECONDS_PER_MILLISECOND)
    return _TEMPORALITIES.get(value, "") if name == "aggregation_temporality" else ""


def _push_telemetry(struct: StructView, exchange: Exchange, topic_name: TopicNames) -> None:
    open_metrics(struct)


OPENERS: Openers = {(PUSH_TELEMETRY, "request"): _push_telemetry}
