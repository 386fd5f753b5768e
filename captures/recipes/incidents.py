"""Record what goes wrong: ``python captures/recipes/incidents.py [NAME...]``.

One incident a recording, provoked on a real broker and recorded at the client. What really happened is known from what
provoked it, and stands in the row of the manifest as ``happened``; ``tests/captures/test_incidents.py`` holds the
doctor to it. Needs what ``record.py`` needs of Java, Python, tcpdump and iproute2.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import programs
import rig
from cluster import ClusterSetup, Member
from eras_groups import STREAMS_GROUPS
from record import CLIENT_TIMEOUT_S, DEFAULT_WORK
from scenarios import GUARDED, JAVA, LIBRDKAFKA, TLS, java, sasl, topics
from zookeeper import ZookeeperSetup

FOLDER = Path(__file__).parents[1] / "incidents"
HEADER = """\
# One row per capture. Written by recipes/incidents.py.
#
# happened  what really happened, by those who did it
"""
NEVER = "10.9.0.1:9999"  # where nobody listens
PLAIN = sasl("PLAIN", "plain.PlainLoginModule")
QUICK_SESSIONS = {
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "2000",
    "group.consumer.session.timeout.ms": "3000",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.session.timeout.ms": "2000",
    "group.share.session.timeout.ms": "3000",
}
#: One broker has one replica of everything.
SINGLE = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
Step = tuple[str, ...]


@dataclass(frozen=True)
class Incident:
    """One recording. Steps are client programs, or what ``do`` knows."""

    name: str
    steps: Sequence[Step]
    prepare: Sequence[Step] = ()
    broker: rig.Setup = field(default_factory=rig.BrokerSetup)
    client: str = JAVA
    happened: str = ""


def incident(what: str, *settings: str, version: str = "4.4.0") -> Step:
    return java("Incident", what, *settings, version=version)


def cluster(version: str = "4.4.0", **settings: str) -> ClusterSetup:
    """Three brokers; the first is the controller, too. An underscore in a setting stands for a dot."""
    members = (Member(1, "broker,controller"), Member(2), Member(3))
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return ClusterSetup(version, members, given, voters=True)


def apart(**settings: str) -> ClusterSetup:
    """A controller by itself and a broker."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return ClusterSetup("4.4.0", (Member(11, "controller"), Member(1)), SINGLE | given, voters=True)


def single(**settings: str) -> rig.BrokerSetup:
    """One broker with some settings; an underscore stands for a dot."""
    return rig.BrokerSetup(settings={name.replace("_", "."): value for name, value in settings.items()})


def advertising(address: str) -> rig.BrokerSetup:
    """A broker that its clients are told to find elsewhere; brokers and tools have a listener of their own."""
    return rig.BrokerSetup(
        settings={
            "listeners": f"CLIENT://{rig.BROKER_IP}:9092,INNER://{rig.BROKER_IP}:9192,CONTROLLER://127.0.0.1:{rig.CONTROLLER_PORT}",
            "advertised.listeners": f"CLIENT://{address},INNER://{rig.BROKER_IP}:9192",
            "inter.broker.listener.name": "INNER",
            "listener.security.protocol.map": "CLIENT:PLAINTEXT,INNER:PLAINTEXT,CONTROLLER:PLAINTEXT",
        }
    )


INNER = f"{rig.BROKER_IP}:9192"
ALICE = (
    "sasl.mechanism=PLAIN",
    "security.protocol=SASL_PLAINTEXT",
    "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="alice" password="not-a-secret";',
)

#: What a client needs to trust the recipes' broker.
TRUSTING = (
    "ssl.truststore.type=PEM",
    f"ssl.truststore.location={rig.HERE / 'kafka' / 'tls.pem'}",
    "ssl.endpoint.identification.algorithm=",
)
#: A broker on which alice may do everything.
GENEROUS = replace(PLAIN, settings=PLAIN.settings | {"auto.create.topics.enable": "true", "num.partitions": "2"})

WRONG = tuple(word.replace("not-a-secret", "a-wrong-one") for word in ALICE)
ORDERS = topics("orders:3:3")

INCIDENTS = (
    Incident("topic-deleted", [incident("topic-deleted")], topics("orders:2")),
    Incident("hot-partition", [incident("hot-partition")], topics("clicks:6")),
    Incident("record-too-large", [incident("too-large")], topics("small:1:1:max.message.bytes=2000")),
    Incident(
        "request-too-large",
        [incident("request-too-large")],
        topics("pictures"),
        single(socket_request_max_bytes="50000"),
    ),
    *(
        Incident(
            f"churn-{protocol}",
            [incident("group-churn", f"group.protocol={protocol}")],
            topics("parcels:6"),
            rig.BrokerSetup(settings=QUICK_SESSIONS),
        )
        for protocol in ("classic", "consumer")
    ),
    Incident("churn-share", [incident("share-churn")], topics("parcels:2"), rig.BrokerSetup(settings=QUICK_SESSIONS)),
    Incident(
        "churn-streams",
        [("streams:4.3.1:StreamsChurn", "{bootstrap}", "lines", "shouts")],
        topics("lines:4", "shouts:1"),
        rig.BrokerSetup(settings=STREAMS_GROUPS),
        "Kafka Streams 4.3.1",
    ),
    Incident("same-instance", [incident("same-instance")], topics("parcels:2")),
    Incident(
        "transaction-left-open",
        [incident("transaction-left-open")],
        topics("parcels:1"),
        single(transaction_abort_timed_out_transaction_cleanup_interval_ms="1000"),
    ),
    Incident("fenced", [incident("fenced")], topics("parcels:2")),
    Incident(
        "listener-refused",
        [incident("write")],
        [("prepare.py", INNER, "orders:2")],
        advertising(NEVER),
        happened=f"the listener at 10.9.0.1:9092 advertises {NEVER}, where nobody listens",
    ),
    Incident(
        "listener-unresolvable",
        [incident("write")],
        [("prepare.py", INNER, "orders:2")],
        advertising("kafka-1.internal:9092"),
        happened="the listener at 10.9.0.1:9092 advertises kafka-1.internal, which does not resolve at the client",
    ),
    Incident(
        "listener-unresolvable-librdkafka",
        [("unresolvable.py", "{bootstrap}", "orders", "6")],
        [("prepare.py", INNER, "orders:2")],
        advertising("kafka-1.internal:9092"),
        LIBRDKAFKA,
        happened="the listener at 10.9.0.1:9092 advertises kafka-1.internal, which does not resolve at the client",
    ),
    Incident(
        "syn-lost",
        [("lose-answers", "2.0"), incident("connect"), ("wait", "4")],
        topics("orders:2"),
        happened="the broker's machine could not answer the client for the first two seconds",
    ),
    Incident(
        "stale-metadata",
        [("stale.py", "10.9.0.1:9092,10.9.0.1:9094", "orders", "8")],
        topics("orders:1"),
        rig.BrokerSetup(nodes=2),
        "a client written by hand",
    ),
    Incident(
        "sasl-on-plaintext",
        [incident("write", *ALICE)],
        topics("orders:2"),
        happened="billing speaks SASL PLAIN to a plaintext listener",
    ),
    Incident(
        "no-sasl",
        [incident("write")],
        broker=PLAIN,
        happened="billing does not authenticate, the listener wants SASL",
    ),
    Incident(
        "untrusted-certificate",
        [incident("write", "security.protocol=SSL")],
        broker=TLS,
        happened="the client does not trust the certificate of the broker",
    ),
    Incident(
        "not-authorized",
        [incident("write", *ALICE), incident("read", *ALICE)],
        broker=rig.BrokerSetup(
            settings=PLAIN.settings | GUARDED.settings | {"super.users": "User:broker;User:ANONYMOUS"}
        ),
        happened="alice may neither write to orders nor read it nor be in the group reports",
    ),
    Incident(
        "no-coordinator",
        [incident("write", "enable.idempotence=false"), incident("read")],
        (),
        single(offsets_topic_replication_factor="3", auto_create_topics_enable="true"),
        happened="__consumer_offsets cannot be created: its replication factor is 3, there is one broker",
    ),
    Incident(
        "protocol-not-enabled",
        [incident("read", "group.protocol=consumer")],
        topics("orders:2"),
        single(group_coordinator_rebalance_protocols="classic"),
        happened="report asks for the consumer protocol, the broker has only the classic one",
    ),
    Incident("fetch-quota", [incident("fetch-quota", *ALICE)], broker=GENEROUS),
    Incident(
        "tls-on-plaintext",
        [incident("write", "security.protocol=SSL")],
        topics("orders:2"),
        happened="the client speaks TLS to a plaintext listener",
    ),
    Incident(
        "plaintext-on-tls",
        [incident("write")],
        broker=TLS,
        happened="billing speaks plaintext to a TLS listener",
    ),
    Incident(
        "certificate-wanted",
        [incident("write", "security.protocol=SSL", *TRUSTING)],
        broker=replace(TLS, settings=TLS.settings | {"ssl.client.auth": "required"}),
        happened="the broker wants a certificate of its clients, this one has none",
    ),
    Incident(
        "missing-topic",
        [incident("read")],
        topics("others:1"),
        happened="report reads orders, which does not exist",
    ),
    Incident(
        "broker-killed",
        [("later", "5", "kill", "2"), incident("steady", "seconds=20")],
        ORDERS,
        cluster(broker_session_timeout_ms="6000"),
        happened="node 2 was killed (SIGKILL) 5 s after the capture began, and did not come back",
    ),
    Incident(
        "broker-restarted",
        [("later", "5", "stop", "2"), ("later", "11", "start", "2"), incident("steady", "seconds=22", "reader=no")],
        ORDERS,
        cluster(),
        happened="node 2 was stopped in order (SIGTERM) and started again",
    ),
    Incident(
        "replicas-left",
        [("later", "4", "stop", "3"), incident("steady", "seconds=12", "reader=no", "delivery.timeout.ms=6000")],
        topics("orders:3:3:min.insync.replicas=3"),
        cluster(),
        happened="node 3 was stopped, orders has 3 replicas and min.insync.replicas=3",
    ),
    Incident(
        "log-directory-failed",
        [("later", "4", "wipe", "1", "data"), incident("steady", "seconds=14", "delivery.timeout.ms=15000")],
        topics("orders:3"),
        ClusterSetup(
            "4.4.0",
            (
                Member(11, "controller"),
                Member(1, settings={"log.dirs": "{home}/data,{home}/more", "metadata.log.dir": "{home}/meta"}),
            ),
            SINGLE | {"log.flush.offset.checkpoint.interval.ms": "1000", "log.flush.interval.messages": "1"},
            voters=True,
        ),
        happened="one of the two log directories of node 1 was removed",
    ),
    Incident(
        "controller-gone",
        [("kill", "11"), incident("create_topics"), incident("write", "enable.idempotence=false")],
        topics("orders:2"),
        apart(),
        happened="the only controller was killed",
    ),
    Incident("produce-quota", [incident("produce-quota", *ALICE)], broker=GENEROUS),
    Incident("request-quota", [incident("request-quota")], topics("orders:2"), single()),
    Incident(
        "produce-quota-1.1",
        [("java:1.1.1:OldProduce", "{bootstrap}", "orders", *["none"] * 8)],
        [
            (
                "tool",
                "kafka.admin.TopicCommand",
                "--zookeeper",
                "ZOOKEEPER",
                "--create",
                "--topic",
                "orders",
                "--partitions",
                "1",
                "--replication-factor",
                "1",
            ),
            (
                "tool",
                "kafka.admin.ConfigCommand",
                "--zookeeper",
                "ZOOKEEPER",
                "--alter",
                "--entity-type",
                "clients",
                "--entity-name",
                "none",
                "--add-config",
                "producer_byte_rate=100",
            ),
        ],
        ZookeeperSetup("1.1.1", 1),
        "kafka-clients (Java) 1.1.1",
        happened="the client none may write 100 bytes a second and writes more; the broker is older than KIP-219",
    ),
    Incident("retention", [incident("retention")], topics("orders:2")),
    Incident("transaction-stuck", [incident("transaction-stuck")], topics("parcels:2")),
    Incident("held-up", [incident("held-up")], topics("parcels:2"), rig.BrokerSetup(settings=QUICK_SESSIONS)),
    Incident(
        "wrong-password",
        [incident("write", *WRONG)],
        broker=PLAIN,
        happened="billing authenticates as alice with a wrong password",
    ),
    Incident(
        "old-client",
        [("java:0.9.0.1:OldProduce", "{bootstrap}", "orders", "none")],
        topics("orders:2"),
        client="kafka-clients (Java) 0.9.0.1",
        happened="a client of 2016 writes to orders",
    ),
    Incident(
        "old-client-negotiates",
        [("java:1.1.1:OldProduce", "{bootstrap}", "orders", "none")],
        topics("orders:2"),
        client="kafka-clients (Java) 1.1.1",
        happened="a client of 2018, which asks for the versions that the broker takes, writes to orders",
    ),
    Incident(
        "idle-connections",
        [incident("idle")],
        topics("orders:2"),
        single(connections_max_idle_ms="2000"),
        happened="nothing is wrong: the broker closes connections that are idle for two seconds",
    ),
)


def do(step: Step, running: rig.RunningBroker, work: Path, scratch: Path) -> list[str]:
    """One step; what the program says happened."""
    program, *arguments = (word.format(bootstrap=running.bootstrap) for word in step)
    if program in running.actions:
        running.actions[program](*arguments)
    elif program == "wait":
        time.sleep(float(arguments[0]))
    elif program == "later":
        seconds, action, *words = arguments
        threading.Timer(float(seconds), running.actions[action], words).start()
    elif program == "lose-answers":
        # The client needs a while to start; the answers are lost from its first packet on.
        watch = f"tcpdump -i {rig.BROKER_LINK} -c 1 'tcp[tcpflags] & tcp-syn != 0' >/dev/null 2>&1 & tcpdump=$!; "
        script = (
            f"ip route add blackhole {rig.CLIENT_IP}/32; {watch} wait $tcpdump; sleep {arguments[0]}; "
            f"ip route del blackhole {rig.CLIENT_IP}/32"
        )
        subprocess.Popen(rig.inside(rig.BROKER_SPACE, "sh", "-c", script))
        time.sleep(1)
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
        with rig.network(), one.broker.start(work, scratch) as running:
            for step in one.prepare:
                do(step, running, work, scratch)
            with rig.recording(rig.Tap(), target):
                facts = [fact for step in one.steps for fact in do(step, running, work, scratch)]
        packed = lzma.compress(target.read_bytes(), preset=9)
    (into / f"{one.name}.pcap.xz").write_bytes(packed)
    return {
        "file": f"{one.name}.pcap.xz",
        "happened": "; ".join([one.happened] * bool(one.happened) + facts),
        "broker": one.broker.described,
        "client": one.client,
        "recipe": "recipes/incidents.py",
        "sha256": hashlib.sha256(packed).hexdigest(),
    }


def write_manifest(rows: Mapping[str, dict[str, Any]], into: Path) -> None:
    """Rows in the order of the incidents."""
    order = [f"{one.name}.pcap.xz" for one in INCIDENTS]
    text = HEADER
    for name in sorted(rows, key=order.index):
        lines = (f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in rows[name].items())
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
