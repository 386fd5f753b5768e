"""What goes wrong where there are several brokers: what is done to which of them, and what happens then.

A table with an entry for each, which ``incidents.py`` records.
"""

from __future__ import annotations

from dataclasses import replace

from captures.recipes.analysis.incident_setups import (
    INNER,
    NEVER,
    ORDERS,
    SINGLE,
    Incident,
    apart,
    cluster,
    followers_denied,
    incident,
    one_unresolvable,
    telling,
)
from captures.recipes.shared import rig
from captures.recipes.shared.cluster import INSIDE, ClusterSetup, Member
from captures.recipes.shared.scenario import KAFKA_PYTHON, LIBRDKAFKA, topics
from captures.recipes.shared.zookeeper import ZookeeperSetup

#: The process of node 2 stands still for 1.7 s, three times.
PAUSES = [
    ("later", str(at), action, "2")
    for second in (4, 8, 12)
    for at, action in ((second, "pause"), (second + 1.7, "resume"))
]
AT_SEVERAL_BROKERS = (
    Incident(
        "stale-metadata",
        [("stale.py", "10.9.0.1:9092,10.9.0.1:9094", "orders", "8")],
        topics("orders:1"),
        rig.BrokerSetup(nodes=2),
        "a client written by hand",
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
    Incident("reassignment", [incident("reassignment")], topics("orders:3:1"), cluster()),
    Incident(
        "broker-frozen",
        [("later", "5", "pause", "2"), ("later", "20", "resume", "2"), incident("steady", "seconds=26")],
        ORDERS,
        cluster(broker_session_timeout_ms="6000"),
        happened="the process of node 2 stood still (SIGSTOP) for 15 s; the controller fenced it after 6 s",
    ),
    Incident(
        "unclean-election",
        [
            ("later", "6", "kill", "2"),
            ("later", "18", "kill", "1"),
            ("later", "20", "start", "2"),
            incident("no-followers", "seconds=45"),
        ],
        topics("orders:1:2"),
        ClusterSetup(
            "4.4.0",
            (Member(11, "controller"), Member(1), Member(2)),
            SINGLE
            | {
                "unclean.leader.election.enable": "true",
                "broker.session.timeout.ms": "3000",
                "unclean.leader.election.interval.ms": "1000",
            },
            voters=True,
        ),
        happened="node 2 was killed, then node 1, which alone had what was written since; node 2 came back "
        "and was made leader of orders-0 without it (unclean.leader.election.enable)",
    ),
    Incident(
        "coordinator-gone",
        [("later", "6", "kill", "1"), incident("steady", "seconds=24")],
        [
            ("prepare.py", "10.9.0.1:9092"),  # only node 1 is there to have what groups commit
            ("start", "2"),
            ("prepare.py", "10.9.0.1:9092", "orders:3:2"),
        ],
        ClusterSetup(
            "4.4.0",
            (Member(11, "controller"), Member(1), Member(2, later=True)),
            SINGLE | {"broker.session.timeout.ms": "3000"},
            voters=True,
        ),
        happened="node 1 was killed, which alone had __consumer_offsets (offsets.topic.replication.factor=1): "
        "the group reports has no coordinator any more, orders goes on at node 2",
    ),
    Incident(
        "coordinator-killed",
        [("later", "6", "kill", "1"), incident("steady", "seconds=24")],
        topics("orders:3:2"),
        ClusterSetup(
            "4.4.0",
            (Member(11, "controller"), Member(1), Member(2)),
            SINGLE
            | {
                "offsets.topic.replication.factor": "2",
                "offsets.topic.num.partitions": "1",
                "broker.session.timeout.ms": "6000",
            },
            voters=True,
        ),
        happened="node 1, the coordinator of the group reports, was killed (SIGKILL) and did not come back; "
        "node 2 became the coordinator",
    ),
    Incident(
        "rolling-restart",
        [
            *(
                ("later", at, action, node)
                for at, action, node in (
                    ("4", "stop", "2"),
                    ("9", "start", "2"),
                    ("21", "stop", "3"),
                    ("26", "start", "3"),
                )
            ),
            incident("steady", "seconds=36", "reader=no"),
        ],
        ORDERS,
        cluster(replica_fetch_wait_max_ms="500"),
        happened="nodes 2 and 3 were restarted in order, one after the other",
    ),
    Incident(
        "load-balanced",
        [("balance", "9999", "9092", "9094", "9096"), ("java:4.4.0:Incident", NEVER, "write")],
        [("prepare.py", INNER, "orders:3:1")],
        telling(dict.fromkeys((1, 2, 3), NEVER)),
        happened=f"all three brokers advertise {NEVER}, a load balancer that passes connections on to any of them",
    ),
    Incident(
        "follower-killed",
        [("later", "5", "kill", "2"), incident("steady", "seconds=16")],
        [*ORDERS, ("stop", "2"), ("start", "2"), ("wait", "5")],
        cluster(broker_session_timeout_ms="6000"),
        happened="node 2, which led nothing, was killed (SIGKILL) 5 s after the capture began",
    ),
    Incident(
        "broker-pauses",
        [
            *PAUSES,
            incident("steady", "seconds=16"),
        ],
        ORDERS,
        cluster(),
        happened="the process of node 2 stood still (SIGSTOP) for 1.7 s, three times",
    ),
    Incident(
        "follower-pauses",
        [
            *PAUSES,
            incident("steady", "seconds=16"),
        ],
        [
            ("prepare.py", "10.9.0.1:9092"),  # only node 1 is there to have what groups commit
            ("start", "2"),
            ("prepare.py", "10.9.0.1:9092", "orders:3:2"),
            ("stop", "2"),
            ("start", "2"),
            ("wait", "5"),
        ],
        ClusterSetup("4.4.0", (Member(11, "controller"), Member(1), Member(2, later=True)), SINGLE, voters=True),
        happened="node 1 leads all, node 2 has the other replicas: its process stood still (SIGSTOP) for 1.7 s, three "
        "times",
    ),
    Incident(
        "listener-unresolvable-of-one",
        [("members.py", "10.9.0.1:9092", "unresolved")],
        topics("orders:3:1"),
        one_unresolvable("kafka-3.internal"),
        client=LIBRDKAFKA,
        happened="node 3 advertises kafka-3.internal:9096, which does not resolve; nodes 1 and 2 advertise addresses",
    ),
    Incident(
        "loss-to-one-broker",
        [("loads.py", "{bootstrap}", "spread", "8")],
        [*topics("orders:6"), ("loads.py", "{bootstrap}", "spread", "4"), ("wait", "5")],
        cluster(replica_fetch_wait_max_ms="500"),
        LIBRDKAFKA,
        cable="loss=0.12 port=9094",
        happened="one packet in eight is lost between the client and node 2, in both directions, none on the way to "
        "nodes 1 and 3",
    ),
    Incident(
        "narrow-link",
        [("loads.py", "{bootstrap}", "bulk", "14")],
        [*topics("orders:6:3", "history:6:3"), ("loads.py", "{bootstrap}", "fill", "600")],
        cluster(replica_fetch_wait_max_ms="500"),
        f"{LIBRDKAFKA}, {KAFKA_PYTHON}",
        cable="rate=80000 host=10.9.0.2",
        happened="80,000 bytes a second reach 10.9.0.2, where warehouse reads what three brokers have; 10.9.0.3, where "
        "till writes, has no such limit",
    ),
    Incident(
        "bytes-flood",
        [("loads.py", "{bootstrap}", "flood", "7")],
        topics("orders:6:3", "history:6:3"),
        cluster(replica_fetch_wait_max_ms="500"),
        LIBRDKAFKA,
    ),
    Incident(
        "addresses-swapped",
        [("loads.py", "10.9.0.1:9092", "spread", "5")],
        [("prepare.py", INNER, "orders:6:3")],
        telling({1: "10.9.0.1:9092", 2: "10.9.0.1:9096", 3: "10.9.0.1:9094"}),
        LIBRDKAFKA,
        happened="node 2 advertises the address of node 3, and node 3 that of node 2",
    ),
    Incident(
        "one-host-shut-out",
        [("loads.py", "{bootstrap}", "bulk", "8")],
        topics("orders:6:3", "history:6:3"),
        cluster(replica_fetch_wait_max_ms="500"),
        f"{LIBRDKAFKA}, {KAFKA_PYTHON}",
        cable="loss=1 port=9094 host=10.9.0.3",
        happened="nothing passes between 10.9.0.3, where till is, and node 2; warehouse at 10.9.0.2 works with node 2",
    ),
    Incident(
        "followers-denied",
        [("loads.py", "{bootstrap}", "spread", "9")],
        topics("orders:6:3:min.insync.replicas=2"),
        followers_denied(),
        LIBRDKAFKA,
        tap=replace(INSIDE, filter="tcp and not port 19072"),
        happened="the user broker of the brokers has no right to ClusterAction: they refuse each other's fetches",
    ),
)
