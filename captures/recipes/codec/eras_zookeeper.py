"""Clusters of the years from 2015 to 2019: brokers, controllers and clients of the time among themselves."""

from __future__ import annotations

from functools import partial

from captures.recipes.shared.scenario import Scenario, java
from captures.recipes.shared.zookeeper import CLUSTER_TAP, QUIET_TAP, ZookeeperSetup


def create(*topics: str) -> tuple[tuple[str, ...], ...]:
    """The steps that create topics by the tool of the time, each NAME:PARTITIONS:REPLICAS."""
    return tuple(
        ("tool", "kafka.admin.TopicCommand", "--zookeeper", "ZOOKEEPER", "--create", "--topic", name,
         "--partitions", partitions, "--replication-factor", replicas)
        for name, partitions, replicas in (topic.split(":") for topic in topics)
    )  # fmt: skip


def delete(topic: str) -> tuple[str, ...]:
    """The step that deletes a topic by the tool of the time."""
    return ("tool", "kafka.admin.TopicCommand", "--zookeeper", "ZOOKEEPER", "--delete", "--topic", topic)


def start_to_stop(name: str, shows: str, version: str, *, nodes: int = 3) -> Scenario:
    """A recording of brokers from start to stop: a producer, a group, one broker stopped, and the last one killed."""
    return era(
        name,
        shows,
        java("OldProduce", "gauges", version=version),
        f"kafka-clients (Java) {version}, the brokers' own clients",
        prepare=create(f"gauges:2:{nodes}", "passing:1:2"),
        then=(
            java("OldConsume", "gauges", "32", version=version),
            ("stop", "2"),
            ("start", "2"),
            delete("passing"),
            ("kill", str(nodes)),
            ("wait", "3"),
        ),
        broker=ZookeeperSetup(version, nodes=nodes),
        exceptions=CUT_OFF,
    )


def start_to_stop_with_transactions(
    name: str, shows: str, version: str, codecs: tuple[str, ...], consumed: str
) -> Scenario:
    """A recording of three brokers from start to stop, with transactions and a replica that is moved."""
    return era(
        name,
        shows,
        java("OldProduce", "gauges", *codecs, version=version),
        f"kafka-clients (Java) {version}, the brokers' own clients",
        prepare=create("gauges:2:3", "incoming:1:2", "outgoing:3:2"),
        then=(
            java("OldTransactions", "incoming", "outgoing", "3", version=version),
            ("stop", "2"),
            java("OldConsume", "gauges", consumed, version=version),
            ("start", "2"),
            ("reassign", "incoming", "0", "3,2"),
            ("wait", "1"),
            delete("outgoing"),
            ("kill", "3"),
            ("wait", "3"),
        ),
        broker=ZookeeperSetup(version),
        exceptions=CUT_OFF,
    )


def failover(name: str, version: str, year: int) -> Scenario:
    """A recording of clients that go on while brokers do not."""
    return era(
        name,
        f"A producer and a group of {year} while one of three brokers is restarted and one is killed: leaders,"
        " coordinators and controllers change under them.",
        ("later", "3", "stop", "2"),
        f"kafka-clients (Java) {version}, the brokers' own clients",
        prepare=create("climate:3:3"),
        then=(
            ("later", "7", "start", "2"),
            ("later", "16", "kill", "1"),
            java("OldSteady", "climate", "20", version=version),
        ),
        broker=ZookeeperSetup(version),
        exceptions=CUT_OFF,
    )


#: What many a recording has that ends with its brokers.
CUT_OFF = {"incomplete_response": "one side hung up while an answer was under way"}
#: A recording of a cluster from before it starts until after it has stopped.
era = partial(Scenario, tap=CLUSTER_TAP, from_the_start=True, compressed=True, folder="eras")
#: How a node of the successor stays understandable to those that are still to be upgraded.
AS_BEFORE = ("inter.broker.protocol.version=0.8.2", "log.message.format.version=0.8.2")
#: An authorizer, with the client that does not say who it is as the one who may do everything, and two log folders.
GUARDED = {
    "authorizer.class.name": "kafka.security.auth.SimpleAclAuthorizer",
    "super.users": "User:ANONYMOUS",
    "log.dirs": "{home}/data,{home}/more-data",
}

SCENARIOS: tuple[Scenario, ...] = (
    era(
        "era-0.8-cluster",
        "Three brokers of 2015 from start to stop: topics, replication, a producer in every codec, offsets kept in"
        " ZooKeeper and in Kafka, one broker stopped and one killed.",
        java("OldProduce", "gauges", version="0.8.2.2"),
        "kafka-clients (Java) 0.8.2.2, the brokers' own clients",
        prepare=create("gauges:2:3", "passing:1:2"),
        then=(
            ("broker:0.8.2.2:OldOffsets", "{bootstrap}", "gauges"),
            ("stop", "2"),
            ("start", "2"),
            delete("passing"),
            ("kill", "3"),
            ("wait", "3"),
        ),
        broker=ZookeeperSetup("0.8.2.2"),
        tap=QUIET_TAP,
        exceptions=CUT_OFF,
    ),
    start_to_stop(
        "era-0.9-cluster",
        "Two brokers of 2015 from start to stop: the first Java consumer group, message sets of magic 0, a leader"
        " stopped and one killed.",
        "0.9.0.1",
        nodes=2,
    ),
    start_to_stop(
        "era-0.10.0-cluster",
        "Two brokers of 2016 from start to stop: the first ApiVersions, message sets of magic 1, a leader stopped and"
        " one killed.",
        "0.10.0.1",
        nodes=2,
    ),
    start_to_stop(
        "era-0.10-cluster",
        "Three brokers of 2017 from start to stop: topics, replication, a producer in every codec, a group, one broker"
        " stopped and one killed.",
        "0.10.2.2",
    ),
    start_to_stop(
        "era-0.11-cluster",
        "Two brokers of 2017 from start to stop: the first record batches, a leader stopped and one killed.",
        "0.11.0.3",
        nodes=2,
    ),
    start_to_stop_with_transactions(
        "era-1.1-cluster",
        "Three brokers of 2018 from start to stop: topics, transactions whose markers go from broker to broker, a"
        " group, a replica moved, one broker stopped and one killed.",
        "1.1.1",
        (),
        "32",
    ),
    era(
        "era-1.1-admin",
        "The first admin client and a cluster of its time: topics, partitions, settings, access rules, records, log"
        " folders, and what the controller tells the brokers of it.",
        java("OldAdmin", version="1.1.1"),
        "kafka-clients (Java) 1.1.1, the brokers' own clients",
        broker=ZookeeperSetup("1.1.1", nodes=2, settings=GUARDED),
        exceptions=CUT_OFF,
    ),
    start_to_stop_with_transactions(
        "era-2.3-cluster",
        "Three brokers of 2019 from start to stop: topics, zstd, transactions whose markers go from broker to broker, a"
        " group, a replica moved, one broker stopped and one killed.",
        "2.3.1",
        ("gzip", "zstd"),
        "16",
    ),
    era(
        "era-2.3-admin",
        "The admin client of 2019 and a cluster of its time: all that 1.1 could, and groups, elections, single"
        " settings.",
        java("OldAdmin", version="2.3.1"),
        "kafka-clients (Java) 2.3.1, the brokers' own clients",
        prepare=(
            *create("gauges:2:2"),
            java("OldProduce", "gauges", "none", version="2.3.1"),
            java("OldConsume", "gauges", "8", version="2.3.1"),
        ),
        then=(java("AdminOf2019", "gauges", "archive", version="2.3.1"),),
        broker=ZookeeperSetup("2.3.1", nodes=2, settings=GUARDED),
        exceptions=CUT_OFF,
    ),
    era(
        "era-0.8-upgrade",
        "Two brokers of 2015 become brokers of 2017 one after the other: first in the new release with the old"
        " protocol, then with the new one. Records are written in the old format and read by a group.",
        java("OldProduce", "gauges", version="0.8.2.2"),
        "kafka-clients (Java) 0.8.2.2 and 0.10.2.2, the brokers' own clients",
        prepare=create("gauges:2:2"),
        then=(
            ("upgrade", "2", *AS_BEFORE),
            java("OldProduce", "gauges", version="0.8.2.2"),
            ("upgrade", "1", *AS_BEFORE),
            ("upgrade", "2"),
            ("upgrade", "1"),
            java("OldConsume", "gauges", "64", version="0.10.2.2"),
        ),
        broker=ZookeeperSetup("0.8.2.2", nodes=2, successor="0.10.2.2"),
        tap=QUIET_TAP,
    ),
    failover("era-0.10-failover", "0.10.2.2", 2017),
    failover("era-1.1-failover", "1.1.1", 2018),
    failover("era-2.3-failover", "2.3.1", 2019),
)
