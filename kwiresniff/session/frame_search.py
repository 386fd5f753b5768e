"""The start of a frame in the middle of a stream: at the start of a capture, or after a gap (resynchronisation).

A request announces itself: a length, an API key and a version that exist together, a correlation id, a client id
that reads as text (protocol guide, "Request Header v1"). A response carries nothing but its correlation id, so it
is recognised only by one that is outstanding, or by lengths that lead to such a one. Either is believed when the frame
that follows agrees, or when the frame ends where a segment ends, which is where senders that wait for an answer stop.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from functools import cache
from struct import Struct
from typing import TYPE_CHECKING, Final

from kwiresniff.base.api_keys import CONTROLLED_SHUTDOWN
from kwiresniff.base.fastint import i16, i32
from kwiresniff.stream.frame_reader import MAX_FRAME_BYTES, SOUND_FRAME_BYTES
from kwiresniff.stream.resync_buffer import ResyncBuffer

if TYPE_CHECKING:
    import re

    from mypy_extensions import i64

REQUEST_FRONT_BYTES: Final = 14
#: api_key, api_version, correlation_id and the length of a null client id.
MIN_REQUEST_BYTES: Final = 10
#: Longer client ids exist only in attacks; Kafka itself stops at the 16-bit length.
MAX_CLIENT_ID_BYTES: Final = 1024
#: A client a few releases ahead of the schema still makes sense.
VERSIONS_AHEAD: Final = 4
#: Correlation ids looked for at any offset, newest first; more are outstanding only in attacks or one-way captures.
MAX_SOUGHT_CORRELATION_IDS: Final = 64
#: Places looked at for them in one buffer; small ids occur in any binary data by the thousand.
MAX_PLACES: Final = 2048
#: How far a response to a request before the capture may be from the first id: Java numbers queued requests.
MAX_MISSED_REQUESTS: Final = 1000
MAX_QUEUED_REQUESTS: Final = 100

#: Bytes of an incomplete frame before it is believed: the real client would have spoken by then.
MIN_UNFINISHED_BYTES: Final = 16 << 10

#: Steps to look at a segment's start, to grade a likely request, and to read a frame (see ``ResyncBuffer``).
START_STEPS: Final = 64
GRADE_STEPS: Final = 256
READ_STEPS: Final = 4096
READ_STEPS_PER_BYTE: Final = 8

#: API keys that Kafka leaves to others, as far as anybody uses them, and the last of their versions that is believed.
FIRST_PRIVATE_KEY: Final = 10_000
LAST_PRIVATE_KEY: Final = 19_999
LAST_PRIVATE_VERSION: Final = 63

#: How much something looks like the header of a request.
NO: Final = 0
WEAK: Final = 1
STRONG: Final = 2

Versions = dict[int, tuple[int, int]]
Confirm = Callable[[bytes, int, bool], bool]

request_front = Struct(">ihhih").unpack_from
response_front = Struct(">ii").unpack_from

#: The bytes that text may have: no control characters.
_TEXT: Final = bytes((*range(0x20, 0x7F), *range(0x80, 0x100)))
#: The front that ``score_request_header`` may grade: small size and id length, API key < 256, version < 64.
_REQUEST: Final = rb"(?s)(?=[\x00-\x%02x].{3}\x00.\x00[\x00-\x3f].{4}(?:\xff\xff|[\x00-\x%02x].))" % (
    (MAX_FRAME_BYTES - 1) >> 24,
    MAX_CLIENT_ID_BYTES >> 8,
)


@cache
def _request_search() -> Callable[..., re.Match[bytes] | None]:
    """Returns the search for places that look like ``_REQUEST``."""
    return re.compile(_REQUEST).search


def int32(data: bytes, offset: i64) -> i64:
    """The number at ``offset``: a length, or a correlation id."""
    return i32(data, offset)


def score_request_header(data: bytes, offset: i64, versions: Versions, *, opening: bool = False) -> int:
    """How much ``data[offset:]`` looks like a request's length and header: NO, WEAK or STRONG.

    STRONG needs a client id that reads as text and a size that brokers take; without a client id (null or empty), or
    with control characters or bytes that are not UTF-8 in it (brokers take them), the few fixed bytes agree by chance
    too easily. ``opening`` says that the data begins a stream, where less chance is involved: beside known ones, a
    client id that is not UTF-8 is as good as any, one with zeros WEAK; and an API key or version that nobody knows is
    WEAK beside one that is text.
    """
    if len(data) - offset < REQUEST_FRONT_BYTES:
        return NO
    size: i64
    api_key: i64
    api_version: i64
    client_id_length: i64
    size, client_id_length = i32(data, offset), i16(data, offset + 12)
    api_key, api_version = i16(data, offset + 4), i16(data, offset + 6)
    if not MIN_REQUEST_BYTES <= size <= MAX_FRAME_BYTES:
        return NO
    known = versions.get(api_key)
    exists = known is not None and known[0] <= api_version <= known[1] + VERSIONS_AHEAD
    if not exists:
        if not opening or api_key < 0 or api_version < 0 or client_id_length <= 0 or size > SOUND_FRAME_BYTES:
            return NO
    elif api_key == CONTROLLED_SHUTDOWN and api_version == 0:
        # Its v0 has no client id: header v0 and a broker id.
        return WEAK if size == 12 else NO
    if client_id_length <= 0:
        return WEAK if client_id_length >= -1 else NO
    if client_id_length > min(size - MIN_REQUEST_BYTES, MAX_CLIENT_ID_BYTES):
        return NO
    start = offset + REQUEST_FRONT_BYTES
    client_id = data[start : start + client_id_length]
    if client_id.isascii() and client_id.decode().isprintable():
        return STRONG if exists and size <= SOUND_FRAME_BYTES else WEAK
    if client_id.translate(None, _TEXT):
        return WEAK if exists and (opening or b"\0" not in client_id) else NO
    try:
        client_id.decode()
    except UnicodeDecodeError as error:
        # A client id that the data cuts off may end in the middle of a character.
        if len(client_id) == client_id_length or error.start < len(client_id) - 3:
            return (STRONG if opening else WEAK) if exists else NO
    return STRONG if exists and size <= SOUND_FRAME_BYTES else WEAK


def is_private_request(data: bytes, offset: i64) -> bool:
    """Whether ``data[offset:]`` looks like a request of a private API (Confluent's, from FIRST_PRIVATE_KEY on). That is
    weak evidence: the caller must know the broker, and look for an answer.
    """
    if len(data) - offset < REQUEST_FRONT_BYTES:
        return False
    size, api_key, api_version, correlation_id, client_id_length = request_front(data, offset)
    if not MIN_REQUEST_BYTES <= size <= SOUND_FRAME_BYTES or not FIRST_PRIVATE_KEY <= api_key <= LAST_PRIVATE_KEY:
        return False
    if not 0 <= api_version <= LAST_PRIVATE_VERSION or correlation_id < 0:
        return False
    if not -1 <= client_id_length <= min(size - MIN_REQUEST_BYTES, MAX_CLIENT_ID_BYTES):
        return False
    client_id = data[offset + REQUEST_FRONT_BYTES : offset + REQUEST_FRONT_BYTES + max(client_id_length, 0)]
    return client_id.isascii() and client_id.decode().isprintable()


def is_near(correlation_id: int, first_correlation_id: int | None) -> bool:
    """Whether a correlation id may be that of a request shortly before the first one seen."""
    if first_correlation_id is None:
        return False
    return -MAX_QUEUED_REQUESTS <= first_correlation_id - correlation_id <= MAX_MISSED_REQUESTS


def find_request_start(buffer: ResyncBuffer, versions: Versions, confirm: Confirm, *, known_client: bool) -> int:
    """Offset in a buffer of a request that makes sense, or -1.

    ``confirm`` gets a whole frame, without its length, its grade, and whether it fills segments exactly; it says
    whether the frame is a request. It is asked about weak candidates and, as long as the buffer is not the
    ``known_client``'s, about strong ones too: a response with a small correlation id can read like the header of a
    Produce request, its first topic like the client id. Strong ones that it does not believe by themselves, and that
    join up with the one that it does, are requests too.
    """
    if buffer.steps <= 0:
        return -1
    data = buffer.data
    length = len(data)
    buffer.steps -= 2 * length
    starts: set[int] | None = None  # of segments, of which there may be as many as bytes; most searches find no place
    before: dict[int, int] = {}  # where a strong candidate that fills segments ends -> where it begins
    search = _request_search()
    offset = -1
    while buffer.steps > 0:
        match = search(data, offset + 1)
        if match is None:
            break
        offset = match.start()
        buffer.steps -= GRADE_STEPS
        grade = score_request_header(data, offset, versions)
        if not grade:
            continue
        if starts is None:
            starts = set(buffer.starts())
        end = offset + 4 + int32(data, offset)
        if end > length:
            at_start = offset in starts and (known_client or end == length + buffer.ahead)
            if grade == STRONG and (at_start or length - offset >= MIN_UNFINISHED_BYTES):
                return offset
            if grade == STRONG and offset in starts:
                buffer.may_begin(offset)
            continue
        if not (end == length or end in starts or score_request_header(data, end, versions)):
            continue
        fills = offset in starts and (end == length or end in starts)
        believed = known_client and grade == STRONG
        if not believed:
            buffer.steps -= READ_STEPS + READ_STEPS_PER_BYTE * (end - offset)
            believed = confirm(data[offset + 4 : end], grade, fills)
        if believed:
            while offset in before:
                offset = before[offset]
            return offset
        if fills and grade == STRONG:
            before[end] = offset
    return -1


def find_response_start(
    buffer: ResyncBuffer,
    outstanding: Collection[int],
    first_correlation_id: int | None,
    confirm: Callable[[bytes, bool], bool],
) -> int:
    """Offset in a buffer of a response to one of the ``outstanding`` requests, or -1.

    ``confirm`` gets a whole frame, without its length, whose correlation id is outstanding, and whether it fills
    segments exactly; it says whether that is the response: small correlation ids stand everywhere in any data.
    ``first_correlation_id`` is the first one ever seen on the connection; at a segment start a frame that ends with
    a segment and carries one near it is believed to answer a request from before the capture. One that is all of its
    segment may carry any that is older: brokers in trouble answer minutes late.
    """
    data = buffer.data
    candidates = _Candidates(buffer, outstanding, first_correlation_id, confirm)
    starts = candidates.in_order
    buffer.steps -= START_STEPS * len(starts)
    best = -1
    for offset in starts:
        if candidates.agrees(offset, False):
            best = offset
            break
    if not best:
        return 0  # nothing is before it
    places = 0
    for correlation_id in list(outstanding)[-MAX_SOUGHT_CORRELATION_IDS:]:
        if buffer.steps <= 0:
            break
        buffer.steps -= len(data)
        needle = (correlation_id & 0xFFFFFFFF).to_bytes(4, "big")
        place = data.find(needle, 4)
        while place >= 0 and (best < 0 or place - 4 < best) and places < MAX_PLACES:
            places += 1
            buffer.steps -= GRADE_STEPS
            if candidates.agrees(place - 4, True):
                best = place - 4
                break
            place = data.find(needle, place + 1)
    return earliest(data, best, starts) if best > 0 else best


class _Candidates:
    """Places of a buffer where a response may begin; see ``find_response_start``."""

    __slots__ = ("_ahead", "_buffer", "_confirm", "_data", "_first", "_outstanding", "in_order", "starts")

    def __init__(
        self,
        buffer: ResyncBuffer,
        outstanding: Collection[int],
        first_correlation_id: int | None,
        confirm: Callable[[bytes, bool], bool],
    ) -> None:
        self.in_order = buffer.starts()  # of the segments
        self.starts = set(self.in_order)
        self._buffer = buffer
        self._data = buffer.data
        self._ahead = buffer.ahead
        self._outstanding = outstanding
        self._first = first_correlation_id
        self._confirm = confirm

    def agrees(self, offset: int, anywhere: bool) -> bool:
        """Whether what is at ``offset`` is believed; ``anywhere`` says that it need not be the start of a segment."""
        data, starts, first = self._data, self.starts, self._first
        length = len(data)
        if length - offset < 8:
            return False
        size, correlation_id = int32(data, offset), int32(data, offset + 4)
        if not 4 <= size <= MAX_FRAME_BYTES:
            return False
        end = offset + 4 + size
        if correlation_id not in self._outstanding:
            if anywhere or first is None or not (end in starts or end == length):
                return False
            older = 0 <= correlation_id <= first + MAX_QUEUED_REQUESTS
            return is_near(correlation_id, first) or (older and self._is_segment(offset, end))
        if end > length:
            if anywhere:
                return False
            if end == length + self._ahead or length - offset >= MIN_UNFINISHED_BYTES:
                return True
            self._buffer.may_begin(offset)
            return False
        ends_segment = end == length or end in starts
        if not (ends_segment or self._is_answered_next(end, correlation_id)):
            return False
        if self._buffer.steps <= 0:
            return False
        self._buffer.steps -= READ_STEPS + READ_STEPS_PER_BYTE * size
        return self._confirm(data[offset + 4 : end], ends_segment and offset in starts)

    def _is_segment(self, start: int, end: int) -> bool:
        """Whether a segment begins at ``start`` and ends at ``end``; one does begin there."""
        following = bisect_right(self.in_order, start)
        return end == (self.in_order[following] if following < len(self.in_order) else len(self._data))

    def _is_answered_next(self, end: int, correlation_id: int) -> bool:
        """Whether a response to another request follows. To the same one there is no second."""
        if len(self._data) - end < 8:
            return False
        size, following = response_front(self._data, end)
        return 4 <= size <= MAX_FRAME_BYTES and following in self._outstanding and following != correlation_id


def earliest(data: bytes, place: int, starts: Sequence[int]) -> int:
    """Where the row of responses begins that ends exactly at ``place``, at which one certainly begins: the first start
    of a segment from which lengths lead there, or ``place`` itself.

    What a broker held back for long answers requests from long before, which nothing else shows; so the correlation
    ids on the way must not be above the one at ``place`` by more than those that were queued.
    """
    most = response_front(data, place)[1] + MAX_QUEUED_REQUESTS
    astray: set[int] = set()  # places from which it is known that lengths do not lead there
    for start in starts:
        offset, way = start, []
        while offset < place and offset not in astray:
            size, correlation_id = response_front(data, offset)
            way.append(offset)
            if not (4 <= size <= place - offset - 4 and 0 <= correlation_id <= most):
                break
            offset += 4 + size
        if offset == place:
            return start
        astray.update(way)
    return place
