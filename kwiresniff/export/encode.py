"""JSON bytes from dicts: the hot loop of ``read -o jsonl`` for what is decoded.

Bytes are written as a string when they are valid UTF-8, else as ``{"base64": ...}``. Measured: handing orjson the
C function ``bytes.decode`` as its hook costs half of a Python hook (0.15 against 0.31 us a record) and converting
while building costs more than both, so that is tried first; what it cannot write is written again the careful way.

orjson loads modules of everything that it could be given (dataclasses, enumerations, uuid): a quarter of a short run,
in which mostly names and connections are written. So what is plain is written here, until that is more than little.
"""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Callable
from functools import cache

from kwiresniff.base.light_typing import Any
from kwiresniff.base.utf8 import first_fault
from kwiresniff.export.escaping import escape_json

_BYTES = (bytes, bytearray, memoryview)
#: Captures with binary keys or values fail the quick way on nearly every message; after one failure this many
#: messages take the careful way at once, so that at most one message in 65 is tried in vain.
CAREFUL_AFTER_FAILURE = 64
#: Bytes that an encoder writes without orjson: those of some twenty connections.
PLAIN_BYTES = 16 << 10
#: Integers that orjson writes, too.
_LEAST, _MOST = -(1 << 63), (1 << 64) - 1


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

    __slots__ = ("_careful", "_plain_bytes")

    def __init__(self) -> None:
        self._careful = 0
        self._plain_bytes = 0

    def line(self, value: Any) -> bytes:
        """One JSON object followed by a newline, as UTF-8."""
        if self._plain_bytes < PLAIN_BYTES:
            text = _plain(value)
            if text is not None:
                self._plain_bytes += len(text)
                return f"{text}\n".encode()
            self._plain_bytes = PLAIN_BYTES
        orjson = _orjson()
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


@cache
def _orjson() -> Any:
    import orjson

    return orjson


def _plain(value: Any) -> str | None:
    """The JSON text of a value that is made of printable ASCII, integers and truth values, or None for others."""
    kind = type(value)
    if kind is str:
        return f'"{value}"' if value.isascii() and value.isprintable() and not ('"' in value or "\\" in value) else None
    if kind is bytes:
        return _plain(value.decode()) if value.isascii() else None
    if kind is int:
        return str(value) if _LEAST <= value <= _MOST else None
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    parts: list[str] = []
    if kind is dict:
        for name, member in value.items():
            key, text = _plain(name) if type(name) is str else None, _plain(member)
            if key is None or text is None:
                return None
            parts.append(f"{key}:{text}")
        return f"{{{','.join(parts)}}}"
    if kind is not list and kind is not tuple:
        return None
    for item in value:
        text = _plain(item)
        if text is None:
            return None
        parts.append(text)
    return f"[{','.join(parts)}]"


def _careful_line(value: Any) -> bytes:
    import json

    orjson = _orjson()
    hook: Callable[[object], Any] = bytes_json
    try:
        return escape_json(orjson.dumps(value, hook, orjson.OPT_APPEND_NEWLINE | orjson.OPT_NON_STR_KEYS))
    except TypeError:
        # Integers beyond 64 bits and lone surrogates: rare, legal in Python, refused by orjson.
        return (json.dumps(value, default=hook, separators=(",", ":")) + "\n").encode()
