"""What is no error although an error code says it: steps by which Kafka's clients and brokers come to an agreement.

A first join is sent back with the member's id (KIP-394); whoever is in a group learns by an error code that it
rebalances; a client asks for ApiVersions in its newest version and takes what the answer offers (KIP-511); a producer
waits while the transaction before is completed; a coordinator loads what it has to know when its broker has started.
And a long poll that is under way when the capture or the consumer ends is not answered any more.
"""

from __future__ import annotations

from typing import Final

from kwiresniff.model import STEPS

API_VERSIONS: Final = 18

#: Codes of a coordinator that is not there yet.
COORDINATOR_CODES: Final = frozenset({
    "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR",
})  # fmt: skip

#: APIs by which somebody administers a cluster; whoever asked is told of an error at once.
ADMIN_APIS: Final = frozenset({
    15, 16, 19, 20, 21, 29, 30, 31, 32, 33, 34, 35, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 57, 60,
    61, 64, 65, 66, 69, 74, 75, 77, 80, 81, 89, 90, 91, 92,
})  # fmt: skip


def is_step(api_key: int, name: str) -> bool:
    """Whether an error code in an answer of that API is a step of the protocol, however long it lasts."""
    if name in COORDINATOR_CODES:
        return False  # for a while
    return name in STEPS or (api_key == API_VERSIONS and name == "UNSUPPORTED_VERSION")
