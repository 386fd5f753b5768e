"""``throttle_time_ms`` of responses, read without decoding them (KIP-13, KIP-124, KIP-219)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kwiresniff import codec
from kwiresniff.base.api_keys import API_VERSIONS
from kwiresniff.codec.body_walker import BodyScanner
from kwiresniff.errors import SchemaError
from kwiresniff.model import Message
from kwiresniff.session.apis import ApiFacts, response_version

if TYPE_CHECKING:
    from mypy_extensions import i64

_THROTTLE: Final = frozenset({"throttle_time_ms"})


def throttle_time_ms(facts: ApiFacts, response: Message) -> i64:
    """``throttle_time_ms`` of a response, 0 without one; a refused ApiVersions (KIP-511) has none."""
    frame = response.frame
    if frame is None:
        return 0
    if facts.api_key == API_VERSIONS and response_version(API_VERSIONS, facts.read_as, frame) != facts.read_as:
        return 0
    scanner = facts.throttle
    if scanner is None:
        scanner = facts.throttle = _scanner(facts)
    if scanner.scan(frame, response.body_offset) and scanner.found:
        return int(scanner.found[0][1])
    return 0


def _scanner(facts: ApiFacts) -> BodyScanner:
    if facts.read_as >= 0:  # looking for the definitions of unknown APIs would be what a stream of them costs
        try:
            return codec.scanner(facts.api_key, facts.read_as, "response", _THROTTLE)
        except SchemaError:
            pass
    return BodyScanner([])
