"""Characters that act on a terminal (controls, bidirectional marks), written as escapes.

JSON and CSV go to files, and sooner or later one of them through ``cat`` to a terminal. C1 controls start the same
sequences there as ESC does, and bidirectional marks reorder what stands beside them, so neither is written as it
came. In JSON the escape is the same value; in CSV, which knows no escapes, it is what the tables show.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re

#: C1 controls, bidirectional marks, and the line separators that some readers of JSON Lines split at.
_BEYOND_ASCII = "\x80-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
_UTF8 = rb"\xc2[\x80-\x9f]|\xd8\x9c|\xe2(?:\x80[\x8e\x8f\xa8-\xae]|\x81[\xa6-\xa9])"
#: Tabs and newlines are left: quotes keep them inside their field.
_TEXT = f"[\x00-\x08\x0b-\x1f\x7f{_BEYOND_ASCII}]"

#: First characters by which spreadsheets calculate a cell, or open a link, instead of showing it (CWE-1236). Some look
#: behind tabs and newlines, and take the wide forms for the same.
_FORMULA = tuple("=+-@\t\n\uff1d\uff0b\uff0d\uff20")


def escape_json(line: bytes) -> bytes:
    """JSON in UTF-8 whose C0 controls are escaped already, with the other characters that act escaped as well."""
    # Looking for the first bytes one after another is 20 times faster than the pattern.
    if line.isascii() or not (b"\xc2" in line or b"\xe2" in line or b"\xd8" in line):
        return line
    return re.sub(_UTF8, _json_code, line)


def escape_text(text: str) -> str:
    """Text with each of them as ``\\x1b`` or ``\\u202e``."""
    if text.isprintable():
        return text
    return re.sub(_TEXT, _text_code, text)


def escape_cell(text: str) -> str:
    """``escape_text`` for a cell of a table; a first character that spreadsheets take for a formula is escaped, too."""
    if text.startswith(_FORMULA):
        return _text_code(text[0]) + escape_text(text[1:])
    return escape_text(text)


def _json_code(match: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(match[0].decode())


def _text_code(match: re.Match[str] | str) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
