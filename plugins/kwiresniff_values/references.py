"""The names of other schemas in the text of a .proto file or of a JSON Schema."""

from __future__ import annotations

import json
import re
from typing import Any

from kwiresniff_values.limits import MAX_REFERENCES

_IMPORT = re.compile(r'^\s*import\s+(?:public\s+|weak\s+)?"([^"\n]{1,200})"\s*;', re.MULTILINE)


def references_in(kind: str, text: str) -> list[str]:
    """Paths of imports, or URIs of ``$ref`` without their fragments, each once, in their order."""
    found = _IMPORT.findall(text) if kind == "PROTOBUF" else _refs(text)
    return list(dict.fromkeys(found))[: MAX_REFERENCES + 1]


def _refs(text: str) -> list[str]:
    try:
        todo: list[Any] = [json.loads(text)]
    except (ValueError, RecursionError):
        return []
    found = []
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            reference = one.get("$ref")
            if isinstance(reference, str) and reference.partition("#")[0]:
                found.append(reference.partition("#")[0])
            todo += one.values()
        elif isinstance(one, list):
            todo += one
    return found
