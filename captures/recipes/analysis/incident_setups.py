"""What an incident is, and the brokers, clients and settings that incidents are made with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from captures.recipes.shared import rig
from captures.recipes.shared.cluster import ClusterSetup, Member
from captures.recipes.shared.scenario import GUARDED, JAVA, java, sasl, topics

NEVER = "10.9.0.1:9999"  # where nobody listens
PLAIN = sasl("PLAIN", "plain.PlainLoginModule")
QUICK_SESSIONS = {
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "2000",
    "group.consumer.session.timeout.ms": "3000",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.session.timeout.ms": "2000",
    "group.share.session.timeout.ms": "3000",
}
#: One broker has one replica of everything.
SINGLE = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
Step = tuple[str, ...]


@dataclass(frozen=True)
class Incident:
    """One recording. Steps are client programs, or what ``do`` knows; ``cable`` are the settings
    of ``long_cable``, where the cable between client and brokers is no ordinary one; ``tap`` is where it is
    recorded."""

    name: str
    steps: Sequence[Step]
    prepare: Sequence[Step] = ()
    broker: rig.Setup = field(default_factory=rig.BrokerSetup)
    client: str = JAVA
    happened: str = ""
    cable: str = ""
    tap: rig.Tap = field(default_factory=rig.Tap)


def incident(what: str, *settings: str, version: str = "4.4.0") -> Step:
    return java("Incident", what, *settings, version=version)


def cluster(version: str = "4.4.0", **settings: str) -> ClusterSetup:
    """Three brokers; the first is the controller, too. An underscore in a setting stands for a dot."""
    members = (Member(1, "broker,controller"), Member(2), Member(3))
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return ClusterSetup(version, members, given, voters=True)


def apart(**settings: str) -> ClusterSetup:
    """A controller by itself and a broker."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return ClusterSetup("4.4.0", (Member(11, "controller"), Member(1)), SINGLE | given, voters=True)


def single(**settings: str) -> rig.BrokerSetup:
    """One broker with some settings; an underscore stands for a dot."""
    return rig.BrokerSetup(settings={name.replace("_", "."): value for name, value in settings.items()})


def advertising(address: str) -> rig.BrokerSetup:
    """A broker that its clients are told to find elsewhere; brokers and tools have a listener of their own."""
    return rig.BrokerSetup(
        settings={
            "listeners": f"CLIENT://{rig.BROKER_IP}:9092,INNER://{rig.BROKER_IP}:9192,CONTROLLER://127.0.0.1:{rig.CONTROLLER_PORT}",
            "advertised.listeners": f"CLIENT://{address},INNER://{rig.BROKER_IP}:9192",
            "inter.broker.listener.name": "INNER",
            "listener.security.protocol.map": "CLIENT:PLAINTEXT,INNER:PLAINTEXT,CONTROLLER:PLAINTEXT",
        }
    )


def telling(addresses: Mapping[int, str], **settings: str) -> ClusterSetup:
    """Three brokers that tell clients these addresses, and each other those of a listener of their own."""
    ports = {node: 9190 + 2 * node for node in (1, 2, 3)}
    members = tuple(
        Member(
            node,
            "broker,controller" if node == 1 else "broker",
            {
                "listeners": f"CLIENT://{rig.BROKER_IP}:{9090 + 2 * node},INNER://{rig.BROKER_IP}:{port}"
                + f",CONTROLLER://{rig.BROKER_IP}:{19070 + 2 * node}" * (node == 1),
                "advertised.listeners": f"CLIENT://{addresses[node]},INNER://{rig.BROKER_IP}:{port}",
                "inter.broker.listener.name": "INNER",
                "listener.security.protocol.map": "CLIENT:PLAINTEXT,INNER:PLAINTEXT,CONTROLLER:PLAINTEXT",
            },
        )
        for node, port in ports.items()
    )
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return ClusterSetup("4.4.0", members, given, voters=True)


def followers_denied() -> ClusterSetup:
    """Three brokers whose user may not copy from the others."""
    own = telling({node: f"{rig.BROKER_IP}:{9090 + 2 * node}" for node in (1, 2, 3)}, replica_lag_time_max_ms="5000")
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="broker" '
    sasl_inside = {
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,INNER:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.inner.plain.sasl.jaas.config": f'{jaas}password="not-a-secret" user_broker="not-a-secret";',
    }
    members = tuple(replace(one, settings={**one.settings, **sasl_inside}) for one in own.members)
    return replace(own, members=members, settings={**own.settings, **GUARDED.settings})


def one_unresolvable(host: str) -> ClusterSetup:
    """Three brokers, the third of which advertises a name that is nobody's."""
    third = {"listeners": f"CLIENT://{rig.BROKER_IP}:9096", "advertised.listeners": f"CLIENT://{host}:9096"}
    return ClusterSetup("4.4.0", (Member(1, "broker,controller"), Member(2), Member(3, settings=third)), voters=True)


INNER = f"{rig.BROKER_IP}:9192"
ALICE = (
    "sasl.mechanism=PLAIN",
    "security.protocol=SASL_PLAINTEXT",
    "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="alice" password="not-a-secret";',
)

#: What a client needs to trust the recipes' broker.
TRUSTING = (
    "ssl.truststore.type=PEM",
    f"ssl.truststore.location={rig.HERE / 'kafka' / 'tls.pem'}",
    "ssl.endpoint.identification.algorithm=",
)
#: A broker on which alice may do everything.
GENEROUS = replace(PLAIN, settings=PLAIN.settings | {"auto.create.topics.enable": "true", "num.partitions": "2"})

WRONG = tuple(word.replace("not-a-secret", "a-wrong-one") for word in ALICE)
ORDERS = topics("orders:3:3")
SCRAM = sasl("SCRAM-SHA-256", "scram.ScramLoginModule")


def certified(name: str) -> rig.BrokerSetup:
    """A broker whose listener for clients has another certificate than that of the recipes."""
    plain = advertising(f"{rig.BROKER_IP}:9092").settings
    protocols = {"listener.security.protocol.map": "CLIENT:SSL,INNER:PLAINTEXT,CONTROLLER:PLAINTEXT"}
    pem = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(rig.HERE / "kafka" / f"{name}.pem")}
    return rig.BrokerSetup(settings=plain | protocols | pem)


def trusting(name: str) -> tuple[str, ...]:
    """What a client needs to trust whoever signed it."""
    own, ca = rig.HERE / "kafka" / f"{name}.pem", rig.HERE / "kafka" / f"{name}-ca.pem"
    return ("ssl.truststore.type=PEM", f"ssl.truststore.location={ca if ca.exists() else own}")
