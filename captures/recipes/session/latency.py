"""Record what ``docs/latency.md`` holds the split of the wait to: ``python3 -m captures.recipes.session.latency``.

Requests one at a time, many in flight, beyond a quota, waiting for replicas, waiting for records; recorded at the
client's and at the broker's end of the cable at the same time, and what the broker's request log said of where their
time went, in milliseconds. Needs what ``record.py`` needs of Java, tcpdump and iproute2.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import lzma
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

from captures.recipes.codec import scenarios
from captures.recipes.shared import oracle, programs, rig
from captures.recipes.shared.work import DEFAULT_WORK

TARGET = Path(__file__).parents[2] / "latency"
#: What sends as fast as one can is not in Java, whose sender takes as long for a request as a broker.
JAVA = "java:4.4.0:Latency"
KINDS = ("serial", "pipelined", "throttled", "replicated", "polling")
#: The brokers run before everything else on the machine, the clients before all but the brokers and on one processor,
#: so that the brokers find another: what a busy machine takes of their time is in no request log, and is nothing that a
#: capture could tell from the broker's own work.
BROKERS_PRIORITY, CLIENTS_PRIORITY = 2, 1
PROCESSORS = os.sched_getaffinity(0)
Urgency = Callable[[int, set[int]], AbstractContextManager[None]]
#: The log's names for the parts of the time from a request's arrival to the end of its answer.
PARTS = ("totalTimeMs", "requestQueueTimeMs", "localTimeMs", "remoteTimeMs", "throttleTimeMs", "responseQueueTimeMs",
         "sendTimeMs")  # fmt: skip


HEADER = """\
# One row per capture. Written by recipes/session/latency.py; tests/captures/test_latency.py holds both to log.jsonl.gz,
# what the brokers' request logs said of where the time of each request went.
"""


def manifest_row(folder: Path, end: str) -> str:
    """What a recording is."""
    content = (folder / f"{end}.pcap.xz").read_bytes()
    return f"""
[[capture]]
file = "{end}.pcap.xz"
shows = "Produce one at a time, 60 in flight, beyond a quota, with three replicas, and long polls; at the {end}'s end."
broker = "{rig.BrokerSetup(nodes=3).described}"
client = "kafka-clients (Java) 4.4.0; {scenarios.LIBRDKAFKA} has many in flight"
recipe = "recipes/session/latency.py"
sha256 = "{hashlib.sha256(content).hexdigest()}"
"""


def row(line: str) -> dict[str, Any] | None:
    """Which request it was, as oracle.py says it, and where its time went."""
    known = oracle.parse(line)
    if known is None:
        return None
    said = json.loads(line[line.index("{") :])
    kept = {name: known[name] for name in ("api", "correlation_id", "client_id", "client", "broker")}
    return kept | {name: said[name] for name in PARTS}


@contextmanager
def real_time(priority: int, processors: set[int]) -> Iterator[None]:
    """What is started meanwhile runs on these processors, before everything that has less priority."""
    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(priority))
    os.sched_setaffinity(0, processors)
    try:
        yield
    finally:
        os.sched_setaffinity(0, PROCESSORS)
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@contextmanager
def as_it_comes(priority: int, processors: set[int]) -> Iterator[None]:
    """What is started meanwhile has the priority of anything else."""
    yield


def client(step: str, bootstrap: str, work: Path, urgently: Urgency) -> None:
    """One run of a client program."""
    program = ("pipelined.py", (bootstrap, "alone")) if step == "pipelined" else (JAVA, (bootstrap, step))
    start = programs.command_line(*program, work)
    with urgently(CLIENTS_PRIORITY, {max(PROCESSORS)}):
        subprocess.run(rig.inside(rig.CLIENT_SPACE, *start), check=True, timeout=300, stdout=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=DEFAULT_WORK, help="where downloads are kept")
    parser.add_argument("--into", type=Path, default=TARGET, help="where the recordings go")
    parser.add_argument("--busy", action="store_true", help="no priorities, to see what a busy machine makes of it")
    options = parser.parse_args()
    urgently: Urgency = as_it_comes if options.busy else real_time
    options.work.mkdir(parents=True, exist_ok=True)
    options.into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        ends = {
            "client": rig.Tap(time="nano", immediate=False),
            "broker": rig.Tap(space=rig.BROKER_SPACE, interface=rig.BROKER_LINK, time="nano", immediate=False),
        }
        with rig.network(), ExitStack() as stack:
            with urgently(BROKERS_PRIORITY, PROCESSORS):
                running = stack.enter_context(rig.BrokerSetup(nodes=3).start(options.work, scratch))
            client("prepare", running.bootstrap, options.work, urgently)
            starts = [log.stat().st_size for log in running.request_logs]
            for name, tap in ends.items():
                stack.enter_context(rig.recording(tap, scratch / f"{name}.pcap"))
            for kind in KINDS:
                client(kind, running.bootstrap, options.work, urgently)
        rows = oracle.read_logs(running.request_logs, starts, [row] * len(running.request_logs))
        rows = oracle.of_capture(rows, scratch / "client.pcap")
        for name in ends:
            content = (scratch / f"{name}.pcap").read_bytes()
            (options.into / f"{name}.pcap.xz").write_bytes(lzma.compress(content, preset=9))
        (options.into / "MANIFEST.toml").write_text(HEADER + "".join(manifest_row(options.into, name) for name in ends))
        text = "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in rows)
        (options.into / "log.jsonl.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
