"""Dataclasses from plain values: how work comes to executors, and back out of commits and rounds, which are JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cache
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")

_types_of_fields = cache(get_type_hints)


def from_plain(kind: type[T], value: Any) -> T:
    """An object of ``kind``, a dataclass, of what ``dataclasses.asdict`` or ``astuple`` made of one, after JSON or not.

    Its fields may be dataclasses, named tuples, tuples, ``None`` or plain values. A field that is missing has its
    default; raises KeyError, TypeError or ValueError for anything else that ``kind`` does not have.
    """
    found: T = _made(kind, value)
    return found


def _made(kind: Any, value: Any) -> Any:
    if get_origin(kind) is UnionType:
        return None if value is None else _made(next(one for one in get_args(kind) if one is not type(None)), value)
    if get_origin(kind) is tuple:
        kinds = get_args(kind)
        if kinds[-1] is Ellipsis:
            return tuple([_made(kinds[0], one) for one in value])
        return tuple([_made(one, part) for one, part in zip(kinds, value, strict=True)])
    if not is_dataclass(kind) and not hasattr(kind, "_fields"):
        return value
    types = _types_of_fields(kind)
    if isinstance(value, Mapping):
        return kind(**{name: _made(types[name], part) for name, part in value.items()})
    return kind(*[_made(one, part) for one, part in zip(types.values(), value, strict=True)])
