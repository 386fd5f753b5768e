"""Trace context in records' headers, noted on the exchange: W3C's ``traceparent`` and Zipkin's B3, single or multiple.

https://www.w3.org/TR/trace-context/ section 3.2, https://github.com/openzipkin/b3-propagation
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kwiresniff.analysis.body_entities import record_sets
from kwiresniff.model import Exchange
from kwiresniff_values.limits import MAX_TRACES

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")
_B3 = re.compile(r"([0-9a-f]{32}|[0-9a-f]{16})-([0-9a-f]{16})(?:-([01d]))?(?:-[0-9a-f]{16})?")
_TRACE_ID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{16}")
_SPAN_ID = re.compile(r"[0-9a-f]{16}")


def trace_of(headers: Any) -> dict[str, Any] | None:
    """``trace_id``, ``span_id`` and ``sampled`` (None where that is left open) of a record's headers."""
    texts = {}
    for header in headers or ():
        value = header.get("value")
        if isinstance(value, bytes) and len(value) < 256:
            texts[str(header.get("key")).lower()] = value.decode("latin-1").strip()
    match = _TRACEPARENT.fullmatch(texts.get("traceparent", ""))
    if match:
        return {"trace_id": match[1], "span_id": match[2], "sampled": bool(int(match[3], 16) & 1)}
    match = _B3.fullmatch(texts.get("b3", "").lower())
    if match:
        return {"trace_id": match[1], "span_id": match[2], "sampled": _sampled(match[3])}
    trace_id, span_id = texts.get("x-b3-traceid", "").lower(), texts.get("x-b3-spanid", "").lower()
    if _TRACE_ID.fullmatch(trace_id) and _SPAN_ID.fullmatch(span_id):
        said = "d" if texts.get("x-b3-flags") == "1" else texts.get("x-b3-sampled")
        return {"trace_id": trace_id, "span_id": span_id, "sampled": _sampled(said)}
    return None


def _sampled(said: str | None) -> bool | None:
    return None if said is None or said not in ("0", "1", "d", "true", "false") else said in ("1", "d", "true")


def annotate(exchange: Exchange) -> Iterator[dict[str, Any]]:
    """Trace and span ids that records of an exchange bring in their headers."""
    seen = set()
    for message in (exchange.request, exchange.response):
        for topic, record in _records(message.body) if message is not None and message.body else ():
            trace = trace_of(record.get("headers"))
            if trace is None or (trace["trace_id"], trace["span_id"]) in seen:
                continue
            seen.add((trace["trace_id"], trace["span_id"]))
            if len(seen) <= MAX_TRACES:
                where = f" in a record of {topic}" if topic else ""
                said = f"trace {trace['trace_id']}, span {trace['span_id']}{where}"
                yield {"message": said, **trace, "topic": topic}
    if len(seen) > MAX_TRACES:
        yield {"message": f"{len(seen) - MAX_TRACES} more trace and span ids"}


def _records(body: Any) -> Iterator[tuple[str | None, Mapping[str, Any]]]:
    for topic, _, batches in record_sets(body):
        for batch in batches if isinstance(batches, list) else ():
            for record in batch.get("records") or ():
                yield topic, record
