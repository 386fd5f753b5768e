"""Captures whose packets are cut at a snap length: told once, as that, and not as packets that were dropped."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kwiresniff.capture.file_problems import MAX_SNAP_LENGTHS
from tests.support.capture_files import pcap
from tests.support.command import Run
from tests.support.conversation import Wire, events, exchanges, problems, request, response
from tests.support.incidents import findings
from tests.support.packet_builder import pcap_header
from tests.support.paths import CAPTURES
from tests.support.raw_packets import packets

#: Commands that show exchanges, and those that count.
COMMANDS = (
    ["read"], ["read", "-o", "summary"], ["stats"], ["topics"], ["flows"], ["clients"], ["groups"], ["producers"],
    ["doctor"], ["audit", "--target", "4.0"],
)  # fmt: skip


def cut_at(length: int, source: Path, target: Path) -> str:
    """Writes a little-endian pcap file with every packet cut at ``length`` bytes, as tcpdump -s does."""
    parts = [pcap_header(magic=0xA1B23C4D)]
    for seconds, ns, wire, data in packets(source):
        kept = data[:length]
        header = b"".join(number.to_bytes(4, "little") for number in (seconds, ns, len(kept), wire))
        parts.append(header + kept)
    target.write_bytes(b"".join(parts))
    return str(target)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("length", [70, 96, 200])
def test_a_snap_length_is_one_line_of_every_command(
    kwiresniff: Run, tmp_path: Path, command: list[str], length: int
) -> None:
    """With the length, and without a word on packets or bytes that are missing."""
    name = cut_at(length, CAPTURES / "java-produce.pcap", tmp_path / "cut.pcap")
    lines = kwiresniff(*command, name).err.splitlines()
    told = [line for line in lines if "cut at" in line]
    assert len(told) == 1 and f"cut at {length} bytes (snap length)" in told[0]
    assert not [line for line in lines if "missing" in line or "skipped" in line]


def test_the_doctor_tells_a_snap_length_once(kwiresniff: Run, tmp_path: Path) -> None:
    """As info, with the length and what it costs; not as packets that the capture point dropped."""
    name = cut_at(96, CAPTURES / "java-produce.pcap", tmp_path / "cut.pcap")
    found = json.loads(kwiresniff("doctor", "-o", "json", "-q", name).out)
    (one,) = [one for one in found if one["code"] in ("snap_length", "capture_gaps")]
    assert (one["code"], one["severity"]) == ("snap_length", "info")
    assert one["numbers"]["snap_lengths"] == [96]
    ours = CAPTURES / "java-produce.pcap"
    assert one["numbers"]["missing_bytes"] <= sum(max(wire - 96, 0) for _, _, wire, _ in packets(ours))


def test_a_client_id_that_is_cut_is_no_bad_one(kwiresniff: Run, tmp_path: Path) -> None:
    """81 bytes are one of the client id's: no more is known of it, and nothing is wrong with it."""
    name = cut_at(81, CAPTURES / "java-produce.pcap", tmp_path / "cut.pcap")
    found = [json.loads(line) for line in kwiresniff("read", "-o", "jsonl", name).out.splitlines()]
    requests = [one for one in found if one["kind"] == "exchange"]
    codes = {problem["code"] for one in requests for problem in one["problems"]}
    assert {one["client_id"] for one in requests} == {None}
    assert "bad_client_id" not in codes and "truncated" in codes


def test_messages_that_are_cut_keep_their_problems() -> None:
    """Beside an exchange and by themselves, with ``cut``; a packet that was dropped has none."""
    wire = Wire().open().up(request(12, 0, 1, bytes(900)), missing=700).down(response(1, bytes(40)), missing=30)
    wire.up(request(12, 0, 2, bytes(900)), missing=912)
    wire.up(request(12, 0, 3), drop=True).up(request(12, 0, 4, bytes(100)), missing=50)
    found = events(wire, depth="bodies")
    cut = {
        (one.code, (one.details or {}).get("missing_bytes")): (one.details or {}).get("cut") for one in problems(found)
    }
    assert cut[("gap", 700)] is cut[("gap", 30)] is cut[("gap", 912)] is cut[("lost_request", None)] is True
    dropped = len(request(12, 0, 3))
    assert cut[("gap", dropped)] is None
    first = exchanges(found)[0]
    gaps = [one for one in first.problems if one.code == "gap"]
    assert [(one.path, (one.details or {})["cut"]) for one in gaps] == [("request", True), ("response", True)]
    assert sorted(one.code for one in findings(*found) if one.subject == "the capture") == [
        "capture_gaps",
        "snap_length",
    ]


def test_lengths_without_end_are_told_up_to_a_limit(kwiresniff: Run, tmp_path: Path) -> None:
    """A file that somebody made may have a length of its own for each packet."""
    wire = Wire().open()
    for number in range(3 * MAX_SNAP_LENGTHS):
        wire.up(request(0, 7, number, bytes(900)), missing=700 + number)
    (tmp_path / "a.pcap").write_bytes(pcap(wire.segments))
    lines = kwiresniff("stats", str(tmp_path / "a.pcap")).err.splitlines()
    assert sum("snap length" in line for line in lines) == MAX_SNAP_LENGTHS == len(lines)


def test_a_file_of_several_names_itself(kwiresniff: Run, tmp_path: Path) -> None:
    """Each with its own length, in JSON, too."""
    for length in (96, 128):
        cut_at(length, CAPTURES / "java-produce.pcap", tmp_path / f"{length}.pcap")
    lines = kwiresniff("read", "-o", "jsonl", str(tmp_path)).out.splitlines()
    told = [one for line in lines if (one := json.loads(line)).get("code") == "snap_length"]
    assert sorted((Path(one["file"]).name, one["snap_length"]) for one in told) == [("128.pcap", 128), ("96.pcap", 96)]
