"""Decodes messages by themselves: bytes from a log, a debugger or a hex dump, without a connection around them."""

from __future__ import annotations

from typing import Literal, TypeAlias

from kwiresniff import codec, schema
from kwiresniff.errors import DecodeError, SchemaError
from kwiresniff.model import Connection, Direction, Exchange, Message, Problem
from kwiresniff.session.apis import ApiFacts, api_facts
from kwiresniff.session.decode import BodyDecoder
from kwiresniff.session.peek import GUARDED_REQUESTS, runs_into_body
from kwiresniff.session.topic_ids import TopicNameTable
from kwiresniff.stream.frame_reader import MAX_FRAME_BYTES

#: Where the bytes begin: with the 4-byte length, with the header, or with the body.
Start: TypeAlias = Literal["length", "header", "body"]

_LENGTH_BYTES = 4
#: What a response has at the least, its correlation id; a request has more.
_MIN_FRAME_BYTES = 4
#: API key and version of a request.
_VERSION_BYTES = 4


def decode_messages(
    data: bytes,
    direction: Direction,
    api_key: int | None,
    version: int | None,
    start: Start | None = None,
    *,
    show_secrets: bool = False,
) -> list[Exchange]:
    """The messages in ``data`` as one-sided exchanges: several with lengths, the last maybe cut, or one as
    ``decode_message`` reads it, which may raise.
    """
    found: Exchange | None = None
    trouble: DecodeError | SchemaError | None = None
    frames = _frames(data) if start in (None, "length") else []
    if not frames or start is None or _is_whole(frames):
        try:
            found = decode_message(data, direction, api_key, version, start, show_secrets=show_secrets)
        except (DecodeError, SchemaError) as error:
            trouble = error
    if frames and (found is None or not is_clean(found)) and not (len(frames) == 1 and _is_whole(frames)):
        given = api_key is not None and version is not None
        if given or direction == "request":
            several = _read_each(data, frames, direction, api_key, version, show_secrets)
            if several and (found is None or _is_read_as_far_as_it_goes(several[0])):
                return several
        if direction == "request" and found is None and not several:
            trouble = _cut_in_header(data, *frames[0]) or trouble
    if found is None:
        assert trouble is not None
        raise trouble
    return [found]


def is_clean(exchange: Exchange) -> bool:
    """Whether the message decodes to its last byte, be it as the newest version that is known."""
    return all(problem.code == "guessed_version" for problem in exchange.problems)


def _misfit(exchange: Exchange) -> tuple[bool, int]:
    """The degree of misfit: bytes left over are better than unreadable ones, fewer better than many."""
    message = exchange.request if exchange.response is None else exchange.response
    assert message is not None
    if all(problem.code in ("trailing_bytes", "guessed_version") for problem in exchange.problems):
        return False, message.size_bytes - max((problem.offset or 0 for problem in exchange.problems), default=0)
    return True, len(exchange.problems)


def _is_read_as_far_as_it_goes(exchange: Exchange) -> bool:
    return _is_cut(exchange) or not _misfit(exchange)[0]


def _is_cut(exchange: Exchange) -> bool:
    message = exchange.request if exchange.response is None else exchange.response
    return message is not None and message.frame is not None and len(message.frame) < message.size_bytes


def _frames(data: bytes) -> list[tuple[int, bytes]]:
    """The length-delimited frames that ``data`` begins with: the length, and as much of the frame as is there."""
    frames: list[tuple[int, bytes]] = []
    at = 0
    while at + _LENGTH_BYTES < len(data):
        size = int.from_bytes(data[at : at + _LENGTH_BYTES], "big", signed=True)
        if not _MIN_FRAME_BYTES <= size <= MAX_FRAME_BYTES:
            break
        at += _LENGTH_BYTES
        frames.append((size, data[at : at + size]))
        at += size
    return frames


def _is_whole(frames: list[tuple[int, bytes]]) -> bool:
    size, frame = frames[-1]
    return size == len(frame)


def _cut_in_header(data: bytes, size: int, frame: bytes) -> DecodeError | None:
    """The error for a request cut off in its header; None for other bytes, or a header without a length."""
    text = _cut_header_text(size, frame)
    if text is None or _facts_of(data).known:
        return None
    return DecodeError(text, code="truncated", offset=len(frame))


def _cut_header_text(size: int, frame: bytes) -> str | None:
    """Names a request of which less than ``size`` bytes are there; None when it is whole, or of no known API."""
    if len(frame) == size or len(frame) < _VERSION_BYTES:
        return None
    facts = _facts_of(frame)
    if not facts.known:
        return None
    missing = f"{size - len(frame)} of the {size} bytes that the length says are missing"
    return f"cut short in its header: {missing}; it is a {facts.name} v{facts.api_version} request"


def _rest(data: bytes, direction: Direction) -> str:
    """Describes the bytes that follow the last message that was read: the start of another one, or no frame."""
    frames = _frames(data)
    if direction == "request" and frames and (text := _cut_header_text(*frames[0])) is not None:
        return f"another message follows, {text}"
    if len(data) < _LENGTH_BYTES + _VERSION_BYTES:
        return f"bytes that follow the message: {len(data)}, too few for a length and a header"
    return f"{len(data)} bytes follow the message that are no frame"


def _facts_of(frame: bytes) -> ApiFacts:
    """Facts about the request that the frame says it is."""
    return api_facts(int.from_bytes(frame[:2], "big", signed=True), int.from_bytes(frame[2:4], "big", signed=True))


def _read_each(
    data: bytes,
    frames: list[tuple[int, bytes]],
    direction: Direction,
    api_key: int | None,
    version: int | None,
    show_secrets: bool,
) -> list[Exchange]:
    """Each frame decoded up to the first that is none; what follows it is a problem of the one before."""
    found: list[Exchange] = []
    at = 0
    for size, frame in frames:
        try:
            one = _read_frame(frame, size, direction, api_key, version, "header", show_secrets)
        except (DecodeError, SchemaError):
            break
        if size > len(frame):
            text = f"cut short: {size - len(frame)} of the {size} bytes that the length says are missing"
            one.problems.insert(0, Problem("truncated", text, len(frame), details={"direction": direction}))
        found.append(one)
        at += _LENGTH_BYTES + size
    if found and at < len(data):
        message = found[-1].request if direction == "request" else found[-1].response
        assert message is not None
        text = _rest(data[at:], direction)
        found[-1].problems.append(Problem("trailing_bytes", text, message.size_bytes, details={"direction": direction}))
    return found


def decode_message(
    data: bytes,
    direction: Direction,
    api_key: int | None,
    version: int | None,
    start: Start | None = None,
    *,
    show_secrets: bool = False,
) -> Exchange:
    """The message in ``data`` as a one-sided exchange. Without ``start`` the first way that fits to the last byte is
    taken (body, header, length; header, length for unknown APIs), else the likeliest. Raises SchemaError for an unknown
    API, DecodeError without a header.
    """
    given = api_key is not None and version is not None
    if direction == "response" and not given:
        raise SchemaError("a response does not say what it answers: give its API and version")
    if start == "body" and not given:
        raise SchemaError("a body does not say what it is: give its API and version")
    ways: tuple[Start, ...] = (start,) if start else ("body", "header", "length") if given else ("header", "length")
    best: Exchange | None = None
    trouble: DecodeError | SchemaError | None = None
    for way in ways:
        try:
            found = _read(data, direction, api_key, version, way, show_secrets)
        except (DecodeError, SchemaError) as error:
            trouble = trouble or error
            continue
        if is_clean(found):
            return found
        if best is None or _misfit(found) < _misfit(best):
            best = found
    if best is None:
        assert trouble is not None
        raise trouble
    return best


def _read(
    data: bytes, direction: Direction, api_key: int | None, version: int | None, start: Start, show_secrets: bool
) -> Exchange:
    frame = data
    if start == "length":
        size = int.from_bytes(data[:_LENGTH_BYTES], "big", signed=True)
        if size != len(data) - _LENGTH_BYTES:
            what = f"a length of {size} before {max(len(data) - _LENGTH_BYTES, 0)} bytes"
            raise DecodeError(what, code="bad_length", offset=0)
        frame = data[_LENGTH_BYTES:]
    return _read_frame(frame, len(frame), direction, api_key, version, start, show_secrets)


def _read_frame(
    frame: bytes,
    size_bytes: int,
    direction: Direction,
    api_key: int | None,
    version: int | None,
    start: Start,
    show_secrets: bool,
) -> Exchange:
    """A frame of ``size_bytes`` without its length, as much of it as is there."""
    correlation_id, client_id, offset, header_version = 0, None, 0, -1
    if start != "body" and direction == "request":
        header = codec.decode_request_header(frame)
        for name, asked, there in (("API key", api_key, header.api_key), ("version", version, header.api_version)):
            if asked is not None and asked != there:
                raise DecodeError(f"{name} {there} in the header, {asked} was asked for", code="bad_header", offset=0)
        api_key, version = header.api_key, header.api_version
        correlation_id, client_id = header.correlation_id, header.client_id
        if api_key in GUARDED_REQUESTS and runs_into_body(client_id) and not show_secrets:
            client_id = None
        offset, header_version = header.body_offset, header.header_version
    assert api_key is not None and version is not None
    facts = api_facts(api_key, version)
    if facts.read_as < 0:
        raise SchemaError(f"API key {api_key} is not known; see: kwiresniff schema list")
    if start != "body" and direction == "response":
        header_version = facts.response_header_version
        correlation_id, offset = codec.decode_response_header(frame, header_version)
    message = Message(0, 0, 0, 0, size_bytes, frame)
    message.body_offset, message.header_version = offset, header_version
    exchange = Exchange(Connection(0, "", ""), api_key, version, correlation_id, client_id, None, None)
    exchange.api = facts.name
    # A response is read as its request says; of that nothing but API and version is known.
    exchange.request = message if direction == "request" else Message(0, 0, 0, 0, 0, None)
    if direction == "response":
        exchange.response = message
    BodyDecoder("full", TopicNameTable(), show_secrets=show_secrets).decode_side(exchange, direction)
    if not facts.known and not is_clean(exchange) and size_bytes == len(frame):
        low, high = schema.version_range(api_key)
        raise SchemaError(f"{facts.name} has no version {version}; known are {low} to {high}, and none of these fits")
    return exchange
