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
import math
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kwiresniff.capture import open_captures
from kwiresniff.pipeline.output_store import OutputStore
from kwiresniff.pipeline.plan import MAX_SHARDS, MIN_SHARD_BYTES
from tests.bench.compare import ENVIRONMENT
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
from kwiresniff.pipeline.plan import WorkUnit, find_sources
from kwiresniff.pipeline.unit_reader import Settings
from kwiresniff.pipeline.output_store import OutputStore
from kwiresniff.export.table_columns import WRITTEN
from kwiresniff.pipeline.task import run_unit, totals
store = OutputStore(sys.argv[2])
store.create()
done = [run_unit(WorkUnit(source), Settings(), WRITTEN, store.out) for source in find_sources([sys.argv[1]])]
store.write_manifest({"total": totals(done)})
"""
#: What the model foresees: executors of one core each.
EXECUTORS = (10, 100, 1000)
BIG_HOSTS = 100
TERABYTE_MB = 1_000_000
ACCOUNTS = 1000


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
    """What a run takes: its start, then tasks in waves, then the driver's account of each of them.

    A task reads all packets of its source at ``read_mb_s`` and decodes its share of them, both together at
    ``rate_mb_s``. There is no shuffle.
    """

    start_s: float
    rate_mb_s: float
    read_mb_s: float
    account_s: float

    def task_s(self, source_mb: float, shards: int) -> float:
        """One of ``shards`` tasks of a source."""
        decoding = 1 / self.rate_mb_s - 1 / self.read_mb_s
        return source_mb / self.read_mb_s + source_mb / shards * decoding

    def run(self, source_mb: float, sources: int, executors: int) -> tuple[int, float]:
        """Into how many shards each source is split, and the seconds that a run takes on executors of one core."""
        share = max(source_mb * sources / executors, MIN_SHARD_BYTES / 1e6)
        shards = min(max(round(source_mb / share), 1), MAX_SHARDS, executors)
        waves = math.ceil(sources * shards / executors)
        return shards, self.start_s + waves * self.task_s(source_mb, shards) + sources * shards * self.account_s


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
    # As the command sets it for itself and for Spark's workers on its machine, for the process without Spark, too.
    environment = {**ENVIRONMENT, "PYTHONPATH": str(REPOSITORY), "OPENBLAS_NUM_THREADS": "1"}
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


def read_rate(folder: Path, size_mb: float) -> float:
    """MB a second of CPU time that one process reads packets at, without looking into them."""
    start = time.process_time()
    for _ in open_captures([str(folder)]):
        pass
    return size_mb / (time.process_time() - start)


def account_s(out: Path, folder: Path) -> float:
    """Seconds of the driver for each unit: its commit is written by a task, and read by the driver."""
    commit = next(iter(OutputStore(str(out)).commits().values()))
    store = OutputStore(str(folder / "accounts"))
    store.create()
    start = time.perf_counter()
    for number in range(ACCOUNTS):
        store.commit(f"{number}", commit)
    seen = len(store.commits())
    store.clean()
    seconds = time.perf_counter() - start
    shutil.rmtree(store.out)
    return seconds / seen


def report(points: Sequence[Point], model: Model) -> None:
    """Print the tables."""
    print("\n| | time | exchanges/s | MB/s | CPU | memory |\n|---|---:|---:|---:|---:|---:|")
    for one in points:
        print(
            f"| {one.name} | {one.wall_s:.1f} s | {one.exchanges / one.wall_s:,.0f} | {one.size_mb / one.wall_s:.0f} "
            f"| {one.cpu_s:.0f} s | {one.peak_mb:,.0f} MB |"
        )
    spark = [one for one in points if one.name.startswith("Spark")]
    print(f"\n`local[2]` is {spark[0].wall_s / spark[1].wall_s:.2f} times as fast as `local[1]`.")
    alone = points[0]
    rate = alone.size_mb / alone.wall_s
    gained = 1 / rate - (spark[1].wall_s - model.start_s) / spark[1].size_mb
    beyond = f"from {model.start_s / gained:,.0f} MB on" if gained > 0 else "at no size"
    print(f"`local[2]` is faster than one process {beyond}.")
    print(
        f"\nModel: start {model.start_s:.1f} s, {model.rate_mb_s:.1f} MB/s a core, packets alone "
        f"{model.read_mb_s:.0f} MB/s, {model.account_s * 1000:.1f} ms of the driver for a task.\n"
    )
    print("| cores | model | measured |\n|---:|---:|---:|")
    for one in spark:
        print(f"| {one.tasks} | {model.run(one.size_mb / HOSTS, HOSTS, one.tasks)[1]:.1f} s | {one.wall_s:.1f} s |")
    print(f"\n1 TB of {BIG_HOSTS} hosts:\n")
    print("| executors | tasks a host | model | storage must give |\n|---:|---:|---:|---:|")
    for executors in EXECUTORS:
        shards, seconds = model.run(TERABYTE_MB / BIG_HOSTS, BIG_HOSTS, executors)
        storage = TERABYTE_MB * shards / (seconds - model.start_s) / 1000
        print(f"| {executors:,} | {shards} | {seconds / 60:.1f} min | {storage:.1f} GB/s |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size-mb", type=int, default=1000, help="of all captures together (default 1000)")
    options = parser.parse_args()
    captures, out = options.folder / "captures", options.folder / "out"
    size_mb = make(captures, options.size_mb)
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start.")
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
    # The model goes through the point of one core; that of two is there to check it.
    rate_mb_s = size_mb / (points[1].wall_s - start.wall_s)
    read_mb_s = read_rate(captures, size_mb)
    report(points, Model(start.wall_s, rate_mb_s, read_mb_s, account_s(out, options.folder)))
    shutil.rmtree(out)


if __name__ == "__main__":
    main()
