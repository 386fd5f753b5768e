"""Every frame of every recording is decoded to its last byte, or excepted in the manifest with a reason."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.capture import open_captures
from kwiresniff.model import Exchange
from tests.captures.coverage import CAPTURES, ROWS, seen_in
from tests.support.comparison import Reading, read
from tests.support.reference import Oracle
from tests.support.sample import mostly_slow

#: What is readable without keys. The recording over TLS is held to the broker's log in test_decode.
PLAIN = [row for row in ROWS if "keylog" not in row]


def problems_of(reading: Reading) -> set[str]:
    """What is wrong, as the manifest names it."""
    inside = {
        f"{problem.code} in {exchange.api} v{exchange.api_version}"
        for exchange in reading.exchanges
        for problem in exchange.problems
    }
    return inside | {problem.code for problem in reading.problems}


def decoded(exchanges: list[Exchange]) -> set[tuple[int, int, str]]:
    """API key, version and direction of everything that has a body; the answer to an ApiVersions that is too new counts
    for the version that was asked for."""
    found = set()
    for exchange in exchanges:
        for direction, message in (("request", exchange.request), ("response", exchange.response)):
            if message is not None and message.body is not None:
                found.add((exchange.api_key, exchange.api_version, direction))
    return found


@pytest.mark.parametrize("row", mostly_slow(PLAIN, 4), ids=[row["file"] for row in PLAIN])
def test_every_byte_is_part_of_a_message_that_decodes(row: dict[str, Any]) -> None:
    """The streams are laid out and cut by code that owes nothing to the reader's."""
    segments = list(open_captures([str(CAPTURES / row["file"])]))
    reading = read(segments, "records")
    assert problems_of(reading) == set(row.get("exceptions", ()))
    assert reading.accounted_bytes() == sum(len(stream.data) for stream in Oracle(segments).streams)
    assert sum(sum(connection.skipped_bytes) for connection in reading.connections) == 0
    assert set(seen_in(row)) <= decoded(reading.exchanges)
