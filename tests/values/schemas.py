"""Schemas as sources would give them."""

from __future__ import annotations

import json
from typing import Any

from kwiresniff_values.schemas import Schema


def schema(kind: str, text: Any, others: dict[str, Schema] | None = None, **more: Any) -> Schema:
    """A schema of a text, or of a JSON value, that refers to ``others`` by name."""
    found = others or {}
    said = text if isinstance(text, str | bytes) else json.dumps(text)
    return Schema("orders-value version 1", kind, said, tuple(found), found.get, **more)
