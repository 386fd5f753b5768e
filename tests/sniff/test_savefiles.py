"""Files that follow each other, held against tcpdump's."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from kwiresniff.capture.live.savefiles import Rotation, SavefileWriter
from kwiresniff.errors import CaptureError
from tests.support.raw_packets import Packet, packets

CAPTURE = Path(__file__).resolve().parent.parent.parent / "captures" / "java-admin-topics.pcap"
SECOND_NS = 1_000_000_000
NOON_NS = 1_767_268_800 * SECOND_NS


def write(name: Path, rotation: Rotation, source: list[Packet], start_ns: int = NOON_NS) -> SavefileWriter:
    files = SavefileWriter(str(name), 1, 262_144, rotation, start_ns)
    for seconds, fraction, wire, data in source:
        files.write(seconds * SECOND_NS + fraction, b"__" + data + b"__", 2, 2 + len(data), wire)
    files.close()
    return files


@pytest.mark.skipif(shutil.which("tcpdump") is None, reason="there is no tcpdump to compare with")
@pytest.mark.parametrize("ring", [[], ["-W", "3"], ["-W", "100"]])
def test_files_by_size_are_named_and_filled_as_tcpdump_does(tmp_path: Path, ring: list[str]) -> None:
    source = packets(CAPTURE)
    source *= 4_500_000 // CAPTURE.stat().st_size
    big, theirs, ours = tmp_path / "big.pcap", tmp_path / "theirs", tmp_path / "ours"
    for folder in (theirs, ours):
        folder.mkdir()
    write(big, Rotation(), source)
    # -Z root: without it tcpdump gives up being root before it opens the second file.
    command = ["tcpdump", "-r", str(big), "-w", str(theirs / "part.pcap"), "-C", "1", *ring, "-Z", "root"]
    subprocess.run(command, capture_output=True, check=True)
    write(ours / "part.pcap", Rotation(1_000_000, None, int(ring[1]) if ring else None), source)
    expected = {one.name: packets(one) for one in theirs.iterdir()}
    assert len(expected) > 2
    assert {
        one.name: [(a, b // 1000 * 1000, c, d) for a, b, c, d in packets(one)] for one in ours.iterdir()
    } == expected


def test_files_by_time_are_named_by_the_time_they_begin(tmp_path: Path) -> None:
    noon = NOON_NS // SECOND_NS
    source = [(noon + seconds, 0, 60, bytes(60)) for seconds in (0, 9, 10, 19, 35)]
    write(tmp_path / "%s.pcap", Rotation(None, 10), source)
    found = {one.name: [second - noon for second, *_ in packets(one)] for one in tmp_path.iterdir()}
    assert found == {f"{noon}.pcap": [0, 9], f"{noon + 10}.pcap": [10, 19], f"{noon + 35}.pcap": [35]}


def test_a_number_of_files_by_time_ends_the_capture(tmp_path: Path) -> None:
    noon = NOON_NS // SECOND_NS
    source = [(noon + seconds, 0, 60, bytes(60)) for seconds in (0, 10, 20, 30)]
    files = write(tmp_path / "%s.pcap", Rotation(None, 10, 2), source)
    assert files.full
    assert sorted(one.name for one in tmp_path.iterdir()) == [f"{noon}.pcap", f"{noon + 10}.pcap"]


def test_the_number_starts_again_with_each_new_time(tmp_path: Path) -> None:
    noon = NOON_NS // SECOND_NS
    source = [(noon + seconds, 0, 100, bytes(100)) for seconds in (0, 1, 2, 10, 11)]
    write(tmp_path / "%H%M%S", Rotation(200, 10), source)
    first, second = (time.strftime("%H%M%S", time.localtime(noon + offset)) for offset in (0, 10))
    assert {one.name: len(packets(one)) for one in tmp_path.iterdir()} == {first: 2, f"{first}1": 1, second: 2}


def test_what_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"missing/x\.pcap: no such file or directory"):
        SavefileWriter(str(tmp_path / "missing" / "x.pcap"), 1, 65_535, Rotation(), NOON_NS)
    with pytest.raises(CaptureError, match="/dev/full: no space left on device"):
        SavefileWriter("/dev/full", 1, 65_535, Rotation(), NOON_NS)
