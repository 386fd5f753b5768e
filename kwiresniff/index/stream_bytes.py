"""A frame from the segments that carry it, where nothing was lost, repeated or out of order.

Whoever needs more has to read the capture again: what a receiver makes of such segments depends on all before them.
"""

from __future__ import annotations

from collections.abc import Sequence

from kwiresniff.base.sequence_numbers import SEQ_MASK
from kwiresniff.model import DECRYPTED, Segment

_LENGTH_BYTES = 4


def frame_in(segments: Sequence[Segment], header: bytes, size_bytes: int) -> bytes | None:
    """The frame of ``size_bytes`` that begins with ``header``, without its length, in the first of the ``segments`` and
    ends in the last of them; None where there is none, or more than one.

    ``segments`` are those of one direction with bytes, in the order of the capture.
    """
    data = _in_order(segments)
    if data is None:
        return None
    front = size_bytes.to_bytes(_LENGTH_BYTES) + header
    first, last = _length(segments[0]), _length(segments[-1])
    begins_in = first if len(segments) > 1 else len(data)
    found: bytes | None = None
    at = data.find(front)
    while 0 <= at < begins_in:
        end = at + _LENGTH_BYTES + size_bytes
        if len(data) - last < end <= len(data):
            if found is not None:
                return None
            found = data[at + _LENGTH_BYTES : end]
        at = data.find(front, at + 1)
    return found


def _in_order(segments: Sequence[Segment]) -> bytes | None:
    """The bytes of segments of which each begins where the last one ended."""
    pieces: list[bytes] = []
    expected = segments[0][3] if segments else 0
    for _, _, _, seq, _, flags, buffer, start, end, missing in segments:
        if seq != expected or missing or flags & DECRYPTED:
            return None
        pieces.append(buffer[start:end])
        expected = (seq + end - start) & SEQ_MASK
    return b"".join(pieces)


def _length(segment: Segment) -> int:
    return segment[8] - segment[7]
