"""Clusters of 2.8 to the newest release among themselves and with their administrators."""

from __future__ import annotations

from cluster import INSIDE, ClusterSetup, Member
from rig import BROKER_IP, BrokerSetup
from scenarios import GUARDED, Scenario, java, sasl

NEWEST = "4.4.0"
STOPPED = {"incomplete_response": "a member was stopped while it sent an answer"}
INTERNAL_CLIENTS = "Apache Kafka's own clients"
#: The directory ids of the first controllers; any 16 bytes in Kafka's base64 form do.
DIRECTORIES = {11: "Y29udHJvbGxlci0xMS1hMQ", 12: "Y29udHJvbGxlci0xMi1iMg", 13: "Y29udHJvbGxlci0xMy1jMw"}


def upkeep(*errands: str, version: str = NEWEST) -> tuple[str, ...]:
    return java("Upkeep", *errands, version=version)


def quorum(*errands: str) -> tuple[str, ...]:
    return java("Quorum", *errands)


_PLACES = (f"{node}@{BROKER_IP}:{19070 + 2 * node}:{directory}" for node, directory in DIRECTORIES.items())
FIRST_CONTROLLERS = ("--initial-controllers", ",".join(_PLACES))
NEWCOMER = ("--no-initial-controllers",)
#: What a controller says of itself once it has moved.
ELSEWHERE = {"listeners": "CONTROLLER://:19094", "advertised.listeners": "CONTROLLER://127.0.0.1:19094"}
CONTROLLERS = ",".join(f"{BROKER_IP}:{19070 + 2 * node}" for node in DIRECTORIES)

#: Three controllers whose quorum may change, three brokers, and one of each that comes later.
RAFT = ClusterSetup(
    NEWEST,
    (
        Member(11, "controller", format_arguments=FIRST_CONTROLLERS),
        Member(12, "controller", format_arguments=FIRST_CONTROLLERS, again=ELSEWHERE),
        Member(13, "controller", format_arguments=FIRST_CONTROLLERS),
        *(Member(n, settings={"log.dirs": "{home}/data,{home}/more"}) for n in (1, 2, 3)),
        Member(14, "controller", {"controller.quorum.auto.join.enable": "true"}, NEWCOMER, later=True),
        Member(4, later=True),
    ),
    settings={
        "metadata.log.max.record.bytes.between.snapshots": "2000",
        "metadata.max.retention.bytes": "2000",
        "controller.quorum.election.timeout.ms": "1500",
    },
)

_PLAIN = sasl("PLAIN", "plain.PlainLoginModule")
#: All that a client may ask of a single broker of 2025: SASL, tokens, access rules.
WITH_EVERYTHING = BrokerSetup(
    version="3.9.1",
    settings={**_PLAIN.settings, **GUARDED.settings, "super.users": "User:alice;User:broker;User:ANONYMOUS"},
)
KMSG = "franz-go's messages (kmsg) 1.15.0"

SCENARIOS = (
    Scenario(
        "kraft-4.4",
        "Three controllers and three brokers: elections, a snapshot for a newcomer, voters that come and go.",
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
        INTERNAL_CLIENTS,
        then=(
            quorum("quorum", "features", "feature group.version 0 SAFE_DOWNGRADE", "feature group.version 1 UPGRADE"),
            upkeep("move oars 0 2", "transact boats 5 regatta", "read boats 25", "quota regatta 2097152"),
            ("kill", "3"),
            upkeep("wait 10000", "produce boats 5", "quota regatta 3145728"),
            ("start", "3"),
            upkeep("elect preferred boats 0", "delete oars", "wait 25000"),
            ("start", "4", "14"),
            quorum(
                f"controllers {CONTROLLERS}", "quorum", "cluster", "features", "remove 13", f"add 13 {BROKER_IP} 19096"
            ),
            ("stop", "4"),
            ("stop", "12"),
            ("start", "12"),
            ("kill", "11"),
            ("start", "11"),
            ("stop", "13"),
            ("start", "13"),
            quorum("quorum", "unregister-broker 4", "remove 14"),
            ("stop", "14"),
            quorum("unregister-controller 14", "quorum"),
        ),
        broker=RAFT,
        tap=INSIDE,
        from_the_start=True,
        compressed=True,
        folder="eras",
        exceptions=STOPPED,
    ),
    Scenario(
        "versions-3.9",
        "Every version of every request that the last release before 4.0 offers its clients, by SASL PLAIN.",
        ("go:versions", "{bootstrap}", "alice", "not-a-secret"),
        KMSG,
        broker=WITH_EVERYTHING,
        folder="eras",
        compressed=True,
    ),
    Scenario(
        "versions-4.4",
        "Every version of every request that the newest release offers its clients.",
        ("go:versions", "{bootstrap}"),
        KMSG,
        broker=BrokerSetup(settings=GUARDED.settings),
        folder="eras",
        compressed=True,
    ),
)
