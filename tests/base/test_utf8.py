"""Where bytes are not UTF-8: RFC 3629, held against Python's own decoder."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from kwiresniff.base.utf8 import first_fault

#: One byte of each sort that RFC 3629 tells apart, and both ends of each.
EDGES = (
    0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF,
    0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF,
)  # fmt: skip


def expected(raw: bytes) -> int:
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return error.start
    return -1


@pytest.mark.parametrize("length", [0, 1, 2, 3])
def test_every_sort_of_byte_behind_every_other_is_judged_as_by_the_decoder(length: int) -> None:
    for values in product(EDGES, repeat=length):
        raw = bytes(values)
        assert first_fault(raw) == expected(raw), raw


def test_texts_and_what_became_of_them_are_judged_as_by_the_decoder() -> None:
    """Characters of one to four bytes, of which some bytes were exchanged, or cut off."""
    random = Random(7)
    for _ in range(20_000):
        text = "".join(chr(random.choice((0x61, 0xE4, 0x3042, 0xD7FF, 0xE000, 0x1F600, 0x10FFFF))) for _ in range(6))
        raw = bytearray(text.encode())
        for _ in range(random.randrange(3)):
            raw[random.randrange(len(raw))] = random.randrange(256)
        cut = bytes(raw[: random.randrange(len(raw) + 1)])
        assert first_fault(cut) == expected(cut), cut
