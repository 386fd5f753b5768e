"""Text from the wire, made safe to print.

Nothing that a peer sent may move the cursor, change colours, open a link or reorder what stands beside it. Control
characters (C0, DEL, C1), bidirectional overrides and isolates, zero-width characters, line separators, lone
surrogates, private-use and unassigned code points are written as visible escapes: ``\\x1b``, ``\\u202e``,
``\\U000e0001``. A backslash that was sent stays a single backslash: JSON and Windows paths are far more common than
somebody pretending to be an escape, and a pretended escape does nothing.

The threat is the one of Trojan Source (CVE-2021-42574) and of terminal escape injection (CWE-150).
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING, Final

from kwiresniff.base.utf8 import first_fault

if TYPE_CHECKING:
    from collections.abc import Callable

_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

#: Printable by Unicode's categories, yet blank or invisible: they could hide text or make two names look the same.
_INVISIBLE: Final = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
    + "".join(map(chr, range(0x180B, 0x1810)))
    + "".join(map(chr, range(0xFE00, 0xFE10)))
    + "".join(map(chr, range(0xE0100, 0xE01F0)))
)

#: Combining marks kept on one character. Vietnamese needs two and Hebrew with cantillation three; a pile of more only
#: serves to smear over the lines above and below.
MAX_COMBINING_MARKS = 3

#: Printable characters in a row that are a word.
SHORTEST_WORD: Final = 4


def escape(text: str) -> str:
    """The text with everything that is not plainly visible replaced by a visible escape."""
    # 60 ns for the usual case; str.isprintable is False for every Cc, Cf, Cs, Co, Cn, Zl, Zp and odd space.
    if text.isascii() and text.isprintable():
        return text
    out = []
    marks = 0
    for char in text:
        if not char.isprintable() or char in _INVISIBLE:
            out.append(_SHORT.get(char) or _code(char))
            marks = 0
        elif char.isascii() or unicodedata.category(char)[0] != "M":
            out.append(char)
            marks = 0
        else:
            marks += 1
            # A mark with nothing of its own before it would sit on our punctuation.
            out.append(char if out and marks <= MAX_COMBINING_MARKS else _code(char))
    return "".join(out)


def _code(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\U{code:08x}"


def text_of(data: bytes) -> str | None:
    """The bytes as text when a person would call them text, else None.

    Valid UTF-8 in which no more than one character in eight needs an escape.
    """
    if first_fault(data) >= 0:
        return None
    text = data.decode()
    if text.isprintable():
        return text
    odd = sum([not char.isprintable() and char not in _SHORT for char in text])
    return text if odd * 8 <= len(text) else None


@cache
def _words() -> Callable[[bytes], list[bytes]]:
    """A function that finds the words in binary data."""
    return re.compile(rb"[ -~]{%d,}" % SHORTEST_WORD).findall


def mixed(data: bytes) -> str | None:
    """Binary data with words in it (Avro, Protobuf, Kafka's own formats), the other bytes as escapes.

    None when runs of four or more printable characters make up less than a sixth: fewer are chance.
    """
    if 0 < len(data) < SHORTEST_WORD:
        return None
    if sum([len(word) for word in _words()(data)]) * 6 < len(data):
        return None
    return "".join([chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}" for byte in data])
