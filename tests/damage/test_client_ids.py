"""Connections met in mid-stream whose client ids are no text: Latin-1 from an old default charset, control characters.

Brokers take any bytes. The recorded requests are as they were but for the client id, which has as many bytes.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import pytest

from kwiresniff.capture import open_captures
from kwiresniff.model import Exchange, Segment
from kwiresniff.session import Analyzer
from tests.support.comparison import Truth
from tests.support.conversation import Wire
from tests.support.damages import dropped, started
from tests.support.events import analyze_with
from tests.support.sample import mostly_slow

CAPTURES = Path(__file__).parents[2] / "captures"
LATIN_1 = "Kühlgerät größer"
CONTROLS = "a\x01\x1b[2J\x7fb\tc\rd\n"
NAMES = ("java-group-classic.pcap", "franz-go.pcap", "librdkafka.pcap", "old-java-0.10-group.pcap")


def renamed(segments: Sequence[Segment], characters: str) -> list[Segment]:
    """With the client id of every request made of ``characters`` in Latin-1."""
    segments = list(segments)
    flows = {segment[0]: segment[2] for segment in segments}
    requests = [
        one for one in analyze_with(Analyzer("headers"), segments) if isinstance(one, Exchange) and one.client_id
    ]
    for exchange in requests:
        assert exchange.client_id and exchange.request
        name = exchange.client_id.encode()
        header = struct.pack(">hhih", exchange.api_key, exchange.api_version, exchange.correlation_id, len(name))
        raw = (characters * len(name)).encode("latin-1")[: len(name)]
        flow = flows[exchange.request.first_packet]
        for at, segment in enumerate(segments):  # it may have been sent twice
            buffer, start, end = segment[6:9]
            if segment[2] == flow and header + name in buffer[start:end]:
                payload = buffer[start:end].replace(header + name, header + raw)
                segments[at] = (*segment[:6], payload, 0, len(payload), segment[9])
    return segments


@pytest.mark.parametrize("case", mostly_slow(product(NAMES, (LATIN_1, CONTROLS)), 3), ids=str)
def test_they_are_found_wherever_the_capture_starts(case: tuple[str, str]) -> None:
    """At the first message that begins after the start, as those with a usual client id; and after a loss."""
    name, characters = case
    segments = renamed(list(open_captures([str(CAPTURES / name)])), characters)
    truth = Truth(segments)
    for place in range(0, len(segments), max(len(segments) // 40, 1)):
        assert truth.differences(started(segments, place)) == [], f"started at segment {place}"
        assert truth.differences(dropped(segments, place)) == [], f"dropped segment {place}"


@pytest.mark.parametrize("seed", range(3))
def test_noise_in_mid_stream_is_not_taken_for_such_a_client(seed: int) -> None:
    """Small integers everywhere, as in any binary protocol: nothing answers them."""
    made = random.Random(seed)
    wire = Wire()
    for _ in range(400):
        for send in (wire.up, wire.down):
            noise = b"".join(
                struct.pack(made.choice([">h", ">i", ">b"]), made.choice([0, 0, 1, 2, 3, 7, 10, 18, 40, 100]))
                for _ in range(made.randrange(4, 120))
            )
            send(noise)
    found = [event for event in analyze_with(Analyzer("headers"), wire.segments) if isinstance(event, Exchange)]
    assert found == []
