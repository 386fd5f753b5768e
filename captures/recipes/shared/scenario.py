"""What a recording is, and the brokers and programs that many recordings have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from captures.recipes.shared.rig import HERE, BrokerSetup, Setup, Tap


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
