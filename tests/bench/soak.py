"""An hour of traffic in which 100,000 connections are opened and closed, and what memory is left of it.

``python -m tests.bench.soak [--connections N] [--depth DEPTH]`` makes the traffic in memory, packet by packet with the
times of such an hour, and prints the resident memory each minute of it. The clock is that of the packets: what lasts is
the work, not the hour. About 28 connections are opened each second and live for two; a hundred live on and speak once a
second; one in fifty loses a packet, one in 200 is never closed. Exit code 1 when the memory at the end is more than a
tenth and 4 MB above that after the first minute.
"""

from __future__ import annotations

import argparse
import gc
import heapq
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from kwiresniff.model import Connection, Exchange, Problem, Segment
from kwiresniff.session import Analyzer
from tests.support.conversation import Wire, api_versions_v0, api_versions_v0_response, heartbeat, heartbeat_response
from tests.support.events import process

HOUR_S = 3600
LIFE_S = 2.0
EXCHANGES = 4
LONG_LIVED = 100


def resident_bytes() -> int:
    """Of this process, by the kernel's account."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def conversation(number: int, rng: random.Random) -> Iterator[tuple[float, list[Segment]]]:
    """A short connection: (seconds after its start, segments)."""
    wire = Wire(client_port=1024 + number % 64_000, isn=(rng.getrandbits(32), rng.getrandbits(32)))
    wire.open().up(api_versions_v0(0)).down(api_versions_v0_response(0))
    yield 0.0, wire.segments
    lost = rng.randrange(EXCHANGES) if rng.random() < 0.02 else -1
    for count in range(1, EXCHANGES + 1):
        wire.segments = []
        wire.up(heartbeat(count, f"client-{number % 500}"), drop=count == lost).down(heartbeat_response(count))
        yield LIFE_S * count / (EXCHANGES + 1), wire.segments
    if rng.random() >= 0.005:
        wire.segments = []
        yield LIFE_S, wire.close().segments


def long_lived(number: int) -> Iterator[tuple[float, list[Segment]]]:
    """A connection that is there all the time."""
    wire = Wire(client_port=65_100 + number)
    yield 0.0, wire.open().segments
    for second in range(HOUR_S):
        wire.segments = []
        yield second + 0.5, wire.up(heartbeat(second)).down(heartbeat_response(second)).segments


def traffic(connections: int) -> Iterator[Segment]:
    """All of them in the order of their times, each packet 10 microseconds after the one before at the earliest."""
    rng = random.Random(28)
    begins = [(0.0, long_lived(number)) for number in range(LONG_LIVED)]
    begins += [(HOUR_S * number / connections, conversation(number, rng)) for number in range(connections)]
    begins.sort(key=lambda begin: begin[0])
    due: list[tuple[float, int, float, list[Segment], Iterator[tuple[float, list[Segment]]]]] = []
    packet, order, ns = 0, 0, 0
    waiting = iter(begins)
    following = next(waiting, None)
    while due or following:
        while following and (not due or following[0] <= due[0][0]):
            start, steps = following
            after, segments = next(steps)
            heapq.heappush(due, (start + after, order, start, segments, steps))
            order += 1
            following = next(waiting, None)
        at, _, start, segments, steps = heapq.heappop(due)
        ns = max(ns, int(at * 1e9))
        for segment in segments:
            packet += 1
            ns += 10_000
            yield (packet, ns, *segment[2:])
        step = next(steps, None)
        if step is not None:
            order += 1
            heapq.heappush(due, (start + step[0], order, start, step[1], steps))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=100_000)
    parser.add_argument("--depth", choices=("headers", "errors", "bodies", "records"), default="records")
    options = parser.parse_args()
    analyzer = Analyzer(options.depth)
    said: Counter[str] = Counter()
    marks: list[int] = []
    begun = time.process_time()

    def watched() -> Iterator[Segment]:
        for segment in traffic(options.connections):
            while segment[1] >= (len(marks) + 1) * 60 * 10**9:
                gc.collect()
                marks.append(resident_bytes())
                print(f"minute {len(marks)}: {marks[-1] / 1e6:.1f} MB, {sum(said.values())} events", flush=True)
            yield segment

    for event in process(analyzer, watched()):
        kind = (
            event.outcome
            if isinstance(event, Exchange)
            else "connection"
            if isinstance(event, Connection)
            else event.code
            if isinstance(event, Problem)
            else "attempt"
        )
        said[kind] += 1
    gc.collect()
    last = resident_bytes()
    spent = time.process_time() - begun
    print(f"end: {last / 1e6:.1f} MB, {last / marks[0]:.3f} times the first minute's, {spent:.0f} s of CPU")
    print(dict(said))
    return int(last > marks[0] * 1.1 + 4e6)


if __name__ == "__main__":
    sys.exit(main())
