"""Clusters with ZooKeeper, 2.8 to 3.9, and the way from there to KRaft."""

from __future__ import annotations

from captures.recipes.codec.errands import INTERNAL_CLIENTS, Step, inside, restart, upkeep
from captures.recipes.shared.cluster import ZOOKEEPER, ClusterSetup, Member
from captures.recipes.shared.rig import BROKER_IP


def upgrade(version: str, *protocols: str) -> ClusterSetup:
    """Brokers started by steps, each of which speaks to others as the release that is said for it."""
    members = (
        Member(number, "", {"inter.broker.protocol.version": protocol}, later=True)
        for number, protocol in enumerate(protocols, 1)
    )
    return ClusterSetup(version, tuple(members), zookeeper=True)


def turn(topic: str, version: str) -> Step:
    """What makes a controller talk to its brokers, on a topic of that name."""
    return upkeep(
        f"create {topic} 2 3",
        f"assign {topic}-moved 1,2",
        f"produce {topic} 5",
        f"transact {topic} 2 {topic}-transaction",
        f"reassign {topic}-moved 0 2,3",
        f"read {topic} 7",
        f"delete {topic}-moved",
        f"elect preferred {topic} 0",
        "wait 1500",
        version=version,
    )


def three_turns(version: str) -> tuple[Step, ...]:
    """Each of three brokers is the controller once."""
    return (
        ("start", "1"),
        ("start", "2", "3"),
        turn("first", version),
        ("stop", "3"),
        ("stop", "1"),
        ("start", "1", "3"),
        turn("second", version),
        ("stop", "1"),
        ("stop", "2"),
        ("start", "1", "2"),
        turn("third", version),
        ("kill", "1"),
        upkeep("wait 8000", "produce third 3", version=version),
        ("start", "1"),
    )


CONTROLLER = {
    "controller.quorum.voters": f"11@{BROKER_IP}:19092",
    "controller.listener.names": "CONTROLLER",
}
MIGRATION = {**CONTROLLER, "zookeeper.metadata.migration.enable": "true"}
WITHOUT_ZOOKEEPER = {"zookeeper.metadata.migration.enable": "", "zookeeper.connect": ""}
#: Three brokers that begin with ZooKeeper, then prepare for KRaft, then leave ZooKeeper behind, and their controller.
FAREWELL = ClusterSetup(
    "3.9.1",
    (
        *(
            Member(
                n,
                "",
                again=(
                    MIGRATION,
                    {**WITHOUT_ZOOKEEPER, "process.roles": "broker", "node.id": str(n), "broker.id": ""},
                ),
            )
            for n in (1, 2, 3)
        ),
        Member(
            11,
            "controller",
            {
                "zookeeper.metadata.migration.enable": "true",
                "zookeeper.connect": ZOOKEEPER,
                "inter.broker.listener.name": "CLIENT",
            },
            later=True,
            again=(WITHOUT_ZOOKEEPER,),
        ),
    ),
    zookeeper=True,
    voters=True,
)

SCENARIOS = (
    inside(
        "zookeeper-2.8",
        "Three brokers of 2.8 in a rolling upgrade, speaking as 2.4, 2.5 and 2.8; each is the controller once.",
        INTERNAL_CLIENTS,
        upgrade("2.8.2", "2.4-IV0", "2.5-IV0", "2.8"),
        *three_turns("2.8.2"),
    ),
    inside(
        "zookeeper-3.4",
        "Three brokers of 3.4 in a rolling upgrade, speaking as 2.7, 3.3 and 3.4; each is the controller once.",
        INTERNAL_CLIENTS,
        upgrade("3.4.1", "2.7", "3.3", "3.4"),
        *three_turns("3.4.1"),
    ),
    inside(
        "migration-3.9",
        "Three brokers of 3.9 with ZooKeeper move to KRaft (KIP-866), one restart after the other.",
        INTERNAL_CLIENTS,
        FAREWELL,
        turn("before", "3.9.1"),
        ("start", "11"),
        *restart("1", "2", "3"),
        ("wait", "20"),
        turn("between", "3.9.1"),
        *restart("1", "2", "3"),
        *restart("11"),
        turn("after", "3.9.1"),
    ),
)
