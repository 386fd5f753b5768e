"""Files that are no captures, or only the beginning of one, given to every command that reads captures."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from struct import pack

import pytest

from tests.support.command import Run
from tests.support.paths import CAPTURES
from tests.support.sample import mostly_slow

PCAP = (CAPTURES / "first-look.pcap").read_bytes()
PCAPNG = (CAPTURES / "java-fetch.pcapng").read_bytes()
BLOCK = 28  # where the first block of that file ends
FILES: dict[str, bytes] = {
    "empty.pcap": b"",
    "text.pcap": b"hello world\n" * 50,
    "random.pcap": Random(1).randbytes(5000),
    "magic.pcap": PCAP[:4],
    "header.pcap": PCAP[:24],
    "wrong_magic.pcap": b"\xa1\xb2\xc3\xd5" + PCAP[4:2000],
    "link.pcap": PCAP[:20] + pack("<I", 9999) + PCAP[24:2000],
    "packets_of_nothing.pcap": PCAP[:24] + bytes(16) * 1000,
    "packet_of_4_gigabytes.pcap": PCAP[:24] + pack("<IIII", 1, 1, 0xFFFFFFFF, 0xFFFFFFFF) + b"x" * 100,
    "block_of_nothing.pcapng": PCAPNG[:BLOCK] + pack("<II", 6, 0) * 10 + PCAPNG[BLOCK:400],
    "block_of_4_gigabytes.pcapng": PCAPNG[:BLOCK] + pack("<II", 6, 0xFFFFFFF0) + PCAPNG[BLOCK:400],
    "odd_block.pcapng": PCAPNG[:BLOCK] + pack("<II", 6, 13) + PCAPNG[BLOCK:400],
    "bad.pcap.gz": b"\x1f\x8b\x08" + Random(2).randbytes(300),
    "bad.pcap.xz": b"\xfd7zXZ\x00" + Random(3).randbytes(300),
    "bad.pcap.zst": b"\x28\xb5\x2f\xfd" + Random(4).randbytes(300),
    "bad.pcap.lz4": b"\x04\x22\x4d\x18" + Random(5).randbytes(300),
    "bad.pcap.bz2": b"BZh9" + Random(6).randbytes(300),
    **{f"cut_{size}.pcap": PCAP[:size] for size in (25, 39, 40, 41, 100, 333, 1000)},
    **{f"cut_{size}.pcapng": PCAPNG[:size] for size in (12, 20, 28, 33, 150, 777)},
}
COMMANDS = [
    ["read"], ["read", "-o", "jsonl"], ["stats"], ["clients"], ["audit", "--target", "4.0"], ["groups"], ["topics"],
    ["flows"], ["doctor"], ["export", "-O", "out.jsonl"],
]  # fmt: skip


@pytest.mark.parametrize("command", mostly_slow(COMMANDS, 3), ids=" ".join)
def test_what_is_no_capture_is_told_in_lines_of_ours(
    kwiresniff: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """Nothing but lines that begin with our name, no count below nothing, and the exit codes that are promised."""
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        path = tmp_path / name
        path.write_bytes(content)
        done = kwiresniff(*command, str(path))
        assert done.code in (0, 1), name
        assert all(line.startswith(("kwiresniff: ", "  ")) for line in done.err.splitlines()), (name, done.err)
        for word in ("Traceback", "internal error", "{'", " object at 0x"):
            assert word not in done.err, (name, done.err)
        assert not re.search(r"(?<![\w.:])-\d+ (packet|byte|exchange|connection)", done.out + done.err), name
        assert done.err or done.out, name
