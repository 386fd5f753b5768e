"""Share groups, streams groups, and every version of what a client may ask."""

from __future__ import annotations

from captures.recipes.codec.errands import NEWEST, STOPPED, Step, inside, office, trio, upkeep
from captures.recipes.shared.rig import BrokerSetup
from captures.recipes.shared.scenario import GUARDED, JAVA, Scenario, java, sasl

STREAMS = "Kafka Streams 4.3.1"
KMSG = "franz-go's messages (kmsg) 1.15.0"
_PLUGINS = "org.apache.kafka.server.streams"
STREAMS_GROUPS = {
    "group.streams.topology.description.plugin.class": f"{_PLUGINS}.InMemoryTopologyDescriptionPlugin",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.num.standby.replicas": "1",
}
EARLY_ACCESS = {
    "unstable.api.versions.enable": "true",
    "group.coordinator.rebalance.protocols": "classic,consumer,share",
    "group.share.enable": "true",
}
_PLAIN = sasl("PLAIN", "plain.PlainLoginModule")
#: All that a client may ask of a single broker of 2025: SASL, tokens, access rules.
WITH_EVERYTHING = BrokerSetup(
    version="3.9.1",
    settings={**_PLAIN.settings, **GUARDED.settings, "super.users": "User:alice;User:broker;User:ANONYMOUS"},
)


def word_count(*settings: str, version: str = "4.3.1") -> Step:
    return (f"streams:{version}:WordCount", "{bootstrap}", "lines", "counts", *settings)


SCENARIOS = (
    inside(
        "streams-4.4",
        "A Kafka Streams application in two instances, by the classic protocol and as a streams group (KIP-1071).",
        STREAMS,
        trio(NEWEST, STREAMS_GROUPS),
        upkeep("create lines 2 3", "create counts 1 3"),
        word_count("application.id=classic-count", "processing.guarantee=exactly_once_v2"),
        word_count("application.id=streams-count", "group.protocol=streams", "num.standby.replicas=0"),
        office(
            "groups",
            "streams streams-count",
            "streams-offsets streams-count",
            "streams-reset streams-count lines:0",
            "streams-delete streams-count",
        ),
        exceptions=STOPPED,
    ),
    inside(
        "share-4.4",
        "A share group on three brokers: its state between them, and its offsets in the hands of the admin client.",
        JAVA,
        trio(NEWEST),
        upkeep("create tasks 2 3", "create errands 1 3", "produce tasks 5"),
        java("ShareGroup", "tasks", "keep"),
        office(
            "share tasks",
            "share-offsets tasks",
            "share-reset tasks tasks:0",
            "share-offsets tasks",
            "share-forget tasks tasks",
            "share-delete tasks",
        ),
    ),
    inside(
        "share-4.1",
        "A share group on three brokers of 4.1, where share groups were a preview.",
        "kafka-clients (Java) 4.1.1",
        trio("4.1.1", {}, "--feature", "share.version=1"),
        upkeep("create tasks 2 3", version="4.1.1"),
        java("ShareGroup", "tasks", "keep", version="4.1.1"),
        office("share-offsets tasks", "share-reset tasks tasks:0", "share-delete tasks"),
    ),
    inside(
        "share-4.0",
        "A share group on three brokers of 4.0, where share groups could be tried.",
        "kafka-clients (Java) 4.0.0",
        trio("4.0.0", EARLY_ACCESS),
        upkeep("create tasks 2 3", version="4.0.0"),
        java("ShareGroup", "tasks", "keep", version="4.0.0"),
    ),
    Scenario(
        "versions-3.9",
        "Every version of every request that the last release before 4.0 offers its clients, by SASL PLAIN.",
        ("go:versions", "{bootstrap}", "alice", "not-a-secret"),
        KMSG,
        broker=WITH_EVERYTHING,
        folder="eras",
        compressed=True,
    ),
    Scenario(
        "versions-4.4",
        "Every version of every request that the newest release offers its clients.",
        ("go:versions", "{bootstrap}"),
        KMSG,
        broker=BrokerSetup(settings={**GUARDED.settings, **STREAMS_GROUPS}),
        folder="eras",
        compressed=True,
    ),
)
