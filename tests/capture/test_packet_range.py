"""Packets found again by their numbers are those that a whole reading gave."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from kwiresniff.base.flows import endpoints, flow_between, reverse
from kwiresniff.capture import CaptureSet, open_captures, packet_places
from kwiresniff.capture.packet_range import packet_range
from kwiresniff.model import Segment, SegmentList
from tests.support.paths import CAPTURES


def read(path: Path) -> tuple[CaptureSet, list[Segment]]:
    """All segments of a capture."""
    captures, sink = open_captures([str(path)]), SegmentList()
    while captures.feed(sink):
        pass
    return captures, sink.taken


def told(segments: list[Segment]) -> list[object]:
    """What a segment says, without the buffer that it lies in."""
    return [(*one[:6], one[6][one[7] : one[8]], one[9]) for one in segments]


def check(path: Path) -> None:
    captures, segments = read(path)
    again = captures.again()
    assert again is not None
    for at in range(0, len(segments), max(len(segments) // 8, 1)):
        flow, first = segments[at][2], segments[at][0]
        wanted = [one for one in segments if first <= one[0] <= first + 9 and one[2] in (flow, reverse(flow))]
        found = packet_range(again, captures.places, flow, first, first + 9)
        assert found is not None
        assert told(found) == told(wanted)


@pytest.mark.parametrize("name", ["java-fetch.pcapng", "java-produce.pcap", "cluster-inside.pcap.xz"])
def test_a_range_of_packets_is_found_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Near its place and far from it, in pcap and pcapng, compressed or not."""
    monkeypatch.setattr(packet_places, "APART_BYTES", 1)
    check(CAPTURES / name)


@pytest.mark.parametrize("compress", [False, True])
def test_packets_of_a_file_of_several_reads_are_found_behind_places(tmp_path: Path, compress: bool) -> None:
    """A file of some megabytes has places; what is compressed is read up to them."""
    data = (CAPTURES / "java-produce.pcap").read_bytes()
    large = data[:24] + data[24:] * (3 * (1 << 20) // len(data))
    path = tmp_path / "large.pcap"
    path.write_bytes(gzip.compress(large, 1) if compress else large)
    captures, _ = read(path)
    assert len(captures.places) >= 3
    check(path)


def test_interfaces_that_come_late_are_known_again(tmp_path: Path) -> None:
    """Two pcapng files one behind the other: the second one's section is not that of the start of the file."""
    data = (CAPTURES / "java-fetch.pcapng").read_bytes()
    path = tmp_path / "two.pcapng"
    path.write_bytes(data * (2 * (1 << 20) // len(data)))
    check(path)


def test_a_flow_is_made_of_the_texts_of_its_ends() -> None:
    """For both versions of IP."""
    for flow in (bytes([10, 0, 0, 1, 10, 0, 0, 2, 0x9C, 0x40, 0x23, 0x84]), bytes(range(36))):
        assert flow_between(*endpoints(flow)) == flow
