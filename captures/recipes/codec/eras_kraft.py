"""Clusters with KRaft, 3.3 to the newest release: elections, snapshots, registrations, voters."""

from __future__ import annotations

from collections.abc import Mapping

from captures.recipes.codec.errands import (
    INTERNAL_CLIENTS,
    NEWEST,
    STOPPED,
    inside,
    office,
    quorum,
    restart,
    trio,
    upkeep,
)
from captures.recipes.shared.cluster import ClusterSetup, Member
from captures.recipes.shared.rig import BROKER_IP
from captures.recipes.shared.scenario import java

#: The directory ids of the first controllers; any 16 bytes in Kafka's base64 form do.
DIRECTORIES = {11: "Y29udHJvbGxlci0xMS1hMQ", 12: "Y29udHJvbGxlci0xMi1iMg", 13: "Y29udHJvbGxlci0xMy1jMw"}
_PLACES = (f"{node}@{BROKER_IP}:{19070 + 2 * node}:{directory}" for node, directory in DIRECTORIES.items())
FIRST_CONTROLLERS = ("--initial-controllers", ",".join(_PLACES))
NEWCOMER = ("--no-initial-controllers",)
CONTROLLERS = ",".join(f"{BROKER_IP}:{19070 + 2 * node}" for node in DIRECTORIES)
#: What a controller says of itself once it has moved.
ELSEWHERE = {"listeners": "CONTROLLER://:19094", "advertised.listeners": "CONTROLLER://127.0.0.1:19094"}
#: Snapshots are made soon, and what they replace is thrown away within a minute.
SNAPSHOTS = {
    "metadata.log.max.record.bytes.between.snapshots": "2000",
    "metadata.max.retention.bytes": "2000",
    "controller.quorum.election.timeout.ms": "1500",
}
TWO_BROKERS = {
    **SNAPSHOTS,
    "offsets.topic.replication.factor": "2",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.min.isr": "1",
}


def quorum_of_three(version: str, settings: Mapping[str, str], *others: Member) -> ClusterSetup:
    """Three controllers whose quorum may change (KIP-853)."""
    controllers = (
        Member(node, "controller", format_arguments=FIRST_CONTROLLERS, again=(ELSEWHERE,) if node == 12 else ())
        for node in DIRECTORIES
    )
    return ClusterSetup(version, (*controllers, *others), settings)


#: Brokers with two log directories, and one of each kind of node that comes later.
RAFT_4_4 = quorum_of_three(
    NEWEST,
    SNAPSHOTS,
    *(Member(n, settings={"log.dirs": "{home}/data,{home}/more"}) for n in (1, 2, 3)),
    Member(14, "controller", {"controller.quorum.auto.join.enable": "true"}, NEWCOMER, later=True),
    Member(4, later=True),
)
RAFT_3_9 = quorum_of_three(
    "3.9.1",
    TWO_BROKERS,
    Member(1),
    Member(2),
    Member(14, "controller", format_arguments=NEWCOMER, later=True),
)
#: A rolling upgrade: a controller of each release, a broker of each, and the metadata of the oldest.
OLD_METADATA = ("--release-version", "3.3-IV3")
UPGRADE = ClusterSetup(
    "3.4.1",
    (
        Member(11, "controller", version="3.3.2"),
        Member(12, "controller", format_arguments=OLD_METADATA),
        Member(13, "controller", format_arguments=OLD_METADATA, version="3.7.2"),
        Member(1, version="3.3.2"),
        Member(2, format_arguments=OLD_METADATA),
        Member(3, format_arguments=OLD_METADATA, version="3.7.2", later=True),
    ),
    TWO_BROKERS,
    voters=True,
)

SCENARIOS = (
    inside(
        "kraft-3.4",
        "Controllers and brokers of 3.3, 3.4 and 3.7 in a rolling upgrade: elections, registrations, a snapshot.",
        INTERNAL_CLIENTS,
        UPGRADE,
        upkeep("create buoys 2 2", "produce buoys 5", "scram", "quota harbour 1048576", version="3.4.1"),
        *restart("11"),
        upkeep("wait 8000", "quota harbour 2097152", "transact buoys 2 harbour", "read buoys 7", version="3.4.1"),
        ("kill", "2"),
        upkeep("wait 10000", "produce buoys 2", "quota harbour 3145728", version="3.4.1"),
        ("start", "2"),
        *restart("12"),
        ("wait", "12"),
        *restart("13"),
        ("start", "3"),
        upkeep("reassign buoys 0 2,3", "wait 3000", "unregister 1", version="3.4.1"),
        exceptions=STOPPED,
    ),
    inside(
        "kraft-3.7",
        "Three nodes of 3.7 with two log directories each, and a group of the consumer protocol's first version.",
        "kafka-clients (Java) 3.7.2",
        trio(
            "3.7.2",
            {
                "log.dirs": "{home}/data,{home}/more",
                "group.coordinator.rebalance.protocols": "classic,consumer",
                "unstable.api.versions.enable": "true",
                "group.consumer.heartbeat.interval.ms": "500",
                "group.consumer.min.heartbeat.interval.ms": "500",
            },
        ),
        upkeep("create shelves 4 2", "move shelves 0 1", "transact shelves 2 librarian", version="3.7.2"),
        java("Group", "shelves", "group.protocol=consumer", version="3.7.2"),
    ),
    inside(
        "kraft-3.9",
        "Three controllers and two brokers of 3.9, whose quorum changes (KIP-853), and transactions between them.",
        INTERNAL_CLIENTS,
        RAFT_3_9,
        upkeep("create kayaks 2 2", "produce kayaks 5", "transact kayaks 2 paddler", "read kayaks 7", version="3.9.1"),
        upkeep("quota paddler 1048576", "quota paddler 2097152", "scram", "wait 5000", version="3.9.1"),
        ("start", "14"),
        quorum("quorum", f"add 14 {BROKER_IP} 19098", "remove 13", f"controllers {CONTROLLERS}", "quorum"),
        ("stop", "12"),
        ("start", "12"),
        ("wait", "8"),
        ("kill", "11"),
        ("start", "11"),
        *restart("14"),
        quorum("quorum"),
        exceptions=STOPPED,
    ),
    inside(
        "kraft-4.4",
        "Three controllers and three brokers: elections, a snapshot for a newcomer, voters that come and go.",
        INTERNAL_CLIENTS,
        RAFT_4_4,
        upkeep(
            "create boats 3 3",
            "create oars 1 2",
            "produce boats 20",
            "reassign oars 0 2,3",
            "broker 1 log.retention.ms=7200000",
            "quota regatta 1048576",
            "scram",
            "dirs 1,2",
        ),
        quorum("quorum", "features", "feature group.version 0 SAFE_DOWNGRADE", "feature group.version 1 UPGRADE"),
        upkeep("move oars 0 2", "transact boats 5 regatta", "read boats 25", "quota regatta 2097152"),
        office("transactions", "fence regatta", "terminate regatta", "abort boats:0 0 0", "consumer inspectors"),
        ("kill", "3"),
        upkeep("wait 10000", "produce boats 5", "quota regatta 3145728"),
        ("start", "3"),
        upkeep("elect preferred boats 0", "delete oars", "wait 15000"),
        ("start", "4", "14"),
        quorum(f"controllers {CONTROLLERS}", "quorum", "cluster", "features", "remove 13", f"add 13 {BROKER_IP} 19096"),
        ("stop", "4"),
        *restart("12"),
        ("wait", "8"),
        ("kill", "11"),
        ("start", "11"),
        *restart("13"),
        quorum("quorum", "unregister-broker 4", "remove 14"),
        ("stop", "14"),
        quorum("unregister-controller 14", "quorum"),
    ),
)
