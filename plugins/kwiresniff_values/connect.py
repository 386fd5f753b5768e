"""JSON of Kafka Connect's JsonConverter, which brings its schema along, and the change events of Debezium.

The values of logical types become what they mean: org.apache.kafka.connect.data and io.debezium.time.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from kwiresniff.plugins.answers import TooMuch
from kwiresniff_values.limits import MAX_DEPTH
from kwiresniff_values.problems import Misfit

CONNECT, DEBEZIUM = "connect-json", "debezium"
#: What ``op`` says in an event of Debezium.
OPERATIONS = {"c": "create", "u": "update", "d": "delete", "r": "read", "t": "truncate", "m": "message"}
_INTEGERS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def is_envelope(value: Any) -> bool:
    """Whether a JSON value is a schema and a payload, as JsonConverter writes them."""
    if not isinstance(value, dict) or value.keys() != {"schema", "payload"}:
        return False
    schema = value["schema"]
    return schema is None or (isinstance(schema, dict) and isinstance(schema.get("type"), str))


def payload_of(envelope: dict[str, Any]) -> Any:
    """The payload of an envelope by its schema; raises Misfit where it is not of it."""
    schema = envelope["schema"]
    return envelope["payload"] if schema is None else _value(schema, envelope["payload"], "payload", 0)


def schema_name(envelope: dict[str, Any]) -> str | None:
    """The name of an envelope's schema, else its type."""
    schema = envelope["schema"]
    return None if schema is None else str(schema.get("name") or schema["type"])


def change_event(value: Any) -> dict[str, Any] | None:
    """An event of Debezium with its operation in words in front, or None where it is none."""
    if not isinstance(value, dict) or not isinstance(value.get("source"), dict):
        return None
    operation = OPERATIONS.get(value["op"]) if isinstance(value.get("op"), str) else None
    if operation is None or not ("before" in value or "after" in value or "message" in value):
        return None
    return {"operation": operation, **value}


def _value(schema: Any, value: Any, path: str, depth: int) -> Any:
    if depth > MAX_DEPTH:
        raise TooMuch(f"nested deeper than {MAX_DEPTH} levels")
    if not isinstance(schema, dict):
        raise Misfit(f"{path}: its schema is no object")
    if value is None:
        if schema.get("optional") or "default" in schema:
            return None
        raise Misfit(f"{path} is null and not optional")
    kind = schema.get("type")
    if kind == "struct":
        return _struct(schema, value, path, depth)
    if kind == "array" and isinstance(value, list):
        return [_value(schema.get("items"), one, f"{path}[{index}]", depth + 1) for index, one in enumerate(value)]
    if kind == "map":
        return _map(schema, value, path, depth)
    if not _is_of(kind, value):
        raise Misfit(f"{path} is no {kind}")
    return _logical(schema, value, path)


def _struct(schema: dict[str, Any], value: Any, path: str, depth: int) -> Any:
    if not isinstance(value, dict):
        raise Misfit(f"{path} is no struct")
    found = {}
    for field in schema.get("fields") or ():
        name = field.get("field") if isinstance(field, dict) else None
        if not isinstance(name, str):
            raise Misfit(f"{path}: its schema has a field without a name")
        found[name] = _value(field, value.get(name), f"{path}.{name}", depth + 1)
    unknown = value.keys() - found.keys()
    if unknown:
        raise Misfit(f"{path} has a field {min(unknown)}, which its schema has not")
    return found


def _map(schema: dict[str, Any], value: Any, path: str, depth: int) -> Any:
    """An object where keys are texts, else a list of pairs."""
    if isinstance(value, dict):
        return {name: _value(schema.get("values"), one, f"{path}[{name}]", depth + 1) for name, one in value.items()}
    if not isinstance(value, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in value):
        raise Misfit(f"{path} is no map")
    return [
        [
            _value(schema.get(part), one, f"{path}[{index}]", depth + 1)
            for part, one in zip(("keys", "values"), pair, strict=True)
        ]
        for index, pair in enumerate(value)
    ]


def _is_of(kind: Any, value: Any) -> bool:
    if kind in _INTEGERS:
        bits = _INTEGERS[kind]
        return isinstance(value, int) and not isinstance(value, bool) and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)
    if kind in ("float", "double", "float32", "float64"):
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "boolean":
        return isinstance(value, bool)
    return kind in ("string", "bytes") and isinstance(value, str)


def _logical(schema: dict[str, Any], value: Any, path: str) -> Any:
    read = _LOGICAL.get(str(schema.get("name")))
    if read is None:
        return value
    try:
        return read(value, schema)
    except (ValueError, ArithmeticError, TypeError, LookupError):
        raise Misfit(f"{path} is no {str(schema.get('name')).rpartition('.')[2]}") from None


def _decimal(value: str, schema: dict[str, Any]) -> str:
    scale = int((schema.get("parameters") or {})["scale"])
    data = base64.b64decode(value, validate=True)
    if len(data) > 256 or abs(scale) > 1024:
        raise ValueError
    return format(Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-scale), "f")


def _day(value: int, schema: dict[str, Any]) -> str:
    return (date(1970, 1, 1) + timedelta(days=value)).isoformat()


def _instant(**unit: float) -> Callable[[int, dict[str, Any]], str]:
    def read(value: int, schema: dict[str, Any]) -> str:
        moment = _EPOCH + value * timedelta(**unit)
        return moment.isoformat().replace("+00:00", "Z")

    return read


def _time_of_day(**unit: float) -> Callable[[int, dict[str, Any]], str]:
    def read(value: int, schema: dict[str, Any]) -> str:
        return (_EPOCH + value * timedelta(**unit)).time().isoformat()

    return read


_LOGICAL: dict[str, Callable[[Any, dict[str, Any]], str]] = {
    "org.apache.kafka.connect.data.Decimal": _decimal,
    "org.apache.kafka.connect.data.Date": _day,
    "org.apache.kafka.connect.data.Time": _time_of_day(milliseconds=1),
    "org.apache.kafka.connect.data.Timestamp": _instant(milliseconds=1),
    "io.debezium.time.Date": _day,
    "io.debezium.time.Time": _time_of_day(milliseconds=1),
    "io.debezium.time.MicroTime": _time_of_day(microseconds=1),
    "io.debezium.time.Timestamp": _instant(milliseconds=1),
    "io.debezium.time.MicroTimestamp": _instant(microseconds=1),
}
