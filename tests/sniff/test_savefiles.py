"""Files that follow each other, held against tcpdump's."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kwiresniff.base.address_names import AddressNames
from kwiresniff.base.flows import endpoints
from kwiresniff.capture import open_captures
from kwiresniff.capture.live.savefiles import Rotation, SavefileWriter
from kwiresniff.errors import CaptureError
from tests.support import packet_builder
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


as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of other users")
#: Who has put something into the folder.
OTHER_UID = 12_345


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder like /tmp, and beside it a file that must not be written over, where others may look."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        (Path(name) / "precious").write_text("precious")
        folder = Path(name) / "shared"
        folder.mkdir()
        folder.chmod(0o1777)
        yield folder


def planted(name: Path, kind: str) -> None:
    """Puts something of another user's at ``name``."""
    if kind == "link":
        name.symlink_to("../precious")
    elif kind == "hard link":
        name.hardlink_to(name.parents[1] / "precious")
        return
    elif kind == "pipe":
        os.mkfifo(name, 0o666)
    else:
        name.write_text("theirs")
    os.lchown(name, OTHER_UID, OTHER_UID)


@as_root
@pytest.mark.parametrize("kind", ["link", "hard link", "file", "pipe"])
@pytest.mark.parametrize("owner", [None, (1, 1)])
def test_root_writes_into_nothing_that_others_have_put_there(
    shared: Path, kind: str, owner: tuple[int, int] | None
) -> None:
    """A planted link would have root write over any file; in a planted file the packets are another user's."""
    planted(shared / "x.pcap", kind)
    with pytest.raises(CaptureError, match=r"x\.pcap: (it is|no such device)"):
        SavefileWriter(str(shared / "x.pcap"), 1, 65_535, Rotation(), NOON_NS, owner=owner)
    assert (shared.parent / "precious").read_text() == "precious"


@as_root
def test_the_next_file_of_a_ring_is_not_opened_through_a_link(shared: Path) -> None:
    """Names of later files are known beforehand."""
    planted(shared / "x.pcap1", "link")
    with pytest.raises(CaptureError, match="it is a link"):
        write(shared / "x.pcap", Rotation(size_bytes=1), [(NOON_NS // SECOND_NS, 0, 60, bytes(60))] * 3)
    assert (shared.parent / "precious").read_text() == "precious"


@as_root
def test_somebody_else_writes_into_no_file_of_others_where_everybody_may_put_one(shared: Path) -> None:
    """After root was given up, too; in a folder of one's own such files are shared on purpose."""
    for name in (shared / "x.pcap", shared.parent / "y.pcap"):
        planted(name, "file")
        name.chmod(0o666)
    os.seteuid(1)
    try:
        with pytest.raises(CaptureError, match="it is another user's"):
            SavefileWriter(str(shared / "x.pcap"), 1, 65_535, Rotation(), NOON_NS)
        SavefileWriter(str(shared.parent / "y.pcap"), 1, 65_535, Rotation(), NOON_NS).close()
    finally:
        os.seteuid(0)


def test_a_file_of_ones_own_is_written_over(tmp_path: Path) -> None:
    """It is emptied first, whatever its length was."""
    (tmp_path / "x.pcap").write_bytes(bytes(10_000))
    SavefileWriter(str(tmp_path / "x.pcap"), 1, 65_535, Rotation(), NOON_NS).close()
    assert (tmp_path / "x.pcap").stat().st_size == 24


def test_a_pipe_of_ones_own_waits_for_its_reader(tmp_path: Path) -> None:
    """Wireshark reads a live capture from one."""
    os.mkfifo(tmp_path / "pipe")
    found: list[bytes] = []
    reader = threading.Timer(0.3, lambda: found.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    SavefileWriter(str(tmp_path / "pipe"), 1, 65_535, Rotation(), NOON_NS).close()
    reader.join()
    assert len(found[0]) == 24


def test_pcapng_tells_which_process_container_and_pod_packets_are_of(tmp_path: Path) -> None:
    """On the first packet of each direction in each file, so that whoever reads one has the names."""
    known, client = AddressNames(), endpoints(packet_builder.FLOW)[0]
    names = ["pod/shop-7f", "container/shop", "process/java"]
    for name in names:
        known.add(client, name, "process")
    packet = packet_builder.ethernet(packet_builder.ipv4(packet_builder.tcp(b"first")))
    files = SavefileWriter(str(tmp_path / "%s.pcapng"), 1, 262_144, Rotation(None, 10), NOON_NS, names=known)
    for second in (0, 1, 12):
        files.write(NOON_NS + second * SECOND_NS, packet, 0, len(packet), len(packet))
    files.close()
    found = sorted(tmp_path.iterdir())
    assert [path.read_bytes().count(b"PodName: shop-7f") for path in found] == [1, 1]
    for path in found:
        read = AddressNames()
        assert len(list(open_captures([str(path)], names=read))) == (2 if path == found[0] else 1)
        assert [one.name for one in read.of_address(client)] == names
