"""Walks over Avro's binary encoding and counts: bytes that do not fit are found, and what is too much to read.

fastavro reads an array of a billion nulls, which takes five bytes, and follows a schema that contains itself as deep as
the bytes go, on the stack of C. Bytes that pass here are safe to give to it. Source: Avro 1.12, "Binary encoding".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kwiresniff.plugins.answers import TooMuch
from kwiresniff_values.limits import MAX_DECIMAL_BYTES, MAX_DEPTH, MAX_VALUES
from kwiresniff_values.problems import Misfit

_FIXED_SIZES = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_VARINT_BYTES = 10


class Walk:
    """One walk over the bytes of one value. ``named`` are the types that the schema defines, by full name."""

    def __init__(self, data: bytes, named: Mapping[str, Any]) -> None:
        self._data = data
        self._named = named
        self._at = 0
        self._values = 0

    def check(self, schema: Any) -> None:
        """Raises Misfit where the bytes are not of the schema to the last, TooMuch where it is too much."""
        self._value(schema, 0, "")
        left = len(self._data) - self._at
        if left:
            raise Misfit(f"{left} bytes are left over behind the value")

    def _value(self, schema: Any, depth: int, path: str) -> None:
        self._values += 1
        if self._values > MAX_VALUES:
            raise TooMuch(f"of more than {MAX_VALUES} values")
        if depth > MAX_DEPTH:
            raise TooMuch(f"nested deeper than {MAX_DEPTH} levels")
        if isinstance(schema, list):
            branch = self._number(path)
            if not 0 <= branch < len(schema):
                raise Misfit(f"{_place(path)}: branch {branch} of a union of {len(schema)}")
            self._value(schema[branch], depth, path)
            return
        kind = schema["type"] if isinstance(schema, dict) else schema
        size = _FIXED_SIZES.get(kind) if isinstance(kind, str) else None
        if size is not None:
            self._skip(size, path)
        elif kind in ("int", "long"):
            self._number(path)
        elif kind in ("string", "bytes"):
            self._bytes(schema, path)
        elif kind in ("record", "error"):
            for field in schema["fields"]:
                self._value(field["type"], depth + 1, f"{path}.{field['name']}")
        elif kind == "enum":
            symbol = self._number(path)
            if not 0 <= symbol < len(schema["symbols"]):
                raise Misfit(f"{_place(path)}: symbol {symbol} of {len(schema['symbols'])}")
        elif kind == "fixed":
            self._skip(schema["size"], path)
        elif kind in ("array", "map"):
            self._blocks(schema, kind, depth, path)
        elif isinstance(kind, dict | list):
            self._value(kind, depth, path)
        else:
            self._value(self._named[kind], depth, path)

    def _bytes(self, schema: Any, path: str) -> None:
        length = self._number(path)
        if isinstance(schema, dict) and schema.get("logicalType") == "decimal" and length > MAX_DECIMAL_BYTES:
            raise TooMuch(f"with a decimal of {length} bytes, of which there may be {MAX_DECIMAL_BYTES}")
        self._skip(length, path)

    def _blocks(self, schema: Any, kind: str, depth: int, path: str) -> None:
        item = schema["items"] if kind == "array" else schema["values"]
        while count := self._number(path):
            if count < 0:
                count = -count
                if self._number(path) < 0:
                    raise Misfit(f"{_place(path)}: a block of a negative size")
            for _ in range(count):
                if kind == "map":
                    self._skip(self._number(path), path)
                self._value(item, depth + 1, f"{path}[]")

    def _skip(self, size: int, path: str) -> None:
        if size < 0:
            raise Misfit(f"{_place(path)}: a length of {size} bytes")
        left = len(self._data) - self._at
        if size > left:
            raise Misfit(f"{_place(path)}: {size} bytes, of which {left} are there")
        self._at += size

    def _number(self, path: str) -> int:
        value = 0
        for index in range(_VARINT_BYTES):
            if self._at == len(self._data):
                raise Misfit(f"{_place(path)}: the bytes end in a number")
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1)
        raise Misfit(f"{_place(path)}: a number of more than {_VARINT_BYTES} bytes")


def _place(path: str) -> str:
    return path.removeprefix(".") or "the value"
