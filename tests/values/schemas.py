"""Schemas as sources would give them."""

from __future__ import annotations

import json
from typing import Any

from google.protobuf import descriptor_pb2

from kwiresniff_values.schemas import Schema

FIELD = descriptor_pb2.FieldDescriptorProto
#: Avro: a field of each type.
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}
ALL = {
    "type": "record",
    "name": "All",
    "fields": [
        {"name": "b", "type": "boolean"},
        {"name": "f", "type": "float"},
        {"name": "d", "type": "double"},
        {"name": "s", "type": ["null", "string", "long"]},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
        {"name": "x", "type": {"type": "fixed", "name": "X", "size": 2}},
        {"name": "m", "type": {"type": "map", "values": {"type": "array", "items": "int"}}},
        {"name": "t", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "u", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "n", "type": DECIMAL},
        {"name": "again", "type": "E"},
    ],
}


def order_file() -> Any:
    """``message Order { int64 id = 1; Order next = 2; message Line { string name = 1; } repeated Line lines = 3; }``"""
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    order = file.message_type.add(name="Order")
    order.field.add(name="id", number=1, type=FIELD.TYPE_INT64, label=FIELD.LABEL_OPTIONAL)
    order.field.add(name="next", number=2, type=FIELD.TYPE_MESSAGE, type_name=".shop.Order", label=FIELD.LABEL_OPTIONAL)
    line = ".shop.Order.Line"
    order.field.add(name="lines", number=3, type=FIELD.TYPE_MESSAGE, type_name=line, label=FIELD.LABEL_REPEATED)
    order.nested_type.add(name="Line").field.add(
        name="name", number=1, type=FIELD.TYPE_STRING, label=FIELD.LABEL_OPTIONAL
    )
    file.message_type.add(name="Other")
    return file


def schema(kind: str, text: Any, others: dict[str, Schema] | None = None, **more: Any) -> Schema:
    """A schema of a text, or of a JSON value, that refers to ``others`` by name."""
    found = others or {}
    said = text if isinstance(text, str | bytes) else json.dumps(text)
    return Schema("orders-value version 1", kind, said, tuple(found), found.get, **more)
