"""Compressed captures, recognised by content and undone in bounded memory."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import lz4.frame
import pytest
import zstandard

from kwiresniff.capture import compression, open_captures
from kwiresniff.capture.compression import decompressed
from kwiresniff.capture.compressions import LONGEST_MAGIC, SKIPPABLE, DamagedStream, compression_of
from kwiresniff.errors import CaptureError
from kwiresniff.model import Segment
from tests.support import packet_builder
from tests.support.tshark_view import read, seen

COMPRESS = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "lz4": lz4.frame.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}
PACKETS = [
    packet_builder.ethernet(packet_builder.ipv4(packet_builder.tcp(i.to_bytes(2) * 200, seq=i * 400)))
    for i in range(500)
]
PLAIN = packet_builder.pcap(PACKETS)
EXPECTED = [i.to_bytes(2) * 200 for i in range(500)]

every_compression = pytest.mark.parametrize("name", COMPRESS)


def payloads(segments: Iterable[Segment]) -> list[bytes]:
    return [seen(segment).payload for segment in segments]


@every_compression
def test_content_tells_the_compression(name: str, tmp_path: Path) -> None:
    """Whatever the file is called, from a file and from a pipe."""
    data = COMPRESS[name](PLAIN)
    path = tmp_path / "capture.txt"
    path.write_bytes(data)
    captures = open_captures([str(path)])
    assert payloads(captures) == EXPECTED
    assert captures.position() == captures.total_bytes == len(data)
    assert payloads(read(data)[0]) == EXPECTED


@every_compression
@pytest.mark.parametrize("split", [1, 24, 1000, len(PLAIN) - 1])
def test_several_members_are_one_capture(name: str, split: int) -> None:
    """Parallel compressors and ``cat`` make several members, here with an empty one between them."""
    compress = COMPRESS[name]
    data = compress(PLAIN[:split]) + compress(b"") + compress(PLAIN[split:])
    segments, captures = read(data)
    assert payloads(segments) == EXPECTED
    assert captures.problems == []


@every_compression
@pytest.mark.parametrize("junk", [b"junk", bytes(100), b"\0\0\0\0junk"])
def test_what_follows_the_last_member_is_ignored(name: str, junk: bytes) -> None:
    """Bytes after the last member are passed over, as by gzip, xz and zstd themselves."""
    segments, captures = read(COMPRESS[name](PLAIN) + junk)
    assert payloads(segments) == EXPECTED
    assert captures.problems == []


@every_compression
def test_a_cut_anywhere_gives_all_that_can_be_had_and_one_problem(name: str) -> None:
    """A cut that falls between two packets, once decompressed, is a problem, too."""
    data = COMPRESS[name](PLAIN)
    for cut in [*range(LONGEST_MAGIC, len(data), max(1, len(data) // 60)), len(data) - 1]:
        try:
            segments, captures = read(data[:cut])
        except CaptureError as error:  # not even the file header came out
            assert "breaks off" in str(error)
            continue
        found = payloads(segments)
        assert found == EXPECTED[: len(found)]
        (problem,) = captures.problems
        assert problem.code == "capture_cut" and f"the {name} data breaks off" in problem.message


@every_compression
def test_damage_is_told_after_what_came_before_it(name: str) -> None:
    """A flipped byte in the middle: checksums find it, or the capture itself makes no more sense."""
    data = bytearray(COMPRESS[name](PLAIN))
    data[len(data) // 2] ^= 0xFF
    try:
        segments, captures = read(bytes(data))
    except CaptureError as error:
        assert name in str(error)
    else:
        assert len(segments) <= 500
        assert captures.problems or payloads(segments) != EXPECTED


def test_a_frame_that_zstd_skips_may_come_first() -> None:
    """pzstd starts its files with one."""
    data = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd" + COMPRESS["zstd"](PLAIN)
    assert payloads(read(data)[0]) == EXPECTED


@pytest.mark.parametrize("split", [1, 7, 8, 9, 100_000])
def test_frames_that_zstd_skips_need_no_decompressor_each(split: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight bytes each, in the row and cut anywhere by the pieces that are read: what stands behind them is read."""
    made = []
    make = compression._Zstd

    def counted(library: zstandard.ZstdDecompressor) -> compression._Zstd:
        made.append(1)
        return make(library)

    monkeypatch.setattr(compression, "INPUT_BYTES", split)
    monkeypatch.setattr(compression, "_Zstd", counted)
    frame = zstandard.compress(b"whole")
    data = frame + 2_000 * (SKIPPABLE + bytes(4)) + SKIPPABLE + b"\3\0\0\0abc" + frame
    stream = decompressed("zstd", io.BytesIO(data))
    assert b"".join(iter(lambda: stream.read(100), b"")) == b"wholewhole"
    assert split < 100 or len(made) < 5


def test_frames_that_zstd_skips_are_no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand of eight bytes each behind a capture: what undoes zstd is made once, not for each of them."""
    made: list[int] = []
    library = zstandard.ZstdDecompressor

    def counted(**options: Any) -> zstandard.ZstdDecompressor:
        made.append(1)
        return library(**options)

    monkeypatch.setattr(zstandard, "ZstdDecompressor", counted)
    data = COMPRESS["zstd"](PLAIN) + b"\x50\x2a\x4d\x18\0\0\0\0" * 10_000
    source = decompressed("zstd", io.BytesIO(data))
    assert b"".join(iter(lambda: source.read(65536), b"")) == PLAIN
    assert len(made) == 1


@every_compression
@pytest.mark.slow
def test_a_bomb_costs_no_memory(name: str) -> None:
    """200 MB of zeros come out in pieces no larger than asked for."""
    zeros = bytes(20_000_000)
    bomb = COMPRESS[name](zeros) * 10
    source = decompressed(compression_of(bomb), io.BytesIO(bomb))
    total = 0
    tracemalloc.start()
    try:
        while piece := source.read(65536):
            assert len(piece) <= 65536
            total += len(piece)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert total == 200_000_000
    assert peak < 40_000_000


def test_a_zstd_window_beyond_the_limit_is_refused() -> None:
    """A frame header can ask for gigabytes of memory."""
    # Magic, descriptor (no size, window byte follows), window 2^41, one empty last block.
    data = b"\x28\xb5\x2f\xfd\x00" + bytes([31 << 3]) + b"\x01\x00\x00"
    with pytest.raises(DamagedStream, match="takes more than 128 MB of memory to decompress"):
        decompressed("zstd", io.BytesIO(data)).read(100)
