"""What can go wrong, one root and one level below it.

A user sees ``str(error)`` on one line, so every message says what went wrong, where, and what to do.
"""

from __future__ import annotations


class KwiresniffError(Exception):
    """Root of everything this package raises on purpose."""


class CaptureError(KwiresniffError):
    """A capture cannot be opened or read at all."""


class SchemaError(KwiresniffError):
    """The protocol definitions, or a name or version looked up in them, are wrong."""


class DecodeError(KwiresniffError):
    """Bytes that do not fit their definition.

    ``offset`` counts bytes from the start of the frame (the 4-byte length not included), ``path`` names the
    field, like ``topics[0].partitions[2].records``.
    """

    def __init__(self, message: str, *, code: str = "decode", offset: int | None = None, path: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.offset = offset
        self.path = path


class FilterError(KwiresniffError):
    """A filter expression that cannot be understood; ``position`` is the 0-based column."""

    def __init__(self, message: str, *, position: int = 0) -> None:
        super().__init__(message)
        self.position = position


class PluginError(KwiresniffError):
    """A plugin that cannot be loaded."""


class ExportError(KwiresniffError):
    """An output that cannot be written."""
