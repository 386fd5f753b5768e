"""Help, version, and how the command behaves as a process."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import sleep

import pytest

from kwiresniff import __version__
from kwiresniff.base.fastint import COMPILED
from kwiresniff.cli.main import COMMANDS
from tests.support.capture_files import heartbeats, pcap, save
from tests.support.command import Run
from tests.support.package import HOME

KWIRESNIFF = [sys.executable, "-m", "kwiresniff"]


def test_help_lists_every_command_with_what_it_does(kwiresniff: Run) -> None:
    done = kwiresniff("--help")
    assert done.code == 0
    for name, what in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(what)}$", done.out, re.MULTILINE)


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help(kwiresniff: Run, name: str) -> None:
    done = kwiresniff(name, "-h")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"Usage: kwiresniff {name}")


def test_every_command_has_help_without_any_extra() -> None:
    """What an extra installs is imported where it is used."""
    extras = "textual", "pyarrow", "pandas", "pyspark", "jinja2", "prometheus_client", "fastavro", "google.protobuf"
    code = (
        "import sys; from importlib import import_module; import click\n"
        f"sys.modules.update(dict.fromkeys({extras!r}))\n"
        f"for name in {list(COMMANDS)!r}:\n"
        "    command = import_module('kwiresniff.cli.' + name).command\n"
        "    print(command.get_help(click.Context(command, info_name=name)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("Usage: ") == len(COMMANDS)


def test_the_version_is_the_package_s(kwiresniff: Run) -> None:
    build = "compiled" if COMPILED else "pure Python"
    assert kwiresniff("--version") == (0, f"kwiresniff {__version__} ({build})\n", "")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("begun", [False, True], ids=["first-run", "run-before"])
def test_root_leaves_no_files_in_the_environment_of_somebody_else(tmp_path: Path, begun: bool) -> None:
    """Its owner could not remove them; without bytecode from pip, Python writes it beside what it imports."""
    nobody = 65534
    package = shutil.copytree(
        HOME / "kwiresniff", tmp_path / "kwiresniff", ignore=shutil.ignore_patterns("*.so", "*.pyc")
    )
    for path in (package, *package.rglob("*")):
        if path.name == "__pycache__":
            path.rmdir()
        else:
            os.chown(path, nobody, nobody)
    if begun:
        (package / "__pycache__").mkdir()
        os.chown(package / "__pycache__", nobody, nobody)
    capture = save(tmp_path / "a.pcap", heartbeats(2))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [sys.executable, "-m", "kwiresniff", "read", capture]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert "Heartbeat" in done.stdout
    assert [str(path) for path in package.rglob("*") if path.stat().st_uid == 0] == []
    assert list(package.rglob("__pycache__")) == ([package / "__pycache__"] if begun else [])


def test_root_s_own_environment_and_that_of_an_ordinary_user_keep_their_bytecode(tmp_path: Path) -> None:
    """Each run would have to compile again what it imports."""
    ignored = shutil.ignore_patterns("*.so", "__pycache__")
    package = shutil.copytree(HOME / "kwiresniff", tmp_path / "kwiresniff", ignore=ignored)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    subprocess.run([*KWIRESNIFF, "--version"], cwd=tmp_path, env=environment, capture_output=True, check=True)
    written = {path.name.split(".")[0] for path in (package / "__pycache__").iterdir()}
    assert written >= {"__init__", "__main__"}
    assert list((package / "cli" / "__pycache__").iterdir())


@pytest.mark.parametrize(
    ("typed", "meant"), [(("raed",), "read"), (("topic",), None), (("schema", "lst"), "list"), (("docter",), "doctor")]
)
def test_a_misspelt_command_is_answered_with_the_one_that_was_meant(
    kwiresniff: Run, typed: tuple[str, ...], meant: str | None
) -> None:
    done = kwiresniff(*typed)
    assert (done.code, done.out) == (2, "")
    assert f"no such command '{typed[-1]}': " in done.err
    if meant is not None:
        assert f"did you mean {meant}" in done.err


def test_captures_may_be_named_as_tcpdump_names_them(kwiresniff: Run, large: str) -> None:
    """``-r FILE -n -c N``: the first N packets of FILE; each heartbeat is a request and a response."""
    plain = kwiresniff("read", "-o", "summary", large)
    assert kwiresniff("read", "-n", "-r", large, "-o", "summary") == plain
    first = kwiresniff("read", "-r", large, "-c", "9", "-o", "summary").out.splitlines()
    handshake = 3
    pairs = (9 - handshake) // 2
    assert first == plain.out.splitlines()[:pairs]


def test_shared_options_stand_apart_from_a_command_s_own(kwiresniff: Run) -> None:
    text = kwiresniff("stats", "--help").out
    own, shared = text.split("Options shared by commands that read traffic:")
    assert "--by" in own and "--by" not in shared
    assert "--filter" in shared and "--filter" not in own


def test_all_reading_commands_share_their_options(kwiresniff: Run) -> None:
    for name in ("read", "stats", "export"):
        text = kwiresniff(name, "--help").out
        for option in (
            "-Y, --filter", "--port", "--since", "--until", "--limit", "--plugin", "--redact", "--show-secrets",
            "--strict", "-q", "-v", "--no-progress", "--color",
        ):  # fmt: skip
            assert option in text


@pytest.fixture
def large(tmp_path: Path) -> str:
    """More output than any pipe buffers."""
    return save(tmp_path / "large.pcap", heartbeats(3_000))


@pytest.mark.parametrize("form", ["tree", "summary", "jsonl", "json"])
def test_a_reader_that_leaves_early_is_no_error(large: str, form: str) -> None:
    process = subprocess.Popen([*KWIRESNIFF, "read", "-o", form, large], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    assert (process.stderr.read(), process.wait(timeout=60)) == (b"", 0)
    process.stderr.close()


def test_exchanges_from_a_pipe_appear_at_once() -> None:
    capture = pcap(heartbeats(2).segments)
    process = subprocess.Popen(
        [*KWIRESNIFF, "read", "-o", "jsonl", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    process.stdin.write(capture)
    process.stdin.flush()
    # The pipe stays open: what is complete must come out all the same.
    assert json.loads(process.stdout.readline())["correlation_id"] == 1
    process.stdin.close()
    out, err = process.stdout.read(), process.stderr.read()
    assert (process.wait(timeout=60), err) == (0, b"")
    assert [json.loads(line)["kind"] for line in out.splitlines()] == ["exchange", "connection"]
    process.stdout.close()
    process.stderr.close()


@pytest.mark.parametrize("form", ["jsonl", "json", "summary"])
def test_an_interrupt_keeps_what_was_decoded_and_exits_with_130(form: str) -> None:
    process = subprocess.Popen(
        [*KWIRESNIFF, "read", "-o", form, "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    process.stdin.write(pcap(heartbeats(3).segments))
    process.stdin.flush()
    first = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    rest, err = process.stdout.read(), process.stderr.read()
    assert (process.wait(timeout=60), err) == (130, b"")
    process.stdin.close()
    process.stdout.close()
    process.stderr.close()
    if form == "json":
        assert json.loads(first + rest)[0]["correlation_id"] == 1
    else:
        assert b"Heartbeat" in first


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_export_is_complete_as_far_as_it_goes(tmp_path: Path, number: signal.Signals) -> None:
    out = tmp_path / "out.jsonl.gz"
    process = subprocess.Popen(
        [*KWIRESNIFF, "export", "-", "-O", str(out)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # noqa: PLW1509  the tests may run under nohup
    )
    assert process.stdin is not None and process.stderr is not None
    process.stdin.write(pcap(heartbeats(3).segments))
    process.stdin.flush()
    while not list(tmp_path.glob(".*.part")):
        assert process.poll() is None
    sleep(0.3)  # the file is there a moment before the reading begins
    process.send_signal(number)
    assert process.wait(timeout=60) == 130
    assert [path.name for path in tmp_path.iterdir()] == [out.name]
    process.stdin.close()
    process.stderr.close()
    gzip.decompress(out.read_bytes())


def test_a_full_disk_is_one_line() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([*KWIRESNIFF, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "kwiresniff: standard output: No space left on device\n")


def test_a_full_disk_is_one_line_in_json_too(large: str) -> None:
    with open("/dev/full", "wb") as full:
        command = [*KWIRESNIFF, "read", "-o", "jsonl", large]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert re.fullmatch(r"kwiresniff: standard output: .*No space left on device.*\n", done.stderr)


@pytest.mark.parametrize(
    ("closed", "arguments", "code", "out", "err"),
    [
        ("2>&-", "read -o summary {capture}", 0, "Heartbeat", ""),
        ("2>&-", "read {capture}.not", 1, "", ""),
        (">&-", "read -o summary {capture}", 1, "", "kwiresniff: standard output: Bad file descriptor\n"),
        (">&-", "read -o jsonl {capture}", 1, "", "kwiresniff: standard output: cannot write (Bad file descriptor)\n"),
        ("<&-", "read -", 1, "", "kwiresniff: standard input: bad file descriptor\n"),
        ("<&-", "decode --file -", 1, "", "kwiresniff: standard input: Bad file descriptor\n"),
        ("<&- >&- 2>&-", "export {capture} -O {capture}.jsonl", 0, "", ""),
    ],
)
def test_closed_standard_streams_are_no_bug(
    tmp_path: Path, closed: str, arguments: str, code: int, out: str, err: str
) -> None:
    """Cron jobs and daemons may start without them; files opened later must not take their numbers."""
    capture = save(tmp_path / "a.pcap", heartbeats(1))
    command = ["sh", "-c", f'"$0" -m kwiresniff "$@" {closed}', sys.executable]
    command += arguments.format(capture=capture).split()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, err)
    assert out in done.stdout
    if "export" in arguments:
        assert Path(f"{capture}.jsonl").read_text().count('"kind":"exchange"') == 1


def test_help_is_quick() -> None:
    """120 ms of processor time on a machine with nothing else to do; four times that, the best of three, elsewhere."""

    def seconds() -> float:
        before = getrusage(RUSAGE_CHILDREN)
        subprocess.run([*KWIRESNIFF, "--help"], stdout=subprocess.DEVNULL, check=True)
        after = getrusage(RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(seconds() for _ in range(3)) < 0.48
