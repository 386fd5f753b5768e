"""The rig every recording is made on: two network namespaces, a broker in one, the client in the other.

The namespaces are joined by one virtual Ethernet cable (veth) and know no other network, so a recording holds what
its recipe did and nothing else. Addresses and hardware addresses are fixed, so that a recording says nothing about
the machine it was made on. Needs Linux, root, iproute2 and tcpdump.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

#: Named after the process, so that two recordings can be made at a time.
BROKER_SPACE, CLIENT_SPACE = f"kwbroker{os.getpid()}", f"kwclient{os.getpid()}"
BROKER_LINK, CLIENT_LINK = "kwb0", "kwc0"
BROKER_IP, CLIENT_IP = "10.9.0.1", "10.9.0.2"
BROKER_IP6, CLIENT_IP6 = "fd09::1", "fd09::2"
CONTROLLER_PORT = 19093
#: A fixed cluster id (any 16 bytes in Kafka's base64 form do), so that recordings made twice look alike.
CLUSTER_ID = "a3dpcmVzbmlmZi1kZW1vMQ"

#: The folder of all recipes, and that from which they are run.
HERE = Path(__file__).parents[1]
ROOT = HERE.parents[1]
#: In immediate mode each packet takes a slot as large as the interface's MTU, on loopback 64 KiB: tcpdump's own choice
#: of 2 MiB holds 32 packets, and a burst of a cluster's traffic is more.
CAPTURE_BUFFER_KIB = 128 * 1024
START_TIMEOUT_S = 120  # a broker comes up in 5 to 10 seconds on an idle machine


def run(*command: str, quiet: bool = False) -> None:
    """Run a command to its end; raise CalledProcessError when it fails."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL if quiet else None, stderr=None)


def inside(space: str, *command: str) -> list[str]:
    """The command line that runs ``command`` in a network namespace."""
    return ["ip", "netns", "exec", space, *command]


@contextmanager
def network() -> Iterator[None]:
    """The two namespaces and the cable between them; gone again afterwards."""
    ends = (
        (BROKER_SPACE, BROKER_LINK, BROKER_IP, BROKER_IP6, "02:00:00:00:00:01"),
        (CLIENT_SPACE, CLIENT_LINK, CLIENT_IP, CLIENT_IP6, "02:00:00:00:00:02"),
    )
    with ExitStack() as stack:
        for space, *_ in ends:
            run("ip", "netns", "add", space)
            stack.callback(run, "ip", "netns", "del", space)
        run("ip", "link", "add", BROKER_LINK, "netns", BROKER_SPACE, "type", "veth",
            "peer", "name", CLIENT_LINK, "netns", CLIENT_SPACE)  # fmt: skip
        for space, link, ip, ip6, mac in ends:
            # Without generated link-local addresses there is no neighbour chatter in the recordings.
            run("ip", "-n", space, "link", "set", link, "address", mac, "addrgenmode", "none")
            run("ip", "-n", space, "link", "set", "lo", "up")
            run("ip", "-n", space, "link", "set", link, "up")
            run("ip", "-n", space, "addr", "add", f"{ip}/24", "dev", link)
            run("ip", "-n", space, "addr", "add", f"{ip6}/64", "dev", link, "nodad")
        yield


def stop(process: subprocess.Popen[bytes], sig: signal.Signals = signal.SIGTERM) -> None:
    """Ask a process to end, and insist after a while."""
    process.send_signal(sig)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def maven(pom: Path, target: Path, version: str) -> Path:
    """Fetch an artifact and what it needs from Maven's configured repositories into ``target``, once."""
    if not target.exists():
        partial = target.with_suffix(".partial")
        shutil.rmtree(partial, ignore_errors=True)
        run("mvn", "-q", "-B", "-f", str(pom), f"-Dkafka.version={version}",
            "dependency:copy-dependencies", f"-DoutputDirectory={partial}")  # fmt: skip
        partial.rename(target)
    return target


@dataclass(frozen=True)
class RunningBroker:
    """What was started: where it listens, what it logs, and what a step of a recipe can do to it, by name.

    ``parsers`` read a line of each request log when it is not JSON. When it leaves out the responses,
    ``response_reader`` is the release of Kafka that reads them.
    """

    bootstrap: str
    request_logs: tuple[Path, ...]
    actions: Mapping[str, Callable[..., None]] = field(default_factory=dict)
    parsers: tuple[Callable[[str], dict[str, Any] | None], ...] = ()
    response_reader: str = ""


class Setup(Protocol):
    """What a recipe asks for: a broker, or a cluster. ``ports`` are those that speak Kafka."""

    @property
    def described(self) -> str: ...

    @property
    def ports(self) -> tuple[int, ...]: ...

    def start(self, work: Path, scratch: Path) -> AbstractContextManager[RunningBroker]: ...


@dataclass
class BrokerSetup:
    """What a recipe asks of its broker.

    ``settings`` overrides server properties, ``plugin`` names a Java class in ``kafka/`` to put on the broker's class
    path, ``format_arguments`` goes to the storage tool.
    """

    version: str = "4.4.0"
    nodes: int = 1
    ipv6: bool = False
    settings: dict[str, str] = field(default_factory=dict)
    plugin: str = ""
    format_arguments: Sequence[str] = ()

    @property
    def described(self) -> str:
        return f"Apache Kafka {self.version} (KRaft), nodes: {self.nodes}"

    @property
    def ports(self) -> tuple[int, ...]:
        return (CONTROLLER_PORT, *range(9092, 9092 + 2 * self.nodes, 2))

    def start(self, work: Path, scratch: Path) -> AbstractContextManager[RunningBroker]:
        return broker(self, work, scratch)


def properties(setup: BrokerSetup, node: int, data: Path) -> dict[str, str]:
    """The server properties of one node; the first is also the controller, alone in its quorum."""
    ip = f"[{BROKER_IP6}]" if setup.ipv6 else BROKER_IP
    listeners = f"CLIENT://{ip}:{9090 + 2 * node}"
    values = {
        "process.roles": "broker,controller" if node == 1 else "broker",
        "node.id": str(node),
        "controller.quorum.voters": f"1@127.0.0.1:{CONTROLLER_PORT}",
        "controller.listener.names": "CONTROLLER",
        "listeners": listeners + (f",CONTROLLER://127.0.0.1:{CONTROLLER_PORT}" if node == 1 else ""),
        "advertised.listeners": listeners,
        "inter.broker.listener.name": "CLIENT",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(data),
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
        "group.consumer.heartbeat.interval.ms": "500",
        "group.consumer.min.heartbeat.interval.ms": "500",
        "num.network.threads": "2",
        "num.io.threads": "4",
        # One partition and one replica of each internal topic keep a small cluster's answers small.
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }
    return values | setup.settings


@contextmanager
def broker(setup: BrokerSetup, work: Path, scratch: Path) -> Iterator[RunningBroker]:
    """A broker (or several) with fresh storage in the broker's namespace, up and registered."""
    jars = maven(HERE / "kafka" / "broker-pom.xml", work / f"broker-{setup.version}", setup.version)
    with ExitStack() as stack:
        logs = []
        if setup.plugin:
            source = HERE / "kafka" / f"{setup.plugin}.java"
            run("javac", "-nowarn", "-cp", f"{jars}/*", "-d", str(scratch / "plugin"), str(source))
        for node in range(1, setup.nodes + 1):
            home = scratch / f"node{node}"
            home.mkdir(parents=True)
            config = home / "server.properties"
            settings = properties(setup, node, home / "data")
            config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
            java = ["java", "-Xmx384m", "-XX:+UseSerialGC", f"-Drecipe.logs={home}",
                    f"-Dlog4j2.configurationFile={HERE / 'kafka' / 'log4j2.xml'}",
                    "-cp", f"{jars}/*:{scratch / 'plugin'}"]  # fmt: skip
            run(*java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(config),
                *setup.format_arguments, quiet=True)  # fmt: skip
            output = stack.enter_context((home / "output.log").open("wb"))
            process = subprocess.Popen(
                inside(BROKER_SPACE, *java, "kafka.Kafka", str(config)), stdout=output, stderr=subprocess.STDOUT
            )
            stack.callback(stop, process)
            wait_until_up(process, home / "server.log")
            logs.append(home / "requests.log")
        host = f"[{BROKER_IP6}]" if setup.ipv6 else BROKER_IP
        yield RunningBroker(f"{host}:9092", tuple(logs))


def wait_until_up(process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the broker says in its log that it is up; raise RuntimeError when it ends or says nothing."""
    end = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < end and process.poll() is None:
        if log.exists() and "Kafka Server started" in log.read_text(errors="replace"):
            return
        time.sleep(0.3)
    raise RuntimeError(f"the broker did not come up, see {log}")


@dataclass(frozen=True)
class Tap:
    """Where and how tcpdump listens. ``time`` is micro or nano; ``form`` is pcap or pcapng.

    With ``immediate`` it is woken for every packet, which takes processor time from those who are recorded.
    """

    space: str = CLIENT_SPACE
    interface: str = CLIENT_LINK
    link_type: str = ""
    time: str = "micro"
    form: str = "pcap"
    filter: str = "tcp"
    snap_length: int = 0
    immediate: bool = True


@contextmanager
def recording(tap: Tap, target: Path) -> Iterator[None]:
    """Record what passes the tap into ``target`` while the body runs."""
    raw = target if tap.form == "pcap" else target.with_suffix(".raw")
    mode = ["-U", "--immediate-mode"] if tap.immediate else []
    command = ["tcpdump", "-i", tap.interface, *mode, "-s", str(tap.snap_length), "-Z", "root",
               "-B", str(CAPTURE_BUFFER_KIB),
               f"--time-stamp-precision={tap.time}", "-w", str(raw)]  # fmt: skip
    if tap.link_type:
        command += ["-y", tap.link_type]
    process = subprocess.Popen(inside(tap.space, *command, tap.filter), stderr=subprocess.PIPE)
    assert process.stderr is not None
    process.stderr.readline()  # "listening on ...": from here on nothing is missed
    try:
        yield
    finally:
        time.sleep(0.5 if tap.immediate else 2)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
        if b"\n0 packets dropped by kernel" not in said:
            raise RuntimeError(f"tcpdump lost packets: {said.decode()}")
    if tap.form == "pcapng":
        run("editcap", "-F", "pcapng", str(raw), str(target))
        raw.unlink()
