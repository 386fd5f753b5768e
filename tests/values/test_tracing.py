"""Trace context in headers, with the examples of its specifications."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff_values.limits import MAX_TRACES
from kwiresniff_values.tracing import annotate, trace_of
from tests.support.exchanges import exchange

W3C = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
B3_TRACE, B3_SPAN = "80f198ee56343ba864fe8b2a57d3eff7", "e457b5a2e4d86bd1"


def traced(**headers: bytes | None) -> Any:
    return trace_of([{"key": name.replace("_", "-"), "value": value} for name, value in headers.items()])


def test_traceparent_is_read() -> None:
    """The example of W3C's recommendation; a later version may have more behind it."""
    expected = {"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "00f067aa0ba902b7", "sampled": True}
    assert traced(traceparent=W3C) == expected
    assert traced(traceparent=W3C[:-1] + b"0") == {**expected, "sampled": False}
    assert traced(traceparent=b"cc" + W3C[2:] + b"-what-is-new") == expected


@pytest.mark.parametrize(
    "value",
    [b"", b"ff" + W3C[2:], W3C.replace(b"4bf92f3577b34da6a3ce929d0e0e4736", b"0" * 32), W3C[:-3], b"\xff", None],
)
def test_what_the_recommendation_forbids_is_no_trace(value: bytes | None) -> None:
    """Version ff, and ids of zeros."""
    assert traced(traceparent=value) is None


def test_b3_is_read_in_both_forms() -> None:
    """The example of openzipkin."""
    expected = {"trace_id": B3_TRACE, "span_id": B3_SPAN, "sampled": True}
    assert traced(b3=f"{B3_TRACE}-{B3_SPAN}-1-05e3ac9a4f6e3b90".encode()) == expected
    assert traced(b3=f"{B3_TRACE}-{B3_SPAN}".encode()) == {**expected, "sampled": None}
    several = {"X_B3_TraceId": B3_TRACE.encode(), "X_B3_SpanId": B3_SPAN.encode()}
    assert traced(**several, X_B3_Sampled=b"1") == expected
    assert traced(**several, X_B3_Flags=b"1") == expected
    assert traced(**several) == {**expected, "sampled": None}
    assert traced(b3=b"0") is None


def records(count: int) -> list[dict[str, Any]]:
    values = [b"00-%032x-%016x-01" % (n + 1, n + 1) for n in range(count)]
    return [{"offset": n, "headers": [{"key": "traceparent", "value": value}]} for n, value in enumerate(values)]


def test_each_trace_of_an_exchange_is_noted_once_and_not_without_end() -> None:
    """A person reads the notes."""
    batches = [{"records": records(3) + records(2)}]
    body = {"topic_data": [{"name": "orders", "partition_data": [{"index": 0, "records": batches}]}]}
    notes = list(annotate(exchange("Produce", 0, 9, request=body)))
    assert [note["span_id"] for note in notes] == [f"{n:016x}" for n in (1, 2, 3)]
    assert notes[0]["message"] == f"trace {1:032x}, span {1:016x} in a record of orders"
    batches[0]["records"] = records(MAX_TRACES + 5)
    notes = list(annotate(exchange("Produce", 0, 9, request=body)))
    assert len(notes) == MAX_TRACES + 1 and notes[-1] == {"message": "5 more trace and span ids"}


def test_headers_that_were_redacted_are_passed_over() -> None:
    """They are no bytes any more."""
    assert trace_of([{"key": "traceparent", "value": {"redacted": "x"}}]) is None
    assert trace_of(None) is None
