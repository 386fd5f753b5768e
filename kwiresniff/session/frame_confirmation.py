"""Confirmation of a frame that was found by its header: its body reads as a message, or the other side answers it.

See ``Confirm`` in ``frame_search`` for what asks.
"""

from __future__ import annotations

from kwiresniff import codec
from kwiresniff.base.api_keys import PRODUCE
from kwiresniff.base.header_fields import unpack_request_header
from kwiresniff.session.frame_search import MIN_UNFINISHED_BYTES, READ_STEPS, READ_STEPS_PER_BYTE, START_STEPS, int32
from kwiresniff.session.readings import LEFT_OVER, READS, UNKNOWN, read_request, read_response, with_plain_client_id
from kwiresniff.stream.frame_reader import MAX_FRAME_BYTES
from kwiresniff.stream.resync_buffer import ResyncBuffer


def confirm_request(frame: bytes, grade: int, fills: bool) -> bool:
    """Whether a client's frame is a request; ``grade`` is its header's, ``fills`` says it ends with a segment."""
    reading = read_request(frame)
    return reading == READS or (reading == LEFT_OVER and fills)


def accept_any(frame: bytes, grade: int, fills: bool) -> bool:
    """A ``Confirm`` that accepts every request, of whatever ``grade``."""
    return True


def is_empty_produce(frame: bytes) -> bool:
    """Whether a frame reads as a Produce without topics, as an OffsetCommit response does."""
    api_key, api_version, _, _ = unpack_request_header(frame)
    if api_key != PRODUCE:
        return False
    offset = codec.decode_request_header(with_plain_client_id(frame)).body_offset
    body, _ = codec.decoder(PRODUCE, api_version, "request", "skip")(frame, offset, [])
    return not body["topic_data"]


def is_answered(buffer: ResyncBuffer, other: ResyncBuffer, frame: bytes, strong: bool, sure: bool) -> bool:
    """Whether a segment of ``other``, the bytes under search of the other side, begins with the response to a request.

    ``buffer``, which has the request, pays for it. A small correlation id stands everywhere, so it must read like one,
    or be so long that it is not all there, or be as unknown as a ``strong`` request. To a request whose header is
    ``sure`` it may be anything that fills segments exactly.
    """
    api_key, api_version, _, _ = unpack_request_header(frame)
    data = other.data
    starts = other.starts()
    buffer.steps -= START_STEPS * len(starts)
    for offset in starts:
        if data[offset + 4 : offset + 8] != frame[4:8]:
            continue
        end = offset + 4 + int32(data, offset)
        if not offset + 8 <= end <= offset + 4 + MAX_FRAME_BYTES:
            continue
        if end <= len(data):
            buffer.steps -= READ_STEPS + READ_STEPS_PER_BYTE * (end - offset)
            reading = read_response(api_key, api_version, data[offset + 4 : end])
            fills = end == len(data) or end in starts
            if reading == READS or (strong and reading == UNKNOWN) or (sure and fills):
                return True
        elif len(data) - offset >= MIN_UNFINISHED_BYTES:
            return True
    return False
