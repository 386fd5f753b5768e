"""Python values as Arrow arrays, made of their buffers (the Arrow columnar format).

``pyarrow.array`` would do, but imports pandas to see whether it is given something of it: a quarter of a second.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from importlib import import_module
from itertools import accumulate

from kwiresniff.base.light_typing import Any

#: Letters of Python's own arrays for numbers of so many bits.
_LETTERS = {16: "h", 32: "i", 64: "q"}


def arrow_array(values: Sequence[Any], kind: Any) -> Any:
    """The values as a ``pyarrow.Array`` of a type: numbers, booleans, texts, bytes, and lists and structures of those.

    None stands for no value. Days and moments are numbers, counted from 1970 on in the type's unit; a structure is a
    tuple of all its fields.
    """
    arrow = import_module("pyarrow")
    types = arrow.types
    nulls = sum([value is None for value in values])
    mask = arrow.py_buffer(_bits([value is not None for value in values])) if nulls else None

    def made(*buffers: Any, children: Iterable[Any] = ()) -> Any:
        found = [mask, *map(arrow.py_buffer, buffers)]
        return arrow.Array.from_buffers(kind, len(values), found, nulls, children=list(children))

    if types.is_struct(kind):
        nothing = (None,) * kind.num_fields
        members = zip(*[nothing if value is None else value for value in values], strict=True) if values else nothing
        return made(children=[arrow_array(one or (), field.type) for one, field in zip(members, kind, strict=True)])
    if types.is_list(kind):
        lists = [() if value is None else value for value in values]
        inner = [one for part in lists for one in part]
        return made(_ends(map(len, lists)), children=[arrow_array(inner, kind.value_type)])
    if types.is_string(kind) or types.is_binary(kind):
        texts = [_bytes(value) for value in values]
        return made(_ends(map(len, texts)), b"".join(texts))
    if types.is_boolean(kind):
        return made(_bits([bool(value) for value in values]))
    numbers = [0 if value is None else value for value in values] if nulls else values
    return made(array(_LETTERS[kind.bit_width], numbers).tobytes())


def _ends(sizes: Iterable[int]) -> bytes:
    return array("i", accumulate(sizes, initial=0)).tobytes()


def _bits(values: Sequence[bool]) -> bytes:
    """A bit for each value, the lowest first."""
    digits = "".join(["1" if value else "0" for value in reversed(values)])
    return int(digits or "0", 2).to_bytes((len(values) + 7) // 8, "little")


def _bytes(value: str | bytes | None) -> bytes:
    """The name of a file may be any bytes: half surrogate pairs, for which UTF-8 has no form, are visible escapes."""
    if value is None:
        return b""
    return value.encode("utf-8", "backslashreplace") if isinstance(value, str) else value
