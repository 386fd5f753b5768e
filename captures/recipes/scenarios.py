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

    @property
    def file(self) -> str:
        return f"{self.name}.{self.tap.form}"


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
)
