"""What is recorded: one entry per capture, in the order of the manifest."""

from __future__ import annotations

from dataclasses import dataclass, field

from rig import BrokerSetup, Tap


@dataclass(frozen=True)
class Scenario:
    """One recording. ``{bootstrap}`` in a command becomes the broker's address.

    ``prepare`` runs before tcpdump listens, ``client`` while it does. ``shows`` is the manifest's sentence.
    """

    name: str
    shows: str
    client: tuple[str, ...]
    clients: str
    prepare: tuple[tuple[str, ...], ...] = ()
    broker: BrokerSetup = field(default_factory=BrokerSetup)
    tap: Tap = field(default_factory=Tap)
    compressed: bool = False

    @property
    def file(self) -> str:
        return f"{self.name}.{self.tap.form}" + (".xz" if self.compressed else "")


def topics(*names: str) -> tuple[tuple[str, ...], ...]:
    return (("prepare.py", "{bootstrap}", *names),)


SCENARIOS = (
    Scenario(
        "first-look",
        "A deployment script creates a topic that exists, a shop produces five orders, a consumer group reads them.",
        ("java:4.4.0:FirstLook", "{bootstrap}"),
        "kafka-clients (Java) 4.4.0",
        topics("orders"),
    ),
    Scenario(
        "seed-batched",
        "Steady traffic in large uncompressed batches, in versions that older analyzers know; a seed of the benchmark.",
        ("java:2.3.1:BenchTraffic", "{bootstrap}", "events", "2000", "none", "64000"),
        "kafka-clients (Java) 2.3.1",
        topics("events"),
        compressed=True,
    ),
    Scenario(
        "seed-single",
        "Steady traffic of one record a request, in versions that older analyzers know; a seed of the benchmark.",
        ("java:2.3.1:BenchTraffic", "{bootstrap}", "events", "150", "none", "0"),
        "kafka-clients (Java) 2.3.1",
        topics("events"),
        compressed=True,
    ),
    Scenario(
        "seed-zstd",
        "Steady traffic in zstd batches, in versions that older analyzers know; a seed of the benchmark.",
        ("java:2.3.1:BenchTraffic", "{bootstrap}", "events", "4000", "zstd", "64000"),
        "kafka-clients (Java) 2.3.1",
        topics("events"),
        compressed=True,
    ),
)
