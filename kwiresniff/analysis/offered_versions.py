"""The versions of each API that a broker offers, as its ApiVersions responses say (KIP-35)."""

from __future__ import annotations

from typing import TypeAlias

from kwiresniff.model import Body

#: The lowest and the highest version of each API, by API key.
Offer: TypeAlias = dict[int, tuple[int, int]]


def offered_versions(body: Body | None) -> Offer:
    """The versions of an ApiVersions response; an entry that is cut off in the middle does not count."""
    return {
        one["api_key"]: (one["min_version"], one["max_version"])
        for one in (body or {}).get("api_keys") or ()
        if "api_key" in one and "min_version" in one and "max_version" in one
    }
