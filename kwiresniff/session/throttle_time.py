"""``throttle_time_ms`` of responses, read without decoding them (KIP-13, KIP-124, KIP-219)."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from kwiresniff import codec, schema
from kwiresniff.base.api_keys import API_VERSIONS
from kwiresniff.base.fastint import i32
from kwiresniff.errors import SchemaError
from kwiresniff.model import Message
from kwiresniff.schema.wire_types import FIXED
from kwiresniff.session.apis import ApiFacts, response_version

if TYPE_CHECKING:
    from mypy_extensions import i64

#: What stands for the offset of ``throttle_time_ms`` in bodies: there is none at a fixed place, it is the last field,
#: nobody has looked for it yet.
NOT_FIXED: Final = -1
LAST_FIELD: Final = -2
UNRESOLVED: Final = -3

_THROTTLE: Final = frozenset({"throttle_time_ms"})
_int32 = Struct(">i").unpack_from


def throttle_time_ms(facts: ApiFacts, response: Message) -> i64:
    """``throttle_time_ms`` of a response (INT32, milliseconds); 0 where it has none or its frame ends before it.

    An ApiVersions response that refuses the request's version is in layout 0, which has none (KIP-511).
    """
    frame = response.frame
    if frame is None:
        return 0
    if facts.api_key == API_VERSIONS and response_version(API_VERSIONS, facts.read_as, frame) != facts.read_as:
        return 0
    at: i64 = facts.throttle_offset
    size: i64 = len(frame)
    if at >= 0:
        at += response.body_offset
        if at + 4 > size:
            return 0
    else:
        if at == UNRESOLVED:
            facts.throttle_offset = throttle_offset(facts)
            return throttle_time_ms(facts, response)
        if at == NOT_FIXED or size < response.size_bytes:
            return 0
        at = size - 4
        if facts.response_is_flexible:
            if frame[size - 1]:  # tagged fields behind it
                return _of_variable_fields(facts, response, frame)
            at -= 1
        if at < response.body_offset:
            return 0
    return i32(frame, at)


def throttle_offset(facts: ApiFacts) -> i64:
    """The offset of ``throttle_time_ms`` from the beginning of a response's body in bytes, where it is fixed.

    NOT_FIXED where fields of variable length are before it or it is not there, LAST_FIELD where nothing follows it.
    """
    if facts.read_as < 0:  # looking for the definitions of unknown APIs would be what a stream of them costs
        return NOT_FIXED
    try:
        message = schema.message(facts.api_key, facts.read_as, "response")
    except SchemaError:
        return NOT_FIXED
    facts.response_is_flexible = message.flexible
    regular = [field for field in message.fields if field.tag is None]
    names = [field.name for field in regular]
    if "throttle_time_ms" not in names:
        return NOT_FIXED
    index = names.index("throttle_time_ms")
    if index == len(names) - 1 and index > 0:
        return LAST_FIELD
    sizes = [FIXED[field.type].size if field.type in FIXED and not field.array else 0 for field in regular[:index]]
    return sum(sizes) if all(sizes) else NOT_FIXED


def _of_variable_fields(facts: ApiFacts, response: Message, frame: bytes) -> int:
    """``throttle_time_ms`` of a response that has fields of variable length before it and behind it."""
    if facts.api_key == API_VERSIONS:
        return _of_api_versions(response, frame)
    try:
        scanner = codec.scanner(facts.api_key, facts.read_as, "response", _THROTTLE)
    except SchemaError:
        return 0
    fits = scanner.scan(frame, response.body_offset)
    return int(scanner.found[0][1]) if fits and scanner.found else 0


def _of_api_versions(response: Message, frame: bytes) -> int:
    """An error code, then a short count of entries of seven bytes each; every connection begins with such an answer."""
    at = response.body_offset + 2
    if len(frame) <= at or frame[at] >= 0x80:
        return 0
    entries = frame[at] - 1
    at += 1 + 7 * entries
    # Each entry ends with its tagged fields, of which there are none.
    return i32(frame, at) if entries > 0 and at + 4 <= len(frame) and not frame[at - 1] else 0
