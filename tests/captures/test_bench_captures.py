"""The benchmark's captures are the seeds' conversations over and over, whole and in order."""

from __future__ import annotations

import tomllib
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from kwiresniff.capture import open_captures
from kwiresniff.model import Exchange
from tests.bench.make_captures import LANES, MSS, Packet, cut_for_the_wire, read_seed, write_capture
from tests.support.events import analyze

CAPTURES = Path(__file__).parents[2] / "captures"
REQUESTS = {
    row["file"]: row["requests"]
    for row in tomllib.loads((CAPTURES / "MANIFEST.toml").read_text(encoding="utf-8"))["capture"]
}


@pytest.mark.parametrize("seed", ["seed-batched.pcap.xz", "seed-single.pcap.xz", "seed-zstd.pcap.xz"])
@pytest.mark.parametrize("cut", [False, True], ids=["as recorded", "cut for the wire"])
def test_every_copy_of_a_seed_has_the_requests_the_broker_counted(tmp_path: Path, seed: str, cut: bool) -> None:
    packets = read_seed(CAPTURES / seed)
    if cut:
        packets = list(cut_for_the_wire(packets))
        assert max(packet.end - packet.payload for packet in packets) <= MSS
    target = tmp_path / "copies.pcap"
    write_capture(target, [packets], 100)  # more than a file header: a single round
    events = list(analyze(open_captures([str(target)]), depth="errors"))
    found = [event for event in events if isinstance(event, Exchange)]
    assert [problem for exchange in found for problem in exchange.problems] == []
    assert all(exchange.request is not None and exchange.response is not None for exchange in found)
    copies = Counter(exchange.connection.client.partition(":")[0] for exchange in found)
    total = sum(REQUESTS[seed].values())
    assert copies == {f"10.32.0.{2 + copy}": total for copy in range(LANES)}


def test_cutting_for_the_wire_keeps_every_byte_in_order() -> None:
    def stream(packets: list[Packet]) -> bytes:
        return b"".join(packet.frame[packet.payload : packet.end] for packet in packets if packet.from_client)

    packets = read_seed(CAPTURES / "seed-batched.pcap.xz")
    cut = list(cut_for_the_wire(packets))
    assert len(cut) > len(packets)
    assert stream(cut) == stream(packets)
    assert all(a.time_us <= b.time_us for a, b in pairwise(cut))
