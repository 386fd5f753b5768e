"""A schema as registries write it: Confluent's JSON of ``/schemas/ids/1`` and of records in the topic ``_schemas``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kwiresniff_values.schemas import Schema


def schema_of(name: str, said: dict[str, Any], version: Callable[[str, int], Schema | None]) -> Schema | None:
    """The schema of an entry, or None where it is none; ``version`` finds those it refers to by subject and version."""
    text, kind = said.get("schema"), said.get("schemaType") or "AVRO"
    references = said.get("references") or []
    if not isinstance(text, str) or kind not in ("AVRO", "PROTOBUF", "JSON") or not isinstance(references, list):
        return None
    by_name = {
        one["name"]: (one["subject"], one["version"])
        for one in references
        if isinstance(one, dict)
        and isinstance(one.get("name"), str)
        and isinstance(one.get("subject"), str)
        and isinstance(one.get("version"), int)
    }

    def referred(other: str) -> Schema | None:
        return version(*by_name[other]) if other in by_name else None

    return Schema(name, kind, text, tuple(by_name), referred)
