"""Clusters: several processes of one or more releases, with or without ZooKeeper, that come and go while one listens.

All of them run in the broker's namespace and talk over its loopback interface. Broker N listens on port 9090 + 2N,
controller N on 19070 + 2N. A recipe's steps may start, stop and kill members and wait.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from captures.recipes.shared import rig

ZOOKEEPER_PORT = 2181
BROKERS_END_S = 10
#: Without a quorum they wait for ever, and ask each other as often as they can.
CONTROLLERS_END_S = 2
ZOOKEEPER = f"127.0.0.1:{ZOOKEEPER_PORT}"
STARTED = re.compile(r"Kafka Server started|\[KafkaServer id=\d+\] started")
#: Everything between the members and with their clients, without what they tell ZooKeeper.
INSIDE = rig.Tap(space=rig.BROKER_SPACE, interface="any", filter=f"tcp and not port {ZOOKEEPER_PORT}")


@dataclass(frozen=True)
class Member:
    """One process. ``roles`` is empty with ZooKeeper; ``later`` leaves its start to a step of the recipe.

    ``{home}`` in a setting is the member's folder. ``again`` are the settings that change with its second start,
    with its third, and so on; an empty one is left out.
    """

    node: int
    roles: str = "broker"
    settings: Mapping[str, str] = field(default_factory=dict)
    format_arguments: Sequence[str] = ()
    version: str = ""
    later: bool = False
    again: Sequence[Mapping[str, str]] = ()

    @property
    def port(self) -> int:
        return 9090 + 2 * self.node

    @property
    def controller_port(self) -> int:
        return 19070 + 2 * self.node

    @property
    def is_broker(self) -> bool:
        return self.roles != "controller"

    @property
    def is_controller(self) -> bool:
        return "controller" in self.roles


@dataclass(frozen=True)
class ClusterSetup:
    """What a recipe asks of a cluster.

    ``settings`` are those of all members. With ``voters`` the members of KRaft's quorum are fixed, without they are
    found through its controllers (KIP-853).
    """

    version: str
    members: tuple[Member, ...]
    settings: Mapping[str, str] = field(default_factory=dict)
    zookeeper: bool = False
    voters: bool = False

    @property
    def described(self) -> str:
        versions = sorted({member.version or self.version for member in self.members})
        kind = "ZooKeeper" if self.zookeeper else "KRaft"
        kind = "ZooKeeper and KRaft" if self.zookeeper and any(m.is_controller for m in self.members) else kind
        return f"Apache Kafka {' and '.join(versions)} ({kind}), nodes: {len(self.members)}"

    @property
    def ports(self) -> tuple[int, ...]:
        brokers = (member.port for member in self.members if member.is_broker)
        return (*brokers, *(member.controller_port for member in self.members if member.is_controller))

    def start(self, work: Path, scratch: Path) -> AbstractContextManager[rig.RunningBroker]:
        return running(self, work, scratch)


def properties(setup: ClusterSetup, member: Member, home: Path) -> dict[str, str]:
    """The server properties of one member."""
    broker = f"CLIENT://{rig.BROKER_IP}:{member.port}"
    controller = f"CONTROLLER://{rig.BROKER_IP}:{member.controller_port}"
    listeners = [broker] * member.is_broker + [controller] * member.is_controller
    values = {
        "listeners": ",".join(listeners),
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": f"{home}/data",
        "num.network.threads": "1",
        "num.io.threads": "2",
        "auto.create.topics.enable": "false",
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.num.partitions": "2",
        "transaction.state.log.num.partitions": "2",
        # Long polls may take their time, so that idle members say little.
        "replica.fetch.wait.max.ms": "4000",
        "replica.lag.time.max.ms": "10000",
    }
    if member.is_broker:
        values |= {"advertised.listeners": broker, "inter.broker.listener.name": "CLIENT"}
    if setup.zookeeper and not member.roles:
        values |= {"broker.id": str(member.node), "zookeeper.connect": ZOOKEEPER}
    else:
        controllers = [m for m in setup.members if m.is_controller]
        values |= {
            "process.roles": member.roles,
            "node.id": str(member.node),
            "controller.listener.names": "CONTROLLER",
            "metadata.max.idle.interval.ms": "5000",
        }
        fixed = setup.voters
        places = [f"{m.node}@" * fixed + f"{rig.BROKER_IP}:{m.controller_port}" for m in controllers]
        values["controller.quorum.voters" if fixed else "controller.quorum.bootstrap.servers"] = ",".join(places)
    return values | setup.settings | member.settings


class Process:
    """A member with its folder, started and stopped as often as a recipe likes."""

    def __init__(self, setup: ClusterSetup, member: Member, work: Path, scratch: Path) -> None:
        version = member.version or setup.version
        self.setup, self.member = setup, member
        self.jars = rig.maven(rig.HERE / "kafka" / "broker-pom.xml", work / f"broker-{version}", version)
        self.home = scratch / f"node{member.node}"
        self.home.mkdir(parents=True)
        self.log, self.requests = self.home / "server.log", self.home / "requests.log"
        self.requests.touch()
        self.process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def java(self, *command: str) -> list[str]:
        return ["java", "-Xmx300m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Drecipe.logs={self.home}",
                f"-Dlog4j2.configurationFile={rig.HERE / 'kafka' / 'log4j2.xml'}", "-cp", f"{self.jars}/*",
                *command]  # fmt: skip

    def launch(self) -> None:
        """Start it, with its storage formatted when that is the first time and the release wants it."""
        config = self.home / "server.properties"
        settings = properties(self.setup, self.member, self.home)
        for later in self.member.again[: self.starts]:
            settings |= later
        lines = (f"{name}={value}\n" for name, value in settings.items() if value)
        config.write_text("".join(lines).replace("{home}", str(self.home)))
        if self.member.roles and not self.starts:
            tool = self.java("kafka.tools.StorageTool", "format", "-t", self.cluster_id(), "-c", str(config))
            rig.run(*tool, *self.member.format_arguments, quiet=True)
        self.seen = len(self.log_text())
        with (self.home / "output.log").open("ab") as output:
            command = rig.inside(rig.BROKER_SPACE, *self.java("kafka.Kafka", str(config)))
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        self.starts += 1

    def cluster_id(self) -> str:
        """The cluster's id, which ZooKeeper may have chosen."""
        for properties_file in self.home.parent.glob("node*/data/meta.properties"):
            for line in properties_file.read_text().splitlines():
                if line.startswith("cluster.id="):
                    return line.removeprefix("cluster.id=")
        return rig.CLUSTER_ID

    def log_text(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def wait_until_up(self) -> None:
        """Raise RuntimeError when it ends or does not come up."""
        end = time.monotonic() + rig.START_TIMEOUT_S
        while time.monotonic() < end and self.process is not None and self.process.poll() is None:
            if STARTED.search(self.log_text(), self.seen):
                return
            time.sleep(0.3)
        lines = self.log_text()[self.seen :].splitlines()
        complaints = [line for line in lines if " ERROR " in line or " WARN " in line or "Exception" in line]
        raise RuntimeError("\n".join([f"member {self.member.node} did not come up:", *complaints[-20:]]))

    def end(self, sig: signal.Signals = signal.SIGTERM) -> None:
        if self.process is not None:
            rig.stop(self.process, sig)
            self.process = None


def zookeeper(jars: Path, scratch: Path) -> subprocess.Popen[bytes]:
    """ZooKeeper as the broker's own artifacts bring it."""
    command = ["java", "-Xmx128m", "-XX:+UseSerialGC", "-Dzookeeper.admin.enableServer=false", "-cp", f"{jars}/*"]
    command += ["org.apache.zookeeper.server.ZooKeeperServerMain", str(ZOOKEEPER_PORT), str(scratch / "zookeeper")]
    with (scratch / "zookeeper.log").open("wb") as output:
        process = subprocess.Popen(rig.inside(rig.BROKER_SPACE, *command), stdout=output, stderr=subprocess.STDOUT)
    time.sleep(3)  # the brokers ask again until it answers
    return process


def end_all(members: Sequence[Process]) -> None:
    """End all that still run, brokers before controllers, of whom they take leave."""
    end_together([one for one in members if not one.member.is_controller], BROKERS_END_S)
    end_together([one for one in members if one.member.is_controller], CONTROLLERS_END_S)


def end_together(members: Sequence[Process], timeout_s: float) -> None:
    """End these, those that do not make it in time by force."""
    processes = [one.process for one in members if one.process is not None]
    for process in processes:
        process.terminate()
    end = time.monotonic() + timeout_s
    while time.monotonic() < end and any(process.poll() is None for process in processes):
        time.sleep(0.2)
    for process in processes:
        process.kill()
        process.wait()


@contextmanager
def running(setup: ClusterSetup, work: Path, scratch: Path) -> Iterator[rig.RunningBroker]:
    """The cluster with fresh storage, those of its members up that are not to come later."""
    members = {str(member.node): Process(setup, member, work, scratch) for member in setup.members}
    with ExitStack() as stack:
        if setup.zookeeper:
            stack.callback(rig.stop, zookeeper(next(iter(members.values())).jars, scratch))
        stack.callback(end_all, list(members.values()))
        first = [one for one in members.values() if not one.member.later]
        for one in first:
            one.launch()
        for one in first:
            one.wait_until_up()
        brokers = [f"{rig.BROKER_IP}:{one.member.port}" for one in members.values() if one.member.is_broker]
        logs = tuple(one.requests for one in members.values())
        yield rig.RunningBroker(",".join(brokers), logs, steps(members))


def steps(members: dict[str, Process]) -> dict[str, Callable[..., None]]:
    """What a recipe can do to a cluster, by name."""

    def start(*nodes: str) -> None:
        for node in nodes:
            members[node].launch()
        for node in nodes:
            members[node].wait_until_up()

    def stop(node: str) -> None:
        members[node].end()

    def kill(node: str) -> None:
        members[node].end(signal.SIGKILL)

    def pause(node: str) -> None:
        signal_to(node, signal.SIGSTOP)

    def resume(node: str) -> None:
        signal_to(node, signal.SIGCONT)

    def signal_to(node: str, sig: signal.Signals) -> None:
        process = members[node].process
        assert process is not None
        process.send_signal(sig)

    def wipe(node: str, folder: str) -> None:
        shutil.rmtree(members[node].home / folder)

    def wait(seconds: str) -> None:
        time.sleep(float(seconds))

    return {"start": start, "stop": stop, "kill": kill, "pause": pause, "resume": resume, "wipe": wipe, "wait": wait}
