"""Hostile and broken messages: one problem beside what was decoded, everything else untouched, no traceback."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from struct import pack
from typing import Any

import google_crc32c
import pytest

from tests.support.capture_files import save
from tests.support.command import Run
from tests.support.conversation import HEARTBEAT_BODY, Wire, heartbeat, heartbeat_response, request, response, string
from tests.support.sample import slow_if


def batch(records: bytes, *, attributes: int = 0, count: int = 1, crc: int | None = None) -> bytes:
    """A record batch v2 around records that may be anything."""
    rest = pack(">hiqqqhii", attributes, count - 1, 0, 0, -1, -1, -1, count) + records
    checksum = google_crc32c.value(rest) if crc is None else crc
    return pack(">qiibI", 0, 9 + len(rest), 0, 2, checksum) + rest


#: One record: length, attributes, timestamp and offset deltas, null key, value "hi", no headers.
RECORD = bytes([16, 0, 0, 0, 1, 4]) + b"hi" + bytes([0])


def produce(records: bytes, correlation_id: int = 2) -> bytes:
    """Produce v3 of one record set to partition 0 of topic ``t``."""
    body = string(None) + pack(">hi", -1, 1000) + pack(">i", 1) + string("t") + pack(">ii", 1, 0)
    return request(0, 3, correlation_id, body + pack(">i", len(records)) + records)


PRODUCED = response(2, pack(">i", 1) + string("t") + pack(">iihqq", 1, 0, 0, 5, -1) + pack(">i", 0))


def bomb() -> bytes:
    """A gzip of 128 MiB of zeros, which is more than any batch may hold."""
    packer = zlib.compressobj(9, wbits=31)
    piece = bytes(1 << 24)
    return b"".join([packer.compress(piece) for _ in range(8)]) + packer.flush()


#: What fits into an IPv4 packet with its headers.
MAX_SEGMENT_BYTES = 60_000


def odd(bad_request: bytes, bad_response: bytes) -> Wire:
    """A good exchange, the odd one (correlation id 2), another good one."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    for at in range(0, len(bad_request), MAX_SEGMENT_BYTES):
        wire.up(bad_request[at : at + MAX_SEGMENT_BYTES])
    wire.down(bad_response)
    return wire.up(heartbeat(3)).down(heartbeat_response(3)).close()


CASES: dict[str, tuple[bytes, bytes, str]] = {
    "an unknown API key": (request(9_999, 0, 2), response(2), "unknown_api"),
    "an unknown version": (request(12, 99, 2, b"\xff\xff" + HEARTBEAT_BODY), response(2, b"\0\0"), "unknown_version"),
    "a string longer than the frame": (request(12, 0, 2, pack(">h", 30_000) + b"abc"), heartbeat_response(2), ""),
    "a string of negative length": (request(12, 0, 2, pack(">h", -5) + b"abcdefgh"), heartbeat_response(2), ""),
    "an array of two billion": (
        request(3, 0, 2, pack(">i", 0)), response(2, pack(">i", 2_000_000_000) + b"\0" * 30), "",
    ),
    "an array of minus seven": (request(3, 0, 2, pack(">i", -7)), response(2, pack(">ii", 0, 0)), ""),
    "invalid UTF-8": (
        request(12, 0, 2, pack(">h", 2) + b"\xc3\x28" + pack(">i", 5) + string("m")), heartbeat_response(2),
        "invalid_utf8",
    ),
    "bytes left over": (request(12, 0, 2, HEARTBEAT_BODY + b"left"), heartbeat_response(2), "trailing_bytes"),
    "a CRC that does not match": (produce(batch(RECORD, crc=1)), PRODUCED, "bad_crc"),
    "records that end early": (produce(batch(RECORD[:4])), PRODUCED, ""),
    "two billion records": (produce(batch(RECORD, count=2_000_000_000)), PRODUCED, ""),
    "gzip that is none": (produce(batch(b"not gzip", attributes=1)), PRODUCED, ""),
    "an unknown codec": (produce(batch(RECORD, attributes=7)), PRODUCED, ""),
    "an unknown magic": (produce(batch(RECORD).replace(b"\x02", b"\x09", 1)), PRODUCED, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", slow_if([*CASES, "a compressed bomb"], "a compressed bomb"))
def test_an_odd_message_is_a_problem_of_its_own_exchange(kwiresniff: Run, tmp_path: Path, name: str) -> None:
    """The exchanges before and behind it are whole, and so is its time."""
    bad_request, bad_response, code = CASES.get(name) or (produce(batch(bomb(), attributes=1)), PRODUCED, "")
    capture = save(tmp_path / "odd.pcap", odd(bad_request, bad_response))
    done = kwiresniff("read", "-o", "jsonl", capture)
    assert (done.code, done.err) == (0, "")
    exchanges = [item for item in map(json.loads, done.out.splitlines()) if item["kind"] == "exchange"]
    assert [item["correlation_id"] for item in exchanges] == [1, 2, 3]
    assert [bool(item["problems"]) for item in exchanges] == [False, True, False]
    assert exchanges[1]["latency_ns"] == 1_000_000
    if code:
        assert code in [problem["code"] for problem in exchanges[1]["problems"]]
    for form in ("tree", "summary"):
        shown = kwiresniff("read", "-vv", "-o", form, capture)
        assert (shown.code, shown.err) == (0, "")
        assert shown.out.count("Heartbeat v0") >= 2
    assert kwiresniff("stats", capture).code == 0
    assert kwiresniff("read", "--strict", capture).code == 1


@pytest.mark.parametrize("size", [-1, 3, 2_000_000_000, 0x7FFFFFFF], ids=["negative", "tiny", "2 GB", "largest"])
def test_a_frame_length_that_cannot_be_does_not_stop_what_follows(kwiresniff: Run, tmp_path: Path, size: int) -> None:
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1)).up(pack(">i", size) + b"\xde\xad\xbe\xef" * 8)
    for number in range(2, 8):
        wire.up(heartbeat(number)).down(heartbeat_response(number))
    done = kwiresniff("read", "-o", "jsonl", save(tmp_path / "odd.pcap", wire.close()))
    items: list[dict[str, Any]] = [json.loads(line) for line in done.out.splitlines()]
    found = [item["correlation_id"] for item in items if item["kind"] == "exchange" and item["outcome"] == "ok"]
    assert done.code == 0
    assert found[0] == 1
    assert found[-1] == 7
    assert len(found) >= 5
    assert any("a length that no message has" in item["message"] for item in items if item["kind"] == "problem")


def test_control_characters_from_the_wire_never_reach_the_terminal(kwiresniff: Run, tmp_path: Path) -> None:
    evil = "\x1b[2J\x1b]8;;http://evil\x07\r\n\u202e\x9b31m"
    body = string(evil) + pack(">i", 5) + string(evil)
    wire = Wire().open().up(request(12, 0, 1, body, client=evil)).down(heartbeat_response(1)).close()
    capture = save(tmp_path / "evil.pcap", wire)
    for args in (["read"], ["read", "-vv"], ["read", "-o", "summary"], ["stats", "--by", "client"]):
        done = kwiresniff(*args, capture)
        for char in "\x1b\x07\r\u202e\x9b":
            assert char not in done.out + done.err
