"""The packets of a live capture in a folder, read while they are written."""

from __future__ import annotations

import threading
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.base.address_names import AddressNames
from kwiresniff.capture import open_captures
from kwiresniff.capture.live.spool_writer import MAX_SPOOL_BYTES, PIECES, SpoolWriter
from kwiresniff.capture.packet_places import PacketPlaces
from kwiresniff.capture.paths import expand
from tests.support.capture_files import LINKTYPE_RAW, heartbeats, pcap, raw_packets

#: Bytes of a capture that give a spool of this size many pieces.
SMALL = 10_000


def written(path: Path) -> list[Any]:
    """The packets of a conversation of some 200, which are in a file, too."""
    path.write_bytes(pcap(heartbeats(100).segments))
    return raw_packets(path.read_bytes())


def spool(folder: Path, most_bytes: int = MAX_SPOOL_BYTES) -> SpoolWriter:
    folder.mkdir()
    return SpoolWriter(str(folder), LINKTYPE_RAW, 262_144, AddressNames(), most_bytes)


def write(writer: SpoolWriter, some: list[Any]) -> None:
    for one in some:
        writer.write(*one)
        writer.flush()


def test_a_reader_waits_for_packets_until_nobody_writes(tmp_path: Path) -> None:
    """What it gives is what the same packets give in a file."""
    some, writer, waits = written(tmp_path / "a.pcap"), spool(tmp_path / "spool"), threading.Semaphore(0)
    found: list[Any] = []

    def read() -> None:
        found.extend(open_captures([str(tmp_path / "spool")], wait=waits.release))

    reading = threading.Thread(target=read)
    reading.start()
    for at in range(0, len(some), 100):
        waits.acquire()  # it waits
        write(writer, some[at : at + 100])
    writer.close()
    reading.join()
    wanted = list(open_captures([str(tmp_path / "a.pcap")]))
    assert [one[:6] for one in found] == [one[:6] for one in wanted]
    assert [one[6][one[7] : one[8]] for one in found] == [one[6][one[7] : one[8]] for one in wanted]


def test_without_waiting_it_ends_where_the_capture_is_now(tmp_path: Path) -> None:
    """As whatever reads a capture once more does."""
    some, writer = written(tmp_path / "a.pcap"), spool(tmp_path / "spool")
    write(writer, some[:50])
    assert [one[0] for one in open_captures([str(tmp_path / "spool")])] == list(range(1, 51))
    writer.close()


def test_the_oldest_packets_are_given_up_and_the_numbers_of_the_others_stay(tmp_path: Path) -> None:
    """Past its bytes; a new reader begins with the first packet that is kept, and a packet is found by its place."""
    some, writer = written(tmp_path / "a.pcap"), spool(tmp_path / "spool", SMALL)
    write(writer, some)
    folder = tmp_path / "spool"
    kept = sum(path.stat().st_size for path in folder.iterdir())
    assert SMALL * (PIECES - 1) // PIECES < kept < SMALL + SMALL // PIECES
    captures = open_captures([str(folder)])
    found = list(captures)
    assert 0 < writer.given_up == found[0][0] - 1
    assert [one[0] for one in found] == list(range(writer.given_up + 1, len(some) + 1))
    wanted = list(open_captures([str(tmp_path / "a.pcap")]))
    assert [one[1:6] for one in found] == [one[1:6] for one in wanted[writer.given_up :]]
    reader = captures.reader_at(len(some), captures.places)
    assert reader is not None
    reader.close()
    gone = captures.reader_at(1, PacketPlaces())
    assert gone is not None and gone.packets == writer.given_up
    gone.close()
    writer.close()


def test_a_reader_that_falls_behind_goes_on_with_what_is_kept(tmp_path: Path) -> None:
    """The packets between are missing, the others have their numbers."""
    some, writer = written(tmp_path / "a.pcap"), spool(tmp_path / "spool", SMALL)
    write(writer, some[:20])
    waited: list[bool] = []

    def wait() -> None:
        if not waited:  # and meanwhile much comes
            write(writer, some[20:])
            writer.close()
        waited.append(True)

    numbers = [one[0] for one in open_captures([str(tmp_path / "spool")], wait=wait)]
    assert numbers[:20] == list(range(1, 21)) and numbers[-1] == len(some)
    assert numbers == sorted(numbers)
    assert len(numbers) < len(some)
    behind = [later for before, later in pairwise(numbers) if later != before + 1]
    assert behind == [writer.given_up + 1]


def test_the_packets_are_their_owners_alone(tmp_path: Path) -> None:
    """Whatever the umask says; and the folder counts as one capture."""
    writer = spool(tmp_path / "spool")
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "spool").iterdir()} == {0o600}
    assert [one.path for one in expand([str(tmp_path / "spool")])] == [str(tmp_path / "spool")]
    writer.close()


@pytest.mark.parametrize("at", ["header", "piece"])
def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path, at: str) -> None:
    """With what to do about it."""
    from kwiresniff.errors import CaptureError

    if at == "header":
        with pytest.raises(CaptureError, match="TMPDIR"):
            SpoolWriter(str(tmp_path / "missing"), LINKTYPE_RAW, 262_144, AddressNames())
        return
    some, writer = written(tmp_path / "a.pcap"), spool(tmp_path / "spool", SMALL)
    for path in (tmp_path / "spool").iterdir():
        path.unlink()
    (tmp_path / "spool").rmdir()
    with pytest.raises(CaptureError, match="TMPDIR"):
        write(writer, some)
    writer.close()
