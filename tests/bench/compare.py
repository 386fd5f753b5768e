"""Measure kwiresniff against tshark: ``python -m tests.bench.compare DIR [--rounds N]``.

DIR is what ``tests.bench.make_captures`` filled. Whole processes are timed, output to /dev/null, in alternation
(ours, theirs, ours, theirs, ...) so that a change of the machine's mood meets both; medians are told. Peak resident
memory is the kernel's own account of the child. Prints Markdown.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import kwiresniff

OURS = [sys.executable, "-m", "kwiresniff"]
CAPTURES = ("batched", "batched-mtu", "single", "zstd", "zstd-mtu")
#: Without what a shell may have set for Python (PYTHONDONTWRITEBYTECODE, PYTHONUNBUFFERED, ...): an installed command
#: finds its modules compiled and its output buffered.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
HELP_ROUNDS = 15  # start-up takes a tenth of a second, and is noisy


@dataclass(frozen=True, slots=True)
class Run:
    """One process: wall time in seconds, peak resident memory in bytes."""

    wall_s: float
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Contest:
    """The same question put to both."""

    title: str
    ours: Sequence[str]
    theirs: Sequence[str]


CONTESTS = (
    Contest(
        "`stats` against `tshark -T fields` with three fields",
        [*OURS, "stats", "{capture}", "--no-progress"],
        ["tshark", "-r", "{capture}", "-T", "fields",
         "-e", "frame.number", "-e", "kafka.api_key", "-e", "kafka.correlation_id"],
    ),
    Contest(
        "`read -o jsonl` with records against `tshark -T json -J kafka`",
        [*OURS, "read", "-o", "jsonl", "{capture}", "--no-progress"],
        ["tshark", "-r", "{capture}", "-T", "json", "-J", "kafka"],
    ),
)  # fmt: skip


def measure(command: Sequence[str]) -> Run:
    """Run a command to its end; raise RuntimeError when it fails."""
    start = time.perf_counter()
    process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"exit code {process.returncode}: {' '.join(command)}")
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes there, in KiB on Linux
    return Run(wall_s, usage.ru_maxrss * unit)


def median(runs: Sequence[Run]) -> Run:
    """The median of each figure by itself."""
    return Run(
        statistics.median(run.wall_s for run in runs),
        int(statistics.median(run.peak_bytes for run in runs)),
    )


def alternate(commands: Sequence[Sequence[str]], rounds: int) -> list[Run]:
    """The medians of commands run in turn, A B A B."""
    runs: list[list[Run]] = [[] for _ in commands]
    for _ in range(rounds):
        for done, command in zip(runs, commands, strict=True):
            done.append(measure(command))
    return [median(done) for done in runs]


def filled(command: Sequence[str], capture: Path) -> list[str]:
    return [word.replace("{capture}", str(capture)) for word in command]


def megabytes(count: int) -> str:
    return f"{count / 1_000_000:.0f} MB"


def machine() -> str:
    """What the figures were measured on, as a line of Markdown."""
    shark = subprocess.run(["tshark", "--version"], check=True, capture_output=True, text=True).stdout.split("\n")[0]
    cpuinfo = Path("/proc/cpuinfo")
    models = [
        line.partition(":")[2].strip()
        for line in (cpuinfo.read_text().splitlines() if cpuinfo.exists() else ())
        if line.startswith("model name")
    ]
    return (
        f"kwiresniff {kwiresniff.__version__}, {shark.rpartition('(')[0].strip()}, "
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, "
        f"{os.cpu_count()} x {models[0] if models else platform.processor() or 'unknown processor'}, "
        f"load {os.getloadavg()[0]:.1f} at the start"
    )


def contest_table(contest: Contest, folder: Path, names: Sequence[str], rounds: int) -> None:
    """Print one contest over the captures."""
    print(f"\n### {contest.title}\n")
    print("| capture | size | kwiresniff | tshark | times faster | kwiresniff memory | tshark memory |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name in names:
        capture = folder / f"{name}.pcap"
        print(f"{contest.title}: {name}", file=sys.stderr)
        ours, theirs = alternate([filled(contest.ours, capture), filled(contest.theirs, capture)], rounds)
        ratio = theirs.wall_s / ours.wall_s
        print(
            f"| {name} | {megabytes(capture.stat().st_size)} | {ours.wall_s:.2f} s | {theirs.wall_s:.2f} s "
            f"| **{ratio:.1f}** | {megabytes(ours.peak_bytes)} | {megabytes(theirs.peak_bytes)} |",
            flush=True,
        )


def big_table(capture: Path) -> None:
    """Print our time and memory on the large capture."""
    print(f"\n### kwiresniff on {megabytes(capture.stat().st_size)}\n")
    print("| command | time | memory |")
    print("|---|---:|---:|")
    for contest in CONTESTS:
        run = measure(filled(contest.ours, capture))
        print(
            f"| {contest.title.split(' against')[0]} | {run.wall_s:.1f} s | {megabytes(run.peak_bytes)} |", flush=True
        )


def start_up_table() -> None:
    """Print how long the command needs to say how it is used."""
    helped, nothing = alternate([[*OURS, "--help"], [sys.executable, "-c", "pass"]], HELP_ROUNDS)
    print("\n### Start-up\n")
    print("| command | time |")
    print("|---|---:|")
    print(f"| `kwiresniff --help` | {helped.wall_s * 1000:.0f} ms |")
    print(f"| `python -c pass` | {nothing.wall_s * 1000:.0f} ms |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each command per capture (default 3)")
    parser.add_argument("--captures", nargs="+", default=CAPTURES, metavar="NAME", help="which of them; all by default")
    parser.add_argument("--no-big", action="store_true", help="leave the large capture out")
    options = parser.parse_args()
    print(machine())
    print(f"Medians of {options.rounds} runs in alternation, whole processes, output to /dev/null.")
    for contest in CONTESTS:
        contest_table(contest, options.folder, options.captures, options.rounds)
    if not options.no_big:
        big_table(options.folder / "big.pcap")
    start_up_table()


if __name__ == "__main__":
    main()
