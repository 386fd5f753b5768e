"""Rows of a table, tuples of values in the order of its columns, until they become Arrow arrays."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from importlib import import_module
from itertools import accumulate
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
    """The values as an array. For speed it is laid out here, as Arrow's format says: ``pyarrow.array`` gives the same,
    and imports pandas, half a second and 50 MB, where that is installed.
    """
    arrow = import_module("pyarrow")
    try:
        buffers, children = _layout(arrow, values, kind)
    except OverflowError:  # a capture may claim any time; what does not fit is null
        limit = 1 << kind.bit_width - 1
        return _array([value if value is None or -limit <= value < limit else None for value in values], kind)
    except UnicodeEncodeError:  # lone surrogates, as the name of a file may have them, are written as escapes
        escaped = [value.encode("utf-8", "backslashreplace") if isinstance(value, str) else value for value in values]
        return _array(escaped, kind)
    nulls = values.count(None)
    mask = _bits(arrow, [value is not None for value in values]) if nulls else None
    return arrow.Array.from_buffers(kind, len(values), [mask, *buffers], nulls, children=children)


def _layout(arrow: Any, values: Sequence[Any], kind: Any) -> tuple[list[Any], list[Any]]:
    """The buffers of an array without that of its nulls, and the arrays of its members."""
    types = arrow.types
    if types.is_struct(kind):
        members = zip(*[value or (None,) * kind.num_fields for value in values], strict=True)
        columns = list(members) or [()] * kind.num_fields
        return [], [_array(column, field.type) for column, field in zip(columns, kind, strict=True)]
    if types.is_boolean(kind):
        return [_bits(arrow, values)], []
    if types.is_list(kind):
        lists = [value or () for value in values]
        return [_ends(arrow, lists)], [_array([one for value in lists for one in value], kind.value_type)]
    if types.is_string(kind) or types.is_binary(kind):
        texts: list[bytes] = [value.encode() if isinstance(value, str) else value or b"" for value in values]
        return [_ends(arrow, texts), arrow.py_buffer(b"".join(texts))], []
    code = {16: "h", 32: "i", 64: "q"}[kind.bit_width]
    return [arrow.py_buffer(array(code, [0 if value is None else value for value in values]))], []


def _ends(arrow: Any, values: Sequence[Sequence[Any]]) -> Any:
    return arrow.py_buffer(array("i", accumulate([len(value) for value in values], initial=0)))


def _bits(arrow: Any, values: Sequence[Any]) -> Any:
    digits = "".join(["1" if value else "0" for value in reversed(values)])
    return arrow.py_buffer(int(digits or "0", 2).to_bytes(len(values) // 8 + 1, "little"))


def _bytes_of(values: Sequence[Any]) -> int:
    size = VALUE_BYTES * len(values)
    for value in values:
        if isinstance(value, (str, bytes)):
            size += len(value)
        elif isinstance(value, (list, tuple)):
            size += _bytes_of(value)
    return size
