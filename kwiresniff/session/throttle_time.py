"""``throttle_time_ms`` of responses, read without decoding them (KIP-13, KIP-124, KIP-219)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwiresniff.base.api_keys import API_VERSIONS
from kwiresniff.model import Message
from kwiresniff.session.apis import ApiFacts, response_version

if TYPE_CHECKING:
    from mypy_extensions import i64


def throttle_time_ms(facts: ApiFacts, response: Message) -> i64:
    """``throttle_time_ms`` of a response, 0 without one; a refused ApiVersions (KIP-511) has none."""
    frame = response.frame
    if frame is None:
        return 0
    if facts.api_key == API_VERSIONS and response_version(API_VERSIONS, facts.read_as, frame) != facts.read_as:
        return 0
    return facts.number("response", "throttle_time_ms").read(frame, response.body_offset, 0)
