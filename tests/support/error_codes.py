"""The error codes of a decoded body, found by its definition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwiresniff.schema.types import MessageVersion, WireField


def error_codes(message: MessageVersion, body: dict[str, Any]) -> list[tuple[str, int]]:
    """The path and code of every error code that is not zero; of a body decoded in part those that are there."""
    return list(_of_structure(message.fields, body, ""))


def _of_structure(fields: tuple[WireField, ...], body: dict[str, Any], place: str) -> Iterator[tuple[str, int]]:
    for field in fields:
        value, path = body.get(field.name), place + field.name
        entries = [(f"{path}[{at}]", one) for at, one in enumerate(value or ())] if field.array else [(path, value)]
        for where, one in entries:
            if field.enum == "error_code" and one:
                yield where, one
            elif isinstance(one, dict):
                yield from _of_structure(field.fields, one, f"{where}.")
