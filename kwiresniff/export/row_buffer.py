"""Rows of a table, tuples of values in the order of its columns, until they become Arrow arrays."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

#: Bytes that a value takes beside its text, as an estimate: its place in the row, and the object.
VALUE_BYTES: Final = 24


class RowBuffer:
    """Collects rows; ``rows`` counts them, ``held_bytes`` estimates the memory that they take."""

    def __init__(self) -> None:
        self.rows = 0
        self.held_bytes = 0
        self._values: list[Sequence[Any]] = []

    def add(self, row: Sequence[Any]) -> int:
        """Appends a row; returns the estimated bytes that it takes."""
        size = _bytes_of(row)
        self._values.append(row)
        self.rows += 1
        self.held_bytes += size
        return size

    def arrays(self, schema: Any) -> list[Any]:
        """The columns as ``pyarrow.Array``, each of the type of its field. Days and moments are counts from 1970 on in
        the unit of the type.
        """
        columns: Any = zip(*self._values, strict=True) if self._values else [()] * len(schema)
        return [_array(values, field.type) for values, field in zip(columns, schema, strict=True)]


def _array(values: Sequence[Any], kind: Any) -> Any:
    arrow = import_module("pyarrow")
    if arrow.types.is_string(kind):  # text that is UTF-8 already is not decoded to be checked
        return _array(values, arrow.binary()).view(kind)
    try:
        return arrow.array(values, kind)
    except (OverflowError, UnicodeEncodeError, arrow.ArrowInvalid):
        return arrow.array([_storable(value) for value in values], kind)


def _storable(value: Any) -> Any:
    """The value with lone surrogates, as the name of a file may have them, as escapes, and null for an integer of more
    than 64 bits.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, int):
        return value if -(1 << 63) <= value < 1 << 63 else None
    if isinstance(value, list):
        return list(map(_storable, value))
    return tuple(map(_storable, value)) if isinstance(value, tuple) else value


def _bytes_of(values: Sequence[Any]) -> int:
    size = VALUE_BYTES * len(values)
    for value in values:
        if isinstance(value, (str, bytes)):
            size += len(value)
        elif isinstance(value, (list, tuple)):
            size += _bytes_of(value)
    return size
