"""What goes wrong between clients and one broker: what is done to which of them, and what happens then.

A table with an entry for each, which ``incidents.py`` records.
"""

from __future__ import annotations

from dataclasses import replace

from captures.recipes.analysis.incident_setups import (
    ALICE,
    GENEROUS,
    INNER,
    NEVER,
    PLAIN,
    QUICK_SESSIONS,
    SCRAM,
    TRUSTING,
    WRONG,
    Incident,
    advertising,
    certified,
    incident,
    single,
    trusting,
)
from captures.recipes.codec.eras_groups import STREAMS_GROUPS
from captures.recipes.session.authentication import bearer
from captures.recipes.shared import rig
from captures.recipes.shared.scenario import AIOKAFKA, GUARDED, JAVA, KAFKA_PYTHON, LIBRDKAFKA, TLS, topics

AT_ONE_BROKER = (
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
    Incident("produce-quota", [incident("produce-quota", *ALICE)], broker=GENEROUS),
    Incident("request-quota", [incident("request-quota")], topics("orders:2"), single()),
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
    Incident("offsets-set", [incident("offsets-set")], topics("orders:1")),
    Incident(
        "directory-slow",
        [("directory.py", "{bootstrap}", "4")],
        broker=replace(
            PLAIN,
            settings=PLAIN.settings
            | {
                "auto.create.topics.enable": "true",
                "num.network.threads": "1",
                "listener.name.client.plain.sasl.server.callback.handler.class": "SlowDirectory",
            },
            plugin="SlowDirectory",
        ),
        client=f"{LIBRDKAFKA}, {KAFKA_PYTHON}",
        happened="a directory takes the broker 1.5 s for each password of alice; it has one network thread, so that "
        "nobody else is answered meanwhile",
    ),
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
