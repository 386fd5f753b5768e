"""JSON in UTF-8, by orjson: of exchanges that no compiled writer has written, and of all results.

Bytes are a string when they are valid UTF-8, else ``{"base64": ...}``.
"""

from __future__ import annotations

import json
from binascii import b2a_base64
from typing import Any

import orjson

from kwiresniff.base.utf8 import first_fault
from kwiresniff.export.escaping import escape_json

_BYTES = (bytes, bytearray, memoryview)
_OPTIONS = orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS


def bytes_json(value: object) -> Any:
    """The JSON form of bytes: text when they are valid UTF-8, else ``{"base64": ...}``."""
    if isinstance(value, _BYTES):
        raw = bytes(value)
        if first_fault(raw) < 0:
            return raw.decode()
        return {"base64": b2a_base64(raw, newline=False).decode()}
    raise TypeError(f"{type(value).__name__} has no JSON form")


def json_line(value: Any) -> bytes:
    """One JSON object followed by a newline, as UTF-8; raises TypeError for what has no JSON form."""
    try:
        return escape_json(orjson.dumps(value, bytes_json, _OPTIONS))
    except TypeError:
        # Integers beyond 64 bits and lone surrogates: rare, legal in Python, refused by orjson.
        return (json.dumps(value, default=bytes_json, separators=(",", ":")) + "\n").encode()


def json_text(value: Any) -> bytes:
    """Any value as JSON in UTF-8, without a newline."""
    return json_line(value)[:-1]
