"""Clients of the years from 2014 to 2019, and newer ones that still speak to brokers of those years."""

from __future__ import annotations

from captures.recipes.codec.eras_zookeeper import CUT_OFF, create, era
from captures.recipes.shared.scenario import Scenario, java
from captures.recipes.shared.zookeeper import QUIET_TAP, ZookeeperSetup


def client(program: str, topic: str, *arguments: str) -> tuple[str, ...]:
    """The step that runs a client program on a topic."""
    return (program, "{bootstrap}", topic, *arguments)


def sasl(version: str, mechanism: str) -> ZookeeperSetup:
    """Two brokers that speak SASL to each other and to clients; the one password is made up."""
    bearer = mechanism == "OAUTHBEARER"
    modules = [
        'plain.PlainLoginModule required username="broker" password="not-a-secret" user_broker="not-a-secret"'
        ' user_alice="not-a-secret"',
        'scram.ScramLoginModule required username="broker" password="not-a-secret"',
    ]
    if bearer:  # which bears no other beside it
        modules = ['oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="broker"']
    lines = "".join(f"  org.apache.kafka.common.security.{module};\n" for module in modules)
    return ZookeeperSetup(
        version,
        nodes=2,
        settings={
            "listeners": "SASL_PLAINTEXT://10.9.0.1:{port}",
            "security.inter.broker.protocol": "SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": mechanism if bearer else "PLAIN,SCRAM-SHA-256",
            "sasl.mechanism.inter.broker.protocol": mechanism,
            "delegation.token.master.key": "not-a-secret",
        },
        jaas=f"KafkaServer {{\n{lines}}};\n",
        scram_users=("alice", "broker"),
    )


#: librdkafka when it may not ask the broker what it knows.
FALLBACK = ("api.version.request=false", "broker.version.fallback=0.8.2")
PLAIN, SCRAM = ("PLAIN", "plain.PlainLoginModule"), ("SCRAM-SHA-256", "scram.ScramLoginModule")
MISPLACED = {
    "embedded_undecoded in DescribeGroups v3": "brokers of 2.3 put a member's assignment where its metadata belongs"
}

SCENARIOS: tuple[Scenario, ...] = (
    era(
        "era-0.8-clients",
        "Clients of several languages and a broker of 2015: message sets of magic 0, offsets kept in Kafka, no groups.",
        client("old_kafka_python.py", "python", "0.8.2"),
        "kafka-python 1.4.7, librdkafka 2.16.0 (confluent-kafka 2.16.1), Sarama 1.61.1",
        prepare=create("python:1:1", "rdkafka:1:1", "sarama:1:1"),
        then=(
            client("librdkafka_old.py", "rdkafka", *FALLBACK, "assign=0"),
            client("go:sarama", "sarama", "0.8.2.2"),
        ),
        broker=ZookeeperSetup("0.8.2.2", nodes=1),
        exceptions=CUT_OFF,
    ),
    era(
        "era-0.8-scala",
        "The Scala producer and the high-level consumer of 2014, whose group agrees through ZooKeeper and keeps its"
        " offsets in Kafka, and two brokers.",
        ("broker:0.8.2.2:OldScala", "{bootstrap}", "10.9.0.1:2181", "books"),
        "kafka (Scala) 0.8.2.2, the brokers' own clients",
        prepare=create("books:2:2"),
        broker=ZookeeperSetup("0.8.2.2", nodes=2),
        tap=QUIET_TAP,
        exceptions=CUT_OFF,
    ),
    era(
        "era-0.10-clients",
        "Clients of several languages and a broker of 2017, which turns its messages back for one of 2015.",
        client("old_kafka_python.py", "python", "0.10.2"),
        "kafka-python 1.4.7, librdkafka 2.16.0 (confluent-kafka 2.16.1), Sarama 1.61.1, franz-go 1.22.2, KafkaJS 2.2.4,"
        " kafka-clients (Java) 0.8.2.2",
        prepare=create("python:1:1", "rdkafka:1:1", "sarama:1:1", "franz:1:1", "kafkajs:1:1"),
        then=(
            client("librdkafka_old.py", "rdkafka"),
            client("go:sarama", "sarama", "0.10.2.0"),
            client("go:franz", "franz", "v0.10.2"),
            client("node:kafkajs.js", "kafkajs"),
            java("OldProduce", "python", version="0.8.2.2"),
            client("old_kafka_python.py", "python", "0.8.2"),
        ),
        broker=ZookeeperSetup("0.10.2.2", nodes=1),
        exceptions=CUT_OFF,
    ),
    era(
        "era-1.1-clients",
        "Clients of several languages and a broker of 2018, which turns its batches back for those of 2015 and 2017.",
        client("old_kafka_python.py", "python", "1.1.0"),
        "kafka-python 1.4.7, librdkafka 2.16.0 (confluent-kafka 2.16.1), aiokafka 0.14.0, Sarama 1.61.1,"
        " franz-go 1.22.2, KafkaJS 2.2.4, kafka-clients (Java) 0.8.2.2 and 0.10.2.2",
        prepare=create("python:1:1", "rdkafka:1:1", "aio:1:1", "sarama:1:1", "franz:1:1", "kafkajs:1:1"),
        then=(
            client("librdkafka_old.py", "rdkafka"),
            client("aio.py", "aio", "gzip", "snappy", "lz4"),
            client("go:sarama", "sarama", "1.1.0"),
            client("go:franz", "franz", "v1.1"),
            client("node:kafkajs.js", "kafkajs"),
            java("OldProduce", "python", version="0.8.2.2"),
            java("OldConsume", "python", "32", version="0.10.2.2"),
            client("old_kafka_python.py", "python", "0.8.2"),
        ),
        broker=ZookeeperSetup("1.1.1", nodes=1),
        exceptions=CUT_OFF,
    ),
    era(
        "era-2.3-clients",
        "Clients of several languages and a broker of 2019, which turns its batches back for those of 2015 and 2017.",
        client("kafka_python.py", "python"),
        "kafka-python 3.0.12 and 1.4.7, librdkafka 2.16.0 (confluent-kafka 2.16.1), aiokafka 0.14.0, Sarama 1.61.1,"
        " franz-go 1.22.2, KafkaJS 2.2.4, kafka-clients (Java) 0.8.2.2 and 0.10.2.2",
        prepare=create("python:1:1", "old:1:1", "rdkafka:1:1", "aio:1:1", "sarama:1:1", "franz:1:1", "kafkajs:1:1"),
        then=(
            client("librdkafka.py", "rdkafka"),
            client("aio.py", "aio"),
            client("go:sarama", "sarama", "2.3.0"),
            client("go:franz", "franz", "v2.3"),
            client("node:kafkajs.js", "kafkajs"),
            java("OldProduce", "old", version="2.3.1"),
            java("OldProduce", "old", version="0.8.2.2"),
            java("OldConsume", "old", "64", version="0.10.2.2"),
            client("old_kafka_python.py", "old", "0.8.2"),
        ),
        broker=ZookeeperSetup("2.3.1", nodes=1),
        exceptions=CUT_OFF | MISPLACED,
    ),
    era(
        "era-0.10-sasl",
        "SASL among brokers and to clients as it was first: SaslHandshake v0, then tokens without a request header.",
        java("OldSasl", *PLAIN, version="0.10.2.2"),
        "kafka-clients (Java) 0.10.2.2, librdkafka 2.16.0 (confluent-kafka 2.16.1), the brokers' own clients",
        prepare=create("secrets:1:2"),
        then=(
            java("OldSasl", *SCRAM, version="0.10.2.2"),
            ("librdkafka_sasl.py", "{bootstrap}", "PLAIN"),
        ),
        broker=sasl("0.10.2.2", "PLAIN"),
    ),
    era(
        "era-1.1-sasl",
        "SASL among brokers and to clients with the first SaslAuthenticate, and the life of a delegation token.",
        java("Sasl", *SCRAM, version="1.1.1"),
        "kafka-clients (Java) 1.1.1 and 2.3.1, librdkafka 2.16.0 (confluent-kafka 2.16.1), the brokers' own clients",
        prepare=create("secrets:1:2"),
        then=(
            java("Sasl", *PLAIN, version="1.1.1"),
            ("librdkafka_sasl.py", "{bootstrap}", "SCRAM-SHA-256"),
            java("OldTokens", version="2.3.1"),
        ),
        broker=sasl("1.1.1", "SCRAM-SHA-256"),
    ),
    era(
        "era-2.3-sasl",
        "SASL among brokers and to clients of 2019, and the life of a delegation token.",
        java("Sasl", *SCRAM, version="2.3.1"),
        "kafka-clients (Java) 2.3.1, the brokers' own clients",
        prepare=create("secrets:1:2"),
        then=(java("OldTokens", version="2.3.1"),),
        broker=sasl("2.3.1", "SCRAM-SHA-256"),
    ),
    era(
        "era-2.3-groups",
        "Two members of 2019 join and leave a group with the sticky assignor, which sends its last assignment along.",
        java(
            "Group",
            "shelves",
            "partition.assignment.strategy=org.apache.kafka.clients.consumer.StickyAssignor",
            version="2.3.1",
        ),
        "kafka-clients (Java) 2.3.1",
        prepare=create("shelves:4:1"),
        broker=ZookeeperSetup("2.3.1", nodes=1),
        exceptions=CUT_OFF,
    ),
    era(
        "era-2.3-oauthbearer",
        "SASL OAUTHBEARER among brokers and to a client, with unsecured tokens.",
        (
            "broker:2.3.1:OldSasl",
            "{bootstrap}",
            "OAUTHBEARER",
            "oauthbearer.OAuthBearerLoginModule",
            'unsecuredLoginStringClaim_sub="alice"',
        ),
        "kafka-clients (Java) 2.3.1, the brokers' own clients",
        prepare=create("secrets:1:2"),
        broker=sasl("2.3.1", "OAUTHBEARER"),
    ),
)
