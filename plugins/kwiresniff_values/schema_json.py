"""Schemas that are written in JSON, within their bounds."""

from __future__ import annotations

import json
from typing import Any

from kwiresniff_values.limits import MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH
from kwiresniff_values.problems import Unusable


def parse_schema_text(name: str, text: str | bytes) -> Any:
    """The value of a schema's text; raises Unusable where it is no JSON, too long or nested too deep."""
    if len(text) > MAX_SCHEMA_BYTES:
        raise Unusable(f"schema {name} has more than {MAX_SCHEMA_BYTES} bytes")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Unusable(f"schema {name} is no JSON: {error}") from None
    layer = [found]
    for _ in range(MAX_SCHEMA_DEPTH):
        layer = [child for one in layer for child in _children(one)]
        if not layer:
            return found
    raise Unusable(f"schema {name} nests deeper than {MAX_SCHEMA_DEPTH} levels")


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
