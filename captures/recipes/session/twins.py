"""Record the same exchanges encrypted and in the clear, at once: ``python3 -m captures.recipes.session.twins``.

Clients speak TLS to a proxy (clients/go/tlsproxy) beside the broker, which passes on in the clear what they say. One
tcpdump listens at the client, one between proxy and broker. The keys are logged by the proxy, so the clients are as
they are. Unlike the broker the proxy resumes sessions. Needs what record.py needs.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from captures.recipes.shared import manifest, programs, rig
from captures.recipes.shared.work import work_folder

FOLDER = Path(__file__).parents[2] / "twins"
PORT = 9093
CERTIFICATE = rig.HERE / "kafka" / "tls.pem"
BROKER = rig.BrokerSetup(
    settings={
        "listeners": f"CLIENT://127.0.0.1:9092,CONTROLLER://127.0.0.1:{rig.CONTROLLER_PORT}",
        "advertised.listeners": f"CLIENT://{rig.BROKER_IP}:{PORT}",
        "auto.create.topics.enable": "true",
    }
)
CLIENTS = (
    ("java-tls:4.4.0:Tls", f"{rig.BROKER_IP}:{PORT}", "valuables"),
    ("librdkafka_tls.py", f"{rig.BROKER_IP}:{PORT}", "jewels"),
    ("go:franztls", f"{rig.BROKER_IP}:{PORT}", "coins", "/dev/null", "1.3"),
)
TAPS = {
    "encrypted": (
        rig.Tap(filter=f"tcp port {PORT}"),
        "Java over TLS 1.2 and 1.3, librdkafka, and franz-go, which resumes sessions of 1.3, to a proxy.",
    ),
    "clear": (
        rig.Tap(space=rig.BROKER_SPACE, interface="lo", filter="tcp port 9092 and not port 9093"),
        "The same, from the proxy to the broker.",
    ),
}
HEADER = "# Written by recipes/session/twins.py; tests/captures demands that both captures say the same.\n"


@contextmanager
def _proxy(work: Path, scratch: Path) -> Iterator[None]:
    listen, to = f"{rig.BROKER_IP}:{PORT}", "127.0.0.1:9092"
    command = [str(programs.go("tlsproxy", work)), listen, str(CERTIFICATE), to, str(scratch / "keys.log")]
    process = subprocess.Popen(rig.inside(rig.BROKER_SPACE, *command))
    try:
        time.sleep(1)
        yield
    finally:
        rig.stop(process)


def record(work: Path) -> None:
    """Make both recordings, the key log and the manifest."""
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        with rig.network(), ExitStack() as stack:
            stack.enter_context(BROKER.start(work, scratch))
            stack.enter_context(_proxy(work, scratch))
            for name, (tap, _) in TAPS.items():
                stack.enter_context(rig.recording(tap, scratch / f"{name}.pcap"))
            for program, *arguments in CLIENTS:
                start = programs.command_line(program, tuple(arguments), work)
                inside = rig.inside(rig.CLIENT_SPACE, *start)
                subprocess.run(inside, check=True, cwd=scratch, timeout=120, stdout=sys.stderr)
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / "keys.log").write_bytes((scratch / "keys.log").read_bytes())
        manifest.keep_taps(FOLDER, scratch, HEADER, {name: _facts(name) for name in TAPS})


def _facts(name: str) -> dict[str, str]:
    return {
        "shows": TAPS[name][1],
        "broker": BROKER.described,
        "client": "kafka-clients (Java) 4.4.0, librdkafka 2.16.0 (confluent-kafka 2.16.1), franz-go 1.22.2",
        "recipe": "recipes/session/twins.py",
    }


if __name__ == "__main__":
    record(work_folder(__doc__))
