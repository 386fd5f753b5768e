"""Elements of the distinguished encoding rules of ASN.1: tag, length, contents (X.690, section 8.1)."""

from __future__ import annotations

from collections.abc import Iterator

Element = tuple[int, int, int]  # tag, start and end of the contents


def elements(data: bytes, start: int, end: int) -> Iterator[Element]:
    """The elements that lie one after the other in ``data[start:end]``, up to the first that does not fit."""
    while end - start >= 2:
        tag, length = data[start], data[start + 1]
        start += 2
        if length >= 0x80:
            size = length & 0x7F
            if not 1 <= size <= 3 or end - start < size:
                return
            length = int.from_bytes(data[start : start + size], "big")
            start += size
        if length > end - start:
            return
        yield tag, start, start + length
        start += length
