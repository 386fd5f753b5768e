"""Strings and bytes as they stand in the rows of a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.strings import BytesWriter, read_i64_le

from kwiresniff.base.json_text import ONES, QUOTES, SPACES
from kwiresniff.codec.text.tree_wording import Words

if TYPE_CHECKING:
    from mypy_extensions import i64

#: The same byte in all eight places of a word: 1, a space, a quote, a DEL.
_DELETES: Final = 0x7F7F7F7F7F7F7F7F

#: Texts that would read as something else than text, and the longest of them.
_AMBIGUOUS: Final = frozenset([b"", b"null", b"true", b"false", b"empty"])
_LONGEST: Final = 5

#: What a look at bytes tells: whether there is a space, a quote, or anything but printable ASCII.
_HAS_SPACE: Final = 1
_HAS_QUOTE: Final = 2
_IS_ODD: Final = 4

#: Texts of cuts that are kept.
_KEPT: Final = 4096


@final
class ValueWriter:
    """Writes strings and bytes; those of printable ASCII itself, all others by ``Words.text``."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self.limit: i64 = words.limit
        self.most: i64 = words.limit + words.slack
        self.more_bytes: dict[int, bytes] = {}
        self.more_characters: dict[int, bytes] = {}

    def write(self, out: BytesWriter, data: bytes, start: i64, stop: i64, is_text: bool, quote: bool) -> None:
        """Write ``data[start:stop]``; raises UnicodeDecodeError for a text that is none."""
        length: i64 = stop - start
        cut: i64 = stop
        if length > self.most:
            cut = start + self.limit
        found: i64 = look(data, start, cut)
        if found & _IS_ODD or (is_text and cut < stop and not data[cut:stop].isascii()):
            raw = data[start:stop]
            out.write(self.words.text(raw.decode() if is_text else raw, quote).encode())
            return
        text = data[start:cut]
        quoted = quote and found == _HAS_SPACE
        if cut - start <= _LONGEST and text in _AMBIGUOUS:
            quoted = True
        if quoted:
            out.append(34)
            out.write(text)
            out.append(34)
        else:
            out.write(text)
        if cut < stop:
            out.write(self._more(stop - cut, is_text))

    def _more(self, count: int, is_text: bool) -> bytes:
        kept = self.more_characters if is_text else self.more_bytes
        text = kept.get(count)
        if text is None:
            if len(kept) >= _KEPT:
                kept.clear()
            text = kept[count] = self.words.more(count, "character" if is_text else "byte")
        return text


def look(data: bytes, start: i64, stop: i64) -> i64:
    """Flags of what ``data[start:stop]`` contains: ``_HAS_SPACE``, ``_HAS_QUOTE``, ``_IS_ODD``. The slice lies inside
    the data.
    """
    found: i64 = 0
    at: i64 = start
    while at + 8 <= stop:
        word: i64 = read_i64_le(data, at)
        if (word >> 7) & ONES:
            return 4
        # A byte in question borrows from its top bit.
        if (((word - SPACES) | ((word ^ _DELETES) - ONES)) >> 7) & ONES:
            return 4
        if (((word ^ SPACES) - ONES) >> 7) & ONES:
            found |= 1
        if (((word ^ QUOTES) - ONES) >> 7) & ONES:
            found |= 2
        at += 8
    while at < stop:
        byte: i64 = data[at]
        if byte < 32 or byte > 126:
            return 4
        if byte == 32:
            found |= 1
        elif byte == 34:
            found |= 2
        at += 1
    return found
