"""Results as CSV (RFC 4180): the JSON of each, made flat.

One rule for all commands: a member of a structure has the names of both with ``_`` between; several names or numbers
are one cell with spaces between; a list of objects, or an object whose members have names from the wire, is its JSON
text. ``schema_version``, ``kind`` and the buckets of histograms are left out. The columns are those that any row has,
in the order in which they appear.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from kwiresniff.export.csv_lines import cells
from kwiresniff.export.encode import json_text
from kwiresniff.export.json_objects import Json

_LEFT_OUT: Final = frozenset({"schema_version", "kind", "histogram"})

#: Structures, whose members are columns.
_STRUCTURES: Final = frozenset({
    "latency", "queued", "held", "path", "broker_time", "produce_to_consume", "record_age", "produced", "consumed",
    "refused", "repeated", "client_software", "sasl", "tls", "proxied", "bytes",
})  # fmt: skip


def csv_lines(objects: Iterable[Json]) -> Iterator[bytes]:
    """A line with the names of columns, and one for each object; nothing where there are none."""
    rows = [dict(_flat(one)) for one in objects]
    named = list(dict.fromkeys(name for row in rows for name in row))
    if rows:
        yield from csv_rows(named, ([row.get(name) for name in named] for row in rows))


def csv_rows(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    """A line with the names of columns, and one for each row of values."""
    yield _line(names)
    for row in rows:
        yield _line(map(_cell, row))


def _line(values: Iterable[str | int]) -> bytes:
    return (cells(values) + "\n").encode("utf-8", "backslashreplace")


def _flat(one: Json) -> Iterator[tuple[str, Any]]:
    for name, value in one.items():
        if name in _LEFT_OUT:
            continue
        if name in _STRUCTURES and isinstance(value, dict):
            yield from ((f"{name}_{inner}", each) for inner, each in value.items() if inner not in _LEFT_OUT)
        elif name not in _STRUCTURES or value is not None:  # a structure that is not there has no columns
            yield name, value


def _cell(value: Any) -> str | int:
    if value is None or value in ([], {}):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict | list) for item in value)):
        return json_text(value).decode("utf-8", "backslashreplace")
    if isinstance(value, list):
        return " ".join(str(item) for item in value)
    return value if isinstance(value, int | str) else str(value)
