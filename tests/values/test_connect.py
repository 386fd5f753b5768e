"""Connect's JSON with its schema, and Debezium's events: logical types mean what Connect says they mean."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from kwiresniff.plugins.answers import TooMuch
from kwiresniff_values import connect
from kwiresniff_values.limits import MAX_DEPTH
from kwiresniff_values.problems import Misfit

DATA = "org.apache.kafka.connect.data."


def read(schema: Any, payload: Any) -> Any:
    envelope = {"schema": schema, "payload": payload}
    assert connect.is_envelope(envelope)
    return connect.payload_of(envelope)


@pytest.mark.parametrize(
    ("kind", "name", "value", "expected"),
    [
        ("int32", DATA + "Date", 20485, "2026-02-01"),
        ("int32", DATA + "Time", 3_723_004, "01:02:03.004000"),
        ("int64", DATA + "Timestamp", 1_767_323_045_678, "2026-01-02T03:04:05.678000Z"),
        ("int64", "io.debezium.time.MicroTimestamp", 1_767_323_045_678_901, "2026-01-02T03:04:05.678901Z"),
        ("int64", "io.debezium.time.MicroTime", 1_000_001, "00:00:01.000001"),
        ("int64", "shop.Anything", 5, 5),
        ("string", None, "x", "x"),
        ("bytes", None, "AP8=", "AP8="),
        ("double", None, 1, 1),
        ("boolean", None, True, True),
    ],
)
def test_values_are_read_by_their_types(kind: str, name: str | None, value: Any, expected: Any) -> None:
    """Dates count days since 1970, times milliseconds or microseconds."""
    assert read({"type": kind, "name": name}, value) == expected


def test_a_decimal_is_an_unscaled_integer() -> None:
    """In base64, with the scale among the schema's parameters."""
    schema = {"type": "bytes", "name": DATA + "Decimal", "parameters": {"scale": "2"}}
    assert read(schema, base64.b64encode((1250).to_bytes(2, "big")).decode()) == "12.50"
    assert read(schema, base64.b64encode((-5).to_bytes(1, "big", signed=True)).decode()) == "-0.05"


def test_structures_hold_others() -> None:
    """Structs, arrays, maps with texts for keys, and maps as pairs."""
    line = {"type": "struct", "fields": [{"field": "n", "type": "int8"}]}
    schema = {
        "type": "struct",
        "fields": [
            {"field": "lines", "type": "array", "items": line},
            {"field": "by_name", "type": "map", "keys": {"type": "string"}, "values": line},
            {"field": "by_number", "type": "map", "keys": {"type": "int32", "name": DATA + "Date"}, "values": line},
            {"field": "note", "type": "string", "optional": True},
        ],
    }
    value = {"lines": [{"n": 1}], "by_name": {"a": {"n": 2}}, "by_number": [[0, {"n": 3}]], "note": None}
    assert read(schema, value) == {**value, "by_number": [["1970-01-01", {"n": 3}]]}
    assert read(None, {"any": "thing"}) == {"any": "thing"}


@pytest.mark.parametrize(
    ("schema", "payload", "why"),
    [
        ({"type": "int8"}, 128, "payload is no int8"),
        ({"type": "int32"}, True, "payload is no int32"),
        ({"type": "string"}, None, "null and not optional"),
        ({"type": "struct", "fields": [{"field": "a", "type": "int32"}]}, {"a": "x"}, r"payload\.a is no int32"),
        ({"type": "struct", "fields": []}, {"b": 1}, "a field b, which its schema has not"),
        ({"type": "struct", "fields": [5]}, {}, "a field without a name"),
        ({"type": "array", "items": 5}, [1], "its schema is no object"),
        ({"type": "map"}, [[1]], "is no map"),
        ({"type": "bytes", "name": DATA + "Decimal"}, "AA==", "no Decimal"),
        ({"type": "bytes", "name": DATA + "Decimal", "parameters": {"scale": "99999"}}, "AA==", "no Decimal"),
        ({"type": "int64", "name": DATA + "Timestamp"}, 2**62, "no Timestamp"),
        ({"type": "nothing"}, 1, "is no nothing"),
    ],
)
def test_a_payload_that_is_not_of_its_schema_does_not_fit(schema: Any, payload: Any, why: str) -> None:
    """The reason names the place."""
    with pytest.raises(Misfit, match=why):
        read(schema, payload)


def test_levels_are_bounded() -> None:
    """Of the schema and the payload together."""
    schema: Any = {"type": "int32"}
    payload: Any = 1
    for _ in range(MAX_DEPTH + 1):
        schema, payload = {"type": "array", "items": schema}, [payload]
    with pytest.raises(TooMuch):
        read(schema, payload)


@pytest.mark.parametrize(
    "value",
    [
        {"schema": 5, "payload": 1},
        {"schema": {}, "payload": 1},
        {"schema": None},
        [1],
        {"schema": None, "payload": 1, "x": 1},
    ],
)
def test_other_objects_are_no_envelopes(value: Any) -> None:
    """Even with members of those names."""
    assert not connect.is_envelope(value)


def test_events_of_debezium_say_their_operation() -> None:
    """Which is a letter in them."""
    event = {"op": "u", "before": None, "after": {"id": 1}, "source": {"table": "t"}}
    assert connect.change_event(event) == {"operation": "update", **event}
    for other in ({"op": "u"}, {**event, "op": "z"}, {**event, "op": ["c"]}, {**event, "source": "t"}, [event]):
        assert connect.change_event(other) is None
