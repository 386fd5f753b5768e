"""Clusters of the years from 2015 to 2019: brokers, controllers and clients of the time among themselves."""

from __future__ import annotations

from scenarios import Scenario, java
from zookeeper import CLUSTER_TAP, QUIET_TAP, ZookeeperSetup


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


#: What every recording has that ends with its brokers.
CUT_OFF = {"incomplete_response": "one side hung up while an answer was under way"}

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
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
        from_the_start=True,
        compressed=True,
        folder="eras",
        exceptions=CUT_OFF,
    ),
    Scenario(
        "era-0.10-cluster",
        "Three brokers of 2017 from start to stop: topics, replication, a producer in every codec, a group, one broker"
        " stopped and one killed.",
        java("OldProduce", "gauges", version="0.10.2.2"),
        "kafka-clients (Java) 0.10.2.2, the brokers' own clients",
        prepare=create("gauges:2:3", "passing:1:2"),
        then=(
            java("OldConsume", "gauges", "32", version="0.10.2.2"),
            ("stop", "2"),
            ("start", "2"),
            delete("passing"),
            ("kill", "3"),
            ("wait", "3"),
        ),
        broker=ZookeeperSetup("0.10.2.2"),
        tap=CLUSTER_TAP,
        from_the_start=True,
        compressed=True,
        folder="eras",
        exceptions=CUT_OFF,
    ),
)
