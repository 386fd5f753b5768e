"""What is remembered for packets is bounded: past each limit less is written, or a line says why nothing is."""

from __future__ import annotations

import io
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.base.address_names import AddressNames
from kwiresniff.base.needs import Needs
from kwiresniff.capture import ip_reassembly, open_captures, packet_records
from kwiresniff.capture.live import packet_comments
from kwiresniff.cli import spool
from kwiresniff.errors import ExportError
from kwiresniff.model import Exchange
from kwiresniff.packets import Context, Selection, Source, context, following, selection, source, write_packets
from kwiresniff.packets.anonymous import FrameSpool, Pseudonyms, payloads, pseudonyms
from kwiresniff.packets.anonymous.record_sets import without_content
from kwiresniff.packets.following import tcp_events
from kwiresniff.packets.stretches import Stretches
from kwiresniff.packets.tcp_events import MAX_GAPS, TcpEvents
from kwiresniff.session import Analyzer
from tests.support import capture_files, packet_builder
from tests.support.command import Run
from tests.support.conversation import Wire, heartbeat, heartbeat_response
from tests.support.events import analyze_with
from tests.support.paths import CAPTURES


def chosen(path: str, every: int = 1) -> tuple[Selection, Context]:
    """Every so many exchanges of a capture."""
    found = Selection()
    seen = Context(found)
    events = analyze_with(Analyzer(Needs("bodies", sessions=True)), open_captures([path]))
    for number, event in enumerate(one for one in events if isinstance(one, Exchange)):
        seen.on_exchange(event)
        if number % every == 0:
            seen.add(event)
            found.choose(event)
    return found, seen


def sparse(path: Path, count: int = 40) -> str:
    """A connection with a heartbeat every second."""
    wire = Wire().open()
    for number in range(count):
        wire.up(heartbeat(number)).down(heartbeat_response(number))
        wire.segments = [(*one[:1], one[1] + number * 1_000_000_000, *one[2:]) if one[0] > 3 + 2 * number else one
                         for one in wire.segments]  # fmt: skip
    return capture_files.save(path, wire.close())


def test_too_many_places_are_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(selection, "MAX_STRETCHES", 3)
    found, _ = chosen(sparse(tmp_path / "in.pcap"), 5)
    with pytest.raises(ExportError, match="more than 3 places; choose fewer"):
        write_packets(Source([str(tmp_path / "in.pcap")]), found, str(tmp_path / "out.pcap"))
    assert not (tmp_path / "out.pcap").exists()


def test_exchanges_past_the_limit_have_no_comment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(selection, "MAX_COMMENTS", 5)
    found, _ = chosen(capture_files.save(tmp_path / "in.pcap", capture_files.heartbeats(20)))
    assert found.exchanges == 20
    assert sum(map(len, found.comments.values())) == 5


def test_answers_that_are_remembered_of_all_connections_are_bounded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(context, "MAX_ALL_ANSWERED", 10)
    wires = [capture_files.heartbeats(8, client_port=40_000 + number) for number in range(5)]
    _, seen = chosen(capture_files.save(tmp_path / "in.pcap", *wires))
    assert sum(len(one.answered) for one in seen._connections.values()) <= 10


def test_names_and_sessions_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "MAX_NAMED", 1)
    monkeypatch.setattr(context, "MAX_SESSIONS", 2)
    monkeypatch.setattr(context, "MAX_CHANGES", 1)
    _, seen = chosen(str(CAPTURES / "java-fetch.pcapng"))
    assert len(seen._named) <= 1
    assert len(seen._sessions) <= 2
    assert all(len(one.changes) <= 1 for one in seen._sessions.values())


def test_fragments_wait_within_a_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The first of two fragments is left out where there is no room for it; the rest of the capture is written."""
    wire = capture_files.heartbeats(2).segments[3]
    tcp = packet_builder.tcp(bytes(wire[6]), seq=101)
    first = packet_builder.ethernet(packet_builder.ipv4(tcp[:32], fragment=0x2000))
    last = packet_builder.ethernet(packet_builder.ipv4(tcp[32:], fragment=4))
    path = tmp_path / "in.pcap"
    path.write_bytes(packet_builder.pcap([first, last]))
    assert len(list(source.segments_of(Source([str(path)])))) == 2
    monkeypatch.setattr(packet_records, "MAX_FRAGMENT_BYTES", 10)
    assert len(list(source.segments_of(Source([str(path)])))) == 1
    monkeypatch.setattr(ip_reassembly, "MAX_FRAGMENTS", 1)
    fragments = ip_reassembly.Fragments()
    for number, last_one in enumerate((False, False, True)):
        fragments.add("key", number, 8 * number, bytes(8), last_one)
    assert fragments.packets == [0]


def test_a_pipe_is_kept_within_a_limit(monkeypatch: pytest.MonkeyPatch, kwiresniff: Run, tmp_path: Path) -> None:
    monkeypatch.setattr(spool, "MAX_SPOOL_BYTES", 1000)

    class Standard(io.BytesIO):
        buffer = property(lambda self: self)

    monkeypatch.setattr(sys, "stdin", Standard((CAPTURES / "sarama.pcap").read_bytes()))
    done = kwiresniff("read", "-w", str(tmp_path / "out.pcap"), "-")
    assert done.code == 1
    assert done.err.startswith("kwiresniff: standard input: it has to be read twice")
    assert list(tmp_path.iterdir()) == []


def test_frames_are_kept_within_a_limit(monkeypatch: pytest.MonkeyPatch, kwiresniff: Run, tmp_path: Path) -> None:
    source = str(CAPTURES / "sarama.pcap")
    for name in ("MAX_FRAMES", "MAX_FRAMES_BYTES"):
        with monkeypatch.context() as patch:
            patch.setattr(payloads, name, 3)
            done = kwiresniff("read", "-w", str(tmp_path / "out.pcap"), "--anonymise", source)
            assert done.code == 1
            assert done.err.startswith("kwiresniff: --anonymise keeps no more than")
    tokens = FrameSpool(io.BytesIO())
    tokens.add_tokens(1, True, 0, payloads.MAX_TOKEN_BYTES + 5)
    tokens.add_tokens(1, True, 0, 14)
    assert tokens.payload(1, True, 0, 20) == b"\0\0\0\x0a" + b"\xff" * 10 + bytes(6)


def test_pseudonyms_that_are_forgotten_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pseudonyms, "MAX_REMEMBERED", 2)
    found = Pseudonyms(b"key")
    names = [b"name-%d" % number for number in range(9)]
    assert [found.text(name) for name in names] == [found.text(name) for name in names]
    assert len(found._texts) <= 2


def test_a_batch_that_grows_too_large_is_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    """It keeps its header, and the number of its records."""
    from kwiresniff.packets.anonymous import record_sets
    from tests.support.encoding import encode_batch

    records: list[dict[str, Any]] = [{"offset": 0, "timestamp": 0, "key": None, "value": bytes(5000), "headers": []}]
    batch = encode_batch({"records": records, "compression": "gzip"})
    monkeypatch.setattr(record_sets, "MAX_DECOMPRESSED_BYTES", 1000)
    assert without_content(batch)[61:] == bytes(len(batch) - 61)
    assert struct.unpack_from(">i", without_content(batch), 57) == (1,)


def test_events_that_are_told_are_bounded(monkeypatch: pytest.MonkeyPatch, kwiresniff: Run, tmp_path: Path) -> None:
    path = capture_files.save(tmp_path / "in.pcap", capture_files.heartbeats(20))
    found, _ = chosen(path)
    assert len(list(tcp_events(Source([path]), found, 2))) == 2
    from kwiresniff.cli import follow

    monkeypatch.setattr(follow, "MAX_EVENTS", 4)
    done = kwiresniff("follow", "client=c-1", path)
    assert "18 later exchanges are left out; narrow it with -Y or --since" in done.err
    assert following.MAX_EVENTS > 4


def test_gaps_are_remembered_within_a_limit() -> None:
    events = TcpEvents()
    told: list[Any] = []
    for number in range(2 * MAX_GAPS):
        segment = (number, number, packet_builder.FLOW, 10 * number, 0, 16, bytes(5), 0, 5, 0)
        told += events.events(segment, True)
    assert len(told) == 2 * MAX_GAPS - 1
    assert len(events._ways[0].gaps) == MAX_GAPS


def test_connections_with_comments_are_remembered_within_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packet_comments, "MAX_COMMENTED", 1)
    names = AddressNames()
    names.add("10.0.0.1:40000", "process/java", "process")
    comments = packet_comments.PacketComments(names, 1)
    packet = packet_builder.ethernet(packet_builder.ipv4(packet_builder.tcp(b"x")))
    comments._commented.add(b"another")
    assert comments.of(packet, 0, len(packet))[0] == [b"Cmd: java"]
    assert comments.of(packet, 0, len(packet))[0] == []
    assert len(comments._commented) == 1


def test_stretches_wrap_around() -> None:
    """Bytes behind the last sequence number are the first ones again."""
    stretches = Stretches()
    stretches.add(0xFFFFFFF0, 0x100000010)
    stretches.close()
    assert stretches.touches(0xFFFFFFFF, 1)
    assert stretches.touches(0xF, 10)
    assert not stretches.touches(0x10, 10)
    assert stretches.touches(0xFFFFFF00, 0x200)
    assert stretches.borders(0x10)
    assert not stretches.borders(0x11)
