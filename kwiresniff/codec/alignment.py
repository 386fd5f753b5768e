"""The first whole batch in a piece of a log that was cut without regard to batches.

FetchSnapshot sends a snapshot in pieces of so many bytes (``unaligned_records``, KIP-630), so a piece may begin and end
inside a batch. Only record batches of magic 2 are in snapshots. A batch found inside a piece is believed when its CRC
agrees; at the start of the piece, where the first piece has one, a header that makes sense is enough.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from kwiresniff.base.batch_layout import (
    ATTRIBUTES_AT,
    HEADER_BYTES,
    LOG_OVERHEAD,
)
from kwiresniff.codec.batch_libraries import crc32c
from kwiresniff.codec.record_batch import HEADER

if TYPE_CHECKING:
    import re

#: A plausible header: offset < 2^56, length < 16 MiB, magic 2, attributes < 128, delta and count not negative.
_FRONT = rb"(?=\x00.{7}\x00.{7}\x02.{4}\x00[\x00-\x7f][\x00-\x7f].{33}[\x00-\x7f].{3})"

#: Fronts that make sense and are no batch after all, before no more are tried: real data has hardly any.
_MAX_TRIES = 1000
#: Bytes put through the CRC for that, in multiples of the piece.
_MAX_CRC_ROUNDS = 4


def first_batch(buf: bytes, start: int, end: int) -> int:
    """The offset of the first whole batch in ``buf[start:end]``, or ``start`` for a cut one there; ``end`` for none."""
    front = _front()
    if front.match(buf, start, end):
        return start
    left = _MAX_CRC_ROUNDS * (end - start)
    for tries, found in enumerate(front.finditer(buf, start, end)):
        at = found.start()
        _, length, _, _, crc, *_ = HEADER.unpack_from(buf, at)
        stop = at + LOG_OVERHEAD + length
        if tries >= _MAX_TRIES or left < 0:
            break
        if stop - at < HEADER_BYTES or stop > end:
            continue
        left -= length
        if crc32c()(buf[at + ATTRIBUTES_AT : stop]) == crc:
            return at
    return end


@cache
def _front() -> re.Pattern[bytes]:
    """The pattern, made for the first snapshot: few captures have one, and all that read records load this module."""
    return re.compile(_FRONT, re.DOTALL)
