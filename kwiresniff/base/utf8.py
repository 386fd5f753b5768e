"""Where bytes are not UTF-8, without an exception for each text that is none: it takes as long as reading a message.

Source: RFC 3629, section 4, the syntax of UTF-8 byte sequences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_extensions import i64


def first_fault(raw: bytes) -> i64:
    """The place of the first byte that begins no character in UTF-8; -1 where there is none."""
    if raw.isascii():
        return -1
    size: i64 = len(raw)
    at: i64 = 0
    while at < size:
        lead: i64 = raw[at]
        if lead < 0x80:
            at += 1
            continue
        more: i64 = 1 if lead < 0xE0 else 2 if lead < 0xF0 else 3
        if lead < 0xC2 or lead > 0xF4 or at + more >= size:
            return at
        second: i64 = raw[at + 1]
        if second & 0xC0 != 0x80:
            return at
        if (lead == 0xE0 and second < 0xA0) or (lead == 0xF0 and second < 0x90):  # longer than it has to be
            return at
        if (lead == 0xED and second > 0x9F) or (lead == 0xF4 and second > 0x8F):  # a surrogate, or beyond Unicode
            return at
        last: i64 = at + more
        at += 2
        while at <= last:
            if raw[at] & 0xC0 != 0x80:
                return last - more
            at += 1
    return -1
