"""JSON bytes from dicts: the hot loop of ``read -o jsonl`` for what is decoded.

Bytes are written as a string when they are valid UTF-8, else as ``{"base64": ...}``. Measured: handing orjson the
C function ``bytes.decode`` as its hook costs half of a Python hook (0.15 against 0.31 us a record) and converting
while building costs more than both, so that is tried first; what it cannot write is written again the careful way.
"""

from __future__ import annotations

import json
from binascii import b2a_base64
from collections.abc import Callable

import orjson

from kwiresniff.base.light_typing import Any
from kwiresniff.base.utf8 import first_fault
from kwiresniff.export.escaping import escape_json

_BYTES = (bytes, bytearray, memoryview)
#: Captures with binary keys or values fail the quick way on nearly every message; after one failure this many
#: messages take the careful way at once, so that at most one message in 65 is tried in vain.
CAREFUL_AFTER_FAILURE = 64


def bytes_json(value: object) -> Any:
    """The JSON form of bytes: text when they are valid UTF-8, else ``{"base64": ...}``."""
    if isinstance(value, _BYTES):
        raw = bytes(value)
        if first_fault(raw) < 0:
            return raw.decode()
        return {"base64": b2a_base64(raw, newline=False).decode()}
    raise TypeError(f"{type(value).__name__} has no JSON form")


class JsonEncoder:
    """Encodes one object after another; remembers whether the fast encoder has lately been worth trying."""

    __slots__ = ("_careful",)

    def __init__(self) -> None:
        self._careful = 0

    def line(self, value: Any) -> bytes:
        """One JSON object followed by a newline, as UTF-8."""
        if not self._careful:
            try:
                return escape_json(orjson.dumps(value, bytes.decode, orjson.OPT_APPEND_NEWLINE))
            except TypeError:
                self._careful = CAREFUL_AFTER_FAILURE
        else:
            self._careful -= 1
        return _careful_line(value)

    def text(self, value: Any) -> bytes:
        """Any value as JSON in UTF-8, without a newline."""
        return self.line(value)[:-1]


def _careful_line(value: Any) -> bytes:
    hook: Callable[[object], Any] = bytes_json
    try:
        return escape_json(orjson.dumps(value, hook, orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS))
    except TypeError:
        # Integers beyond 64 bits and lone surrogates: rare, legal in Python, refused by orjson.
        return (json.dumps(value, default=hook, separators=(",", ":")) + "\n").encode()
