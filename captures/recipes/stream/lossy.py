"""Record a lossy network and a lossy capture point: ``python3 -m captures.recipes.stream.lossy``.

Clients and a broker talk over a cable that loses packets (wire.py), and three tcpdumps listen at once: at the client,
at the broker, and at a mirror port that loses and reorders what it copies, as an overloaded one does. The broker's
request log of the same minute is kept beside them. Needs what record.py needs, and user-mode-linux and ethtool.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from captures.recipes.shared import manifest, oracle, programs, rig
from captures.recipes.shared.work import work_folder
from captures.recipes.stream.wire import MIRROR_LINK, lossy_network

FOLDER = Path(__file__).parents[2] / "lossy"
ENDS = "delay 3ms 2ms loss 3% duplicate 2%"
MIRROR = "delay 10ms 8ms loss 2% duplicate 1%"
#: What speaks over it, one after the other.
CLIENTS = (
    ("java:4.4.0:Group", "{bootstrap}", "shelves"),
    ("librdkafka.py", "{bootstrap}", "visits"),
    ("java:4.4.0:BenchTraffic", "{bootstrap}", "events", "800", "none", "16000"),
)
TOPICS = ("shelves:4", "visits", "events")
CLIENT_TIMEOUT_S = 240
TAPS = {
    "client": (rig.Tap(), "At the client, behind the cable: what the broker sent and was lost is missing."),
    "broker": (
        rig.Tap(space=rig.BROKER_SPACE, interface=rig.BROKER_LINK),
        "At the broker, behind the cable: what the client sent and was lost is missing.",
    ),
    "mirror": (
        rig.Tap(interface=MIRROR_LINK),
        "At a mirror port before the cable, which itself loses, repeats and reorders what it copies.",
    ),
}
HEADER = """\
# One row per capture. Written by recipes/stream/lossy.py; tests/damage demands that files and rows agree.
#
# expected.jsonl.gz is the broker's request log for all three: header, connection and both bodies of each request.
"""


def record(work: Path) -> None:
    """Make the three recordings, the oracle and the manifest."""
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        with lossy_network(ENDS, MIRROR), ExitStack() as stack:
            running = stack.enter_context(rig.BrokerSetup().start(work, scratch))
            _run(("prepare.py", "{bootstrap}", *TOPICS), running.bootstrap, work, scratch)
            starts = [log.stat().st_size for log in running.request_logs]
            for name, (tap, _) in TAPS.items():
                stack.enter_context(rig.recording(tap, scratch / f"{name}.pcap"))
            for command in CLIENTS:
                _run(command, running.bootstrap, work, scratch)
        rows = oracle.of_capture(oracle.read_logs(running.request_logs, starts), scratch / "client.pcap")
        FOLDER.mkdir(exist_ok=True)
        oracle.write_to(rows, FOLDER / "expected.jsonl.gz")
        manifest.keep_taps(FOLDER, scratch, HEADER, {name: _facts(name) for name in TAPS})


def _run(command: tuple[str, ...], bootstrap: str, work: Path, scratch: Path) -> None:
    program, *arguments = (word.format(bootstrap=bootstrap) for word in command)
    start = programs.command_line(program, tuple(arguments), work)
    inside = rig.inside(rig.CLIENT_SPACE, *start)
    subprocess.run(inside, check=True, cwd=scratch, timeout=CLIENT_TIMEOUT_S, stdout=sys.stderr)


def _facts(name: str) -> dict[str, str]:
    return {
        "shows": TAPS[name][1],
        "netem": f"each way {ENDS}" + (f"; copied with {MIRROR}" if name == "mirror" else ""),
        "broker": rig.BrokerSetup().described,
        "client": "kafka-clients (Java) 4.4.0, librdkafka 2.16.0 (confluent-kafka 2.16.1)",
        "recipe": "recipes/stream/lossy.py",
    }


if __name__ == "__main__":
    record(work_folder(__doc__))
