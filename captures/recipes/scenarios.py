"""What a recording is, and those of the newest broker and of old clients with a broker that still knows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rig import BROKER_SPACE, HERE, BrokerSetup, Setup, Tap


@dataclass(frozen=True)
class Scenario:
    """One recording. ``{bootstrap}`` in a command becomes the broker's address.

    ``prepare`` runs before tcpdump listens, ``client`` and ``then`` while it does; with ``from_the_start`` it listens
    from before the brokers start until after they have stopped. Beside client programs, ``then`` and ``prepare`` may
    hold what the setup can do to its brokers. With ``tls`` the client writes its key log to
    ``keys.log``. ``shows`` is the manifest's sentence, ``clients`` says who talks. ``exceptions`` explain what is wrong
    with the bytes: by ``PROBLEM in API vVERSION``, or ``PROBLEM`` alone for what belongs to no message. ``folder`` is
    where under ``captures/`` it lies: clusters in ``eras``, apart from what every test of the readers goes through.
    """

    name: str
    shows: str
    client: tuple[str, ...]
    clients: str
    prepare: tuple[tuple[str, ...], ...] = ()
    then: tuple[tuple[str, ...], ...] = ()
    broker: Setup = field(default_factory=BrokerSetup)
    tap: Tap = field(default_factory=Tap)
    from_the_start: bool = False
    compressed: bool = False
    tls: bool = False
    folder: str = ""
    exceptions: Mapping[str, str] = field(default_factory=dict)

    @property
    def file(self) -> str:
        name = f"{self.name}.{self.tap.form}" + (".xz" if self.compressed else "")
        return f"{self.folder}/{name}" if self.folder else name


JAVA = "kafka-clients (Java) 4.4.0"
#: librdkafka 2.16 ends a Metadata request v13 with a part of a longer one.
STRAY_BYTES = {"trailing_bytes in Metadata v13": "librdkafka sends three bytes more than the request has"}
LIBRDKAFKA = "librdkafka 2.16.0 (confluent-kafka 2.16.1)"
KAFKA_PYTHON = "kafka-python 3.0.12"
AIOKAFKA = "aiokafka 0.14.0"
OLD_BROKER = BrokerSetup(version="3.9.1")  # the last that knows what 4.0 took away
IPV6 = BrokerSetup(ipv6=True)
#: An authorizer, with the client that does not say who it is as the one who may do everything.
GUARDED = BrokerSetup(
    settings={
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
)
#: The listener for clients, with a certificate made for these recordings alone.
_CERTIFICATE = str(HERE / "kafka" / "tls.pem")
TLS = BrokerSetup(
    settings={
        "listener.security.protocol.map": "CLIENT:SSL,CONTROLLER:PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": _CERTIFICATE,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": _CERTIFICATE,
    }
)
#: Where a client of a TLS listener logs its keys, in the folder that it runs in.
KEYLOG = "keys.log"


def sasl(mechanism: str, login_module: str) -> BrokerSetup:
    """A broker whose clients must authenticate as alice, with an obviously made-up password."""
    listener = f"listener.name.client.{mechanism.lower()}.sasl.jaas.config"
    jaas = f"org.apache.kafka.common.security.{login_module} required"
    users = ' user_alice="not-a-secret" username="broker" password="not-a-secret" user_broker="not-a-secret"'
    scram = ' username="broker" password="not-a-secret"'
    credentials = [f"{mechanism}=[name={name},password=not-a-secret]" for name in ("alice", "broker")]
    return BrokerSetup(
        settings={
            "listener.security.protocol.map": "CLIENT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": mechanism,
            "sasl.mechanism.inter.broker.protocol": mechanism,
            "delegation.token.secret.key": "not-a-secret",
            listener: jaas + (users if mechanism == "PLAIN" else scram) + ";",
        },
        format_arguments=() if mechanism == "PLAIN" else ("--add-scram", credentials[0], "--add-scram", credentials[1]),
    )


def java(program: str, *arguments: str, version: str = "4.4.0") -> tuple[str, ...]:
    """The command of a Java client program; it gets the broker's address first."""
    return (f"java:{version}:{program}", "{bootstrap}", *arguments)


def topics(*names: str) -> tuple[tuple[str, ...], ...]:
    """The preparation that creates topics, each NAME[:PARTITIONS[:REPLICAS[:SETTING=VALUE]]]."""
    return (("prepare.py", "{bootstrap}", *names),)


SCENARIOS = (
    Scenario(
        "first-look",
        "A deployment script creates a topic that exists, a shop produces five orders, a consumer group reads them.",
        java("FirstLook"),
        JAVA,
        (*topics("orders"), ("prepare_producer.py", "{bootstrap}")),
    ),
    Scenario(
        "java-produce",
        "A batch in each codec, headers, null keys, tombstones, acks 0, 1 and all, and a record too large.",
        java("Produce", "greenhouse"),
        JAVA,
        topics("greenhouse", "small-greenhouse:1:1:max.message.bytes=1000"),
        tap=Tap(time="nano"),
    ),
    Scenario(
        "java-fetch",
        "A consumer without a group lists offsets, reads batches of every codec, long-polls, and seeks out of range.",
        java("Fetch", "greenhouse", "108"),
        JAVA,
        (*topics("greenhouse", "small-greenhouse:1:1:max.message.bytes=1000"), java("Produce", "greenhouse")),
        tap=Tap(form="pcapng", time="nano"),
    ),
    Scenario(
        "java-group-classic",
        "Two members join and leave a group by the classic protocol, all partitions revoked at each rebalance.",
        java("Group", "shelves"),
        JAVA,
        topics("shelves:4"),
    ),
    Scenario(
        "java-group-cooperative",
        "Two members join and leave a group by the classic protocol with the cooperative assignor.",
        java(
            "Group",
            "shelves",
            "partition.assignment.strategy=org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
        ),
        JAVA,
        topics("shelves:4"),
        broker=IPV6,
        tap=Tap(filter="ip6 and tcp"),
    ),
    Scenario(
        "java-group-consumer",
        "Two members join and leave a group by the consumer protocol (KIP-848).",
        java("Group", "shelves", "group.protocol=consumer"),
        JAVA,
        topics("shelves:4"),
        tap=Tap(form="pcapng"),
    ),
    Scenario(
        "java-transactions",
        "A transaction that commits, with offsets, one that aborts, a fenced producer, a read-committed reader.",
        java("Transactions", "incoming", "outgoing"),
        JAVA,
        topics("incoming", "outgoing"),
        tap=Tap(interface="any", time="nano"),
    ),
    Scenario(
        "java-share-group",
        "A share group (KIP-932) accepts, releases and rejects records.",
        java("ShareGroup", "tasks"),
        JAVA,
        topics("tasks"),
    ),
    Scenario(
        "java-admin-topics",
        "Topics, their settings and partitions, and the cluster, by the admin client, with several refusals.",
        java("AdminTopics"),
        JAVA,
        topics(),
    ),
    Scenario(
        "java-admin-groups",
        "Groups listed, described and deleted by the admin client, with a static member alive.",
        java("AdminGroups", "reports"),
        JAVA,
        topics("reports"),
        tap=Tap(interface="any", link_type="LINUX_SLL"),
    ),
    Scenario(
        "java-admin-security",
        "Access rules, SCRAM users and quotas by the admin client.",
        java("AdminSecurity"),
        JAVA,
        broker=GUARDED,
    ),
    Scenario(
        "java-telemetry",
        "A broker asks its clients for metrics and a producer pushes them (KIP-714).",
        java("Telemetry", "ticks"),
        JAVA,
        topics("ticks"),
        broker=BrokerSetup(settings={"metric.reporters": "TelemetryReceiver"}, plugin="TelemetryReceiver"),
    ),
    Scenario(
        "java-old-broker",
        "The newest Java client and a broker of 2025: ApiVersions v5 is refused and asked again in an older version.",
        java("FirstLook"),
        JAVA,
        topics("orders"),
        broker=OLD_BROKER,
    ),
    Scenario(
        "java-sasl-plain",
        "SASL PLAIN: one client is let in, one is turned away.",
        java("Sasl", "PLAIN", "plain.PlainLoginModule"),
        JAVA,
        broker=sasl("PLAIN", "plain.PlainLoginModule"),
    ),
    Scenario(
        "java-sasl-scram-256",
        "SASL SCRAM-SHA-256: one client is let in, one is turned away.",
        java("Sasl", "SCRAM-SHA-256", "scram.ScramLoginModule"),
        JAVA,
        broker=sasl("SCRAM-SHA-256", "scram.ScramLoginModule"),
    ),
    Scenario(
        "java-sasl-scram-512",
        "SASL SCRAM-SHA-512: one client is let in, one is turned away.",
        java("Sasl", "SCRAM-SHA-512", "scram.ScramLoginModule"),
        JAVA,
        broker=sasl("SCRAM-SHA-512", "scram.ScramLoginModule"),
    ),
    Scenario(
        "java-sasl-token",
        "A delegation token is made, shown, renewed, used to authenticate by SCRAM, and expired.",
        java("Tokens"),
        JAVA,
        broker=sasl("SCRAM-SHA-256", "scram.ScramLoginModule"),
    ),
    Scenario(
        "librdkafka",
        "librdkafka: a producer per codec, an idempotent one, acks=0, a classic group, and a topic that is not there.",
        ("librdkafka.py", "{bootstrap}", "visits"),
        LIBRDKAFKA,
        topics("visits"),
    ),
    Scenario(
        "librdkafka-group-consumer",
        "librdkafka: the same, read by a group of the consumer protocol (KIP-848).",
        ("librdkafka.py", "{bootstrap}", "visits", "group.protocol=consumer"),
        LIBRDKAFKA,
        topics("visits"),
        tap=Tap(interface="any", form="pcapng"),
    ),
    Scenario(
        "librdkafka-transactions",
        "librdkafka: a transaction that commits and one that aborts.",
        ("librdkafka_transactions.py", "{bootstrap}", "ledger"),
        LIBRDKAFKA,
        topics("ledger"),
    ),
    Scenario(
        "librdkafka-sasl-plain",
        "librdkafka: SASL PLAIN, let in and turned away; it adds three stray bytes to Metadata requests.",
        ("librdkafka_sasl.py", "{bootstrap}", "PLAIN"),
        LIBRDKAFKA,
        exceptions=STRAY_BYTES,
        broker=sasl("PLAIN", "plain.PlainLoginModule"),
    ),
    Scenario(
        "librdkafka-sasl-scram-256",
        "librdkafka: SASL SCRAM-SHA-256, let in and turned away.",
        ("librdkafka_sasl.py", "{bootstrap}", "SCRAM-SHA-256"),
        LIBRDKAFKA,
        exceptions=STRAY_BYTES,
        broker=sasl("SCRAM-SHA-256", "scram.ScramLoginModule"),
    ),
    Scenario(
        "kafka-python",
        "kafka-python: a producer per codec, a group, topics created, one of them for the second time.",
        ("kafka_python.py", "{bootstrap}", "lamps"),
        KAFKA_PYTHON,
        topics("lamps"),
    ),
    Scenario(
        "kafka-python-tls",
        "kafka-python over TLS 1.2 and 1.3 creates a topic, produces to it and reads it in a group.",
        ("kafka_python_tls.py", "{bootstrap}", "valuables", KEYLOG),
        KAFKA_PYTHON,
        broker=TLS,
        tls=True,
    ),
    Scenario(
        "aiokafka",
        "aiokafka: a producer per codec, a transaction, a group that reads what was committed.",
        ("aio.py", "{bootstrap}", "trams"),
        AIOKAFKA,
        topics("trams"),
        broker=IPV6,
        tap=Tap(filter="ip6 and tcp", time="nano"),
    ),
    Scenario(
        "aiokafka-sasl-scram-512",
        "aiokafka: SASL SCRAM-SHA-512.",
        ("aio_sasl.py", "{bootstrap}", "SCRAM-SHA-512"),
        AIOKAFKA,
        broker=sasl("SCRAM-SHA-512", "scram.ScramLoginModule"),
    ),
    Scenario(
        "franz-go",
        "franz-go: a producer per codec, transactions that commit and abort, a cooperative group, a missing topic.",
        ("go:franz", "{bootstrap}", "ferries"),
        "franz-go 1.22.2",
        topics("ferries"),
    ),
    Scenario(
        "sarama",
        "Sarama: a producer per codec, a group, and a look at the cluster.",
        ("go:sarama", "{bootstrap}", "cranes"),
        "Sarama 1.61.1",
        topics("cranes"),
    ),
    Scenario(
        "kafkajs",
        "KafkaJS: produce with and without gzip, a group, and a topic that is not there.",
        ("node:kafkajs.js", "{bootstrap}", "letters"),
        "KafkaJS 2.2.4",
        topics("letters"),
    ),
    Scenario(
        "java-moved-leader",
        "A partition moves to the other broker: Produce and Fetch get NOT_LEADER_OR_FOLLOWER and find their way.",
        java("MovedLeader"),
        JAVA,
        topics(),
        broker=BrokerSetup(nodes=2),
    ),
    Scenario(
        "cluster-inside",
        "Two brokers and their controller among themselves, from start to stop: registration, raft, replication.",
        ("librdkafka_transactions.py", "{bootstrap}", "ledger"),
        "Apache Kafka 4.4.0 (the brokers' own clients)",
        topics("ledger:2:2"),
        broker=BrokerSetup(nodes=2),
        tap=Tap(space=BROKER_SPACE, interface="lo"),
        from_the_start=True,
        compressed=True,
        exceptions={"incomplete_response": "a broker stopped while it sent its answer"},
    ),
    Scenario(
        "old-java-0.8-produce",
        "The first Java producer: Produce v0 and message sets of magic 0 in every codec of the time.",
        java("OldProduce", "gauges", version="0.8.2.2"),
        "kafka-clients (Java) 0.8.2.2",
        topics("gauges"),
        broker=OLD_BROKER,
    ),
    Scenario(
        "old-java-0.10-produce",
        "A Java producer of 2017: Produce v2 and message sets of magic 1 in every codec of the time.",
        java("OldProduce", "gauges", version="0.10.2.2"),
        "kafka-clients (Java) 0.10.2.2",
        topics("gauges"),
        broker=OLD_BROKER,
    ),
    Scenario(
        "old-java-0.10-group",
        "A Java consumer group of 2017 reads what the broker converts back to message sets of magic 1.",
        java("OldConsume", "gauges", "32", version="0.10.2.2"),
        "kafka-clients (Java) 0.10.2.2",
        (*topics("gauges"), java("OldProduce", "gauges", version="0.10.2.2")),
        broker=OLD_BROKER,
    ),
    Scenario(
        "old-kafka-python-0.9",
        "kafka-python as to a 0.9 broker: Produce v0, Fetch v0, magic 0, lz4 with the early header checksum.",
        ("old_kafka_python.py", "{bootstrap}", "gauges", "0.9.0"),
        "kafka-python 1.4.7",
        topics("gauges"),
        broker=OLD_BROKER,
    ),
    Scenario(
        "old-sasl-plain",
        "SASL PLAIN by a client of 2017: SaslHandshake v0, then tokens without a request header.",
        java("OldSasl", "PLAIN", "plain.PlainLoginModule", version="0.10.2.2"),
        "kafka-clients (Java) 0.10.2.2",
        broker=sasl("PLAIN", "plain.PlainLoginModule"),
    ),
    Scenario(
        "old-sasl-scram-256",
        "SASL SCRAM-SHA-256 by a client of 2017: SaslHandshake v0, then tokens without a request header.",
        java("OldSasl", "SCRAM-SHA-256", "scram.ScramLoginModule", version="0.10.2.2"),
        "kafka-clients (Java) 0.10.2.2",
        broker=sasl("SCRAM-SHA-256", "scram.ScramLoginModule"),
    ),
    Scenario(
        "seed-batched",
        "Steady traffic in large uncompressed batches, in versions that older analyzers know; a seed of the benchmark.",
        java("BenchTraffic", "events", "2000", "none", "64000", version="2.3.1"),
        "kafka-clients (Java) 2.3.1",
        topics("events"),
        compressed=True,
    ),
    Scenario(
        "seed-single",
        "Steady traffic of one record a request, in versions that older analyzers know; a seed of the benchmark.",
        java("BenchTraffic", "events", "150", "none", "0", version="2.3.1"),
        "kafka-clients (Java) 2.3.1",
        topics("events"),
        compressed=True,
    ),
    Scenario(
        "seed-zstd",
        "Steady traffic in zstd batches, in versions that older analyzers know; a seed of the benchmark.",
        java("BenchTraffic", "events", "4000", "zstd", "64000", version="2.3.1"),
        "kafka-clients (Java) 2.3.1",
        topics("events"),
        compressed=True,
    ),
)
