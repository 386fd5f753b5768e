"""Metrics that clients push. Expected values: those that Telemetry.java gives, and protobuf's own JSON form."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData, ResourceMetrics
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from kwiresniff.capture import open_captures
from kwiresniff.codec.compression import GZIP, ZSTD, decompress
from kwiresniff.codec.embedded import open_metrics, telemetry
from kwiresniff.model import Exchange, Node
from tests.support.embedded_vectors import VECTORS, body_holder, node_holder, texts
from tests.support.encoding import compress
from tests.support.events import analyze

CAPTURES = Path(__file__).parents[3] / "captures"
UNDECODED = [("embedded_undecoded", "metrics")]

EXPECTED = {
    "resource_metrics": [
        {
            "scope_metrics": [
                {
                    "metrics": [
                        {
                            "name": "org.apache.kafka.producer.outgoing.byte.total",
                            "sum": {
                                "aggregation_temporality": 1,
                                "is_monotonic": True,
                                "data_points": [
                                    {
                                        "start_time_unix_nano": 1_700_000_000_000_000_000,
                                        "time_unix_nano": 1_700_000_001_500_000_000,
                                        "as_int": -7,
                                        "attributes": [{"key": "node_id", "value": {"string_value": "node-1"}}],
                                    }
                                ],
                            },
                        },
                        {
                            "name": "latency",
                            "unit": "ms",
                            "gauge": {
                                "data_points": [
                                    {"time_unix_nano": 1, "as_double": "NaN"},
                                    {"time_unix_nano": 2, "as_double": 0.25},
                                ]
                            },
                        },
                    ]
                }
            ]
        }
    ]
}


def opened(raw: bytes, compression: int = 0) -> tuple[Any, list[Any]]:
    """What stands beside the metrics afterwards, in a body and in a tree alike, and the problems."""
    body: dict[str, Any] = {"compression_type": compression, "metrics": raw}
    holder, tree = body_holder(body), node_holder(dict(body))
    open_metrics(holder)
    open_metrics(tree)
    assert body["metrics"] == raw
    found = body.get("metrics_decoded")
    node = tree.node.children[1]
    assert (node.value, bool(node.children)) == (raw, found is not None)
    if found is not None:
        assert values(node.children) == found["data"]
    assert texts(tree.problems) == texts(holder.problems)
    assert [node.problem] == [problem.message for problem in holder.problems] or not node.problem
    return found, texts(holder.problems)


def values(nodes: list[Node]) -> dict[str, Any]:
    return {node.name: value_of(node) for node in nodes}


def value_of(node: Node) -> Any:
    if node.type == "ARRAY":
        return [value_of(child) for child in node.children]
    return values(node.children) if node.type == "STRUCT" else node.value


@pytest.mark.parametrize("compression", range(5))
def test_metrics_are_read_whatever_they_are_compressed_with(compression: int) -> None:
    raw = VECTORS[f"telemetry-{compression}"].value
    assert raw is not None
    assert opened(raw, compression) == ({"message": "MetricsData", "version": 1, "data": EXPECTED}, [])


def test_a_tree_tells_times_and_temporality() -> None:
    raw = VECTORS["telemetry-4"].value
    tree = node_holder({"compression_type": 4, "metrics": raw})
    open_metrics(tree)
    (metrics,) = tree.node.children[1:]
    assert metrics.meaning == "OTLP metrics, zstd, 168 bytes uncompressed"
    told = {node.name: node.meaning for node in flat(metrics) if node.meaning}
    assert told["aggregation_temporality"] == "delta"
    assert told["start_time_unix_nano"] == "2023-11-14 22:13:20.000 UTC"
    assert {node.offset for node in flat(metrics) if node is not metrics} == {-1}


def flat(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children:
        yield from flat(child)


def test_what_a_java_client_pushed_is_what_protobuf_reads() -> None:
    pushes = [event for event in analyze(open_captures([str(CAPTURES / "java-telemetry.pcap")])) if is_push(event)]
    assert len(pushes) == 2
    for push in pushes:
        assert isinstance(push, Exchange) and push.request is not None and push.request.body is not None
        body = push.request.body
        assert push.problems == []
        oracle = MetricsData.FromString(decompress(body["compression_type"], body["metrics"]))
        expected = MessageToDict(oracle, preserving_proto_field_name=True, use_integers_for_enums=True)
        assert as_text(body["metrics_decoded"]["data"]) == as_text(expected)
        assert len(body["metrics_decoded"]["data"]["resource_metrics"]) > 90


def is_push(event: Any) -> bool:
    return isinstance(event, Exchange) and event.api == "PushTelemetry"


def as_text(value: Any) -> Any:
    """protobuf writes integers of 64 bits as text."""
    if isinstance(value, dict):
        return {name: as_text(each) for name, each in value.items()}
    if isinstance(value, list):
        return [as_text(each) for each in value]
    return str(float(value)) if isinstance(value, float) else str(value)


@pytest.mark.parametrize(
    ("raw", "compression"),
    [
        (b"no protobuf", 0),
        (b"\x08\x01", 0),  # a field that nobody knows, and nothing else
        (b"\x0a\x05\x12", 0),
        (b"not zstd", ZSTD),
        (b"\x0a\x00", 9),
        (compress(GZIP, b"\x0a\x00" * 3_000_000), GZIP),
        (b"\x0a\x00" * (telemetry.MAX_VALUES + 1), 0),
        (b"\x0a\x00" * telemetry.MAX_METRICS_BYTES, 0),
    ],
    ids=["text", "unknown", "cut", "no zstd", "no such codec", "too large when decompressed", "too many", "too large"],
)
def test_what_is_not_readable_as_metrics_stays_bytes_with_a_problem(raw: bytes, compression: int) -> None:
    assert opened(raw, compression) == (None, UNDECODED)


def test_lists_inside_each_other_end_somewhere() -> None:
    value = AnyValue(string_value="deep")
    for _ in range(30):
        value = AnyValue(array_value=ArrayValue(values=[value]))
    resource = Resource(attributes=[KeyValue(key="k", value=value)])
    data = MetricsData(resource_metrics=[ResourceMetrics(resource=resource)])
    assert opened(data.SerializeToString()) == (None, UNDECODED)


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for the peak")
def test_the_smallest_messages_do_not_take_much_memory() -> None:
    code = (
        "from kwiresniff.codec.embedded import BodyView, open_metrics, telemetry\n"
        "peak = lambda: next(int(line.split()[1]) for line in open('/proc/self/status') if 'VmHWM' in line)\n"
        "open_metrics(BodyView({'compression_type': 0, 'metrics': b'\\x0a\\x00'}, [])); before = peak()\n"
        "raw = b'\\x0a\\x00' * (telemetry.MAX_METRICS_BYTES // 2)\n"
        "open_metrics(BodyView({'compression_type': 0, 'metrics': raw}, [])); print((peak() - before) // 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 10 < int(done.stdout) < 200


def test_without_the_package_the_bytes_stay_and_a_tree_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.metrics.v1.metrics_pb2", None)
    telemetry._parser.cache_clear()
    try:
        raw = VECTORS["telemetry-0"].value
        assert raw is not None
        assert opened(raw) == (None, [])
        tree = node_holder({"compression_type": 0, "metrics": raw})
        open_metrics(tree)
        assert "kwiresniff[otlp]" in tree.node.children[1].hint
    finally:
        telemetry._parser.cache_clear()


def test_no_metrics_are_nothing_to_read() -> None:
    assert opened(b"") == (None, [])
