"""The codecs: other people's output is read, and no input costs more than the limit."""

from __future__ import annotations

import gzip
import subprocess
import sys
import zlib
from functools import cache

import cramjam
import pytest

from kwiresniff.codec.compression import GZIP, LZ4, SNAPPY, ZSTD, decompress
from kwiresniff.codec.record_dissector import dissect_record_set
from kwiresniff.errors import DecodeError
from kwiresniff.model import Problem
from tests.support.encoding import compress, encode_record_set
from tests.support.record_sets import decoded_batches
from tests.support.record_vectors import vector
from tests.support.sample import sampled

CODECS = (GZIP, SNAPPY, LZ4, ZSTD)
MEBIBYTE = 1 << 20

#: LZ4 frame header as the LZ4 specification checksums it (FLG 0x60, BD 0x40) and as Kafka before 0.10 did.
RIGHT_LZ4_HEADER = "04224d18604082"


@cache
def bomb(codec: int) -> bytes:
    """A stream of some kilobytes that decompresses to 300 MiB of zeros."""
    block = bytes(MEBIBYTE)
    if codec == GZIP:
        packer = zlib.compressobj(9, wbits=31)
        return b"".join(packer.compress(block) for _ in range(300)) + packer.flush()
    if codec == SNAPPY:
        packed = bytes(cramjam.snappy.compress_raw(block))
        return b"\x82SNAPPY\0" + bytes(8) + (len(packed).to_bytes(4, "big") + packed) * 300
    library = cramjam.lz4 if codec == LZ4 else cramjam.zstd
    return bytes(library.compress(block)) * 300


def test_what_is_compressed_comes_back() -> None:
    for size in (0, 1, 7, 63_999, 65_536, 200_000):
        data = bytes(index * index % 251 for index in range(size))
        for codec in CODECS:
            assert decompress(codec, compress(codec, data)) == data


def test_incompressible_data_comes_back() -> None:
    data = zlib.compress(b"".join(number.to_bytes(4, "big") for number in range(60_000)), 9)
    for codec in CODECS:
        assert decompress(codec, compress(codec, data)) == data


def test_our_gzip_is_read_by_pythons_own() -> None:
    assert gzip.decompress(compress(GZIP, b"abc" * 1000)) == b"abc" * 1000


def test_our_lz4_frame_has_independent_blocks_and_the_right_checksum() -> None:
    frame = compress(LZ4, b"abc" * 100_000)
    assert frame[:7].hex() == RIGHT_LZ4_HEADER
    assert bytes(cramjam.lz4.decompress(frame)) == b"abc" * 100_000


def test_several_gzip_members_are_one_stream() -> None:
    assert decompress(GZIP, gzip.compress(b"one ") + gzip.compress(b"two")) == b"one two"
    with pytest.raises(DecodeError, match="members"):
        decompress(GZIP, gzip.compress(b"") * 1000)


def test_raw_snappy_is_read_as_well_as_the_java_stream() -> None:
    raw = bytes(cramjam.snappy.compress_raw(b"kafka" * 50))
    assert decompress(SNAPPY, raw) == b"kafka" * 50
    stream = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01" + len(raw).to_bytes(4, "big") + raw
    assert decompress(SNAPPY, stream) == b"kafka" * 50
    assert decompress(SNAPPY, stream + stream) == b"kafka" * 100


@pytest.mark.parametrize(
    "writer", ["0.8.2.2 magic0 lz4 produce", "0.9.0.1 magic0 lz4 produce", "3.9.1 magic0 lz4 plain"]
)
def test_the_lz4_header_checksum_of_magic_0_is_wrong_on_the_wire_and_forgiven(writer: str) -> None:
    wire = vector(writer)["wire"]
    frame = wire[wire.index(b"\x04\x22\x4d\x18") :]
    assert frame[:6].hex() == RIGHT_LZ4_HEADER[:12]
    assert frame[6:7].hex() != RIGHT_LZ4_HEADER[12:]
    with pytest.raises(DecodeError):
        decompress(LZ4, frame)
    assert decompress(LZ4, frame, repair_lz4=True)


@pytest.mark.parametrize("flags", ["60", "64", "70", "68", "69", "6c"])
def test_the_checksum_is_repaired_whatever_the_header_holds(flags: str) -> None:
    """Block checksums, content checksum, content size, dictionary id: only the length of the header differs."""
    level = bytes.fromhex(flags)[0]
    body = b"\x03\0\0\x80abc"
    extra = (b"\x03" + bytes(7) if level & 8 else b"") + (bytes(4) if level & 1 else b"")
    checksum = (0x32D153FF).to_bytes(4, "little")  # xxHash-32 of "abc"
    frame = b"\x04\x22\x4d\x18" + bytes([level]) + b"\x40" + extra + b"\xee" + body
    frame += (checksum if level & 16 else b"") + bytes(4) + (checksum if level & 4 else b"")
    assert decompress(LZ4, frame, repair_lz4=True) == b"abc"


@pytest.mark.parametrize("codec", CODECS)
def test_a_stream_cut_anywhere_is_told(codec: int) -> None:
    stream = compress(codec, b"0123456789" * 20 + bytes(range(200)))
    for cut in range(len(stream)):
        if codec == SNAPPY and cut in (0, 16):  # nothing at all, and a stream without blocks
            continue
        with pytest.raises(DecodeError) as error:
            decompress(codec, stream[:cut])
        assert error.value.code == "bad_compressed_data"


@pytest.mark.parametrize("codec", sampled(CODECS, 3, 1))
def test_a_bomb_is_stopped_at_the_limit(codec: int) -> None:
    with pytest.raises(DecodeError) as error:
        decompress(codec, bomb(codec), 2 * MEBIBYTE)
    assert error.value.code == "decompressed_too_large"


@pytest.mark.parametrize("codec", CODECS)
def test_exactly_the_limit_is_allowed(codec: int) -> None:
    stream = compress(codec, bytes(100_000))
    assert len(decompress(codec, stream, 100_000)) == 100_000
    for less in (99_999, 0):
        with pytest.raises(DecodeError):
            decompress(codec, stream, less)


def test_a_snappy_block_that_declares_four_gigabytes_is_not_believed() -> None:
    with pytest.raises(DecodeError) as error:
        decompress(SNAPPY, b"\xff\xff\xff\xff\x0f" + bytes(100))
    assert error.value.code == "decompressed_too_large"


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(DecodeError) as error:
        decompress(5, b"x")
    assert error.value.code == "unknown_codec"


def test_a_batch_of_bombs_is_told_and_the_next_batch_is_read() -> None:
    (plain,) = decoded_batches(wire := vector("3.9.1 magic2 none plain")["wire"], 0, len(wire), "full", [])
    size = 12 + 49 + len(bomb(ZSTD))
    head = bytearray(wire[:61])
    head[8:12] = (size - 12).to_bytes(4, "big")
    head[22] = ZSTD
    issues: list[Problem] = []
    evil, good = decoded_batches(bytes(head) + bomb(ZSTD) + wire, 0, size + len(wire), "full", issues)
    assert [issue.code for issue in issues] == ["bad_crc", "decompressed_too_large"]
    assert evil["records"] == []
    assert good["records"] == plain["records"]
    assert encode_record_set([good]) == wire


def test_decoder_and_dissector_name_the_same_of_a_batch_that_is_too_large_and_counts_its_records_wrong() -> None:
    """A negative count stands in the header, which is not compressed; bytes behind the last record may be left out."""
    wire = vector("3.9.1 magic2 none plain")["wire"]
    head = bytearray(wire[:61])
    head[8:12] = (49 + len(bomb(ZSTD))).to_bytes(4, "big")
    head[22] = ZSTD
    for count, code in ((-1, "bad_records_count"), (0, "decompressed_too_large")):
        head[57:61] = count.to_bytes(4, "big", signed=True)
        issues: list[Problem] = []
        decoded_batches(bytes(head) + bomb(ZSTD), 0, 61 + len(bomb(ZSTD)), "full", issues)
        assert [issue.code for issue in issues] == ["bad_crc", code]
        _, found = dissect_record_set(bytes(head) + bomb(ZSTD), 0, 61 + len(bomb(ZSTD)))
        assert {problem.code for problem in found} == {"bad_crc", code}


def test_a_10_gigabyte_bomb_costs_no_more_memory_than_the_limit() -> None:
    """In a process of its own, whose peak is looked at: 10 GiB of zeros in 320 KB of zstd."""
    script = """
import resource, cramjam
from kwiresniff.codec.compression import ZSTD, decompress
from kwiresniff.errors import DecodeError
bomb = bytes(cramjam.zstd.compress(bytes(1 << 20))) * 10240
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    decompress(ZSTD, bomb, 16 << 20)
except DecodeError as error:
    print(error.code, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    code, grown_mib = run.stdout.split()
    assert code == "decompressed_too_large"
    assert int(grown_mib) < 40
