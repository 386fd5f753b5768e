"""The versions of each API that a broker offers, as its ApiVersions responses say (KIP-35)."""

from __future__ import annotations

from typing import TypeAlias

from kwiresniff.model import Body, Message

#: Different responses that are remembered, up to which size; then all are forgotten.
MAX_READ = 16
MAX_READ_BYTES = 4096

#: The lowest and the highest version of each API, by API key.
Offer: TypeAlias = dict[int, tuple[int, int]]


def offered_versions(body: Body | None) -> Offer:
    """The versions of an ApiVersions response; an entry that is cut off in the middle does not count."""
    return {
        one["api_key"]: (one["min_version"], one["max_version"])
        for one in (body or {}).get("api_keys") or ()
        if "api_key" in one and "min_version" in one and "max_version" in one
    }


class OfferReader:
    """Reads ApiVersions responses. Brokers say the same to all clients, and are read once."""

    def __init__(self) -> None:
        self._read: dict[tuple[int, bytes], Offer] = {}

    def offer_in(self, response: Message) -> Offer:
        """The versions by API in a response, one object for all that say the same."""
        frame = response.frame
        if frame is None or len(frame) < response.size_bytes or len(frame) > MAX_READ_BYTES:
            return offered_versions(response.body)
        key = (response.version, frame[response.body_offset :])
        found = self._read.get(key)
        if found is None:
            if len(self._read) >= MAX_READ:
                self._read.clear()
            found = self._read[key] = offered_versions(response.body)
        return found
