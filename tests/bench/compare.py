"""Measure commands of kwiresniff, beside tshark where it has a counterpart::

    python -m tests.bench.compare DIR [--rounds N] [--only TEXT] [--command C] [--cpu]

DIR is what ``tests.bench.make_captures`` filled; each capture has to fit in the memory that is free. Measured is the
checkout as this interpreter runs it, or ``C``, an installed ``kwiresniff`` for instance; the first line of the report
says whether that is compiled. Whole processes are timed, output to /dev/null, in alternation (ours, theirs, ours, ...);
medians are told. ``--cpu`` counts the processor's time instead of the clock's, on a machine that is not quiet. Peak
resident memory is the kernel's account of the child. Prints Markdown.
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
from pathlib import Path

#: Our commands, ``{out}`` being a file to write, and the words for tshark that ask the same of it.
COMMANDS: dict[str, str] = {
    "--help": "",
    "stats": "-T fields -e frame.number -e kafka.api_key -e kafka.correlation_id",
    "read -o jsonl": "-T json -J kafka",
    "read": "-V -O kafka",
    "read -o summary": " ",
    "stats --by topic": "",
    "stats -Y topic==events": "",
    "doctor --fail-on never": "",
    "clients": "",
    "groups": "",
    "topics": "",
    "report -O {out}.html": "",
    "export -O {out}.jsonl": "",
    "export -O {out}.csv": "",
    "export -O {out}.parquet": "",
}
#: Without what a shell may have set for Python (PYTHONDONTWRITEBYTECODE, PYTHONUNBUFFERED, ...): an installed command
#: finds its modules compiled and its output buffered.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def measure(command: Sequence[str], cpu: bool) -> tuple[float, int]:
    """Seconds and peak resident bytes of a command; ends the program with its last line on stderr when it fails."""
    with tempfile.TemporaryFile() as said:
        start = time.perf_counter()
        process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            sys.exit(f"{shlex.join(command)}: {said.read().decode(errors='replace')[-500:]}")
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes there, in KiB on Linux
    return usage.ru_utime + usage.ru_stime if cpu else wall_s, usage.ru_maxrss * unit


def medians(commands: Sequence[Sequence[str]], rounds: int, cpu: bool) -> list[tuple[float, float]]:
    """The medians of the seconds and of the bytes of commands run in turn, A B A B."""
    runs = [[measure(command, cpu) for command in commands] for _ in range(rounds)]
    return [tuple(map(statistics.median, zip(*one, strict=True))) for one in zip(*runs, strict=True)]


def table(name: str, captures: Sequence[Path], options: argparse.Namespace) -> None:
    """Print one command over the captures."""
    print(f"\n### `{name}`\n")
    print("| capture | kwiresniff | memory | tshark | memory | times |\n|---|---:|---:|---:|---:|---:|")
    for path in captures:
        print(name, path.name, file=sys.stderr)
        with tempfile.TemporaryDirectory() as scratch:
            words = [word.replace("{out}", f"{scratch}/out") for word in name.split()]
            commands = [[*options.command, *words, str(path), "--no-progress"]]
            if COMMANDS[name]:
                commands.append(["tshark", "-r", str(path), *COMMANDS[name].split()])
            path.read_bytes()  # the kernel has it at hand for both
            (ours, memory), *theirs = medians(commands, options.rounds, options.cpu)
        beside = "".join(f" {other:.2f} s | {size / 1e6:.0f} MB | {other / ours:.1f} |" for other, size in theirs)
        print(f"| {path.stem} | {ours:.2f} s | {memory / 1e6:.0f} MB |{beside or ' | | |'}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each command per capture (default 3)")
    parser.add_argument("--only", default="", metavar="TEXT", help="commands with this in them; all by default")
    parser.add_argument("--command", type=shlex.split, default=[sys.executable, "-m", "kwiresniff"], metavar="CMD")
    parser.add_argument("--cpu", action="store_true", help="the processor's time instead of the clock's")
    options = parser.parse_args()
    captures = sorted(options.folder.glob("*.pcap"))
    version = subprocess.run([*options.command, "--version"], check=True, capture_output=True, text=True).stdout
    clock = "user and system time" if options.cpu else "wall time"
    print(f"{version.strip()}, {platform.platform()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}.")
    print(f"Medians of {options.rounds} runs in alternation, {clock} of whole processes.")
    for name in COMMANDS:
        if options.only in name:
            table(name, captures, options)


if __name__ == "__main__":
    main()
