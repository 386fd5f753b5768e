"""Brokers of the years when ZooKeeper kept the cluster's state: a cluster with its own ZooKeeper on the rig.

They run on Java 17 with two helps, both in the pom: the XML classes that Java used to bring, and one ZooKeeper for all
that does not trip over how Java prints addresses since 14. Each node's requests.log has every request as the broker of
that time words it.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from captures.recipes.shared import oracle_text, rig

ZOOKEEPER = "127.0.0.1:2181"
#: What passes between brokers and what clients say to them, without ZooKeeper's own.
CLUSTER_TAP = rig.Tap(space=rig.BROKER_SPACE, interface="any", filter="tcp and not port 2181")
#: A replica of 0.8 whose leader is gone tries again without a pause, ten thousand times in the seconds until it is told
#: of another: connections' first packets (SYN) and refusals (RST with ACK) are left out.
QUIET_TAP = replace(CLUSTER_TAP, filter=f"{CLUSTER_TAP.filter} and tcp[13] != 2 and tcp[13] != 20")
JAAS = "java.security.auth.login.config"
#: What the brokers' logs say once they serve.
UP = re.compile(r"\[Kafka ?Server [^]]*\],? started")


@dataclass
class ZookeeperSetup:
    """A cluster of ``nodes`` brokers of one version. ``settings`` overrides server properties.

    ``scram_users`` are made in ZooKeeper before the brokers start, with this file's one made-up password. ``jaas``
    is the brokers' login configuration. ``successor`` is the release that nodes may be upgraded to.
    """

    version: str
    nodes: int = 3
    settings: dict[str, str] = field(default_factory=dict)
    jaas: str = ""
    successor: str = ""
    scram_users: Sequence[str] = ()

    @property
    def described(self) -> str:
        releases = f"{self.version} and {self.successor}" if self.successor else self.version
        return f"Apache Kafka {releases} (ZooKeeper), nodes: {self.nodes}"

    @property
    def ports(self) -> tuple[int, ...]:
        return tuple(range(9092, 9092 + 2 * self.nodes, 2))

    def start(self, work: Path, scratch: Path) -> AbstractContextManager[rig.RunningBroker]:
        return cluster(self, work, scratch)


def response_reader(version: str) -> str:
    """The release whose classes read the responses that this release does not log; empty when it logs them."""
    if version.startswith("0.11"):
        return version
    return "0.10.2.2" if version.startswith("0.") else ""


def jars(version: str, work: Path) -> Path:
    """The folder with the broker's class path."""
    return rig.maven(rig.HERE / "kafka" / "zookeeper-broker-pom.xml", work / f"zookeeper-broker-{version}", version)


class Node:
    """One broker: started, asked to stop, killed, and started again with what it has on disk."""

    def __init__(self, setup: ZookeeperSetup, number: int, class_path: str, home: Path) -> None:
        self.number = number
        self.home = home
        self.requests = home / "requests.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.busy = threading.Lock()  # a start that comes later waits for the stop before it
        home.mkdir()
        self.configure(setup, class_path)

    def configure(self, setup: ZookeeperSetup, class_path: str) -> None:
        """What it is the next time it starts."""
        config = self.home / "server.properties"
        values = properties(setup, self.number, self.home)
        config.write_text("".join(f"{name}={value}\n" for name, value in values.items()))
        self.command = [*java(class_path, self.home), "kafka.Kafka", str(config)]

    def start(self) -> None:
        """Start it and wait until it says that it is up."""
        with self.busy:
            self.start_and_wait()

    def start_and_wait(self) -> None:
        log = self.home / "server.log"
        said = log.stat().st_size if log.exists() else 0
        with (self.home / "output.log").open("ab") as output:
            self.process = subprocess.Popen(
                rig.inside(rig.BROKER_SPACE, *self.command), stdout=output, stderr=subprocess.STDOUT
            )
        end = time.monotonic() + rig.START_TIMEOUT_S
        while time.monotonic() < end and self.process.poll() is None:
            if log.exists() and UP.search(log.read_text(errors="replace"), said):
                return
            time.sleep(0.2)
        raise RuntimeError(f"the broker did not come up, see {log}")

    def stop(self, sig: signal.Signals = signal.SIGTERM) -> None:
        with self.busy:
            if self.process is not None:
                rig.stop(self.process, sig)
                self.process = None


def java(class_path: str, home: Path) -> list[str]:
    login = home.parent / "jaas.conf"
    return ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            f"-Drecipe.logs={home}", f"-Dlog4j.configuration=file:{rig.HERE / 'kafka' / 'log4j.properties'}",
            *([f"-D{JAAS}={login}"] if login.exists() else []), "-cp", class_path]  # fmt: skip


def properties(setup: ZookeeperSetup, number: int, home: Path) -> dict[str, str]:
    """The server properties of one node."""
    port = setup.ports[number - 1]
    where = {"listeners": f"PLAINTEXT://{rig.BROKER_IP}:{port}"}
    if setup.version.startswith("0.8"):
        where = {"host.name": rig.BROKER_IP, "port": str(port)}
    values = {
        "broker.id": str(number),
        "log.dirs": str(home / "data"),
        "zookeeper.connect": ZOOKEEPER,
        "zookeeper.session.timeout.ms": "2000",
        "auto.create.topics.enable": "false",
        "delete.topic.enable": "true",
        "auto.leader.rebalance.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
        "num.network.threads": "1",
        "num.io.threads": "2",
        "replica.fetch.wait.max.ms": "1000",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": str(setup.nodes),
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": str(setup.nodes),
        "transaction.state.log.min.isr": "1",
    }
    return values | where | {name: value.format(port=port, home=home) for name, value in setup.settings.items()}


@contextmanager
def cluster(setup: ZookeeperSetup, work: Path, scratch: Path) -> Iterator[rig.RunningBroker]:
    """ZooKeeper and the brokers with fresh storage in the brokers' namespace.

    Steps may ``start``, ``stop`` (SIGTERM: a controlled shutdown) and ``kill`` a node by its number, ``wait`` some
    seconds, run one of the broker's own ``tool`` classes, ``reassign`` TOPIC PARTITION to replicas 1,2,...,
    ``upgrade`` a node to the successor with more SETTING=VALUE, and do one of these SECONDS ``later``, while the next
    steps go on.
    """
    class_path = f"{jars(setup.version, work)}/*"
    if setup.jaas:
        (scratch / "jaas.conf").write_text(setup.jaas)
    keeper = scratch / "zookeeper"
    keeper.mkdir()
    config = keeper / "zookeeper.properties"
    config.write_text(
        f"dataDir={keeper}/data\nclientPort=2181\ntickTime=500\nmaxClientCnxns=0\nadmin.enableServer=false\n"
    )
    tools = scratch / "tools"
    tools.mkdir()

    def tool(*words: str) -> None:
        where = [word.replace("ZOOKEEPER", ZOOKEEPER) for word in words]
        rig.run(*rig.inside(rig.BROKER_SPACE, *java(class_path, tools), *where), quiet=True)

    def reassign(topic: str, partition: str, replicas: str) -> None:
        plan = tools / "reassignment.json"
        wanted = {"topic": topic, "partition": int(partition), "replicas": [int(n) for n in replicas.split(",")]}
        plan.write_text(json.dumps({"version": 1, "partitions": [wanted]}))
        tool("kafka.admin.ReassignPartitionsCommand", "--zookeeper", "ZOOKEEPER", "--execute",
             "--reassignment-json-file", str(plan))  # fmt: skip

    with ExitStack() as stack:
        output = stack.enter_context((keeper / "output.log").open("wb"))
        process = subprocess.Popen(
            rig.inside(rig.BROKER_SPACE, *java(class_path, keeper),
                       "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(config)),
            stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
        stack.callback(rig.stop, process)
        time.sleep(2)
        for user in setup.scram_users:
            tool("kafka.admin.ConfigCommand", "--zookeeper", "ZOOKEEPER", "--alter", "--entity-type", "users",
                 "--entity-name", user, "--add-config", "SCRAM-SHA-256=[password=not-a-secret]")  # fmt: skip
        nodes: dict[str, Node] = {}

        def upgrade(number: str, *more: str) -> None:
            settings = setup.settings | dict(word.split("=", 1) for word in more)
            nodes[number].stop()
            nodes[number].configure(
                replace(setup, version=setup.successor, settings=settings), f"{jars(setup.successor, work)}/*"
            )
            nodes[number].start()

        for number in range(1, setup.nodes + 1):
            node = nodes[str(number)] = Node(setup, number, class_path, scratch / f"node{number}")
            stack.callback(node.stop)
            node.start()
        actions = {
            "start": lambda number: nodes[number].start(),
            "stop": lambda number: nodes[number].stop(),
            "kill": lambda number: nodes[number].stop(signal.SIGKILL),
            "wait": lambda seconds: time.sleep(float(seconds)),
            "tool": tool,
            "reassign": reassign,
            "upgrade": upgrade,
        }

        def later(seconds: str, action: str, *words: str) -> None:
            timer = threading.Timer(float(seconds), actions[action], words)
            stack.callback(timer.join)
            timer.start()

        yield rig.RunningBroker(
            f"{rig.BROKER_IP}:9092",
            tuple(node.requests for node in nodes.values()),
            actions | {"later": later},
            tuple(partial(oracle_text.parse, broker=f"{rig.BROKER_IP}:{port}") for port in setup.ports),
            response_reader(setup.version),
        )
