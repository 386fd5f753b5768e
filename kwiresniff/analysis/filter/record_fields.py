"""Fields of filters that look into records: ``record.key``, ``record.value``, ``record.header.NAME``, and paths into
what plugins decode of keys and values, or into their JSON text (RFC 8259).

An exchange has the values of all its records. A record without one has None, so that ``== null`` finds tombstones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import orjson

from kwiresniff.analysis.body_entities import record_sets
from kwiresniff.analysis.filter.fields import Field, PathStep, Values, follow
from kwiresniff.analysis.filter.linear_search import MAX_SEARCHED_CHARS
from kwiresniff.model import Body, Exchange

#: Bytes of a key or value that are read as JSON: what Kafka takes of a batch by default (``message.max.bytes``).
MAX_JSON_BYTES = 1_048_576

_NAME = re.compile(r"record\.(?:(key|value)((?:\.[^.\[\]]+(?:\[\d{0,9}\])*)*)|header\.(.+))")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d*)\]")
_JSON_STARTS = (b"{", b"[")

RECORD_NAMES = ("record.key", "record.value", "record.key.<path>", "record.value.<path>", "record.header.<name>")


def record_field(name: str) -> Field | None:
    """The field of that name, or None where it is none of records'."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    part, path, header = match.groups()
    steps: list[PathStep] = [step or int(index) for step, index in _STEP.findall(path or "") if step or index]

    def values(exchange: Exchange) -> Values:
        found: list[Any] = []
        for record in _records(exchange):
            if header is not None:
                of_record = _headers(record, header)
            else:
                of_record = _inside(record, part, steps) if steps else _whole(record, part)
            found += of_record or (None,)
        return found

    return Field(name, "record", "records", _not_known_early, values)


def _not_known_early(exchange: Exchange) -> None:
    return None


def _records(exchange: Exchange) -> Iterator[Body]:
    for message in (exchange.request, exchange.response):
        for _, _, batches in record_sets(message.body) if message is not None else ():
            for batch in batches if isinstance(batches, list) else ():
                yield from batch.get("records") or ()


def _headers(record: Body, name: str) -> list[Any]:
    return [header["value"] for header in record.get("headers") or () if header["key"] == name]


def _whole(record: Body, part: str) -> list[Any]:
    """The bytes of a key or value, and beside them what they were decoded to, as text where it has parts."""
    raw = record.get(part)
    if raw is None:
        return []
    decoded = _decoded(record, part)
    if decoded is None:
        return [raw]
    return [raw, _text(decoded) if isinstance(decoded, dict | list) else decoded]


def _inside(record: Body, part: str, steps: list[PathStep]) -> list[Any]:
    """The values that a path leads to in a key or value."""
    data = _decoded(record, part)
    return follow(_json(record.get(part)) if data is None else data, steps)


def _decoded(record: Body, part: str) -> Any:
    decoded = record.get("decoded")
    member = decoded.get(part) if isinstance(decoded, dict) else None
    return member.get("data") if isinstance(member, dict) else None


def _json(data: Any) -> Any:
    """Bytes read as JSON, None where they are not an object or array, or too long."""
    if not isinstance(data, bytes) or len(data) > MAX_JSON_BYTES or not data.lstrip()[:1].startswith(_JSON_STARTS):
        return None
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None


def _text(decoded: Any) -> str:
    text = json.dumps(decoded, ensure_ascii=False, default=lambda data: data.decode("utf-8", "replace"))
    return text[:MAX_SEARCHED_CHARS]
