"""Measure kwiresniff against tshark, and every output of it against the fastest ones::

    python -m tests.bench.compare DIR [--contest NAME] [--rounds N] [--command C]

Measured is the checkout as this interpreter runs it, or ``C``, an installed ``kwiresniff`` for instance; the first
line of the report says whether that is compiled. DIR is what ``tests.bench.make_captures`` filled. Whole processes are
timed, output to /dev/null, in alternation (ours, theirs, ours, theirs, ...) so that a change of the machine's mood
meets both; medians are told. Each capture is read once before, so that it is in memory for all of them and no disk is
measured: it has to be smaller than the memory that is free. ``--cpu`` counts the processor's time instead of the
clock's, on a machine that is not quiet. Peak resident memory is the kernel's own account of the child. Prints Markdown.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

#: Stands for the command that is measured.
OURS = "{kwiresniff}"
#: Stands for a file to write; what comes behind it is how its name ends.
OUT = "{out}"
CAPTURES = ("batched", "batched-mtu", "single", "zstd", "zstd-mtu")
#: Without what a shell may have set for Python (PYTHONDONTWRITEBYTECODE, PYTHONUNBUFFERED, ...): an installed command
#: finds its modules compiled and its output buffered.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
HELP_ROUNDS = 15  # start-up takes a tenth of a second, and is noisy


@dataclass(frozen=True, slots=True)
class Run:
    """One process: its time in seconds, peak resident memory in bytes."""

    seconds: float
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Measured:
    """What is measured: our command, and whether by the processor's time."""

    command: Sequence[str]
    cpu: bool

    def filled(self, words: Sequence[str], capture: Path, out: Path = Path(os.devnull)) -> list[str]:
        """A command line of the contests with everything in its place."""
        line: list[str] = []
        for word in words:
            line += self.command if word == OURS else [word.replace("{capture}", str(capture)).replace(OUT, str(out))]
        return line


@dataclass(frozen=True, slots=True)
class Contest:
    """A question put to kwiresniff (``ours``) and to another program (``theirs``); ``name`` is our command."""

    name: str
    title: str
    ours: Sequence[str]
    theirs: Sequence[str]


CONTESTS = (
    Contest(
        "stats",
        "`stats` against `tshark -T fields` with three fields",
        [OURS, "stats", "{capture}", "--no-progress"],
        ["tshark", "-r", "{capture}", "-T", "fields",
         "-e", "frame.number", "-e", "kafka.api_key", "-e", "kafka.correlation_id"],
    ),
    Contest(
        "read",
        "`read -o jsonl` with records against `tshark -T json -J kafka`",
        [OURS, "read", "-o", "jsonl", "{capture}", "--no-progress"],
        ["tshark", "-r", "{capture}", "-T", "json", "-J", "kafka"],
    ),
    Contest(
        "tree",
        "`read`, annotated trees, against `tshark -V -O kafka`",
        [OURS, "read", "{capture}", "--no-progress"],
        ["tshark", "-r", "{capture}", "-V", "-O", "kafka"],
    ),
    Contest(
        "summary",
        "`read -o summary` against tshark's lines",
        [OURS, "read", "-o", "summary", "{capture}", "--no-progress"],
        ["tshark", "-r", "{capture}"],
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Output:
    """One output, by the words of its command, and which of ``STATS`` and ``LINES`` it is measured beside."""

    words: Sequence[str]
    beside: Sequence[str]

    @property
    def name(self) -> str:
        """The command as a user types it."""
        return " ".join(word for word in self.words if word not in (OURS, "{capture}", "--no-progress")).replace(
            OUT, ""
        )


def ours(*words: str) -> tuple[str, ...]:
    """Words of our command on a capture."""
    return OURS, *words, "{capture}", "--no-progress"


STATS = ours("stats")
LINES = ours("read", "-o", "jsonl")
OUTPUTS = (
    Output(ours("stats", "--by", "topic"), STATS),
    Output(ours("stats", "-Y", "topic == events"), STATS),
    Output(ours("doctor", "--fail-on", "never"), STATS),
    Output(ours("clients"), STATS),
    Output(ours("audit", "--target", "4.0"), STATS),
    Output(ours("groups"), STATS),
    Output(ours("topics"), STATS),
    Output(ours("report", "-O", f"{OUT}.html"), STATS),
    Output(ours("read"), LINES),
    Output(ours("read", "-o", "summary"), LINES),
    Output(ours("export", "-O", f"{OUT}.jsonl"), LINES),
    Output(ours("export", "-O", f"{OUT}.csv"), LINES),
    Output(ours("export", "-O", f"{OUT}.parquet"), LINES),
)
#: Of audit, that it found what it looks for.
FINE = (0, 1)


class CommandError(Exception):
    """A command that failed, with its last line on standard error."""


def measure(command: Sequence[str], cpu: bool) -> Run:
    """Run a command to its end; raise CommandError when it fails."""
    with tempfile.TemporaryFile() as said:
        start = time.perf_counter()
        process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (FINE if "audit" in command else FINE[:1]):
            said.seek(0)
            lines = said.read().decode(errors="replace").splitlines()
            raise CommandError(lines[-1] if lines else f"exit code {process.returncode}: {' '.join(command)}")
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes there, in KiB on Linux
    return Run(usage.ru_utime + usage.ru_stime if cpu else wall_s, usage.ru_maxrss * unit)


def median(runs: Sequence[Run]) -> Run:
    """The median of each figure by itself."""
    return Run(
        statistics.median(run.seconds for run in runs),
        int(statistics.median(run.peak_bytes for run in runs)),
    )


def warm(capture: Path) -> None:
    """Read a file to its end, so that the kernel has it at hand."""
    with capture.open("rb", buffering=0) as file:
        while file.read(1 << 20):
            pass


def alternate(commands: Sequence[Sequence[str]], rounds: int, cpu: bool) -> list[Run]:
    """The medians of commands run in turn, A B A B."""
    runs: list[list[Run]] = [[] for _ in commands]
    for _ in range(rounds):
        for done, command in zip(runs, commands, strict=True):
            done.append(measure(command, cpu))
    return [median(done) for done in runs]


def megabytes(count: int) -> str:
    return f"{count / 1_000_000:.0f} MB"


def machine(measured: Measured) -> str:
    """What was measured and on what, as a line of Markdown."""
    version = subprocess.run([*measured.command, "--version"], check=True, capture_output=True, text=True).stdout
    shark = subprocess.run(["tshark", "--version"], check=True, capture_output=True, text=True).stdout.split("\n")[0]
    cpuinfo = Path("/proc/cpuinfo")
    models = [
        line.partition(":")[2].strip()
        for line in (cpuinfo.read_text().splitlines() if cpuinfo.exists() else ())
        if line.startswith("model name")
    ]
    return (
        f"{version.strip()}, {shark.rpartition('(')[0].strip()}, "
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, "
        f"{os.cpu_count()} x {models[0] if models else platform.processor() or 'unknown processor'}, "
        f"load {os.getloadavg()[0]:.1f} at the start"
    )


def contest_table(contest: Contest, measured: Measured, folder: Path, names: Sequence[str], rounds: int) -> None:
    """Print one contest over the captures."""
    print(f"\n### {contest.title}\n")
    print("| capture | size | kwiresniff | tshark | times faster | kwiresniff memory | tshark memory |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in names:
        capture = folder / f"{name}.pcap"
        print(f"{contest.title}: {name}", file=sys.stderr)
        warm(capture)
        lines = [measured.filled(words, capture) for words in (contest.ours, contest.theirs)]
        ours, theirs = alternate(lines, rounds, measured.cpu)
        ratio = theirs.seconds / ours.seconds
        print(
            f"| {name} | {megabytes(capture.stat().st_size)} | {ours.seconds:.2f} s | {theirs.seconds:.2f} s "
            f"| **{ratio:.1f}** | {megabytes(ours.peak_bytes)} | {megabytes(theirs.peak_bytes)} |",
            flush=True,
        )


def output_table(measured: Measured, folder: Path, name: str, rounds: int) -> None:
    """Print every output on a capture, each beside the fastest one of its kind."""
    capture = folder / f"{name}.pcap"
    warm(capture)
    print(f"\n### All outputs: {name}, {megabytes(capture.stat().st_size)}\n")
    print("| output | time | beside it | times as long | memory |")
    print("|---|---:|---|---:|---:|")
    with tempfile.TemporaryDirectory() as scratch:
        for output in OUTPUTS:
            print(f"{output.name}: {name}", file=sys.stderr)
            lines = [measured.filled(words, capture, Path(scratch) / "out") for words in (output.words, output.beside)]
            try:
                run, beside = alternate(lines, rounds, measured.cpu)
            except CommandError as error:  # what an output needs may not be installed
                print(f"| `{output.name}` | none: {error} | | | |", flush=True)
                continue
            what = "`stats`" if output.beside == STATS else "`read -o jsonl`"
            print(
                f"| `{output.name}` | {run.seconds:.2f} s | {what} {beside.seconds:.2f} s "
                f"| **{run.seconds / beside.seconds:.1f}** | {megabytes(run.peak_bytes)} |",
                flush=True,
            )


def big_table(capture: Path, measured: Measured) -> None:
    """Print our time and memory on the large capture."""
    warm(capture)
    print(f"\n### kwiresniff on {megabytes(capture.stat().st_size)}\n")
    print("| command | time | memory |")
    print("|---|---:|---:|")
    for contest in CONTESTS:
        run = measure(measured.filled(contest.ours, capture), measured.cpu)
        print(
            f"| {contest.title.split(' against')[0]} | {run.seconds:.1f} s | {megabytes(run.peak_bytes)} |", flush=True
        )


def start_up_table(measured: Measured) -> None:
    """Print how long the command needs to say how it is used."""
    helped, nothing = alternate(
        [[*measured.command, "--help"], [sys.executable, "-c", "pass"]], HELP_ROUNDS, measured.cpu
    )
    print("\n### Start-up\n")
    print("| command | time |")
    print("|---|---:|")
    print(f"| `kwiresniff --help` | {helped.seconds * 1000:.0f} ms |")
    print(f"| `python -c pass` | {nothing.seconds * 1000:.0f} ms |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each command per capture (default 3)")
    parser.add_argument("--captures", nargs="+", default=CAPTURES, metavar="NAME", help="which of them; all by default")
    contests = [*(contest.name for contest in CONTESTS), "outputs"]
    parser.add_argument("--contest", choices=contests, help="one of them, or our outputs alone; all by default")
    parser.add_argument("--no-big", action="store_true", help="leave the large capture out")
    parser.add_argument("--command", type=shlex.split, default=[sys.executable, "-m", "kwiresniff"], metavar="CMD")
    parser.add_argument("--cpu", action="store_true", help="the processor's time instead of the clock's")
    options = parser.parse_args()
    measured = Measured(options.command, options.cpu)
    try:
        report(measured, options)
    except CommandError as error:
        sys.exit(f"{parser.prog}: {error}")


def report(measured: Measured, options: argparse.Namespace) -> None:
    """Print all that was asked for."""
    print(machine(measured))
    what = "user and system time" if options.cpu else "wall time"
    print(f"Medians of {options.rounds} runs in alternation, {what} of whole processes, output to /dev/null.")
    for contest in CONTESTS:
        if options.contest not in (None, contest.name):
            continue
        contest_table(contest, measured, options.folder, options.captures, options.rounds)
    for name in options.captures if options.contest in (None, "outputs") else ():
        output_table(measured, options.folder, name, options.rounds)
    if not options.no_big:
        big_table(options.folder / "big.pcap", measured)
    start_up_table(measured)


if __name__ == "__main__":
    main()
