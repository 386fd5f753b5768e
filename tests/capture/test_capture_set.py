"""Opening captures: what is found, in which order, and what is said about what is no capture."""

from __future__ import annotations

import builtins
import gzip
import io
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.capture import open_captures
from kwiresniff.errors import CaptureError
from kwiresniff.model import Segment, file_index, packet_number
from tests.support import packet_builder
from tests.support.tshark_view import seen


def capture(text: str, seconds: int = 1_700_000_000) -> bytes:
    return packet_builder.pcap(
        [packet_builder.ethernet(packet_builder.ipv4(packet_builder.tcp(text.encode())))], seconds=seconds
    )


def texts(captures: Iterable[Segment]) -> list[str]:
    return [seen(segment).payload.decode() for segment in captures]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tree with captures among other files."""
    (tmp_path / "sub" / "deep").mkdir(parents=True)
    (tmp_path / "b.pcap").write_bytes(capture("two", 20))
    (tmp_path / "notes.txt").write_text("not a capture")
    (tmp_path / "no-name").write_bytes(gzip.compress(capture("one", 10)))
    (tmp_path / "empty.pcap").write_bytes(b"")
    (tmp_path / "notes.gz").write_bytes(gzip.compress(b"not a capture"))
    (tmp_path / "sub" / "deep" / "c").write_bytes(capture("three", 30))
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "fifo")
    return tmp_path


def test_a_header_without_packets_is_a_capture(tmp_path: Path) -> None:
    """tcpdump that saw nothing."""
    (tmp_path / "a.pcap").write_bytes(packet_builder.pcap([]))
    captures = open_captures([str(tmp_path / "a.pcap")])
    assert list(captures) == []
    assert captures.packets == 0 and captures.problems == []


def test_a_folder_gives_every_capture_inside_by_content(folder: Path) -> None:
    """Recursively; other files, FIFOs and links that lead nowhere or in circles are passed over."""
    captures = open_captures([str(folder)])
    assert texts(captures) == ["one", "two", "three"]
    assert captures.files == [str(folder / name) for name in ("no-name", "b.pcap", "sub/deep/c")]
    assert captures.problems == [] and captures.packets == 3
    assert captures.position() == captures.total_bytes == sum(os.path.getsize(name) for name in captures.files)


def test_files_are_ordered_by_their_first_packet(tmp_path: Path) -> None:
    """Whatever the order they are named in; the references say which file a packet is from."""
    for name, seconds in (("a", 300), ("b", 100), ("c", 200)):
        (tmp_path / name).write_bytes(capture(name, seconds))
    (tmp_path / "none").write_bytes(packet_builder.pcap([]))
    captures = open_captures([str(tmp_path / name) for name in ("none", "a", "b", "c")])
    segments = list(captures)
    assert [seen(segment).payload for segment in segments] == [b"b", b"c", b"a"]
    assert [(file_index(s[0]), packet_number(s[0])) for s in segments] == [(0, 1), (1, 1), (2, 1)]
    assert [os.path.basename(name) for name in captures.files] == ["b", "c", "a", "none"]


def test_pcapng_files_are_ordered_by_time_too(tmp_path: Path) -> None:
    """The first packet may come after other blocks."""
    ng = packet_builder.Pcapng()
    packet = packet_builder.ethernet(packet_builder.ipv4(packet_builder.tcp(b"ng")))
    blocks = ng.section() + ng.block(5, bytes(100)) + ng.interface(options=ng.resolution(9))
    (tmp_path / "a").write_bytes(blocks + ng.enhanced(packet, ticks=50_000_000_000))
    (tmp_path / "b").write_bytes(capture("early", 49))
    (tmp_path / "c").write_bytes(capture("late", 51))
    assert texts(open_captures([str(tmp_path / name) for name in "cab"])) == ["early", "ng", "late"]


def test_a_file_named_twice_is_read_once(folder: Path) -> None:
    """By itself, through its folder, through a link."""
    (folder / "link").symlink_to(folder / "b.pcap")
    assert texts(open_captures([str(folder / "b.pcap"), str(folder), str(folder / "link")])) == ["one", "two", "three"]


def test_patterns_are_expanded_when_the_shell_has_not(folder: Path) -> None:
    """Including the recursive kind; a file whose name looks like a pattern is itself."""
    assert texts(open_captures([str(folder / "b.pca[p]")])) == ["two"]
    assert texts(open_captures([str(folder / "**" / "c")])) == ["three"]
    (folder / "[x].pcap").write_bytes(capture("brackets"))
    assert texts(open_captures([str(folder / "[x].pcap")])) == ["brackets"]


def test_standard_input_is_read_as_a_stream() -> None:
    """Never sought, its size unknown."""
    data = capture("piped")
    captures = open_captures(["-"], stdin=io.BytesIO(data))
    assert captures.files == ["standard input"] and captures.total_bytes is None
    assert texts(captures) == ["piped"]
    assert captures.position() == len(data)


def test_standard_input_takes_its_place_among_files(tmp_path: Path) -> None:
    """Its first packet is found without losing it."""
    (tmp_path / "a").write_bytes(capture("first", 10))
    (tmp_path / "b").write_bytes(capture("third", 30))
    paths = [str(tmp_path / "b"), "-", str(tmp_path / "a"), "-"]
    captures = open_captures(paths, stdin=io.BytesIO(gzip.compress(capture("second", 20))))
    assert texts(captures) == ["first", "second", "third"]
    assert captures.total_bytes is None


def test_a_fifo_is_read_while_it_is_written(tmp_path: Path) -> None:
    """A segment comes out as soon as its packet is in, not when the writer is done."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    data = capture("now")
    taken = threading.Event()

    def write() -> None:
        with open(path, "wb", buffering=0) as fifo:
            fifo.write(data)
            taken.wait(10)
            fifo.write(data[24:])

    writer = threading.Thread(target=write)
    writer.start()
    segments = iter(open_captures([str(path)]))
    assert seen(next(segments)).payload == b"now"
    taken.set()
    assert len(list(segments)) == 1
    writer.join()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "it is empty"),
        (b"\xd4\xc3", "binary data"),
        (b"hello\n", "looks like text"),
        ("Grüße\n".encode(), "looks like text"),
        (b'{"a": 1}', "looks like JSON"),
        (b"\x7fELF\x02\x01\x01" + bytes(20), "ELF"),
        (b"PK\x03\x04" + bytes(20), "ZIP"),
        (bytes(600), "binary data"),
        (b"\xff\xfe\x00\x01\x80" * 10, "binary data"),
        (gzip.compress(b"hello\n", mtime=0), "text inside gzip"),
        (gzip.compress(gzip.compress(b"hello\n", mtime=0), mtime=0), "gzip data inside gzip"),
        (gzip.compress(b"", mtime=0), "gzip data is empty"),
        (b"\x1f\x8b\x08\x00\x00", "gzip data breaks off"),
        (b"snoop\0\0\0\0\0\0\2\0\0\0\4", "editcap"),
    ],
)
def test_what_is_no_capture_is_said_by_what_it_looks_like(content: bytes, says: str, tmp_path: Path) -> None:
    """One line, with the name."""
    path = tmp_path / "thing.pcap"
    path.write_bytes(content)
    with pytest.raises(CaptureError) as caught:
        open_captures([str(path)])
    assert says in str(caught.value) and str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("missing.pcap", "no such file"),
        ("*.nothing", "no file matches"),
        ("bare", "no capture in this folder"),
        ("text", "no capture in this folder"),
        ("a\0b", "null"),
        ("x" * 5000, "too long"),
    ],
)
def test_what_cannot_be_opened_is_said(path: Path, says: str, tmp_path: Path) -> None:
    """One line each."""
    (tmp_path / "bare").mkdir()
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a.pcap").write_text("text")
    with pytest.raises(CaptureError, match=says):
        open_captures([os.path.join(tmp_path, path)])


def test_nothing_named_is_an_error() -> None:
    """The command line would not let it happen, a library call can."""
    with pytest.raises(CaptureError, match="no capture named"):
        open_captures([])


def test_a_terminal_is_no_capture() -> None:
    """Waiting for somebody to type a pcap file helps nobody."""

    class Terminal(io.BytesIO):
        def isatty(self) -> bool:
            return True

    with pytest.raises(CaptureError, match="standard input is a terminal"):
        open_captures(["-"], stdin=Terminal())


def test_a_bad_file_among_named_ones_is_a_problem_and_the_others_are_read(folder: Path) -> None:
    """A pattern over the files of a tcpdump that runs names one with nothing in it yet."""
    bare = folder / "bare"
    bare.mkdir()
    names = ["missing.pcap", "notes.txt", "b.pcap", "*.nothing", "bare"]
    captures = open_captures([str(folder / name) for name in names])
    assert texts(captures) == texts(open_captures([str(folder / "b.pcap")]))
    assert {problem.code for problem in captures.problems} == {"capture_unreadable"}
    for name in ("missing.pcap", "notes.txt", "*.nothing", "bare"):
        assert sum(name in problem.message for problem in captures.problems) == 1


def test_nothing_but_bad_files_is_an_error(folder: Path) -> None:
    """Of one line, about one of them."""
    with pytest.raises(CaptureError, match=r"missing\.pcap"):
        open_captures([str(folder / "notes.txt"), str(folder / "missing.pcap")])


def test_a_file_without_permission(folder: Path, ordinary_user: Callable[[], AbstractContextManager[None]]) -> None:
    """An error when named, a problem when it lies in a folder."""
    (folder / "b.pcap").chmod(0)
    with ordinary_user():
        with pytest.raises(CaptureError, match=r"b\.pcap: permission denied"):
            open_captures([str(folder / "b.pcap")])
        captures = open_captures([str(folder)])
        assert texts(captures) == ["one", "three"]
    assert [problem.code for problem in captures.problems] == ["capture_unreadable"]


def test_a_file_that_cannot_be_opened_is_a_problem_in_a_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is reported and the others are read; ``open`` is replaced, since root may read everything."""
    real = builtins.open

    def refuse(path: Any, *rest: Any, **options: Any) -> Any:
        if str(path).endswith("b.pcap"):
            raise PermissionError(13, "Permission denied", path)
        return real(path, *rest, **options)

    monkeypatch.setattr(builtins, "open", refuse)
    captures = open_captures([str(folder)])
    (problem,) = captures.problems
    assert problem.code == "capture_unreadable" and "permission denied" in problem.message
    assert texts(captures) == ["one", "three"]


def test_a_file_that_is_cut_does_not_stop_the_next(tmp_path: Path) -> None:
    """The problem names its file."""
    (tmp_path / "a").write_bytes(capture("lost", 10)[:-1])
    (tmp_path / "b").write_bytes(capture("found", 20))
    captures = open_captures([str(tmp_path / "a"), str(tmp_path / "b")])
    assert texts(captures) == ["found"]
    (problem,) = captures.problems
    assert problem.code == "capture_cut" and problem.details == {"file": str(tmp_path / "a")}


def test_a_file_that_is_gone_when_its_turn_comes_is_a_problem(tmp_path: Path) -> None:
    """Rotation deletes old files."""
    for name in "ab":
        (tmp_path / name).write_bytes(capture(name))
    captures = open_captures([str(tmp_path / "a"), str(tmp_path / "b")])
    (tmp_path / "a").unlink()
    assert texts(captures) == ["b"]
    assert [problem.code for problem in captures.problems] == ["capture_unreadable"]


def test_stopping_early_closes_the_file(tmp_path: Path) -> None:
    """Closed by hand, or with the iterator."""
    path = tmp_path / "a"
    path.write_bytes(capture("x") + capture("y")[24:])
    captures = open_captures([str(path)])
    segments = iter(captures)
    next(segments)
    captures.close()
    assert len(list(segments)) <= 1  # what was in memory already
    next(iter(open_captures([str(path)])))


def test_importing_the_room_does_not_import_what_only_compression_needs() -> None:
    """Start-up time: lz4 and zstandard are imported by the first file that needs them."""
    code = "import sys, kwiresniff.capture; print(*(m for m in ('lz4', 'zstandard', 'scapy') if m in sys.modules))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == ""
