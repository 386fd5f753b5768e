"""Measure ``pipeline run``: ``python -m tests.bench.pipeline DIR [--size-mb N]``.

Makes captures of several hosts in DIR/captures (once: those that are there with this size are used again), decodes them
in one process without Spark, with ``local[1]`` and with ``local[2]``, checks that all of them found the same number of
exchanges, and prints Markdown: a table, what the model makes of it, and what it says about clusters.

CPU seconds and memory are those of all processes that a command starts, by the kernel's account under /proc, looked
at twice a second: so Linux only. Memory is the most that they held together (Pss, which counts shared pages once).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench.compare import ENVIRONMENT, machine
from tests.bench.make_captures import CAPTURES, SEEDS, cut_for_the_wire, read_seed, write_rotation

HOSTS = 8
FILE_MB = 100
_TICKS = os.sysconf("SC_CLK_TCK")
_LOOK_S = 0.5
REPOSITORY = Path(__file__).parents[2]
OURS = [sys.executable, "-m", "kwiresniff"]
#: The same work as a task of ``pipeline run`` does, for one source after the other, in a process without Spark.
ONE_PROCESS = """
import json, sys
from kwiresniff.pipeline.plan import Unit, find_sources
from kwiresniff.pipeline.reading import Settings
from kwiresniff.pipeline.store import Store
from kwiresniff.pipeline.work import WRITTEN, run_unit, totals
store = Store(sys.argv[2])
store.create()
done = [run_unit(Unit(source), Settings(), WRITTEN, store.out) for source in find_sources([sys.argv[1]])]
store.write_manifest({"total": totals(done)})
"""
#: What the model foresees: executors of one core each.
EXECUTORS = (10, 100, 1000)
TERABYTE_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Point:
    """One measured command."""

    name: str
    tasks: int
    wall_s: float
    cpu_s: float
    peak_mb: float
    exchanges: int
    size_mb: float


@dataclass(frozen=True, slots=True)
class Model:
    """``start_s + size / (rate x tasks) + tasks' own cost``: what a run takes.

    ``rate_mb_s`` is what a core decodes, ``start_s`` what a run takes before and after, ``file_s`` the driver's
    account of one unit.
    """

    start_s: float
    rate_mb_s: float
    unit_s: float

    def wall_s(self, size_mb: float, executors: int, sources: int, largest_mb: float) -> float:
        """Seconds for captures in ``sources`` of which the largest, after splitting, is ``largest_mb`` for a task."""
        even = size_mb / (self.rate_mb_s * executors)
        return self.start_s + max(even, largest_mb / self.rate_mb_s) + sources * self.unit_s


class Tree:
    """All processes of a session: CPU seconds and memory, as far as looking now and then tells."""

    def __init__(self, session: int) -> None:
        self._session = session
        self._cpu: dict[int, float] = {}
        self.peak_mb = 0.0

    @property
    def cpu_s(self) -> float:
        return sum(self._cpu.values())

    def look(self) -> None:
        together = 0
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                fields = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) != self._session:
                    continue
                self._cpu[int(entry)] = (int(fields[11]) + int(fields[12])) / _TICKS
                for line in Path("/proc", entry, "smaps_rollup").read_text().splitlines():
                    if line.startswith("Pss:"):
                        together += int(line.split()[1])
            except (OSError, IndexError):
                continue
        self.peak_mb = max(self.peak_mb, together * 1024 / 1e6)


def measure(name: str, tasks: int, command: Sequence[str], out: Path, size_mb: float) -> Point:
    """Run a command that writes to ``out``; raise RuntimeError when it fails."""
    shutil.rmtree(out, ignore_errors=True)
    print(name, file=sys.stderr)
    environment = {**ENVIRONMENT, "PYTHONPATH": str(REPOSITORY)}
    start = time.perf_counter()
    process = subprocess.Popen(command, env=environment, cwd=REPOSITORY, start_new_session=True)
    tree = Tree(process.pid)
    while process.poll() is None:
        tree.look()
        time.sleep(_LOOK_S)
    wall_s = time.perf_counter() - start
    if process.returncode != 0:
        raise RuntimeError(f"exit code {process.returncode}: {' '.join(command)}")
    total = json.loads((out / "manifest.json").read_text())["total"]
    return Point(name, tasks, wall_s, tree.cpu_s, tree.peak_mb, total["rows"]["exchanges"], size_mb)


def make(folder: Path, size_mb: int) -> float:
    """The captures: ``HOSTS`` rotations of all seeds in turn, as they look on a wire. Returns their size in MB."""
    marker = folder / f".{size_mb}"
    if not marker.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        seeds = [list(cut_for_the_wire(read_seed(CAPTURES / f"seed-{name}.pcap.xz"))) for name in SEEDS]
        for host in range(HOSTS):
            (folder / f"broker{host}").mkdir()
            target = folder / f"broker{host}" / "trace.pcap"
            write_rotation(target, seeds, size_mb * 1_000_000 // HOSTS, FILE_MB * 1_000_000, host << 20)
        marker.touch()
    return sum(path.stat().st_size for path in folder.rglob("*.pcap*")) / 1e6


def fit(points: Sequence[Point], start_s: float) -> Model:
    """The model that goes through the point of one task; those of more tasks are there to check it."""
    one = next(point for point in points if point.name.startswith("Spark") and point.tasks == 1)
    return Model(start_s, one.size_mb / (one.wall_s - start_s), 0.0005)


def report(points: Sequence[Point], model: Model, largest_mb: float) -> None:
    """Print the tables."""
    print("\n| | time | exchanges/s | MB/s | CPU | memory |\n|---|---:|---:|---:|---:|---:|")
    for one in points:
        print(
            f"| {one.name} | {one.wall_s:.1f} s | {one.exchanges / one.wall_s:,.0f} | {one.size_mb / one.wall_s:.0f} "
            f"| {one.cpu_s:.0f} s | {one.peak_mb:,.0f} MB |"
        )
    spark = {one.tasks: one for one in points if one.name.startswith("Spark")}
    if len(spark) == 2:
        print(f"\n`local[2]` is {spark[1].wall_s / spark[2].wall_s:.2f} times as fast as `local[1]`.")
    print(f"\nModel: {model.start_s:.1f} s + {model.rate_mb_s:.1f} MB/s a core.\n")
    print("| executors | model | measured |\n|---:|---:|---:|")
    for tasks, one in spark.items():
        print(f"| {tasks} | {model.wall_s(one.size_mb, tasks, HOSTS, largest_mb):.1f} s | {one.wall_s:.1f} s |")
    print("\n1 TB from 100 hosts, evenly spread and split, on executors of one core:\n")
    print("| executors | model |\n|---:|---:|")
    for executors in EXECUTORS:
        seconds = model.wall_s(TERABYTE_MB, executors, 100 * 16, TERABYTE_MB / 100 / 16)
        print(f"| {executors} | {seconds / 60:.1f} min |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size-mb", type=int, default=1000, help="of all captures together (default 1000)")
    options = parser.parse_args()
    captures, out = options.folder / "captures", options.folder / "out"
    size_mb = make(captures, options.size_mb)
    print(machine())
    print(f"{HOSTS} hosts, {size_mb:.0f} MB in files of {FILE_MB} MB; one run of each, whole processes.")
    run = [*OURS, "pipeline", "run", "--out", str(out), "--no-progress", "-q", "--master"]
    small = options.folder / "small"
    make(small, 1)
    measure("Spark, first start", 1, [*run, "local[1]", str(small)], out, 0)
    start = measure("Spark, next to nothing", 1, [*run, "local[1]", str(small)], out, 0)
    points = [
        measure("one process", 1, [sys.executable, "-c", ONE_PROCESS, str(captures), str(out)], out, size_mb),
        *(measure(f"Spark, `local[{n}]`", n, [*run, f"local[{n}]", str(captures)], out, size_mb) for n in (1, 2)),
    ]
    if len({one.exchanges for one in points}) > 1:
        raise RuntimeError(f"not the same exchanges: {points}")
    report(points, fit(points, start.wall_s), size_mb / HOSTS)
    shutil.rmtree(out)


if __name__ == "__main__":
    main()
