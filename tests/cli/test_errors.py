"""One line for everything that can go wrong, the right exit code, and no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.support.capture_files import heartbeats, save
from tests.support.command import Done, Run


def one_line(done: Done, code: int) -> str:
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith("kwiresniff: ")
    assert done.err.count("\n") == 1
    assert "Traceback" not in done.err
    return done.err


@pytest.mark.parametrize("command", [["read"], ["stats"], ["export", "-O", "/dev/null.jsonl"]])
def test_a_file_that_is_not_there_is_named(kwiresniff: Run, command: list[str]) -> None:
    assert "/no/such.pcap" in one_line(kwiresniff(*command, "/no/such.pcap"), 1)


def test_what_is_not_a_capture_is_named(kwiresniff: Run, tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("dear diary")
    assert "notes.txt" in one_line(kwiresniff("read", str(text)), 1)


def test_an_empty_file_is_named(kwiresniff: Run, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pcap"
    empty.touch()
    assert "empty.pcap" in one_line(kwiresniff("read", str(empty)), 1)


def test_a_folder_without_captures_is_named(kwiresniff: Run, tmp_path: Path) -> None:
    assert str(tmp_path) in one_line(kwiresniff("read", str(tmp_path)), 1)


def test_a_file_that_may_not_be_read_is_named(
    kwiresniff: Run, tmp_path: Path, ordinary_user: Callable[[], AbstractContextManager[None]]
) -> None:
    capture = Path(save(tmp_path / "a.pcap", heartbeats(1)))
    assert kwiresniff("read", str(capture)).code == 0
    capture.chmod(0)
    with ordinary_user():
        done = kwiresniff("read", str(capture))
    assert "a.pcap: permission denied" in one_line(done, 1)


def test_a_name_cannot_move_the_cursor(kwiresniff: Run) -> None:
    assert "\x1b" not in one_line(kwiresniff("read", "/no/\x1b[2Jsuch.pcap"), 1)


def test_the_name_of_an_output_cannot_move_the_cursor(kwiresniff: Run, tmp_path: Path) -> None:
    """Neither where it was written nor where its format is not known; both stay on one line."""
    capture = save(tmp_path / "a.pcap", heartbeats(1))
    for name, code in (("\x1b[2J\na.csv", 0), ("a\u202e.\x1b[2J", 2)):
        done = kwiresniff("export", "-O", str(tmp_path / name), capture)
        assert done.code == code
        assert done.err.count("\n") == 1
        assert done.err[:-1].isprintable()


def test_a_number_of_packets_beyond_all_is_all_of_them(kwiresniff: Run, tmp_path: Path) -> None:
    capture = save(tmp_path / "a.pcap", heartbeats(3))
    done = kwiresniff("read", "-o", "summary", "-c", str(1 << 80), capture)
    assert done == kwiresniff("read", "-o", "summary", capture)
    assert done.out


def test_verbose_shows_where_it_went_wrong(kwiresniff: Run) -> None:
    err = kwiresniff("read", "-v", "/no/such.pcap").err
    assert err.startswith("Traceback")
    assert err.splitlines()[-1].startswith("kwiresniff: ")


def test_a_mistake_in_a_filter_is_usage_and_says_where(kwiresniff: Run) -> None:
    err = one_line(kwiresniff("read", "-Y", "api = Fetch", "/no/such.pcap"), 2)
    assert err.startswith("kwiresniff: filter: at column 5: expected one of ==")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ([], "kwiresniff: missing command; see 'kwiresniff --help'"),
        (["reed"], "kwiresniff: no such command 'reed'"),
        (["read"], "kwiresniff: read: missing argument 'CAPTURE...'; see 'kwiresniff read --help'"),
        (["read", "--colour"], "kwiresniff: read: no such option"),
        (["read", "-o", "yaml", "x"], "kwiresniff: read: invalid value for '-o'"),
        (["read", "--limit", "0", "x"], "kwiresniff: read: invalid value for '--limit'"),
        (
            ["read", "--since", "yesterday", "x"],
            "kwiresniff: read: invalid value for '--since': 'yesterday' is neither",
        ),
        (["stats", "--by", "api,colour", "x"], "kwiresniff: stats: invalid value for '--by': 'colour' is not one of"),
        (["export", "x"], "kwiresniff: export: missing option '-O'"),
    ],
)
def test_wrong_usage_exits_with_2(kwiresniff: Run, args: list[str], says: str) -> None:
    assert one_line(kwiresniff(*args), 2).startswith(says)


@pytest.mark.parametrize(
    ("name", "says"),
    [("out.xml", "unknown format"), ("out.parquet.gz", "Parquet"), ("-", "read CAPTURE -o jsonl")],
)
def test_a_format_that_is_not_written_is_a_mistake_in_usage(kwiresniff: Run, name: str, says: str) -> None:
    err = one_line(kwiresniff("export", "any.pcap", "-O", name), 2)
    assert name in err
    assert says in err


def test_an_output_that_cannot_be_written_is_named(kwiresniff: Run, tmp_path: Path) -> None:
    capture = save(tmp_path / "a.pcap", heartbeats(1))
    err = one_line(kwiresniff("export", capture, "-O", str(tmp_path / "no" / "out.jsonl")), 1)
    assert f"{tmp_path}/no/out.jsonl: cannot write here" in err


@pytest.mark.parametrize("form", ["summary", "jsonl"])
def test_one_capture_that_cannot_be_read_does_not_cost_the_others(kwiresniff: Run, tmp_path: Path, form: str) -> None:
    """The file that a running tcpdump writes is empty at first; the exit code still says that something failed."""
    good = save(tmp_path / "a.pcap", heartbeats(2))
    (tmp_path / "b.pcap").touch()
    alone = kwiresniff("read", "-o", form, good)
    both = kwiresniff("read", "-o", form, f"{tmp_path}/*.pcap")
    assert (alone.code, both.code) == (0, 1)
    if form == "summary":
        assert both.out == alone.out
        assert both.err == f"kwiresniff: {tmp_path}/b.pcap is not a capture: it is empty (0 bytes)\n"
    else:
        assert set(alone.out.splitlines()) < set(both.out.splitlines())
        assert "capture_unreadable" in both.out


@pytest.mark.parametrize("group", ["schema", "pipeline"])
def test_a_group_without_a_command_is_one_line(kwiresniff: Run, group: str) -> None:
    assert one_line(kwiresniff(group), 2) == f"kwiresniff: {group}: missing command; see 'kwiresniff {group} --help'\n"


def test_a_plugin_that_is_not_there_is_named(kwiresniff: Run, tmp_path: Path) -> None:
    capture = save(tmp_path / "a.pcap", heartbeats(1))
    assert "none.py" in one_line(kwiresniff("read", "--plugin", str(tmp_path / "none.py"), capture), 1)


def test_a_bug_of_ours_is_one_line_too(kwiresniff: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import kwiresniff.cli.event_source as reading

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(reading, "open_captures", broken)
    assert "internal error, ZeroDivisionError: oops" in one_line(kwiresniff("read", "x"), 1)


def test_a_name_that_no_file_can_have_is_one_line(kwiresniff: Run, tmp_path: Path) -> None:
    capture = save(tmp_path / "a.pcap", heartbeats(1))
    for command in ("export", "report"):
        assert "cannot write here" in one_line(kwiresniff(command, "-O", f"{tmp_path}/a\0.jsonl", capture), 1)


@pytest.mark.parametrize("digits", ["²", "٣"])
def test_digits_that_are_no_number_are_a_name_that_no_api_has(kwiresniff: Run, digits: str) -> None:
    assert digits in one_line(kwiresniff("schema", "show", digits), 1)
    assert digits in one_line(kwiresniff("decode", "--api", digits, "--version", "1", "00"), 2)


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_whoever_reads_help_may_leave(option: str) -> None:
    """A reader that closes the pipe at once has seen enough: exit code 0, nothing said."""
    outlet, inlet = os.pipe()
    os.close(outlet)
    command = [sys.executable, "-m", "kwiresniff", option]
    done = subprocess.run(command, stdout=inlet, stderr=subprocess.PIPE, check=False)
    os.close(inlet)
    assert (done.returncode, done.stderr) == (0, b"")
