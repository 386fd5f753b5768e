"""``browse --keep-index``: an index beside its capture, which is used while it fits and belongs to the user alone."""

from __future__ import annotations

import lzma
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.cli.index_job import index_captures
from kwiresniff.cli.kept_index import ENDING
from kwiresniff.cli.options import ReadOptions
from kwiresniff.index import Indexed
from tests.support.command import Run
from tests.support.paths import CAPTURES
from tests.support.terminals import PATIENCE_S, read_until, started

SMALL = CAPTURES / "java-fetch.pcapng"


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A capture in a folder of its own."""
    path = tmp_path / SMALL.name
    path.write_bytes(SMALL.read_bytes())
    return path


def beside(path: Path) -> Path:
    return path.with_name(path.name + ENDING)


def sent(*paths: Path, keeps: bool = False, **options: Any) -> list[Indexed]:
    """What the reading process sends."""
    found: list[Any] = []
    index_captures(found.append, [str(one) for one in paths], ReadOptions(**options), keeps=keeps)
    assert [one.done for one in found] == [False] * (len(found) - 1) + [True]
    return [one._replace(fraction=0.0) for one in found]


def bytes_read() -> int:
    """Bytes that this process has read so far."""
    (line,) = (one for one in Path("/proc/self/io").read_text().splitlines() if one.startswith("rchar"))
    return int(line.split()[1])


def test_an_index_is_kept_for_its_owner_alone_and_only_when_asked_for(capture: Path) -> None:
    """It says the same as the capture."""
    fresh = sent(capture)
    assert not beside(capture).exists()
    sent(capture, keeps=True)
    assert beside(capture).stat().st_mode & 0o777 == 0o600
    assert sent(capture) == fresh
    assert sorted(one.name for one in capture.parent.iterdir()) == [capture.name, beside(capture).name]


@pytest.mark.skipif(sys.platform != "linux", reason="counts bytes by /proc")
def test_with_a_kept_index_the_capture_is_not_read(tmp_path: Path) -> None:
    """But for its beginning and the blocks by which it is told from others."""
    path = tmp_path / "large.pcap"
    path.write_bytes(lzma.decompress((CAPTURES / "incidents" / "bytes-flood.pcap.xz").read_bytes()))
    before = bytes_read()
    fresh = sent(path, keeps=True)
    of_capture = bytes_read() - before
    assert of_capture > path.stat().st_size > 1_000_000
    assert sent(path) == fresh
    assert bytes_read() - before - of_capture < of_capture / 2


def test_an_index_that_does_not_fit_is_not_used(capture: Path) -> None:
    """It is made again where it is to be kept, and told otherwise."""
    sent(capture, keeps=True)
    old = beside(capture).read_bytes()
    data = SMALL.read_bytes()
    capture.write_bytes(data[: len(data) * 2 // 3])
    fresh = sent(capture)
    assert fresh[-1].problems[0] == f"{beside(capture)}: no index is read here: " + (
        "the captures, the options or the version of kwiresniff are others"
    )
    assert beside(capture).read_bytes() == old
    made = sent(capture, keeps=True)
    assert beside(capture).read_bytes() != old
    assert made == sent(capture) == [one._replace(problems=one.problems[1:]) for one in fresh]


def test_an_index_is_of_all_captures_and_of_the_options_that_shape_it(capture: Path) -> None:
    """It lies beside the first of several, and is that of no other choice of them."""
    other = capture.with_name("other.pcap")
    other.write_bytes((CAPTURES / "java-produce.pcap").read_bytes())
    fresh = sent(capture, other)
    sent(capture, other, keeps=True)
    (kept,) = capture.parent.glob(f"*{ENDING}")
    assert sent(other, capture, verbose=1, filter=None) == fresh
    for one in (sent(capture, other, limit=2), sent(capture, other, port=(7,)), sent(Path(str(kept)[: -len(ENDING)]))):
        assert "are others" in one[-1].problems[0]


def test_a_damaged_index_is_one_line(capture: Path) -> None:
    """And the answer is that of the capture."""
    fresh = sent(capture)
    sent(capture, keeps=True)
    data = bytearray(beside(capture).read_bytes())
    data[-50] ^= 1
    beside(capture).write_bytes(data)
    told = sent(capture)
    assert told[-1].problems[0].startswith(f"{beside(capture)}: no index is read here: it is damaged")
    assert [*told[:-1], told[-1]._replace(problems=told[-1].problems[1:])] == fresh


def test_what_others_may_have_written_is_neither_read_nor_replaced(capture: Path) -> None:
    """A link, a file that others may write, another file under the name, a pipe that nobody writes into."""
    fresh = sent(capture)
    target = capture.with_name("target")
    sent(capture, keeps=True)
    beside(capture).rename(target)
    beside(capture).symlink_to(target)
    before = target.read_bytes()

    def refused() -> None:
        for keeps in (False, True):
            told = sent(capture, keeps=keeps)
            assert told[-1].problems[0].startswith(f"{beside(capture)}: no index is {'kept' if keeps else 'read'} here")
            assert [*told[:-1], told[-1]._replace(problems=told[-1].problems[1:])] == fresh

    refused()
    assert beside(capture).is_symlink() and target.read_bytes() == before
    beside(capture).unlink()
    target.rename(beside(capture))
    beside(capture).chmod(0o620)
    refused()
    assert beside(capture).read_bytes() == before
    beside(capture).write_text("a letter")
    beside(capture).chmod(0o600)
    refused()
    assert beside(capture).read_text() == "a letter"
    beside(capture).unlink()
    os.mkfifo(beside(capture), 0o600)
    refused()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_an_index_of_another_user_is_not_used(capture: Path) -> None:
    """As in a folder of somebody else."""
    sent(capture, keeps=True)
    os.chown(beside(capture), 1234, 1234)
    assert "others may have written it" in sent(capture)[-1].problems[0]


def test_what_was_decrypted_is_not_kept(tmp_path: Path, kwiresniff: Run) -> None:
    """With keys that the capture itself has; with --keylog it is a mistake."""
    path = tmp_path / "tls.pcapng"
    keys = str(CAPTURES / "keys" / "java-tls.log")
    kwiresniff("read", str(CAPTURES / "java-tls.pcap"), "--keylog", keys, "-w", str(path), "-q")
    told = sent(path, keeps=True)
    assert any(one.part.outcomes for one in told)
    assert told[-1].problems[0].endswith("no index is kept here: what was decrypted is not kept")
    assert not beside(path).exists()
    sent(CAPTURES / "java-tls.pcap", keylog=keys)
    assert not beside(CAPTURES / "java-tls.pcap").exists()


def test_an_index_of_a_part_is_not_kept(capture: Path) -> None:
    """One of the captures is not there, and perhaps is the next time."""
    told = sent(capture, capture.with_name("other.pcap"), keeps=True)
    assert told[-1].problems[0].endswith("no index is kept here: the captures could not be read to their end")
    assert not beside(capture).exists()


def test_a_folder_that_cannot_be_written_is_one_line(capture: Path) -> None:
    """The exchanges are listed as without."""
    fresh = sent(capture)
    beside(capture).mkdir()
    told = sent(capture, keeps=True)
    assert len(told[-1].problems) == 1 and str(beside(capture)) in told[-1].problems[0]
    assert told[-1]._replace(problems=()) == fresh[-1]


@pytest.mark.slow
def test_options_with_which_no_index_is_kept_are_named(tmp_path: Path) -> None:
    """As a mistake of usage."""
    process, terminal = started("browse", str(SMALL), "--keep-index", "--show-secrets", "--strict")
    assert "--keep-index goes without --show-secrets, --strict" in read_until(terminal, "\0")
    os.close(terminal)
    assert process.wait(PATIENCE_S) == 2
