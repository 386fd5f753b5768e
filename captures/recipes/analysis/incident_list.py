"""The incidents that ``incidents.py`` records: what is done to which brokers and clients, and what happens then.

A table with an entry for each, in the order of the manifest, which is why it is one long file.
"""

from __future__ import annotations

from dataclasses import replace

from captures.recipes.analysis.incident_setups import (
    ALICE,
    GENEROUS,
    INNER,
    NEVER,
    ORDERS,
    PLAIN,
    QUICK_SESSIONS,
    SCRAM,
    SINGLE,
    TRUSTING,
    WRONG,
    Incident,
    advertising,
    apart,
    certified,
    cluster,
    followers_denied,
    incident,
    one_unresolvable,
    single,
    telling,
    trusting,
)
from captures.recipes.codec.eras_groups import STREAMS_GROUPS
from captures.recipes.session.authentication import bearer
from captures.recipes.shared import rig
from captures.recipes.shared.cluster import INSIDE, ClusterSetup, Member
from captures.recipes.shared.scenario import AIOKAFKA, GUARDED, JAVA, KAFKA_PYTHON, LIBRDKAFKA, TLS, topics
from captures.recipes.shared.zookeeper import ZookeeperSetup

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
        [("unresolvable.py", "librdkafka", "{bootstrap}", "orders", "6")],
        [("prepare.py", INNER, "orders:2")],
        advertising("kafka-1.internal:9092"),
        LIBRDKAFKA,
        happened="the listener at 10.9.0.1:9092 advertises kafka-1.internal, which does not resolve at the client",
    ),
    Incident(
        "listener-unresolvable-aiokafka",
        [("unresolvable.py", "aiokafka", "{bootstrap}", "orders", "9")],
        [("prepare.py", INNER, "orders:2")],
        advertising("kafka-1.internal:9092"),
        AIOKAFKA,
        happened="tram ends when it cannot send, and is started again",
    ),
    Incident(
        "listener-unresolvable-kafka-python",
        [("unresolvable.py", "kafka-python", "{bootstrap}", "orders", "14")],
        [("prepare.py", INNER, "orders:2")],
        advertising("kafka-1.internal:9092"),
        f"{KAFKA_PYTHON}, {LIBRDKAFKA}",
        happened="board cannot reach its broker and goes on polling; clock works by another listener",
    ),
    *(
        Incident(
            f"listener-absent-{client}",
            [("go:unreachable", client, "{bootstrap}", "orders", seconds)],
            [("prepare.py", INNER, "orders:2")],
            advertising("10.9.0.77:9092"),
            "Sarama 1.61.1",
            happened="the listener at 10.9.0.1:9092 advertises 10.9.0.77, an address in its network that nobody has",
        )
        for client, seconds in (("sarama", "10"), ("sarama-group", "12"))
    ),
    Incident(
        "listener-named",
        [
            ("resolve", "kafka-1.internal"),
            incident("looks"),
            ("short_lived.py", "{bootstrap}", "orders", "4"),
        ],
        [("prepare.py", INNER, "orders:2")],
        advertising("kafka-1.internal:9092"),
        f"{LIBRDKAFKA}, {KAFKA_PYTHON}, {AIOKAFKA}, {JAVA}",
        happened="nothing is wrong: the listener at 10.9.0.1:9092 advertises a name, which resolves at the clients; "
        "all of them ask for something and are done",
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
        "frozen-member",
        [incident("frozen-member", "group.protocol=consumer")],
        topics("parcels:4"),
        rig.BrokerSetup(settings=QUICK_SESSIONS),
    ),
    *(
        Incident(f"slow-polls-{protocol}", [incident("slow-polls", f"group.protocol={protocol}")], topics("parcels:2"))
        for protocol in ("classic", "consumer")
    ),
    Incident("consumer-behind", [incident("consumer-behind")], topics("clicks:2")),
    Incident("small-fetches", [incident("small-fetches")], [*topics("clicks:2"), incident("write-singly")]),
    Incident("impatient-consumer", [incident("impatient")], topics("orders:2")),
    Incident("two-assignors", [incident("two-assignors")], topics("parcels:2")),
    Incident("group-full", [incident("group-full")], topics("parcels:2"), single(group_max_size="2")),
    Incident("clock-ahead", [incident("clock-ahead")], topics("readings:1:1:message.timestamp.after.max.ms=60000")),
    Incident("no-key", [incident("no-key")], topics("profiles:1:1:cleanup.policy=compact")),
    Incident(
        "zstd-old-reader",
        [("java:1.1.1:OldConsume", "{bootstrap}", "orders", "6")],
        (*topics("orders:2"), incident("write-zstd")),
        client="kafka-clients (Java) 1.1.1",
        happened="archive, a client of 2018, reads orders, which was written in zstd",
    ),
    Incident(
        "transaction-timed-out",
        [incident("transaction-timed-out")],
        topics("parcels:1"),
        single(transaction_abort_timed_out_transaction_cleanup_interval_ms="1000"),
    ),
    Incident(
        "transactional-id-denied",
        [incident("transactional-id-denied", *ALICE)],
        broker=rig.BrokerSetup(
            settings=PLAIN.settings
            | GUARDED.settings
            | {"super.users": "User:broker;User:ANONYMOUS", "allow.everyone.if.no.acl.found": "true"}
        ),
    ),
    Incident(
        "connections-per-ip",
        [incident("crowd")],
        topics("orders:2"),
        single(max_connections_per_ip="3"),
        happened="10.9.0.2 may have 3 connections (max.connections.per.ip) and wants 6",
    ),
    Incident("connection-rate", [incident("connection-rate")], topics("orders:2")),
    Incident(
        "user-removed",
        [
            incident(
                "user-removed",
                "sasl.mechanism=SCRAM-SHA-256",
                "security.protocol=SASL_PLAINTEXT",
                "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
                'username="alice" password="not-a-secret";',
            )
        ],
        broker=replace(
            SCRAM,
            settings=SCRAM.settings | {"auto.create.topics.enable": "true", "connections.max.reauth.ms": "4000"},
        ),
    ),
    Incident(
        "expired-token",
        [("expired_token.py", "{bootstrap}")],
        broker=bearer(),
        client=LIBRDKAFKA,
    ),
    *(
        Incident(
            f"{name}{suffix}",
            [incident("write", "security.protocol=SSL", *trusting(name), *protocols)],
            [("prepare.py", INNER, "orders:2")],
            certified(name),
            happened=happened,
        )
        for name, happened in (
            ("expired-certificate", "the certificate of the broker has expired in 2025"),
            ("other-host", "the certificate of the broker is for kafka.example, the client dials 10.9.0.1"),
        )
        for suffix, protocols in (("", ()), ("-tls-1.2", ("ssl.enabled.protocols=TLSv1.2", "ssl.protocol=TLSv1.2")))
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
    Incident("topic-recreated", [incident("topic-recreated")], topics("orders:2")),
    Incident(
        "silence",
        [("silence", "5", "8"), incident("steady", "seconds=20", "reader=no")],
        topics("orders:3"),
        happened="the broker's machine could not reach the client from the fifth to the thirteenth second",
    ),
    Incident(
        "streams-missing-topic",
        [("streams:4.3.1:StreamsChurn", "{bootstrap}", "lines", "shouts")],
        topics("shouts:1"),
        rig.BrokerSetup(settings=STREAMS_GROUPS),
        "Kafka Streams 4.3.1",
        happened="word-count reads lines, which does not exist",
    ),
    Incident(
        "idle-connections",
        [incident("idle")],
        topics("orders:2"),
        single(connections_max_idle_ms="2000"),
        happened="nothing is wrong: the broker closes connections that are idle for two seconds",
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
        "slow-reader",
        [("slow_reader.py", "{bootstrap}", "orders", "3")],
        [*topics("orders:1"), incident("write-much")],
        client="a client written by hand",
    ),
    Incident(
        "idle-forgotten",
        [("forget-idle", "9999", "9092", "2.5"), ("java:4.4.0:Incident", NEVER, "idle")],
        [("prepare.py", INNER, "orders:2")],
        advertising(NEVER),
        happened="a proxy before the broker forgets connections that are idle for 2.5 s: what is sent on them is reset",
    ),
    Incident(
        "broker-down",
        [("java:4.4.0:Incident", "10.9.0.1:9094", "write")],
        topics("orders:2"),
        happened="nobody listens at 10.9.0.1:9094, the only address that billing knows",
    ),
    Incident("poison-record", [incident("poison-record")], topics("parcels:2")),
    Incident("record-retried", [incident("record-retried")], topics("parcels:2")),
    *(
        Incident(
            f"stuck-consumer-{protocol}", [incident("stuck-consumer", f"group.protocol={protocol}")], topics("clicks:2")
        )
        for protocol in ("classic", "consumer")
    ),
    Incident("narrow-path", [("narrow", "1400"), incident("narrow-path")], topics("orders:2")),
    Incident(
        "load-balanced",
        [("balance", "9999", "9092", "9094", "9096"), ("java:4.4.0:Incident", NEVER, "write")],
        [("prepare.py", INNER, "orders:3:1")],
        telling(dict.fromkeys((1, 2, 3), NEVER)),
        happened=f"all three brokers advertise {NEVER}, a load balancer that passes connections on to any of them",
    ),
    Incident(
        "far-away",
        [incident("far-away")],
        topics("orders:2"),
        cable="delay=0.12",
        happened="each packet takes 120 ms from the client to the broker, and as long back",
    ),
    Incident(
        "untrusted-certificate-aiokafka",
        [("untrusting.py", "{bootstrap}", "6")],
        broker=TLS,
        client=AIOKAFKA,
        happened="the client does not trust the certificate of the broker, and closes without an alert",
    ),
    Incident(
        "wrong-password-tls",
        [incident("write", *(word.replace("SASL_PLAINTEXT", "SASL_SSL") for word in WRONG), *TRUSTING)],
        broker=replace(
            PLAIN,
            settings=PLAIN.settings
            | TLS.settings
            | {
                "listener.security.protocol.map": "CLIENT:SASL_SSL,CONTROLLER:PLAINTEXT",
                "ssl.endpoint.identification.algorithm": "",
            },
        ),
        happened="billing authenticates as alice with a wrong password, over TLS that cannot be read",
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
            *(
                ("later", str(at), action, "2")
                for second in (4, 8, 12)
                for at, action in ((second, "pause"), (second + 1.7, "resume"))
            ),
            incident("steady", "seconds=16"),
        ],
        ORDERS,
        cluster(),
        happened="the process of node 2 stood still (SIGSTOP) for 1.7 s, three times",
    ),
    Incident(
        "follower-pauses",
        [
            *(
                ("later", str(at), action, "2")
                for second in (4, 8, 12)
                for at, action in ((second, "pause"), (second + 1.7, "resume"))
            ),
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
    Incident("offsets-set", [incident("offsets-set")], topics("orders:1")),
    Incident("too-large-unasked", [incident("too-large-unasked")], topics("small:1:1:max.message.bytes=2000")),
    Incident(
        "right-removed",
        [incident("right-removed")],
        topics("orders:2"),
        replace(
            GUARDED,
            settings=GUARDED.settings | {"super.users": "User:broker", "allow.everyone.if.no.acl.found": "true"},
        ),
    ),
    *(
        Incident(name, [("members.py", "{bootstrap}", what)], topics("orders:3", "payments:3"), client=LIBRDKAFKA)
        for name, what in (
            ("partition-paused", "paused"),
            ("application-hangs", "hanging"),
            ("group-shared", "sharing"),
        )
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
        "begins-at-the-end",
        [("consumers.py", "{bootstrap}", "latest")],
        [*topics("orders:3"), ("consumers.py", "{bootstrap}", "before", "orders", "600", "100")],
        client=LIBRDKAFKA,
        happened="orders has 600 records",
    ),
    Incident(
        "pattern-without-topic", [("consumers.py", "{bootstrap}", "pattern")], topics("orders:3"), client=LIBRDKAFKA
    ),
    *(
        Incident(
            what,
            [incident(what)],
            topics("parcels:2"),
            single(
                group_share_record_lock_duration_ms="2000",
                group_share_min_record_lock_duration_ms="1000",
            ),
        )
        for what in ("share-late", "share-poison")
    ),
    Incident("clock-behind", [incident("clock-behind")], topics("readings:2")),
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
    *(
        Incident(name, [("missed.py", "{bootstrap}", what)], topics(f"orders:{partitions}"), client=clients)
        for name, what, partitions, clients in (
            ("partitions-added", "added", 2, LIBRDKAFKA),
            ("member-away", "away", 4, LIBRDKAFKA),
            ("committed-early", "early", 3, f"{LIBRDKAFKA}, {KAFKA_PYTHON}"),
            ("aborted-records", "aborted", 2, f"{LIBRDKAFKA}, {KAFKA_PYTHON}"),
        )
    ),
)
