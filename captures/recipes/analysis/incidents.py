"""Record what goes wrong: ``python3 -m captures.recipes.analysis.incidents [NAME...]``.

One incident of ``incident_list.py`` or ``cluster_incidents.py`` a recording, provoked on a real broker and recorded at
the client. What really happened is known from what provoked it, and stands in the row of the manifest as ``happened``;
``tests/captures/test_incidents.py`` holds the doctor to it. Needs what ``record.py`` needs of Java, Python, tcpdump and
iproute2.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from captures.recipes.analysis.cluster_incidents import AT_SEVERAL_BROKERS
from captures.recipes.analysis.incident_list import AT_ONE_BROKER
from captures.recipes.analysis.incident_setups import Incident, Step
from captures.recipes.analysis.long_cable import long_network
from captures.recipes.shared import programs, rig
from captures.recipes.shared.work import CLIENT_TIMEOUT_S, DEFAULT_WORK

INCIDENTS = (*AT_ONE_BROKER, *AT_SEVERAL_BROKERS)
FOLDER = Path(__file__).parents[2] / "incidents"
HEADER = """\
# One row per capture. Written by recipes/analysis/incidents.py.
#
# happened  what really happened, by those who did it
"""
#: What lies here has the place of what is in /etc, for programs that are run in the client's namespace.
NAMES = Path("/etc/netns") / rig.CLIENT_SPACE
#: Ends with the client's first packet: it needs a while to start.
FIRST_PACKET = f"tcpdump -i {rig.BROKER_LINK} -c 1 'tcp[tcpflags] & tcp-syn != 0' >/dev/null 2>&1"


def later(seconds: float, act: Callable[[], None]) -> None:
    """Do something so long after the client's first packet."""
    subprocess.run(rig.inside(rig.BROKER_SPACE, "sh", "-c", FIRST_PACKET), check=True)
    time.sleep(seconds)
    act()


def lose_answers(begin: str, lasting: str) -> None:
    """The broker's machine cannot reach the client: from the start or ``begin`` seconds after its first packet on."""
    lose, again = (f"ip route {verb} blackhole {rig.CLIENT_IP}/32" for verb in ("add", "del"))
    waits = [FIRST_PACKET, f"sleep {begin}", lose] if begin else [lose, FIRST_PACKET]
    script = "; ".join([*waits, f"sleep {lasting}", again])
    subprocess.Popen(rig.inside(rig.BROKER_SPACE, "sh", "-c", script))
    time.sleep(1)


def do(step: Step, running: rig.RunningBroker, work: Path, scratch: Path) -> list[str]:
    """One step; what the program says happened."""
    program, *arguments = (word.format(bootstrap=running.bootstrap) for word in step)
    if program in running.actions:
        running.actions[program](*arguments)
    elif program == "wait":
        time.sleep(float(arguments[0]))
    elif program == "later":
        seconds, action, *words = arguments
        threading.Thread(target=later, args=(float(seconds), lambda: running.actions[action](*words))).start()
    elif program == "silence":
        lose_answers(*arguments)
    elif program == "forget-idle":
        proxy = [sys.executable, "-m", "captures.recipes.analysis.forgetful_proxy", *arguments]
        subprocess.Popen(rig.inside(rig.BROKER_SPACE, "timeout", "60", *proxy), cwd=rig.ROOT)
        time.sleep(1)
    elif program == "balance":
        proxy = [sys.executable, "-m", "captures.recipes.analysis.load_balancer", *arguments]
        subprocess.Popen(rig.inside(rig.BROKER_SPACE, "timeout", "60", *proxy), cwd=rig.ROOT)
        time.sleep(1)
    elif program == "resolve":
        NAMES.mkdir(parents=True)
        (NAMES / "hosts").write_text(f"127.0.0.1 localhost\n{rig.BROKER_IP} {arguments[0]}\n")
    elif program == "narrow":
        # Segments as large as the interfaces allow, each for itself, as they are on a cable; ICMP says nothing of them.
        rig.run("ip", "-n", rig.CLIENT_SPACE, "link", "set", rig.CLIENT_LINK, "gso_max_segs", "1")
        drop = ["iptables", "-A", "INPUT", "-i", rig.BROKER_LINK, "-m", "length", "--length", f"{arguments[0]}:"]
        rig.run(*rig.inside(rig.BROKER_SPACE, *drop, "-j", "DROP"))
    elif program == "lose-answers":
        # The client needs a while to start; the answers are lost from its first packet on.
        lose_answers("", arguments[0])
    else:
        start = programs.command_line(program, tuple(arguments), work)
        if start[0] == "java":
            start.insert(1, f"-Drecipe.source={start[start.index('-cp') + 2]}")
        done = subprocess.run(
            rig.inside(rig.CLIENT_SPACE, *start),
            cwd=scratch,
            timeout=CLIENT_TIMEOUT_S,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        print(done.stdout, file=sys.stderr)
        done.check_returncode()
        return [line.removeprefix("fact: ") for line in done.stdout.splitlines() if line.startswith("fact: ")]
    return []


def record(one: Incident, work: Path, into: Path) -> dict[str, Any]:
    """Make one recording; its row."""
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        target = scratch / "incident.pcap"
        network = long_network(one.cable) if one.cable else rig.network()
        with network, one.broker.start(work, scratch) as running:
            for step in one.prepare:
                do(step, running, work, scratch)
            with rig.recording(one.tap, target):
                facts = [fact for step in one.steps for fact in do(step, running, work, scratch)]
        shutil.rmtree(NAMES, ignore_errors=True)
        packed = lzma.compress(target.read_bytes(), preset=9)
    (into / f"{one.name}.pcap.xz").write_bytes(packed)
    return {
        "file": f"{one.name}.pcap.xz",
        "happened": "; ".join([one.happened] * bool(one.happened) + facts),
        "broker": one.broker.described,
        "client": one.client,
        "recipe": "recipes/analysis/incidents.py",
        "sha256": hashlib.sha256(packed).hexdigest(),
    }


def write_manifest(rows: Mapping[str, dict[str, Any]], into: Path) -> None:
    """Rows in the order in which they came."""
    text = HEADER
    for row in rows.values():
        lines = (f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in row.items())
        text += "\n[[capture]]\n" + "\n".join(lines) + "\n"
    (into / "MANIFEST.toml").write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="incidents to record; all when none is named")
    parser.add_argument("--work", type=Path, default=DEFAULT_WORK, help="where downloads are kept")
    parser.add_argument("--into", type=Path, default=FOLDER, help="where the recordings go")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    options.into.mkdir(parents=True, exist_ok=True)
    unknown = set(options.names) - {one.name for one in INCIDENTS}
    if unknown:
        parser.error(f"no such incident: {', '.join(sorted(unknown))}")
    manifest = options.into / "MANIFEST.toml"
    rows = {row["file"]: row for row in tomllib.loads(manifest.read_text())["capture"]} if manifest.exists() else {}
    for one in INCIDENTS:
        if not options.names or one.name in options.names:
            print(one.name, file=sys.stderr)
            row = record(one, options.work, options.into)
            rows[row["file"]] = row
            write_manifest(rows, options.into)


if __name__ == "__main__":
    main()
