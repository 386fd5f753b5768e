"""TLS decrypted by tshark, the second opinion: what OpenSSL wrote comes out as segments beside the encrypted ones."""

from __future__ import annotations

import os
import shutil
import ssl
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kwiresniff.capture import TSHARK, CaptureSet, open_captures, with_decryption
from kwiresniff.capture.sources import SegmentSource
from kwiresniff.capture.tls_records import RecordStarts
from kwiresniff.errors import CaptureError
from kwiresniff.model import DECRYPTED, Segment
from tests.support.capture_files import LINKTYPE_RAW, pcap, save
from tests.support.conversation import Wire
from tests.support.packet_builder import Pcapng
from tests.support.tls_conversation import TlsTalk

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tshark") is None and not os.environ.get("CI"), reason="tshark is not installed"),
]

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
ASKED = [b"hello", b"q" * 50_000, b"bye"]
ANSWERED = [b"a" * 30_000, b"yes"]


def by_tshark(captures: CaptureSet, keylog: str | None) -> SegmentSource:
    return with_decryption(captures, keylog, TSHARK)


def talk(keylog: Path, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3) -> TlsTalk:
    one = TlsTalk(version=version, keylog=keylog).shake()
    for number, data in enumerate(ASKED):
        one.up(data)
        if number < len(ANSWERED):
            one.down(ANSWERED[number])
    return one


def wire(one: TlsTalk, *, segment: int = 1448, client_port: int = 40_000) -> Wire:
    result = Wire(client_port=client_port).open()
    for side, flight in one.flights:
        for at in range(0, len(flight), segment):
            result.send(side, flight[at : at + segment])
    return result.close()


def plaintexts(segments: Iterator[Segment]) -> dict[bytes, bytes]:
    """The plaintext of each direction, put together by its sequence numbers."""
    found: dict[bytes, bytes] = {}
    for _, _, flow, seq, _, flags, buffer, start, end, missing in segments:
        if flags & DECRYPTED:
            assert seq == len(found.get(flow, b"")) and not missing
            found[flow] = found.get(flow, b"") + buffer[start:end]
    return found


@pytest.mark.parametrize("segment", [100, 1448, 200_000])
@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_written_comes_out(tmp_path: Path, version: ssl.TLSVersion, segment: int) -> None:
    """Records over many segments, many records in one, and packets longer than an IPv4 packet says it can be."""
    keylog = tmp_path / "keys.log"
    one = wire(talk(keylog, version), segment=min(segment, 65_000))
    captures = by_tshark(open_captures([save(tmp_path / "a.pcap", one)]), str(keylog))
    segments = list(captures)
    assert plaintexts(iter(segments)) == {one.flows[0]: b"".join(ASKED), one.flows[1]: b"".join(ANSWERED)}
    assert [segment[:5] for segment in segments if not segment[5] & DECRYPTED] == [one[:5] for one in one.segments]


def test_a_record_stands_before_the_packet_that_completes_it(tmp_path: Path) -> None:
    keylog = tmp_path / "keys.log"
    one = wire(talk(keylog))
    segments = list(by_tshark(open_captures([save(tmp_path / "a.pcap", one)]), str(keylog)))
    for place, segment in enumerate(segments):
        if segment[5] & DECRYPTED and segment[8] - segment[7] > 1:
            assert segments[place + 1][:3] == segment[:3]


@pytest.mark.parametrize("segment", [7, 1448])
def test_the_first_byte_of_a_record_has_the_time_at_which_it_was_on_the_wire(tmp_path: Path, segment: int) -> None:
    """Each flight of application data is one or more records; the first byte is in its first packet."""
    keylog = tmp_path / "keys.log"
    made = TlsTalk(keylog=keylog).shake()
    handshake = len(made.flights)
    for _ in range(3):
        made.up(b"q" * 100).down(b"a" * 3000)
    one = wire(made, segment=segment)
    sent = [segment[0] for segment in one.segments if segment[8] > segment[7]]
    firsts = []
    for number, (_, flight) in enumerate(made.flights):
        pieces = -(-len(flight) // segment)
        if number >= handshake:
            firsts.append(sent[0])
        del sent[:pieces]
    found: dict[tuple[bytes, int], int] = {}
    source = by_tshark(open_captures([save(tmp_path / "a.pcap", one)]), str(keylog))
    for packet, ns, flow, seq, _, flags, _, _, _, _ in source:
        if flags & DECRYPTED:
            found[flow, seq] = packet
            assert ns == packet * 1_000_000
    begins = [found[one.flows[side], number * size] for number in range(3) for side, size in ((0, 100), (1, 3000))]
    assert begins == firsts


def test_repeated_segments_change_no_times_and_missing_ones_only_cost_them() -> None:
    """A direction is followed as long as it is in order."""
    record = b"\x17\x03\x03\x00\x0a0123456789"
    hello = b"\x16\x03\x03\x00\x02ab"
    one = Wire().open().up(hello + record[:3]).up(record[3:9]).up(record[9:])
    starts = RecordStarts()
    assert [starts.segment(segment) for segment in one.segments] == [None] * 5 + [(4, 4_000_000)]
    starts = RecordStarts()
    twice = [again for segment in one.segments for again in (segment, segment)]
    assert [start for segment in twice if (start := starts.segment(segment))] == [(4, 4_000_000)]
    starts = RecordStarts()
    assert not any(starts.segment(segment) for segment in (*one.segments[:4], one.segments[5]))


def test_connections_side_by_side_in_several_files_are_kept_apart(tmp_path: Path) -> None:
    """Two connections in one file, whose ends are in the next one; and one without a key."""
    keylog = tmp_path / "keys.log"
    wires = [wire(talk(keylog), client_port=port) for port in (40_001, 40_002)]
    wires.append(wire(talk(tmp_path / "others.log"), client_port=40_003))
    mixed = [segment for turn in zip(*(one.segments for one in wires), strict=True) for segment in turn]
    for name, part in (("1.pcap", mixed[: len(mixed) // 2]), ("2.pcap", mixed[len(mixed) // 2 :])):
        (tmp_path / name).write_bytes(pcap(part))
    captures = by_tshark(open_captures([str(tmp_path / "1.pcap"), str(tmp_path / "2.pcap")]), str(keylog))
    found = plaintexts(iter(captures))
    assert found.keys() == {flow for one in wires[:2] for flow in one.flows}
    for one in wires[:2]:
        assert (found[one.flows[0]], found[one.flows[1]]) == (b"".join(ASKED), b"".join(ANSWERED))


def pcapng(segments: list[Segment], secrets: bytes) -> bytes:
    """A little-endian pcapng file with a key log before its packets."""
    form = Pcapng("<")
    block = form.block(10, struct.pack("<II", 0x544C534B, len(secrets)) + secrets + bytes(-len(secrets) & 3))
    packets = []
    data, at = pcap(segments), 24
    while at < len(data):
        size = struct.unpack_from("<I", data, at + 8)[0]
        packets.append(form.enhanced(data[at + 16 : at + 16 + size]))
        at += 16 + size
    return form.section() + form.interface(link_type=LINKTYPE_RAW) + block + b"".join(packets)


def test_keys_inside_the_capture_are_used_unasked(tmp_path: Path) -> None:
    keylog = tmp_path / "keys.log"
    one = wire(talk(keylog))
    capture = tmp_path / "a.pcapng"
    capture.write_bytes(pcapng(one.segments, keylog.read_bytes()))
    found = plaintexts(iter(by_tshark(open_captures([str(capture)]), None)))
    assert found == {one.flows[0]: b"".join(ASKED), one.flows[1]: b"".join(ANSWERED)}


def test_what_is_no_key_log_is_refused_by_name(tmp_path: Path) -> None:
    capture = save(tmp_path / "a.pcap", wire(talk(tmp_path / "keys.log")))
    with pytest.raises(CaptureError, match=r"none\.log: no such file"):
        by_tshark(open_captures([capture]), str(tmp_path / "none.log"))
    with pytest.raises(CaptureError, match=r"a\.pcap is not a TLS key log"):
        by_tshark(open_captures([capture]), capture)


def test_a_key_log_with_nothing_but_ids_of_sessions_is_one(tmp_path: Path) -> None:
    """Which is what a Java agent writes where all clients speak TLS 1.2."""
    captures = Path(__file__).parents[2] / "captures"
    lines = (captures / "keys" / "java-tls.log").read_text().splitlines(keepends=True)
    keylog = tmp_path / "keys.log"
    keylog.write_text("".join(line for line in lines if line.startswith("RSA Session-ID:")))
    found = plaintexts(iter(by_tshark(open_captures([str(captures / "java-tls.pcap")]), str(keylog))))
    assert len(found) == 2 * 4


def test_without_tshark_the_user_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keylog = tmp_path / "keys.log"
    capture = save(tmp_path / "a.pcap", wire(talk(keylog)))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CaptureError, match="tshark"):
        by_tshark(open_captures([capture]), str(keylog))


def test_who_stops_early_leaves_nothing_running(tmp_path: Path) -> None:
    """Neither tshark nor what writes to it, even with most of the capture still to come."""
    keylog = tmp_path / "keys.log"
    one = talk(keylog)
    for _ in range(100):
        one.up(b"x" * 50_000)
    captures = by_tshark(open_captures([save(tmp_path / "a.pcap", wire(one))]), str(keylog))
    segments = iter(captures)
    next(segments)
    assert "tshark feed" in [thread.name for thread in threading.enumerate()]
    captures.close()
    assert "tshark feed" not in [thread.name for thread in threading.enumerate()]
    segments.close()  # type: ignore[attr-defined]
